//! The warning of a file stands where the file is named, with its own place spelled out.
#![deny(warnings)]

roundelay::include_collective!("data/warned.coll");

fn main() {
    let _ = Warned::new();
}
