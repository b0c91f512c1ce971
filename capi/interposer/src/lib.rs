//! What the libraries that stand before another library have in common, for MPI and for NCCL: counts of the calls that
//! were taken and passed on, words of the environment, and a line that only one process of a job prints.
#![cfg(target_os = "linux")]

mod at_exit;
mod call_report;
mod said;
mod words;

pub use at_exit::at_exit;
pub use call_report::CallReport;
pub use said::SaidOnce;
pub use words::{REPORT, is_on, one_of};
