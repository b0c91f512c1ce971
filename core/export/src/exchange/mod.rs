//! Programs of other runtimes: read, and proved as what those runtimes make of them.

mod draft;
mod findings;
mod memory;
pub mod msccl;
pub mod mscclpp;
mod report;
mod terms;

pub use findings::Checked;
use roundelay_core::ids::RankId;
use roundelay_core::layout::{Algorithm, one_rank};
use roundelay_core::schedule::Schedule;
pub use terms::Mode;

/// Ranks of which all is laid out and proved at once: then what a program needs is known exactly.
const FEW: u32 = 64;

/// What rank 0 of many does, which takes no time to lay out. Where it cannot be laid out there is nothing, and all that
/// is wrong is told later.
fn first_of_many<A: Algorithm + ?Sized>(algorithm: &A, nranks: u32) -> Option<Schedule> {
    if nranks > FEW { one_rank(algorithm, nranks, RankId(0)).ok() } else { None }
}
