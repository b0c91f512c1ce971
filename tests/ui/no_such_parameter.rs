//! A parameter that an algorithm does not have: rustc names no trait that has such a method, for there is none.

use roundelay::library::{RingBroadcast, RingAllReduce};

fn main() {
    let _ = RingBroadcast::new().root(1);
    let _ = RingAllReduce::new().root(1);
    let _ = RingAllReduce::new().rnig([0, 1, 2]);
}
