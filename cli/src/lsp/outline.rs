//! The parts of a text: its algorithms with their names, the blocks that can be folded, and the verdict above each
//! algorithm.

use lsp_types::{
    CodeLens, Command, DocumentSymbol, FoldingRange, InlayHint, InlayHintLabel, InlayHintTooltip,
    Position, Range, SymbolKind,
};
use roundelay_core::check::hir::{Algorithm, Ty};
use roundelay_core::diagnostics::Severity;
use roundelay_core::expansion::counted;
use roundelay_core::optimize::elide::Reason;
use roundelay_core::source::Span;
use roundelay_core::syntax::token::Tok;
use serde_json::Value;

use super::document::Document;
use super::lengths;
use super::options::{Hints, Options};
use super::place::{Lines, word};
use super::proof::Certified;

/// The signals that a rank posts.
const POSTS: [&str; 2] = ["TxAck", "TxDataSignal"];

impl Document {
    pub(super) fn symbols(&self) -> Vec<DocumentSymbol> {
        let lines = Lines::of(&self.source);
        let algorithms = self.checked.algorithms.iter();
        let mut all: Vec<_> = algorithms.map(|algorithm| self.symbol(&lines, algorithm)).collect();
        let executors = self.checked.executors.iter().map(|executor| {
            let span = executor.name_span;
            symbol(self, &lines, (&executor.name, "executor"), SymbolKind::OBJECT, (span, span))
        });
        all.extend(executors);
        all
    }

    fn symbol(&self, lines: &Lines<'_>, algorithm: &Algorithm) -> DocumentSymbol {
        let vars = algorithm.vars.iter().map(|var| {
            let kind = match var.ty {
                Ty::Step => SymbolKind::METHOD,
                Ty::Region | Ty::Pieces => SymbolKind::FIELD,
                _ => SymbolKind::VARIABLE,
            };
            symbol(self, lines, (&var.name, var.ty.name()), kind, (var.span, var.span))
        });
        let children = vars.collect();
        let name = algorithm.name_span;
        let whole = Span { lo: name.lo, hi: self.end_of_block(name.hi) };
        let named = (algorithm.name.as_str(), algorithm.collective.name());
        let symbol = symbol(self, lines, named, SymbolKind::FUNCTION, (whole, name));
        DocumentSymbol { children: Some(children), ..symbol }
    }

    /// Returns the end of the first block of braces from a token on.
    fn end_of_block(&self, from: u32) -> u32 {
        let mut open = 0;
        for (at, token) in (from..).zip(self.source.tokens().iter().skip(from as usize)) {
            match token {
                Tok::LBrace => open += 1,
                Tok::RBrace if open == 1 => return at + 1,
                Tok::RBrace => open -= 1,
                _ => {}
            }
        }
        self.source.tokens().len() as u32
    }

    pub(super) fn folds(&self) -> Vec<FoldingRange> {
        let (mut open, mut folds) = (Vec::new(), Vec::new());
        for (token, place) in self.source.tokens().iter().zip(self.source.places()) {
            match token {
                Tok::LBrace => open.push(place.line),
                Tok::RBrace => {
                    let start = open.pop().filter(|start| place.line > start + 1);
                    folds.extend(start.map(|start| FoldingRange {
                        start_line: start - 1,
                        // The line of the closing brace stays.
                        end_line: place.line - 2,
                        ..Default::default()
                    }));
                }
                _ => {}
            }
        }
        folds
    }

    /// Returns the facts of an algorithm that was proved.
    pub(super) fn certified(&self, name: &str) -> Option<&Certified> {
        let certificates = &self.proof.as_ref()?.certificates;
        certificates.iter().find(|certified| certified.name == name)
    }

    /// Returns why signals are needed in the algorithm around a token, where that is known.
    pub(super) fn needed(&self, token: usize) -> Option<&[Reason]> {
        self.certified(&self.enclosing(token)?.name)?.needed.as_deref()
    }

    /// Returns the hints within a range, of the sorts that the user wants.
    pub(super) fn hints(&self, range: Range, wanted: Hints) -> Vec<InlayHint> {
        let lines = Lines::of(&self.source);
        let mut all = Vec::new();
        if wanted.signals {
            all.extend(self.signal_hints(&lines));
        }
        if wanted.counts {
            all.extend(self.count_hints(&lines));
        }
        if wanted.lengths {
            all.extend(self.length_hints(&lines));
        }
        all.retain(|hint| range.start <= hint.position && hint.position <= range.end);
        all
    }

    /// Returns a hint behind each post: whether its signal is needed, or implied by others.
    fn signal_hints(&self, lines: &Lines<'_>) -> Vec<InlayHint> {
        let told = |token: usize| {
            let signal = word(&self.source, token).filter(|word| POSTS.contains(word))?;
            // The signal, its parentheses, and the semicolon.
            let after = lines.range(&self.source, Span::new(token, token + 4)).end;
            let line = self.source.places()[token].line;
            let reasons = self.needed(token)?.iter();
            let mut why = reasons.filter(|reason| (reason.line, reason.signal) == (line, signal));
            let (label, told) = match why.next() {
                Some(reason) => ("needed", reason.why.clone()),
                None => {
                    ("implied", "other signals already order all that it would order".to_owned())
                }
            };
            Some(hint(after, label.to_owned(), told))
        };
        (0..self.source.tokens().len()).filter_map(told).collect()
    }

    /// Returns a hint behind the head of each algorithm: the rank counts that it is proved for.
    fn count_hints(&self, lines: &Lines<'_>) -> Vec<InlayHint> {
        let told = |algorithm: &Algorithm| {
            let Certified { every, counts, lines: said, .. } = self.certified(&algorithm.name)?;
            let proved = counts.iter().filter(|(_, proved)| *proved == Some(true));
            let proved: Vec<u32> = proved.map(|(nranks, _)| *nranks).collect();
            let label = match (every, &proved[..]) {
                (Some(all), _) => (*all).to_owned(),
                (None, []) => return None,
                (None, some) => format!("nranks {}", counted(some)),
            };
            let tokens = self.source.tokens().iter().skip(algorithm.name_span.hi as usize);
            let open = tokens.into_iter().position(|token| *token == Tok::LBrace)?;
            let before = algorithm.name_span.hi as usize + open - 1;
            let after = lines.range(&self.source, Span::new(before, before + 1)).end;
            Some(hint(after, label, said.get(1).cloned().unwrap_or_default()))
        };
        self.checked.algorithms.iter().filter_map(told).collect()
    }

    /// Returns a hint behind each declaration of a region: its length.
    fn length_hints(&self, lines: &Lines<'_>) -> Vec<InlayHint> {
        let told = |(span, length): (Span, String)| {
            let after = lines.range(&self.source, span).end;
            let about = "its elements; count is that of the call".to_owned();
            hint(after, length, about)
        };
        let all = self.checked.algorithms.iter();
        all.flat_map(|algorithm| lengths::of(algorithm, &self.source)).map(told).collect()
    }

    /// Returns the state of each algorithm's proof, for a client that shows it.
    pub(super) fn lights(&self) -> Value {
        let lines = Lines::of(&self.source);
        let broken = self.errors.iter().any(|error| error.severity == Severity::Error);
        let light = |algorithm: &Algorithm| {
            let certified = self.certified(&algorithm.name);
            let (state, title) = match (&self.proof, certified) {
                _ if broken => ("broken", "errors of syntax, names or types"),
                (None, _) => ("proving", "being proved"),
                (Some(_), None) => ("refused", "refused"),
                (Some(_), Some(Certified { every: Some("every nranks"), .. })) => ("every", ""),
                (Some(_), Some(_)) => ("some", ""),
            };
            let title = certified.map_or(title, |certified| &certified.verdict);
            let refused = || {
                let all = self.proof.iter().flat_map(|proof| &proof.refused);
                all.into_iter().find(|(name, _)| *name == algorithm.name).map(|(_, counts)| counts)
            };
            let counts = certified.map(|certified| &certified.counts).or_else(refused);
            let counts = counts.into_iter().flatten();
            let counts = counts
                .map(|(nranks, proved)| serde_json::json!({ "nranks": nranks, "proved": proved }));
            serde_json::json!({
                "name": algorithm.name,
                "range": lines.range(&self.source, algorithm.name_span),
                "state": state,
                "title": title,
                "counts": counts.collect::<Vec<_>>(),
            })
        };
        let algorithms: Vec<_> = self.checked.algorithms.iter().map(light).collect();
        serde_json::json!({
            "uri": self.uri,
            "version": self.version,
            "algorithms": algorithms,
        })
    }

    /// Returns lines above each algorithm that has a verdict: the verdict, and commands that show a run.
    pub(super) fn lenses(&self, options: &Options) -> Vec<CodeLens> {
        let lines = Lines::of(&self.source);
        if self.proof.is_none() {
            return Vec::new();
        }
        let lens = |algorithm: &Algorithm| {
            let certified = self.certified(&algorithm.name);
            let title = certified.map_or("refused", |certified| &certified.verdict).to_owned();
            let range = lines.range(&self.source, algorithm.name_span);
            let command = |title: String, command: &str| {
                let of = [self.uri.as_str(), &algorithm.name];
                let arguments = (!command.is_empty()).then(|| of.map(Value::from).to_vec());
                let command = Command { title, command: command.to_owned(), arguments };
                CodeLens { range, command: Some(command), data: None }
            };
            let mut lenses = vec![command(title, "")];
            if certified.is_some() && !self.is_rust {
                lenses.push(command(
                    "simulate".to_owned(),
                    options.command("roundelay.picture", "roundelay.simulate"),
                ));
                lenses.push(command(
                    "run".to_owned(),
                    options.command("roundelay.run", "roundelay.execute"),
                ));
            }
            lenses
        };
        self.checked.algorithms.iter().flat_map(lens).collect()
    }
}

fn hint(position: Position, label: String, tooltip: String) -> InlayHint {
    InlayHint {
        position,
        label: InlayHintLabel::String(label),
        kind: None,
        text_edits: None,
        tooltip: Some(InlayHintTooltip::String(tooltip)),
        padding_left: Some(true),
        padding_right: None,
        data: None,
    }
}

#[expect(deprecated, reason = "the field is part of the protocol's struct")]
fn symbol(
    document: &Document,
    lines: &Lines<'_>,
    (name, detail): (&str, &str),
    kind: SymbolKind,
    (whole, named): (Span, Span),
) -> DocumentSymbol {
    let range = |span| lines.range(&document.source, span);
    DocumentSymbol {
        name: name.to_owned(),
        detail: Some(detail.to_owned()),
        kind,
        tags: None,
        deprecated: None,
        range: range(whole),
        selection_range: range(named),
        children: None,
    }
}
