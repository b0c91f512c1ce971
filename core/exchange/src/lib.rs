//! Programs of MSCCL and plans of MSCCL++: read as those runtimes read them, proved, and written from a proved schedule.
//!
//! A file is read into a [`Program`], whose [`Header`] has what both formats share. The program becomes a schedule, and
//! the compiler's proof of this schedule is the [`Verdict`] on the file. In the other direction a proved schedule becomes
//! a file, which is read again and compared. README.md says which file to read first.

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
