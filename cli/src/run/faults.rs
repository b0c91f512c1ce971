//! Faults of compiled kernels, as diagnostics at the lines of the page.

use roundelay_core::diagnostics::{Code, Diagnostic};
use roundelay_core::source::{Location, Span};
use roundelay_core::syntax::Source;
use roundelay_kernel_check::{Finding as RunFinding, Kind};
use roundelay_ptx::{BadText, Finding};

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
report it with what `roundelay kernel check --ours` prints for it";

/// The advice for an instruction that the interpreter does not know.
const KNOWN: &str = "it knows what the NVRTC writes that `cargo xtask nvrtc` installs";

impl KernelPage<'_> {
    /// Returns the diagnostic of a rule that the text of the kernel breaks.
    pub(super) fn finding(&self, finding: &Finding) -> Diagnostic {
        let Finding { rule, function, line, source, what } = finding;
        let at = source.as_ref().and_then(|place| self.line(place));
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
            .help(KNOWN)
    }

    /// Returns the diagnostic of a finding of a run.
    pub(super) fn fault(&self, found: &RunFinding) -> Diagnostic {
        let kind = found.kind;
        let fault = found.diagnostic(Code::KernelFault, self.header, |place| self.line(place));
        let again = format!("the same run again: `--seed {}`, with these flags", self.seed);
        let found = Diagnostic {
            title: format!("{}, in the compiled kernel", fault.title),
            nranks: Some(self.nranks),
            ..fault.note(again)
        };
        found.help(match kind {
            Kind::Limit => "take a smaller --count, or fewer ranks",
            Kind::Unsupported => KNOWN,
            _ => REPORT,
        })
    }

    fn broken(&self, at: Option<Span>, what: &str) -> Diagnostic {
        let title = format!("{what}, in the compiled kernel");
        let found = Diagnostic::new(Code::KernelFault, at.unwrap_or(self.header), title);
        Diagnostic { nranks: Some(self.nranks), ..found }
    }

    /// Returns the tokens of a line of the page, or of the last line above that has tokens, since the lines of a statement
    /// in the kernel's text are counted on; `None` for a line of another file.
    fn line(&self, (file, line): &(String, u32)) -> Option<Span> {
        let [name, file] = [self.source.name(), file].map(|name| name.rsplit(['/', '\\']).next());
        let places = self.source.places();
        let last = places.iter().rposition(|at| at.line <= *line).filter(|_| name == file)?;
        let here = |at: &Location| at.line == places[last].line;
        Some(Span::new(places.iter().position(here)?, last + 1))
    }
}

#[cfg(test)]
mod tests {
    use roundelay_core::render::render;

    use super::*;

    const TEXT: &str = "one\ntwo words here\nthree\n";

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
}
