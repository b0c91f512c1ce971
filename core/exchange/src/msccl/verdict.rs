//! The verdict on a program. Its schedule is proved with each step as one message, and, for the capacity of
//! connections, laid out with the messages that the largest call makes of each step.

use super::Program;
use super::bytes::Connections;
use super::runtime::COUNT;
use crate::findings::{FindingPlacer, Verdict};
use roundelay_core::diagnostics::{Code, Diagnostic};
use roundelay_core::stages::stage;
use roundelay_core::syntax::Source;
use roundelay_core::units::size_text;
use roundelay_core::verify;

impl Program {
    /// Proves the program with the given `connections`. `source` is the text that the program was read from.
    pub fn verdict(&self, source: &Source, connections: &Connections) -> Verdict {
        let teller = FindingPlacer::new(source, self);
        let check = |mode| {
            let schedule = stage("schedule", || self.schedule(source, mode, COUNT));
            teller.prove(mode, schedule)
        };
        let mut verdict = Verdict::new(self.header.modes().into_iter().map(check).collect());
        let hangs = |code| {
            matches!(
                code,
                Code::Deadlock | Code::FifoTooShallow | Code::UnmatchedWait | Code::LeftOverSignal
            )
        };
        // If a step cannot be laid out, or waits for ever as one message, the size of a call does not matter.
        let laid_out = |error: &Diagnostic| {
            error.code >= Code::Deadlock && error.code != Code::OutOfBounds && !hangs(error.code)
        };
        if verdict.modes.iter().flat_map(|checked| &checked.errors).all(laid_out) {
            stage("sizes", || self.sizes(&teller, connections, &mut verdict));
        }
        verdict
    }

    /// Finds the largest call that ends, and compares it with the sizes that the program declares.
    fn sizes(&self, teller: &FindingPlacer<'_>, connections: &Connections, verdict: &mut Verdict) {
        let source = teller.source;
        let Some(mode) = verdict.modes.first().map(|checked| checked.mode) else { return };
        let operations = self.blocks().flat_map(|block| &block.operations);
        let sending = operations.filter(|operation| operation.kind.sends());
        let widest = sending.map(|operation| operation.count).max().unwrap_or(0).max(1);
        let ends = |chunks| -> Result<bool, Vec<Diagnostic>> {
            Ok(verify::stuck(&self.schedule(source, mode, chunks)?).is_none())
        };
        let search = || {
            if widest == 1 || ends(1)? {
                return Ok(1);
            }
            // Blocks that end with some number of messages end with fewer messages, too.
            let (mut stops, mut passes) = (1, widest);
            while stops + 1 < passes {
                let middle = stops.midpoint(passes);
                *(if ends(middle)? { &mut passes } else { &mut stops }) = middle;
            }
            Ok(passes)
        };
        let least = match search() {
            Ok(least) => least,
            Err(errors) => return verdict.errors = errors,
        };
        let safe = connections.safe(&self.header, least);
        verdict.safe = Some(safe);
        let largest = self.header.max_bytes;
        let chunks = connections.chunks(&self.header, largest);
        if let Some(most) = safe.bytes.filter(|_| chunks < least) {
            match self.schedule(source, mode, chunks) {
                Ok(schedule) => {
                    let cycle = verify::stuck(&schedule).unwrap_or_default();
                    verdict.errors.push(self.too_large(teller.cycle(&schedule, &cycle), most));
                }
                Err(errors) => verdict.errors.extend(errors),
            }
        }
    }

    fn too_large(&self, mut error: Diagnostic, most: u64) -> Diagnostic {
        let declared = match self.header.max_bytes {
            Some(bytes) => format!("calls of up to {bytes} bytes are declared"),
            None => "no largest call is declared".to_owned(),
        };
        error.title = format!("calls of more than {most} bytes hang, and {declared}");
        error
            .help(format!("write `maxBytes=\"{most}\"`, or cut the step into several"))
            .note(format!("{most} bytes are {}", size_text(most)))
    }
}
