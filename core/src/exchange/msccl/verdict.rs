//! Whether a program is right: its schedule is proved like any other, once with each step as one message and, for
//! what a connection holds, with as many messages as the largest call makes of it.

use std::collections::BTreeMap;

use super::Program;
use super::bytes::{Connections, Safe};
use super::program::Mode;
use super::report::span;
use super::runtime::COUNT;
use crate::collective::Collective;
use crate::diagnostics::{Code, Diagnostic, Finding};
use crate::ids::{OpId, SpanId};
use crate::schedule::{Schedule, SignalKind};
use crate::stages::stage;
use crate::syntax::Source;
use crate::units::size_text;
use crate::verify::{self, Proved};

/// What was found in one mode.
#[derive(Clone, Debug)]
pub struct Checked {
    /// How it is called.
    pub mode: Mode,
    /// The proof, where the program is right and says what it is to do.
    pub proved: Option<Proved>,
    /// What is wrong, the worst first.
    pub errors: Vec<Diagnostic>,
}

/// What is to be said of a program.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// In each mode that it says it has.
    pub modes: Vec<Checked>,
    /// Up to which size calls end; `None` where no call does.
    pub safe: Option<Safe>,
    /// What is wrong with the sizes of calls that it says it is for.
    pub errors: Vec<Diagnostic>,
    /// The most orders in which ranks reduce one and the same piece; `None` where nothing is reduced, or not rightly.
    pub orders: Option<usize>,
}

impl Verdict {
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
    pub fn verdict(&self, source: &Source, connections: &Connections) -> Verdict {
        let modes: Vec<_> = self.modes().into_iter().map(|mode| self.check(source, mode)).collect();
        let reduction = |checked: &Checked| {
            let proved = checked.proved.as_ref()?;
            Some(match proved.schedule().collective {
                Collective::AllReduce => proved.proof().orders.of_one_piece(),
                collective if collective.reduces() => 1,
                _ => return None,
            })
        };
        let orders = modes.iter().filter_map(reduction).max();
        let mut verdict = Verdict { modes, safe: None, errors: Vec::new(), orders };
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
            stage("sizes", || self.sizes(source, connections, &mut verdict));
        }
        verdict
    }

    fn check(&self, source: &Source, mode: Mode) -> Checked {
        let schedule = match stage("schedule", || self.schedule(source, mode, COUNT)) {
            Ok(schedule) => schedule,
            Err(errors) => {
                return Checked { mode, proved: None, errors: first_of_each(errors) };
            }
        };
        if let Some(cycle) = verify::stuck(&schedule).filter(|cycle| !cycle.is_empty()) {
            let error = self.cycle(source, &schedule, &cycle).note("at every size of a call");
            return Checked { mode, proved: None, errors: vec![error] };
        }
        match Proved::new(schedule) {
            Ok(proved) => {
                Checked { mode, proved: self.header.collective.map(|_| proved), errors: Vec::new() }
            }
            Err(findings) => {
                let promised = self.header.collective.is_some();
                // Without a promise there is no wrong result, and memory that was never written may be copied.
                let counts = |finding: &Finding| {
                    promised || !matches!(finding.code, Code::WrongResult | Code::UninitializedRead)
                };
                let findings = findings.into_iter().filter(counts);
                let errors = findings.map(|finding| self.diagnostic(source, finding)).collect();
                Checked { mode, proved: None, errors: first_of_each(errors) }
            }
        }
    }

    /// Up to which size calls end, and whether that is enough for those that the program says it is for.
    fn sizes(&self, source: &Source, connections: &Connections, verdict: &mut Verdict) {
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
                    verdict.errors.push(self.too_large(source, &schedule, &cycle, most));
                }
                Err(errors) => verdict.errors.extend(errors),
            }
        }
    }

    fn too_large(
        &self,
        source: &Source,
        schedule: &Schedule,
        cycle: &[(OpId, OpId)],
        most: u64,
    ) -> Diagnostic {
        let declared = match self.header.max_bytes {
            Some(bytes) => format!("calls of up to {bytes} bytes are declared"),
            None => "no largest call is declared".to_owned(),
        };
        let mut error = self.cycle(source, schedule, cycle);
        error.title = format!("calls of more than {most} bytes hang, and {declared}");
        error
            .help(format!("write `maxBytes=\"{most}\"`, or cut the step into several"))
            .note(format!("{most} bytes are {}", size_text(most)))
    }

    /// Steps that wait for each other.
    fn cycle(&self, source: &Source, schedule: &Schedule, cycle: &[(OpId, OpId)]) -> Diagnostic {
        let at = |op: OpId| schedule.op(op).at;
        let head = |op: OpId| {
            let channel = schedule.channel(schedule.op(op));
            channel.kind == SignalKind::Head
        };
        let full = cycle.iter().any(|(wait, _)| head(*wait));
        let (code, why) = if full {
            (Code::FifoTooShallow, "connections are full, and")
        } else {
            (Code::Deadlock, "deadlock:")
        };
        let title = match cycle.len() {
            1 => format!("{why} a block waits for itself"),
            several => format!("{why} {several} blocks wait for each other"),
        };
        let first = cycle.first().map_or(self.whole, |(wait, _)| at(*wait));
        let error = Diagnostic::new(code, span(first), title);
        let lines: Vec<_> = cycle
            .iter()
            .take(SHOWN)
            .map(|(wait, post)| self.who_waits(source, schedule, (*wait, *post)))
            .collect();
        let more = match cycle.len().saturating_sub(SHOWN) {
            0 => String::new(),
            more => format!("\n  … and {more} more"),
        };
        error.note(format!("who waits for whom:\n  {}{more}", lines.join("\n  ")))
    }

    fn who_waits(
        &self,
        source: &Source,
        schedule: &Schedule,
        (wait, post): (OpId, OpId),
    ) -> String {
        let [waits, posts] = [wait, post].map(|op| self.name(source, schedule.op(op).at));
        let channel = schedule.channel(schedule.op(wait));
        match channel.kind {
            SignalKind::Tail => {
                format!("{waits} receives from gpu {}, which {posts} sends", channel.from)
            }
            SignalKind::Head => {
                format!("{waits} sends to gpu {}, where {posts} would make room", channel.from)
            }
            _ => format!("{waits} waits for {posts}"),
        }
    }

    /// A step with its line.
    fn name(&self, source: &Source, at: SpanId) -> String {
        let line = source.location(span(at)).line;
        match self.step(at) {
            Some(step) => format!("{step} (line {line})"),
            None => "the end of a block".to_owned(),
        }
    }

    /// What the proof found, at the steps that it is about.
    fn diagnostic(&self, source: &Source, finding: Finding) -> Diagnostic {
        let Finding { code, title, at, label, others, notes, .. } = finding;
        let mut diagnostic = Diagnostic::new(code, span(at), title).label(label);
        let places: Vec<_> = std::iter::once(at).chain(others.iter().map(|(at, _)| *at)).collect();
        // Lines that are far apart are not shown together, and then none would be.
        let start = |at: SpanId| source.range(span(at)).start;
        let near = |(other, _): &(SpanId, String)| start(*other).abs_diff(start(at)) < NEAR;
        let others = others.into_iter().filter(near).map(|(at, label)| (span(at), label));
        diagnostic.others = others.collect();
        diagnostic.notes = notes;
        let steps = places.into_iter().filter(|at| self.step(*at).is_some());
        let mut names: Vec<_> = steps.map(|at| self.name(source, at)).collect();
        names.dedup();
        if !names.is_empty() {
            diagnostic.notes.insert(0, names.join("; "));
        }
        diagnostic
    }
}

/// The first few errors of each code; the last of them says how many more there are.
fn first_of_each(errors: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut kept: Vec<Diagnostic> = Vec::new();
    let mut more: BTreeMap<Code, usize> = BTreeMap::new();
    for error in errors {
        if kept.iter().filter(|known| known.code == error.code).count() < OF_EACH {
            kept.push(error);
        } else {
            *more.entry(error.code).or_default() += 1;
        }
    }
    for (code, more) in more {
        if let Some(last) = kept.iter_mut().rfind(|known| known.code == code) {
            last.notes.push(format!("and {more} more errors like this"));
        }
    }
    kept
}

/// Errors of one code that are told.
const OF_EACH: usize = 4;
/// Bytes between lines that are shown together.
const NEAR: usize = 1 << 13;

/// Lines of a table.
const SHOWN: usize = 8;
