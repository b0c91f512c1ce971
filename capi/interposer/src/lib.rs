//! The common parts of the libraries that stand before another library, MPI or NCCL: counts of the calls that were
//! taken and passed on, contests between the two, words of the environment, and a line that only one process of a job prints.
#![cfg(target_os = "linux")]

mod at_exit;
mod call_report;
mod contests;
mod notice;
mod variables;

pub use at_exit::at_exit;
pub use call_report::CallReport;
pub use contests::{CallMaker, Contests, Shape, Turn, Verdict};
pub use notice::{SaidOnce, tell};
pub use variables::{REPORT, is_on, one_of};
