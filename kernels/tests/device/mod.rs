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
