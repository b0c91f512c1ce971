//! The command and its subcommands, as they are written.

use clap::{ColorChoice, Parser, Subcommand};

use crate::check::CheckFlags;
use crate::emit::EmitFlags;
use crate::explain::ExplainFlags;
use crate::fmt::FmtFlags;
use crate::list::ListFlags;
#[cfg(not(target_family = "wasm"))]
use crate::machine::MachineCommand;
use crate::needed_signals::SignalsFlags;
use crate::select::SelectFlags;
use crate::simulate::SimulateFlags;
use crate::synthesize::SynthesizeFlags;
use crate::topo::TopoFlags;

/// Lines that can be pasted, and where to read on.
const EXAMPLES: &str = "\
Examples:
  roundelay list                                      what the library holds
  roundelay check RingAllReduce -n 2..=9              prove an algorithm of it
  roundelay check mine.coll                           prove your own, or hear what is wrong
  roundelay run mine.coll -n 8 --count 1M             run it, and compare every element
  roundelay bench RingAllReduce -n 8 -b 1K -e 64M -f 4
  roundelay simulate RingAllReduce --topology \"full_mesh(8, 25GB/s, 2us)\" --svg run.svg
  roundelay emit steps RingAllReduce -n 4             what goes between the ranks
  roundelay launch -n 8 -- ./worker --epochs 3        eight processes, each of them a rank
  roundelay ps                                        what they do, and why they hang
  roundelay mpirun --report -- -n 8 ./solver          an MPI program as it is
  roundelay ncclrun --report -- torchrun train.py     a GPU job as it is
  roundelay explain E0301                             what an error means, and what to do

roundelay help SUBCOMMAND lists the flags of one, with the values that they take.
The book is the folder book/ of the repository; book/src/tutorial/one_ring.md begins it.";

/// Collective algorithms as pages of step loops: proved, then run.
#[derive(Parser)]
#[command(name = "roundelay", version, max_term_width = 100)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Cli {
    /// When to color what is printed: at a terminal (auto), always, or never
    #[arg(long, global = true, value_name = "WHEN", value_enum)]
    pub(crate) color: Option<ColorChoice>,
    /// Print results, warnings and errors alone: no notes, progress or summaries
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Print more: what each result took, and constants that results depend on
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Prove algorithms for some rank counts, or say what is wrong and where
    Check(CheckFlags),
    /// Predict a run on a topology: its time, the load of the links, and what the ranks wait for
    Simulate(Box<SimulateFlags>),
    /// Write sources in canonical form, every comment kept; with --check, say how they differ from it
    Fmt(FmtFlags),
    /// Print an algorithm's source, or a form of it, such as its schedule, a kernel, or a file for MPI or MSCCL
    Emit(EmitFlags),
    /// Say which signals of an algorithm are needed, and for what
    Signals(SignalsFlags),
    /// List the algorithms of a source, or of the library; with --why, by how long they would take
    List(ListFlags),
    /// Say which algorithm of the library to use for which sizes on a machine, and why; or check a selection file
    Select(SelectFlags),
    /// Find an algorithm for a topology: the best trees that its links can carry, as a page that is proved
    Synthesize(SynthesizeFlags),
    /// Describe a topology: links, paths, rings, trees, and how fast any algorithm could be on it
    Topo(TopoFlags),
    /// Explain the code of an error or a warning: an example, the message, the fix
    Explain(ExplainFlags),
    #[cfg(not(target_family = "wasm"))]
    #[command(flatten)]
    Machine(MachineCommand),
}
