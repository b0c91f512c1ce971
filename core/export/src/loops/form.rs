//! A whole form: its header, its tables, its functions and its statements.

use super::ir::LoopNode;
use super::tables::Tables;
use roundelay_core::collective::Collective;
use roundelay_core::ids::RankId;

/// An algorithm at one number of ranks, with its loops: one text of statements that every rank runs. Its numbers are
/// arithmetic on the rank and on the variables of loops, or entries of tables.
///
/// Every value of this type was run at each rank and compared with a proved schedule, or was read from the text of one
/// that was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loops {
    pub(crate) algorithm: String,
    pub(crate) collective: Collective,
    pub(crate) nranks: u32,
    pub(crate) root: RankId,
    /// Whether the loops are those of the program, and were not found in the schedule.
    pub(crate) of_program: bool,
    /// The names of the source files, that of the algorithm first.
    pub(crate) files: Vec<String>,
    /// The number of equal pieces of a unit for which all boundaries are whole.
    pub(crate) pieces: u64,
    /// The names of the scratch buffers.
    pub(crate) scratch: Vec<String>,
    /// The names of the variables, by the number of the variable.
    pub(crate) vars: Vec<String>,
    pub(crate) tables: Tables,
    /// The functions; each one calls only functions before it.
    pub(crate) functions: Vec<LoopFunction>,
    pub(crate) body: Vec<LoopNode>,
}

/// Statements that several places run, such as those of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LoopFunction {
    pub(crate) name: String,
    pub(crate) params: Vec<usize>,
    pub(crate) body: Vec<LoopNode>,
}
