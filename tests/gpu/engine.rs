//! What runs kernels.

use roundelay_kernels::Stuck;

use super::cases::Case;

pub(crate) trait Engine {
    /// What it is, for the report.
    fn about(&self) -> String;

    /// Whether each kernel costs so much that there are to be few.
    fn is_slow(&self) -> bool;

    /// The outputs of all ranks, the same after each of so many launches in a row.
    fn run(&self, case: &Case, in_place: bool, repeats: u32) -> Result<Vec<Vec<u8>>, String>;

    /// The report of a launch in which the last rank never runs.
    fn stuck(&self, case: &Case) -> Result<Stuck, String>;
}
