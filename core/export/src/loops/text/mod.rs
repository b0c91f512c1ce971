//! The text of the loop form, which is read back exactly: a statement a line, and behind `@` its line in the source, with
//! the number of the file before it if that is not the first.
//!
//! ```text
//! loops RingAllGather AllGather nranks 4 root 0 pieces 1 of program
//! file ring.coll
//! body {
//!   let %right = ((me + 1) % nranks)
//!   for %s in 0 .. 3 {
//!     post ack %right @8
//!     copy output[((me - %s) % nranks), 1] of ((me - 1) % nranks) -> output[((me - %s) % nranks), 1] @10
//!   }
//! }
//! ```
//!
//! A place is a buffer with its first piece and its number of pieces; in a slot of scratch, `sum#0[lo, width, slot, base]`.
//! `of` names the rank, if that is not the executing one; `step`, of a slot that a pass takes, the number of passes on its
//! link before. Behind the peer of a signal, `lane` names its lane in the schedule; without it, the lane is that of the
//! streams around. `t3[%s]` is an entry of table 3, which holds numbers, or
//! pieces as low end, high end, slot and base. `send REQUEST PEER tag TAG PLACE` and `receive` begin a message; `sent
//! REQUEST, MANY` and `received` wait for messages.

mod read;
mod write;

pub use read::parse;
pub use write::print;
