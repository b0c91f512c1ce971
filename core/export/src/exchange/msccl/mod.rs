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

use std::sync::Arc;

pub use super::findings::Checked;
use super::report;
pub use super::terms::{Memory, Mode, Place};
pub use bytes::{Connections, Safe};
pub use export::{Exported, Options, export, fits};
pub use program::{Await, Block, Gpu, Header, Operation, OperationKind, StepName};
use roundelay_core::diagnostics::{Code, Diagnostic};
use roundelay_core::ids::SpanId;
use roundelay_core::stages::stage;
use roundelay_core::syntax::Source;
pub use runtime::{Protocol, Runtime};
pub use verdict::MscclVerdict;

/// A program: its header, and the blocks of each rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The header.
    pub header: Header,
    /// The blocks of each rank.
    pub gpus: Vec<Gpu>,
    /// The place of its `<algo>` tag.
    whole: SpanId,
    /// The name of each step, by place.
    names: Vec<(SpanId, StepName)>,
}

/// A text after reading.
#[derive(Clone, Debug)]
pub struct Text {
    /// The text, with the places that messages point at.
    pub source: Arc<Source>,
    /// The program, if it can be read; also if the runtime refuses its collective or a chain of waits.
    pub program: Option<Program>,
    /// The errors for which the runtime refuses the program, each at its place.
    pub errors: Vec<Diagnostic>,
    /// Warnings of text that the runtime passes over.
    pub warnings: Vec<Diagnostic>,
}

/// Reads the file `name` for one runtime; without a runtime, a program is refused only if all runtimes refuse it.
pub fn read(name: &str, bytes: &[u8], runtime: Option<Runtime>) -> Text {
    stage("read", || read_text(name, bytes, runtime))
}

fn read_text(name: &str, bytes: &[u8], runtime: Option<Runtime>) -> Text {
    let mut report = report::TextReport::default();
    let text = String::from_utf8_lossy(bytes);
    let program = match std::str::from_utf8(bytes) {
        Ok(_) => xml::parse(&text, &mut report).and_then(|algo| {
            let names = Vec::new();
            reader::MscclReader { text: &text, report: &mut report, runtime, names }.program(&algo)
        }),
        Err(error) => {
            let at = error.valid_up_to();
            let title = "the file is not UTF-8 text";
            report.error(Code::UnreadableXml, at..at, title, |all| all);
            None
        }
    };
    let (source, errors, warnings) = report.finish(name, &text);
    Text { source: Arc::new(source), program, errors, warnings }
}

impl Program {
    /// Returns the step at a place.
    pub fn step(&self, at: SpanId) -> Option<StepName> {
        let index = self.names.binary_search_by_key(&at, |(at, _)| *at).ok()?;
        Some(self.names[index].1)
    }

    /// Returns the number of operations of all ranks, and the most blocks of a rank.
    pub fn size(&self) -> (usize, usize) {
        let blocks = self.gpus.iter().map(|gpu| gpu.blocks.len()).max().unwrap_or(0);
        let all = self.gpus.iter().flat_map(|gpu| &gpu.blocks);
        (all.map(|block| block.operations.len()).sum(), blocks)
    }
}
