//! A finding as a diagnostic, at its line of the source.

use std::ops::Range;

use roundelay_core::diagnostics::{Code, Diagnostic};
use roundelay_core::source::{Location, Span};
use roundelay_core::syntax::Source;

use crate::assumption::{Assumption, names};
use crate::finding::{Access, Finding, Kind};
use crate::harness::Harness;
use crate::sequence::{Case, Variation};
use crate::verdict::{State, Verdict};

/// Threads that wait at different lines, of which a message tells.
const MOST_WAITING: usize = 6;

/// A place of a source file.
type Place<'a> = (&'a (String, u32), String);

impl Verdict {
    /// The finding as a diagnostic, with the source of its place. `file` names the harness.
    pub fn diagnostic(
        &self,
        file: &str,
        harness: &Harness,
        cases: &[Case],
    ) -> Option<(Diagnostic, Source)> {
        let found = self.finding.as_deref()?;
        let code = if self.state == State::Relies { Code::KernelRelies } else { code(found.kind) };
        let (mut labels, mut notes) = (Vec::new(), Vec::new());
        let say = |at: &'_ Access, what: &str| {
            let place = match &at.source {
                Some((file, line)) => format!("{file}:{line}, "),
                None => String::new(),
            };
            let through =
                at.inlined.iter().map(|(file, line)| format!(", inlined at {file}:{line}"));
            let (function, line) = (&at.function, at.ptx_line);
            format!(
                "{what}{}: {place}line {line} of the PTX, in {function}{}",
                at.threads(),
                through.collect::<String>()
            )
        };
        let word = |stores: Option<bool>| match stores {
            Some(true) => "the store: ",
            Some(false) => "the load: ",
            None => "",
        };
        for at in found.at.iter().chain(&found.other) {
            labels.extend(
                at.source
                    .as_ref()
                    .map(|source| (source, format!("{}{}", word(at.stores), at.threads()))),
            );
            notes.push(say(at, word(at.stores)));
        }
        let mut lines: Vec<(&Access, &str, usize)> = Vec::new();
        for (at, what) in &found.waiting {
            let same = |(first, known, _): &&mut (&Access, &str, usize)| {
                known == what && first.source == at.source && first.ptx_line == at.ptx_line
            };
            match lines.iter_mut().find(same) {
                Some((_, _, more)) => *more += 1,
                None => lines.push((at, what, 0)),
            }
        }
        for (at, what, more) in lines.into_iter().take(MOST_WAITING) {
            let more = if more == 0 {
                String::new()
            } else {
                format!(", and {more} more groups of lanes")
            };
            labels.extend(
                at.source
                    .as_ref()
                    .map(|source| (source, format!("{}: {what}{more}", at.threads()))),
            );
            notes.push(say(at, &format!("{what}{more}: ")));
        }
        if let Some(memory) = &found.memory {
            let crate::finding::Memory { name, rank, offset, element } = memory;
            notes.push(format!("memory: rank {rank}'s {name}, byte {offset}, element {element}"));
        }
        notes.extend(
            found.behind.iter().map(|behind| format!("behind it in the same run: {behind}")),
        );
        notes.push(self.again(found));
        if let Some((before, left)) = found.story.filter(|(before, _)| *before > 0) {
            notes.push(format!(
                "the shortest story needs {left} of the seed's {before} unusual choices"
            ));
        }
        let (source, spans) = sources(file, &labels, cases);
        let mut diagnostic = Diagnostic::new(code, Span::new(0, 1), title(self, found));
        for (span, label) in spans {
            match (diagnostic.label.is_empty(), diagnostic.primary == span) {
                (true, _) => (diagnostic.primary, diagnostic.label) = (span, label),
                (false, true) => {}
                (false, false) => diagnostic.others.push((span, label)),
            }
        }
        diagnostic.notes = notes;
        diagnostic.help = self.help(found, harness);
        Some((diagnostic, source))
    }

    fn again(&self, found: &Finding) -> String {
        let elements: Vec<_> = found.elements.iter().map(i64::to_string).collect();
        let variation = match found.variation {
            Variation::Plain => String::new(),
            Variation::Late(rank) => format!(", rank {rank} late"),
            Variation::Absent(rank) => format!(", rank {rank} absent"),
        };
        let case = self.case.as_ref().map_or(String::new(), |case| format!("--case {case} "));
        let (seed, ranks, elements) = (found.seed, found.ranks, elements.join(","));
        format!(
            "seed {seed} of {ranks} ranks, {elements} elements{variation}: `{case}--first {seed} --seeds 1 --ranks {ranks} --elements {elements}`"
        )
    }

    fn help(&self, found: &Finding, harness: &Harness) -> Option<String> {
        let cured = found.cured_by.as_ref();
        if self.state == State::Relies {
            let all = cured?.iter();
            let each = all.map(|one| {
                let why = harness.assume.get(one).map_or("", String::as_str);
                format!("{} ({}; declared: {why})", one, one.sentence())
            });
            return Some(format!(
                "the kernel is right where these hold: {}",
                each.collect::<Vec<_>>().join("; ")
            ));
        }
        match (self.state, cured) {
            (State::Error, Some(set)) => {
                let about: Vec<_> = set.iter().map(Assumption::sentence).collect();
                Some(format!(
                    "PTX does not promise it; declare `{}` under [assume] if the hardware does: {}",
                    names(set),
                    about.join("; ")
                ))
            }
            (State::Error, None) => match found.kind {
                Kind::Race | Kind::Scope | Kind::Constant => {
                    Some("no assumption of the list cures it: order the two accesses by a release and an acquire, or a barrier".to_owned())
                }
                _ => None,
            },
            (State::Limit, _) => Some("take fewer ranks, elements, blocks or calls".to_owned()),
            _ => None,
        }
    }
}

fn title(verdict: &Verdict, found: &Finding) -> String {
    match verdict.state {
        State::Relies => format!(
            "the kernel relies on {}: by PTX alone, {}",
            names(&verdict.assumptions),
            found.title
        ),
        _ => found.title.clone(),
    }
}

/// The code of a finding.
fn code(kind: Kind) -> Code {
    match kind {
        Kind::Race | Kind::Scope | Kind::Constant => Code::KernelRace,
        Kind::Hang => Code::KernelHang,
        Kind::Wrong | Kind::DirtyPad => Code::KernelResult,
        Kind::Misaligned
        | Kind::Bounds
        | Kind::Uninitialised
        | Kind::Barrier
        | Kind::Lanes
        | Kind::Multicast
        | Kind::Trap => Code::KernelAccess,
        Kind::Limit | Kind::Unsupported => Code::KernelUnchecked,
    }
}

/// The text of the first label's file, with the places of all labels that are in it; without such a text, the beginning of
/// the harness.
fn sources(file: &str, labels: &[Place], cases: &[Case]) -> (Source, Vec<(Span, String)>) {
    let texts = || cases.iter().flat_map(|case| &case.loaded).flat_map(|loaded| &loaded.sources);
    let first = labels.iter().find_map(|((name, _), _)| texts().find(|(known, _)| known == name));
    let Some((name, text)) = first else {
        return (crate::node::pointed(file, "", &(0..0)), Vec::new());
    };
    let mut lines: Vec<u32> =
        labels.iter().filter(|((file, _), _)| file == name).map(|((_, line), _)| *line).collect();
    lines.sort_unstable();
    lines.dedup();
    let range = |wanted: u32| -> Option<(Location, Range<u32>)> {
        let mut start = 0;
        for (number, line) in (1..).zip(text.split_inclusive('\n')) {
            if number == wanted {
                let body = line.trim();
                let indent = line.len() - line.trim_start().len();
                let column = line[..indent].chars().count() as u32 + 1;
                let end_column = column + body.chars().count() as u32;
                let from = (start + indent) as u32;
                let place = Location { line: number, column, end_line: number, end_column };
                return Some((place, from..from + body.len() as u32));
            }
            start += line.len();
        }
        None
    };
    let places: Vec<_> = lines.iter().filter_map(|&line| Some((line, range(line)?))).collect();
    let source = Source::pointed(name, text, places.iter().map(|(_, place)| place.clone()));
    let span = |(file, line): &(String, u32)| {
        let at = places.iter().position(|(known, _)| known == line).filter(|_| file == name)?;
        Some(Span::new(at, at + 1))
    };
    let spans = labels.iter().filter_map(|(at, label)| Some((span(at)?, label.clone()))).collect();
    (source, spans)
}
