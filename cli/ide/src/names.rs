//! Names: what each stands for, and all its places.

use roundelay_core::check::hir::{Algorithm, Callee, Var, VarId};
use roundelay_core::source::Span;

use super::place::{Place, token, word};
use super::text::EditorText;

/// The meaning of a name.
#[derive(Clone, Copy)]
pub enum Named<'d> {
    /// A parameter, a `let`, a view, scratch or a step of an algorithm.
    Var(&'d Algorithm, VarId),
    /// An algorithm of this text.
    Own(&'d Algorithm),
    /// Another name: of the library, or a word of the language.
    Word(&'d str),
}

impl EditorText {
    /// Returns the algorithm in whose text a token is: the last whose name stands before it.
    pub(super) fn enclosing(&self, token: usize) -> Option<&Algorithm> {
        let all = &self.checked.algorithms;
        let after = all.partition_point(|algorithm| algorithm.name_span.hi as usize <= token);
        all.get(after.checked_sub(1)?)
    }

    /// Returns the meaning of the name at a token.
    pub(super) fn named(&self, token: usize) -> Option<Named<'_>> {
        let holds = |span: Span| (span.lo..span.hi).contains(&(token as u32));
        if let Some(algorithm) = self.enclosing(token) {
            let used = algorithm.uses.iter().find(|(span, _)| holds(*span)).map(|(_, var)| *var);
            let declared = || {
                let at = algorithm.vars.iter().position(|var| holds(var.span))?;
                Some(VarId(at as u32))
            };
            if let Some(var) = used.or_else(declared) {
                return Some(Named::Var(algorithm, var));
            }
        }
        let word = word(&self.source, token)?;
        let own = self.checked.algorithms.iter().find(|algorithm| algorithm.name == word);
        Some(own.map_or(Named::Word(word), Named::Own))
    }

    /// Returns the meaning of the name at a place.
    pub fn named_at(&self, at: Place) -> Option<Named<'_>> {
        self.named(token(&self.source, at)?)
    }

    /// Returns the algorithm of that name that this text calls.
    pub(super) fn callee(&self, name: &str) -> Option<&Callee> {
        let all = self.checked.algorithms.iter().flat_map(Algorithm::callees);
        all.into_iter().find(|callee| callee.algorithm.name == name)
    }

    /// Returns all places of a name, its declaration first.
    pub fn places(&self, named: Named<'_>) -> Vec<Span> {
        match named {
            Named::Var(algorithm, var) => {
                let uses = algorithm.uses.iter().filter(|(_, used)| *used == var);
                let mut all = vec![variable(algorithm, var).span];
                all.extend(uses.map(|(span, _)| *span));
                all.dedup();
                all
            }
            Named::Own(algorithm) => {
                let tokens = 0..self.source.tokens().len();
                let same = tokens.filter(|token| {
                    matches!(self.named(*token), Some(Named::Own(other)) if std::ptr::eq(other, algorithm))
                });
                let span = |token| Span::new(token, token + 1);
                let others = same.map(span).filter(|span| *span != algorithm.name_span);
                std::iter::once(algorithm.name_span).chain(others).collect()
            }
            Named::Word(_) => Vec::new(),
        }
    }
}

/// Returns the place where a name is declared in its text.
pub fn declaration(named: Named<'_>) -> Option<Span> {
    match named {
        Named::Var(algorithm, var) => Some(variable(algorithm, var).span),
        Named::Own(algorithm) => Some(algorithm.name_span),
        Named::Word(_) => None,
    }
}

pub(super) fn variable(algorithm: &Algorithm, var: VarId) -> &Var {
    &algorithm.vars[var.0 as usize]
}
