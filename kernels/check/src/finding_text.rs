//! A finding as a diagnostic, at its line of the source.

use std::ops::Range;

use roundelay_core::diagnostics::{Code, Diagnostic};
use roundelay_core::source::{Location, Span};
use roundelay_core::syntax::Source;
use roundelay_ptx::machine::join_waiting;
use roundelay_ptx::program::is_page;

use crate::assumption::names;
use crate::case::Case;
use crate::finding::{Finding, Kind, ThreadSite};
use crate::harness::Harness;
use crate::sequence::Variation;
use crate::verdict::{State, Verdict};

/// Threads that wait at different lines, of which a message tells.
const MOST_WAITING: usize = 6;

impl Finding {
    /// The threads of the finding, each with the words before and behind them.
    fn sites(&self) -> Vec<(&ThreadSite, &'static str, String)> {
        let word = |stores: Option<bool>| match stores {
            Some(true) => "the store: ",
            Some(false) => "the load: ",
            None => "",
        };
        let accesses = self.at.iter().chain(&self.other);
        let mut all: Vec<_> = accesses.map(|at| (at, word(at.stores), String::new())).collect();
        let lines = join_waiting(&self.waiting, |(first, known), (at, what)| {
            known == what && first.source == at.source && first.ptx_line == at.ptx_line
        });
        for ((at, what), more) in lines.into_iter().take(MOST_WAITING) {
            all.push((at, "", format!(": {what}{more}")));
        }
        all
    }

    /// The finding as a diagnostic of a code: its threads at their lines, and notes of the rest. `span` gives the place of
    /// a line in the source that is shown; `at` is for a finding without such a line.
    pub fn diagnostic(
        &self,
        code: Code,
        at: Span,
        span: impl Fn(&(String, u32)) -> Option<Span>,
    ) -> Diagnostic {
        let mut diagnostic = Diagnostic::new(code, at, self.title.clone());
        for (at, before, behind) in self.sites() {
            let label = format!("{before}{}{behind}", at.threads());
            let mut inlined = at.inlined.iter();
            // Behind the line of a page is the line of the code itself.
            let is_for = at.source.as_ref().is_some_and(|(file, _)| is_page(file));
            let own = if is_for { inlined.next() } else { None };
            let own = own.map_or(String::new(), |(file, line)| format!(", at {file}:{line}"));
            let through =
                inlined.fold(own, |all, (file, line)| all + &format!(", inlined at {file}:{line}"));
            let ptx = format!("line {} of the PTX, in {}{through}", at.ptx_line, at.function);
            match at.source.as_ref().and_then(&span) {
                Some(span) => {
                    if diagnostic.label.is_empty() {
                        (diagnostic.primary, diagnostic.label) = (span, label);
                    } else {
                        diagnostic.others.push((span, label));
                    }
                    diagnostic.notes.push(format!("{before}{ptx}"));
                }
                None => {
                    let place = at.source.as_ref();
                    let place =
                        place.map_or(String::new(), |(file, line)| format!("{file}:{line}, "));
                    diagnostic.notes.push(format!("{label}: {place}{ptx}"));
                }
            }
        }
        if let Some(memory) = &self.memory {
            let crate::finding::Memory { name, rank, offset, element } = memory;
            let note = format!("memory: {name} of rank {rank}, byte {offset}, element {element}");
            diagnostic.notes.push(note);
        }
        let behind = self.behind.iter();
        diagnostic
            .notes
            .extend(behind.map(|behind| format!("behind it in the same run: {behind}")));
        diagnostic
    }
}

impl Verdict {
    /// The finding as a diagnostic, with the source of its place. `file` and `text` are those of the harness.
    pub fn diagnostic(
        &self,
        (file, text): (&str, &str),
        harness: &Harness,
        cases: &[Case],
    ) -> Option<(Diagnostic, Source)> {
        let found = self.finding.as_deref()?;
        let code = if self.state == State::Relies { Code::KernelRelies } else { code(found.kind) };
        let (source, lines) = sources(&found.sites(), cases).unwrap_or_else(|| {
            let place = match found.kind {
                Kind::Unsupported | Kind::Limit => text.find("[[call]]").map(|at| at..at + 8),
                // A candidate of the judge says `collective` in place of it.
                _ => text.find("[expect]").or(text.find("collective")).map(|at| at..at + 8),
            };
            let line = 0..text.lines().next().map_or(0, str::len);
            (crate::node::pointed(file, text, &place.unwrap_or(line)), Vec::new())
        });
        let mut diagnostic = found.diagnostic(code, Span::new(0, 1), |(file, line)| {
            let at = lines.iter().position(|known| known == line)?;
            (file == source.name()).then(|| Span::new(at, at + 1))
        });
        diagnostic.title = title(self, found);
        diagnostic.notes.push(self.again(found));
        if let Some((before, left)) = found.story.filter(|(before, _)| *before > 0) {
            let note = format!(
                "of the seed's {before} unusual choices of threads and values it needs {left}"
            );
            diagnostic.notes.push(note);
        }
        diagnostic.notes.extend(self.cures(found, harness));
        diagnostic.help = self.help(found);
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
        // A harness of one size needs no flags for it.
        let sizes = match self.cases[..] {
            [_] => String::new(),
            _ => format!(" --ranks {ranks} --elements {elements}"),
        };
        format!(
            "seed {seed} of {ranks} ranks, elements {elements}{variation}: `{case}--first {seed} --seeds 1{sizes}`"
        )
    }

    /// Notes of what cures the finding, one for each assumption.
    fn cures(&self, found: &Finding, harness: &Harness) -> Vec<String> {
        let each = found.cured_by.iter().flatten();
        each.map(|one| match harness.assume.get(one) {
            Some(why) if self.state == State::Relies => {
                format!("{one}: {}; declared: {why}", one.sentence())
            }
            _ => format!("{one}: {}", one.sentence()),
        })
        .collect()
    }

    fn help(&self, found: &Finding) -> Option<String> {
        let help = match (self.state, &found.cured_by) {
            (State::Relies, _) => "look up once whether the hardware promises that".to_owned(),
            (State::Error, Some(set)) => {
                format!("if the hardware promises it, declare it under [assume]: {}", names(set))
            }
            (State::Error, None)
                if matches!(found.kind, Kind::Race | Kind::Scope | Kind::Constant) =>
            {
                "order the accesses by a release and an acquire, or by a barrier: no assumption of \
                 the list cures it"
                    .to_owned()
            }
            (State::Limit, _) => "take fewer ranks, elements, blocks or calls".to_owned(),
            _ => return None,
        };
        Some(help)
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

/// The text of the first place's file, with the lines of it that have places; none without such a text.
fn sources(
    all: &[(&ThreadSite, &'static str, String)],
    cases: &[Case],
) -> Option<(Source, Vec<u32>)> {
    let texts = || cases.iter().flat_map(|case| &case.loaded).flat_map(|loaded| &loaded.sources);
    let named = || all.iter().filter_map(|(at, ..)| at.source.as_ref());
    let (name, text) = named().find_map(|(name, _)| texts().find(|(known, _)| known == name))?;
    let mut lines: Vec<u32> = named().filter(|(file, _)| file == name).map(|at| at.1).collect();
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
    let source = Source::with_places(name, text, places.iter().map(|(_, place)| place.clone()));
    let lines: Vec<u32> = places.into_iter().map(|(line, _)| line).collect();
    (!lines.is_empty()).then_some((source, lines))
}
