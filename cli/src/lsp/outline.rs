//! The parts of a text: its algorithms with their names, the blocks that can be folded, and the verdict above each
//! algorithm.

use lsp_types::{
    CodeLens, Command, DocumentSymbol, FoldingRange, InlayHint, InlayHintLabel, InlayHintTooltip,
    Range, SymbolKind,
};
use roundelay_core::check::hir::{Algorithm, Ty};
use roundelay_core::optimize::elide::Reason;
use roundelay_core::source::Span;
use roundelay_core::syntax::token::Tok;

use super::document::Document;
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

    /// Returns a hint behind each post within a range: whether its signal is needed, or implied by others.
    pub(super) fn hints(&self, range: Range) -> Vec<InlayHint> {
        let lines = Lines::of(&self.source);
        let hint = |token: usize| {
            let signal = word(&self.source, token).filter(|word| POSTS.contains(word))?;
            // The signal, its parentheses, and the semicolon.
            let after = lines.range(&self.source, Span::new(token, token + 4)).end;
            if after < range.start || range.end < after {
                return None;
            }
            let line = self.source.places()[token].line;
            let reasons = self.needed(token)?.iter();
            let mut why = reasons.filter(|reason| (reason.line, reason.signal) == (line, signal));
            let (label, told) = match why.next() {
                Some(reason) => ("needed", reason.why.clone()),
                None => {
                    ("implied", "other signals already order all that it would order".to_owned())
                }
            };
            Some(InlayHint {
                position: after,
                label: InlayHintLabel::String(label.to_owned()),
                kind: None,
                text_edits: None,
                tooltip: Some(InlayHintTooltip::String(told)),
                padding_left: Some(true),
                padding_right: None,
                data: None,
            })
        };
        (0..self.source.tokens().len()).filter_map(hint).collect()
    }

    /// Returns a line above each algorithm that has a verdict.
    pub(super) fn lenses(&self) -> Vec<CodeLens> {
        let lines = Lines::of(&self.source);
        if self.proof.is_none() {
            return Vec::new();
        }
        let lens = |algorithm: &Algorithm| {
            let title = match self.certified(&algorithm.name) {
                Some(Certified { lines, .. }) if lines.len() > 1 => lines[..2].join(" · "),
                Some(_) => "no errors within the budget".to_owned(),
                None => "refused".to_owned(),
            };
            let command = Some(Command { title, command: String::new(), arguments: None });
            let range = lines.range(&self.source, algorithm.name_span);
            CodeLens { range, command, data: None }
        };
        self.checked.algorithms.iter().map(lens).collect()
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
