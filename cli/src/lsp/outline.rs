//! The parts of a text: its algorithms with their names, the blocks that can be folded, and the verdict above each
//! algorithm.

use lsp_types::{CodeLens, Command, DocumentSymbol, FoldingRange, SymbolKind};
use roundelay_core::check::hir::{Algorithm, Ty};
use roundelay_core::source::Span;
use roundelay_core::syntax::token::Tok;

use super::document::Document;
use super::place::Lines;

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

    /// Returns a line above each algorithm that has a verdict.
    pub(super) fn lenses(&self) -> Vec<CodeLens> {
        let lines = Lines::of(&self.source);
        let Some(proof) = &self.proof else { return Vec::new() };
        let lens = |algorithm: &Algorithm| {
            let found = proof.certificates.iter().find(|(name, _)| *name == algorithm.name);
            let title = match found {
                Some((_, certificate)) if certificate.len() > 1 => certificate[..2].join(" · "),
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
