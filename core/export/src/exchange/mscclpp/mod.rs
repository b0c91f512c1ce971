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
mod table;
mod threads;
mod verdict;
mod wires;

use std::sync::Arc;

use super::report;
pub use export::{export, fits};
pub use program::{
    Act, Chunk, Header, MscclppBlock, MscclppGpu, OpName, Operation, PortPut, Program, Wire,
};
use roundelay_core::diagnostics::{Code, Diagnostic};
use roundelay_core::ids::SpanId;
use roundelay_core::stages::stage;
use roundelay_core::syntax::Source;
pub use table::Name;
pub use verdict::MscclppVerdict;

/// A text after reading.
#[derive(Clone, Debug)]
pub struct Text {
    /// The text, with the places that messages point at.
    pub source: Arc<Source>,
    /// The plan, if it can be read.
    pub program: Option<Program>,
    /// The errors for which the executor refuses the plan, each at its place.
    pub errors: Vec<Diagnostic>,
    /// Warnings of text that the executor passes over.
    pub warnings: Vec<Diagnostic>,
}

/// Reads the file `name`.
pub fn read(name: &str, bytes: &[u8]) -> Text {
    stage("read", || read_text(name, bytes))
}

fn read_text(name: &str, bytes: &[u8]) -> Text {
    let mut report = report::TextReport::default();
    let text = String::from_utf8_lossy(bytes);
    let broken = match std::str::from_utf8(bytes) {
        Ok(_) => json::parse(&text).map_err(|broken| (broken.at, broken.why)),
        Err(error) => {
            let at = error.valid_up_to();
            Err((at..at, "the file is not UTF-8 text".to_owned()))
        }
    };
    let program = match broken {
        Ok(value) => {
            let names = Vec::new();
            reader::MscclppReader { report: &mut report, names, shared: false }.program(&value)
        }
        Err((at, why)) => {
            report.error(Code::RefusedByRuntime, at, why, |all| all);
            None
        }
    };
    let (source, errors, warnings) = report.finish(name, &text);
    Text { source: Arc::new(source), program, errors, warnings }
}

impl Program {
    /// Returns the op at a place.
    pub fn op(&self, at: SpanId) -> Option<OpName> {
        let index = self.names.binary_search_by_key(&at, |(at, _)| *at).ok()?;
        Some(self.names[index].1)
    }

    /// Returns the number of ops of all ranks, and the most blocks of a rank.
    pub fn size(&self) -> (usize, usize) {
        let blocks = self.gpus.iter().map(|gpu| gpu.blocks.len()).max().unwrap_or(0);
        (self.names.len(), blocks)
    }
}
