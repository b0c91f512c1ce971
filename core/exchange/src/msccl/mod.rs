//! Programs for MSCCL's runtime in XML, read as that runtime reads them, and proved.
//!
//! [`read`] returns a [`Program`]: the blocks of each rank, and the operations of each block. [`Program::schedule`]
//! lays it out as a schedule, and [`Program::verdict`] proves that schedule: it says whether the program is right, and
//! up to which size of a call the connections hold all messages on their way.

mod buffers;
mod bytes;
mod export;
mod layout;
mod links;
mod names;
mod parse;
mod program;
mod reader;
mod runtime;
mod steps;
mod verdict;
mod words;
mod xml;

use super::{program as form, report};
pub use bytes::Connections;
pub use export::{Exported, Options, export, fits};
pub use program::{Await, Block, MscclFacts, Operation, OperationKind};
use roundelay_core::diagnostics::Code;
pub use runtime::Runtime;

/// A program: its header, and the blocks of each rank.
pub type Program = form::Program<MscclFacts, Block>;
/// The header of a program.
pub type Header = form::Header<MscclFacts>;
/// The program of one rank.
pub type Gpu = form::Gpu<Block>;

/// Reads the file `name` for one runtime; without a runtime, a program is refused only if all runtimes refuse it.
pub fn read(name: &str, bytes: &[u8], runtime: Option<Runtime>) -> report::Text<Program> {
    report::Text::read(name, bytes, Code::UnreadableXml, |text, report| {
        let algo = xml::parse(text, report)?;
        reader::MscclReader { text, report, runtime }.program(&algo)
    })
}
