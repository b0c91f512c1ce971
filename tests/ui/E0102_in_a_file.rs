//! No span can point into another file: the place is spelled out in the message.

roundelay::include_collective!("data/wrong.coll");

fn main() {
    let _ = Wrong::new();
}
