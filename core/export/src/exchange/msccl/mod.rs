//! Programs for MSCCL's runtime in XML: read as that runtime reads them, and proved as what it makes of them.
//!
//! [`read`] gives a [`Program`]: of each rank its blocks, of each block its operations. [`Program::schedule`] lays it
//! out as a schedule like any other, and [`Program::verdict`] says by the proof of it whether the program is right,
//! and up to which size of a call its connections hold what is on its way.

mod buffers;
mod bytes;
mod export;
mod layout;
mod links;
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
pub use program::{Await, Block, Gpu, Header, OperationKind, Operation, StepName};
use roundelay_core::diagnostics::{Code, Diagnostic};
use roundelay_core::ids::SpanId;
use roundelay_core::stages::stage;
use roundelay_core::syntax::Source;
pub use runtime::{Protocol, Runtime};
pub use verdict::MscclVerdict;

/// A program: what it says of itself, and what each rank does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// What it says of itself.
    pub header: Header,
    /// What each rank does.
    pub gpus: Vec<Gpu>,
    /// The place of its head.
    whole: SpanId,
    /// The name of each step, by its place.
    names: Vec<(SpanId, StepName)>,
}

/// A text that was read.
#[derive(Clone, Debug)]
pub struct Text {
    /// The text, with the places that messages point at.
    pub source: Arc<Source>,
    /// The program, where it makes sense: also where the runtime refuses it for its collective or a chain of waits.
    pub program: Option<Program>,
    /// Why the runtime does not take it, each at its place.
    pub errors: Vec<Diagnostic>,
    /// What the runtime passes over.
    pub warnings: Vec<Diagnostic>,
}

/// Reads the file `name`, for one runtime; or for any of them, so that it is refused only where all refuse it.
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
    /// The step that stands at a place.
    pub fn step(&self, at: SpanId) -> Option<StepName> {
        let index = self.names.binary_search_by_key(&at, |(at, _)| *at).ok()?;
        Some(self.names[index].1)
    }

    /// The number of operations of all ranks, and the most blocks of one.
    pub fn size(&self) -> (usize, usize) {
        let blocks = self.gpus.iter().map(|gpu| gpu.blocks.len()).max().unwrap_or(0);
        let all = self.gpus.iter().flat_map(|gpu| &gpu.blocks);
        (all.map(|block| block.operations.len()).sum(), blocks)
    }
}
