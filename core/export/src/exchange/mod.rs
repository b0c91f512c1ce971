//! Programs of other runtimes, read as those runtimes read them, and proved.

mod draft;
mod findings;
mod memory;
pub mod msccl;
pub mod mscclpp;
mod program;
mod report;
mod terms;

pub use findings::{Checked, Verdict};
pub use program::{Gpu, Header, Program};
pub use report::Text;
use roundelay_core::ids::RankId;
use roundelay_core::layout::{Algorithm, one_rank};
use roundelay_core::schedule::Schedule;
pub use terms::{Memory, Mode, Place, Protocol, Safe};

/// The most ranks whose schedule is laid out and proved as a whole: with these a program's needs are known exactly.
const FEW: u32 = 64;

/// Returns the schedule of rank 0 alone if there are more than [`FEW`] ranks. `None` for fewer ranks, and for a
/// schedule that cannot be laid out: its errors are reported later.
fn first_of_many<A: Algorithm + ?Sized>(algorithm: &A, nranks: u32) -> Option<Schedule> {
    if nranks > FEW { one_rank(algorithm, nranks, RankId(0)).ok() } else { None }
}
