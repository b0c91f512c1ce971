//! The text form of a program, which is read back exactly.
//!
//! Each called program comes before the program that calls it, under a number. A line is a statement: before the
//! colon stands the number of the author's statement, and behind `//` the places of the expressions in the line, each
//! as a range of tokens, from left to right and an operator before its operands.
//!
//! ```text
//! program 0 RingAllGather AllGather
//! file "ring.coll"
//! at 0 = 1:1..1:40 // 0..11
//! var ring ring 3..4
//! param %ring: Ring
//! body {
//!    1:  let %left = ring.left(%ring) // 12..15 12..13
//!    2:  for %s in 0 .. (nranks - 1) { // 20..21 22..25 22..23 24..25
//!    3:    wait data %left // 27..28
//!    2:  }
//! }
//! ```

mod line;
mod names;
mod read;
mod write;

pub use read::parse;
pub use write::{print, write_expr};
