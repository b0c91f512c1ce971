//! The device prelude under the shim: the hand-written part of a kernel, without what is generated.

#[path = "../common/shim.rs"]
mod shim;

use roundelay_export::cuda::Header;

mod lines;
mod moves;
mod numbers;
mod signals;

// Jobs of these tests say in word 3 where their groups are.
const _: () = assert!(Header::GroupsAt as usize == 3);

/// Numbers that look random and are the same on every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}
