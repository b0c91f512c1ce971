//! Execution plans for MSCCL++'s executor in JSON, read as that executor reads them, and proved.

mod export;
mod json;
mod layout;
mod local;
mod ops;
mod packets;
mod parse;
mod ports;
mod program;
mod puts;
mod reader;
mod steps;
mod switch;
mod table;
mod threads;
mod verdict;
mod wires;

use super::{program as form, report};
pub use export::{export, fits};
pub use program::{Act, Chunk, MscclppBlock, MscclppFacts, Operation, PortPut, Wire};
use roundelay_core::diagnostics::Code;
pub use table::Name;

/// A plan: its header, and the blocks of each rank, with channels and remote buffers already looked up.
pub type Program = form::Program<MscclppFacts, MscclppBlock>;
/// The header of a plan.
pub type Header = form::Header<MscclppFacts>;
/// The blocks and resources of one rank.
pub type Gpu = form::Gpu<MscclppBlock>;

/// Reads the file `name`.
pub fn read(name: &str, bytes: &[u8]) -> report::Text<Program> {
    report::Text::read(name, bytes, Code::RefusedByRuntime, |text, report| {
        match json::parse(text) {
            Ok(value) => reader::MscclppReader { report, shared: false }.program(&value),
            Err(broken) => {
                report.refuse(broken.at, broken.why);
                None
            }
        }
    })
}
