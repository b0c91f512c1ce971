//! Faults of compiled kernels, as diagnostics at the lines of the page.

use roundelay_core::diagnostics::{Code, Diagnostic};
use roundelay_core::source::{Location, Span};
use roundelay_core::syntax::Source;
use roundelay_ptx::machine::{Failure, FaultKind, KernelFault, Where, join_waiting};
use roundelay_ptx::{BadText, Finding};

/// Notes of a diagnostic about threads that wait, at most.
const MOST_NOTES: usize = 6;

/// The page of a kernel, and the facts that all its diagnostics tell.
pub(super) struct KernelPage<'a> {
    pub(super) source: &'a Source,
    /// The place of the algorithm's name.
    pub(super) header: Span,
    pub(super) nranks: u32,
    pub(super) seed: u64,
}

/// The advice for a fault of a kernel whose page is proved.
const REPORT: &str = "the page is proved, so the fault is below it: in the text of the kernel, or in its compiler; \
report it with what `roundelay emit cuda --callers one` prints";

impl KernelPage<'_> {
    /// Returns the diagnostic of a rule that the text of the kernel breaks.
    pub(super) fn finding(&self, finding: &Finding) -> Diagnostic {
        let Finding { rule, function, line, source, what } = finding;
        let at = self.line(source.as_ref());
        let broken = |place: &str| {
            let rule = format!("rule {rule:?}, in {function}, line {line} of the PTX{place}");
            self.broken(at, what).note(rule)
        };
        let found = match source {
            Some((file, line)) if at.is_none() => broken(&format!(" ({file}:{line})")).note(
                "the code is of the device library, for all lines of the page with such an op",
            ),
            _ => broken(""),
        };
        found.help(REPORT)
    }

    /// Returns the diagnostic of a text that the interpreter cannot read.
    pub(super) fn unreadable(&self, bad: &BadText) -> Diagnostic {
        self.broken(None, &format!("{}, which is not what the interpreter knows", bad.what))
            .note(format!("line {} of the PTX", bad.line))
            .help("it knows what the NVRTC writes that `cargo xtask nvrtc` installs")
    }

    /// Returns the diagnostic of a run that a thread ended, or that could not begin.
    pub(super) fn failure(&self, failure: &Failure) -> Diagnostic {
        let fault = match failure {
            Failure::Launch(error) => {
                return self.broken(None, &error.to_string()).help(REPORT);
            }
            Failure::Fault(fault) => fault,
        };
        let found = match &fault.kind {
            FaultKind::Stuck(waiting) => self.stuck(fault, waiting),
            _ => self.fault(fault),
        };
        let seed = self.seed;
        let found = found.note(format!("the same run again: `--seed {seed}`, with these flags"));
        match fault.kind {
            FaultKind::Limit(_) => found.help("take a smaller --count, or fewer ranks"),
            _ => found.help(REPORT),
        }
    }

    fn broken(&self, at: Option<Span>, what: &str) -> Diagnostic {
        let title = format!("{what}, in the compiled kernel");
        let found = Diagnostic::new(Code::KernelFault, at.unwrap_or(self.header), title);
        Diagnostic { nranks: Some(self.nranks), ..found }
    }

    fn fault(&self, fault: &KernelFault) -> Diagnostic {
        let mut found = self.broken(None, &fault.kind.to_string());
        let (mut now, mut before) = ("", None);
        if let FaultKind::Unordered { stores, other, other_stores, .. } = &fault.kind {
            let access = |stores| if stores { "the store: " } else { "the load: " };
            now = access(*stores);
            before = Some((access(*other_stores), other));
        }
        if let Some(at) = &fault.at {
            if let Some(span) = self.line(at.source.as_ref()) {
                found.primary = span;
                found = found.label(format!("{now}{}", threads(at)));
            }
            found = found.note(format!("{now}{}", self.place(at)));
        }
        if let Some((what, at)) = before {
            if let Some(span) = self.line(at.source.as_ref()) {
                found = found.other(span, format!("{what}{}", threads(at)));
            }
            found = found.note(format!("{what}{}", self.place(at)));
        }
        found
    }

    /// Returns the diagnostic of threads of which none can go on: those that poll first, because others only wait for
    /// them at barriers.
    fn stuck(&self, fault: &KernelFault, waiting: &[(Where, String)]) -> Diagnostic {
        let mut waiting: Vec<_> = waiting.iter().collect();
        waiting.sort_by_key(|(_, what)| what != "polls");
        // The first of the threads that wait at one line for one thing, and the others in words.
        let lines = join_waiting(waiting, |(first, known), (at, what)| {
            known == what && first.source == at.source && first.line == at.line
        });
        let mut found = self.broken(None, &fault.kind.to_string());
        for ((at, what), more) in lines.into_iter().take(MOST_NOTES) {
            match self.line(at.source.as_ref()) {
                Some(span) if found.label.is_empty() => {
                    found.primary = span;
                    found = found.label(format!("{}: {what}{more}", threads(at)));
                }
                Some(span) => found = found.other(span, format!("{}: {what}{more}", threads(at))),
                None => found = found.note(format!("{}: {what}{more}", self.place(at))),
            }
        }
        found
    }

    /// Returns the tokens of a line of the page, or of the last line above that has tokens, since the lines of a statement
    /// in the kernel's text are counted on; `None` for a line of another file.
    fn line(&self, place: Option<&(String, u32)>) -> Option<Span> {
        let (file, line) = place?;
        let name = self.source.name().rsplit(['/', '\\']).next();
        let places = self.source.places();
        let last = places.iter().rposition(|at| at.line <= *line).filter(|_| name == Some(file))?;
        let here = |at: &Location| at.line == places[last].line;
        Some(Span::new(places.iter().position(here)?, last + 1))
    }

    /// Returns threads and their place in the PTX, and in the source if it is not the page.
    fn place(&self, at: &Where) -> String {
        let file = match &at.source {
            Some((file, line)) if self.line(at.source.as_ref()).is_none() => {
                format!(" ({file}:{line})")
            }
            _ => String::new(),
        };
        format!("{}, in {}, line {} of the PTX{file}", threads(at), at.function, at.line)
    }
}

/// Returns threads as the launch numbers them.
fn threads(at: &Where) -> String {
    let Where { rank, block, warp, .. } = at;
    format!("rank {rank}, CTA {block}, warp {warp}, {}", at.lanes_in_words())
}

#[cfg(test)]
mod tests {
    use roundelay_core::render::render;
    use roundelay_ptx::machine::Conflict;
    use roundelay_ptx::program::Space;

    use super::*;

    const TEXT: &str = "one\ntwo words here\nthree\n";

    fn at(rank: u32, lanes: u32, source: (&str, u32)) -> Where {
        let source = Some((source.0.to_owned(), source.1));
        let function = "walk".to_owned();
        Where { rank, block: 2 * rank, warp: 1, lanes, function, source, line: 77 }
    }

    fn shown(kind: FaultKind, at: Option<Where>) -> String {
        let source = Source::from_text("pages/swap.coll", TEXT);
        let page = KernelPage { source: &source, header: Span::new(0, 1), nranks: 2, seed: 9 };
        let failure = Failure::Fault(Box::new(KernelFault { kind, at, before: Vec::new() }));
        render(&page.failure(&failure), &source, false)
    }

    #[test]
    fn threads_that_wait_stand_at_their_lines() {
        let waiting = vec![
            (at(0, 3, ("signals.cuh", 40)), "waits at barrier 1 of 224 threads".to_owned()),
            (at(0, 1, ("swap.coll", 2)), "polls".to_owned()),
            (at(1, 1, ("swap.coll", 3)), "polls".to_owned()),
            (at(1, 2, ("swap.coll", 3)), "polls".to_owned()),
        ];
        let text = shown(FaultKind::Stuck(waiting), None);
        for part in [
            "error[E0434]: no thread can go on, in the compiled kernel",
            "pages/swap.coll:2:1",
            "rank 0, CTA 0, warp 1, lane 0: polls",
            "rank 1, CTA 2, warp 1, lane 0: polls, and 1 more",
            "lanes 0-1, in walk, line 77 of the PTX (signals.cuh:40): waits at barrier 1",
            "`--seed 9`",
            "at nranks = 2",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
    }

    #[test]
    fn a_rule_is_broken_at_a_line_or_for_several_lines() {
        let finding = |file: &str| Finding {
            rule: roundelay_ptx::Rule::Post,
            function: "move".to_owned(),
            line: 77,
            source: Some((file.to_owned(), 2)),
            what: "the post does not release".to_owned(),
        };
        let source = Source::from_text("pages/swap.coll", TEXT);
        let page = KernelPage { source: &source, header: Span::new(0, 1), nranks: 2, seed: 9 };
        let shown = |file| render(&page.finding(&finding(file)), &source, false);
        let (own, library) = (shown("swap.coll"), shown("signals.cuh"));
        assert!(own.contains("pages/swap.coll:2:1") && !own.contains("all lines"), "{own}");
        for part in [
            "pages/swap.coll:1:1",
            "rule Post, in move",
            "(signals.cuh:2)",
            "for all lines of the page",
        ] {
            assert!(library.contains(part), "{part} is not in\n{library}");
        }
    }

    #[test]
    fn a_race_has_both_of_its_places() {
        let kind = FaultKind::Unordered {
            conflict: Conflict::Race,
            memory: "rank 1's output + 16".to_owned(),
            stores: true,
            other: Box::new(at(1, 4, ("swap.coll", 3))),
            other_stores: false,
        };
        let text = shown(kind, Some(at(0, 8, ("swap.coll", 2))));
        for part in [
            "a race: a store and a load of rank 1's output + 16, in the compiled kernel",
            "the store: rank 0, CTA 0, warp 1, lane 3",
            "the load: rank 1, CTA 2, warp 1, lane 2",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
    }

    #[test]
    fn a_line_of_another_file_is_not_shown_as_one_of_the_page() {
        let kind = FaultKind::Bounds { space: Space::Global, address: 16, bytes: 8 };
        let text = shown(kind, Some(at(0, 8, ("other.coll", 2))));
        assert!(text.contains("pages/swap.coll:1:1") && text.contains("(other.coll:2)"), "{text}");
        let limit = shown(FaultKind::Limit(5), Some(at(0, 8, ("swap.coll", 2))));
        assert!(limit.contains("take a smaller --count"), "{limit}");
    }
}
