//! Whether a program is right: its schedule is proved like any other, once with each step as one message and, for
//! what a connection holds, with as many messages as the largest call makes of it.

use super::Program;
use super::bytes::{Connections, Safe};
use super::runtime::COUNT;
use crate::exchange::findings::{Checked, FindingPlacer, orders};
use roundelay_core::diagnostics::{Code, Diagnostic};
use roundelay_core::stages::stage;
use roundelay_core::syntax::Source;
use roundelay_core::units::size_text;
use roundelay_core::verify;

/// What is to be said of a program.
#[derive(Clone, Debug)]
pub struct MscclVerdict {
    /// In each mode that it says it has.
    pub modes: Vec<Checked>,
    /// Up to which size calls end; `None` where no call does.
    pub safe: Option<Safe>,
    /// What is wrong with the sizes of calls that it says it is for.
    pub errors: Vec<Diagnostic>,
    /// The most orders in which ranks reduce one and the same piece; `None` where nothing is reduced, or not rightly.
    pub orders: Option<usize>,
}

impl MscclVerdict {
    /// Whether nothing is wrong.
    pub fn is_right(&self) -> bool {
        self.errors().next().is_none()
    }

    /// Everything that is wrong.
    pub fn errors(&self) -> impl Iterator<Item = &Diagnostic> {
        self.modes.iter().flat_map(|checked| &checked.errors).chain(&self.errors)
    }
}

impl Program {
    /// Whether the program is right with such `connections`. `source` is the text that it was read from.
    pub fn verdict(&self, source: &Source, connections: &Connections) -> MscclVerdict {
        let step = |at| self.step(at).map(|step| step.to_string());
        let promised = self.header.collective.is_some();
        let teller = FindingPlacer { source, step: &step, whole: self.whole, promised };
        let check = |mode| {
            let schedule = stage("schedule", || self.schedule(source, mode, COUNT));
            teller.prove(mode, schedule)
        };
        let modes: Vec<_> = self.modes().into_iter().map(check).collect();
        let orders = orders(&modes);
        let mut verdict = MscclVerdict { modes, safe: None, errors: Vec::new(), orders };
        let hangs = |code| {
            matches!(
                code,
                Code::Deadlock | Code::FifoTooShallow | Code::UnmatchedWait | Code::LeftOverSignal
            )
        };
        // Where a step cannot be laid out, or waits for ever as one message, the size of a call is no matter.
        let laid_out = |error: &Diagnostic| {
            error.code >= Code::Deadlock && error.code != Code::OutOfBounds && !hangs(error.code)
        };
        if verdict.modes.iter().flat_map(|checked| &checked.errors).all(laid_out) {
            stage("sizes", || self.sizes(&teller, connections, &mut verdict));
        }
        verdict
    }

    /// Up to which size calls end, and whether that is enough for those that the program says it is for.
    fn sizes(&self, teller: &FindingPlacer<'_>, connections: &Connections, verdict: &mut MscclVerdict) {
        let source = teller.source;
        let Some(mode) = verdict.modes.first().map(|checked| checked.mode) else { return };
        let operations = self.gpus.iter().flat_map(|gpu| &gpu.blocks).flat_map(|b| &b.operations);
        let sending = operations.filter(|operation| operation.kind.sends());
        let widest = sending.map(|operation| operation.count).max().unwrap_or(0).max(1);
        let ends = |chunks| -> Result<bool, Vec<Diagnostic>> {
            Ok(verify::stuck(&self.schedule(source, mode, chunks)?).is_none())
        };
        let search = || {
            if widest == 1 || ends(1)? {
                return Ok(1);
            }
            // Fewer messages never stop where more let pass.
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
