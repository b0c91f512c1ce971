//! The parts of a text: its algorithms with their names, the blocks that can be folded, and the verdict above each
//! algorithm.

use roundelay_core::check::hir::{Algorithm, Ty};
use roundelay_core::diagnostics::Severity;
use roundelay_core::expansion::ranges;
use roundelay_core::optimize::elide::Reason;
use roundelay_core::source::Span;
use roundelay_core::syntax::token::Tok;

use super::lengths;
use super::place::word;
use super::proof::{Certified, Counts};
use super::text::EditorText;

/// The signals that a rank posts.
const POSTS: [&str; 2] = ["TxAck", "TxDataSignal"];

/// The sort of a part of a text.
#[derive(Clone, Copy)]
pub enum OutlineSort {
    /// An algorithm.
    Algorithm,
    /// An executor.
    Executor,
    /// A view, or scratch.
    Region,
    /// A step of an algorithm.
    Step,
    /// A parameter or a `let`.
    Variable,
}

/// A part of a text that has a name.
pub struct Part<'t> {
    /// The name.
    pub name: &'t str,
    /// The type of a variable, or the collective of an algorithm.
    pub detail: &'t str,
    /// The sort of the part.
    pub sort: OutlineSort,
    /// The tokens of the whole part.
    pub whole: Span,
    /// The token of the name.
    pub named: Span,
    /// The parts of an algorithm.
    pub parts: Vec<Part<'t>>,
}

/// A hint that is shown behind a place.
pub struct TextHint {
    /// The tokens that it stands behind.
    pub behind: Span,
    /// The text of the hint.
    pub label: String,
    /// The explanation for a reader who points at the hint.
    pub meaning: String,
}

/// The state of an algorithm's proof.
pub struct ProofState<'t> {
    /// The name of the algorithm.
    pub name: &'t str,
    /// The token of the name.
    pub named: Span,
    /// The state in a word: `broken`, `proving`, `refused`, `every` or `some`.
    pub state: &'static str,
    /// The state in a line.
    pub title: &'t str,
    /// The small rank counts, and whether the algorithm is proved at each.
    pub counts: &'t Counts,
    /// Whether the algorithm is proved.
    pub is_proved: bool,
}

impl EditorText {
    /// Returns the algorithms, with their names, and the executors.
    pub fn outline(&self) -> Vec<Part<'_>> {
        let algorithms = self.checked.algorithms.iter().map(|algorithm| self.part(algorithm));
        let executors = self.checked.executors.iter().map(|executor| {
            let span = executor.name_span;
            leaf((&executor.name, "executor"), OutlineSort::Executor, span)
        });
        algorithms.chain(executors).collect()
    }

    fn part<'t>(&self, algorithm: &'t Algorithm) -> Part<'t> {
        let parts = algorithm.vars.iter().map(|var| {
            let sort = match var.ty {
                Ty::Step => OutlineSort::Step,
                Ty::Region | Ty::Pieces => OutlineSort::Region,
                _ => OutlineSort::Variable,
            };
            leaf((&var.name, var.ty.name()), sort, var.span)
        });
        let (named, parts) = (algorithm.name_span, parts.collect());
        let whole = Span { lo: named.lo, hi: self.end_of_block(named.hi) };
        let of = (algorithm.name.as_str(), algorithm.collective.name());
        Part { whole, parts, ..leaf(of, OutlineSort::Algorithm, named) }
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

    /// Returns the blocks that can be folded: their first and last lines, from 1. The line of the closing brace stays.
    pub fn folds(&self) -> Vec<(u32, u32)> {
        let (mut open, mut folds) = (Vec::new(), Vec::new());
        for (token, place) in self.source.tokens().iter().zip(self.source.places()) {
            match token {
                Tok::LBrace => open.push(place.line),
                Tok::RBrace => {
                    let start = open.pop().filter(|start| place.line > start + 1);
                    folds.extend(start.map(|start| (start, place.line - 1)));
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

    /// Returns a hint behind each post: whether its signal is needed, or implied by others.
    pub fn signal_hints(&self) -> Vec<TextHint> {
        let told = |token: usize| {
            let signal = word(&self.source, token).filter(|word| POSTS.contains(word))?;
            // The signal, its parentheses, and the semicolon.
            let behind = Span::new(token, token + 4);
            let line = self.source.places()[token].line;
            let reasons = self.needed(token)?.iter();
            let mut why = reasons.filter(|reason| (reason.line, reason.signal) == (line, signal));
            let (label, told) = match why.next() {
                Some(reason) => ("needed", reason.why.clone()),
                None => {
                    ("implied", "other signals already order all that it would order".to_owned())
                }
            };
            Some(TextHint { behind, label: label.to_owned(), meaning: told })
        };
        (0..self.source.tokens().len()).filter_map(told).collect()
    }

    /// Returns a hint behind the head of each algorithm: the rank counts that it is proved for.
    pub fn count_hints(&self) -> Vec<TextHint> {
        let told = |algorithm: &Algorithm| {
            let Certified { every, counts, lines: said, .. } = self.certified(&algorithm.name)?;
            let proved = counts.iter().filter(|(_, proved)| *proved == Some(true));
            let proved: Vec<u32> = proved.map(|(nranks, _)| *nranks).collect();
            let label = match (every, &proved[..]) {
                (Some(all), _) => (*all).to_owned(),
                (None, []) => return None,
                (None, some) => format!("nranks {}", ranges(some)),
            };
            let tokens = self.source.tokens().iter().skip(algorithm.name_span.hi as usize);
            let open = tokens.into_iter().position(|token| *token == Tok::LBrace)?;
            let before = algorithm.name_span.hi as usize + open - 1;
            let meaning = said.get(1).cloned().unwrap_or_default();
            Some(TextHint { behind: Span::new(before, before + 1), label, meaning })
        };
        self.checked.algorithms.iter().filter_map(told).collect()
    }

    /// Returns a hint behind each declaration of a region: its length.
    pub fn length_hints(&self) -> Vec<TextHint> {
        let told = |(behind, label): (Span, String)| {
            let meaning = "its elements; count is that of the call".to_owned();
            TextHint { behind, label, meaning }
        };
        let all = self.checked.algorithms.iter();
        all.flat_map(|algorithm| lengths::of(algorithm, &self.source)).map(told).collect()
    }

    /// Returns the state of each algorithm's proof.
    pub fn states(&self) -> impl Iterator<Item = ProofState<'_>> {
        static NONE: Counts = Vec::new();
        let broken = self.errors.iter().any(|error| error.severity == Severity::Error);
        self.checked.algorithms.iter().map(move |algorithm| {
            let certified = self.certified(&algorithm.name);
            let (state, title) = match (&self.proof, certified) {
                _ if broken => ("broken", "errors of syntax, names or types"),
                (None, _) => ("proving", "being proved"),
                (Some(_), None) => ("refused", "refused"),
                (Some(_), Some(Certified { every: Some("every nranks"), .. })) => ("every", ""),
                (Some(_), Some(_)) => ("some", ""),
            };
            let refused = || {
                let mut all = self.proof.iter().flat_map(|proof| &proof.refused);
                all.find(|(name, _)| *name == algorithm.name).map(|(_, counts)| counts)
            };
            ProofState {
                name: &algorithm.name,
                named: algorithm.name_span,
                state,
                title: certified.map_or(title, |certified| &certified.verdict),
                counts: certified
                    .map(|certified| &certified.counts)
                    .or_else(refused)
                    .unwrap_or(&NONE),
                is_proved: certified.is_some(),
            }
        })
    }
}

fn leaf<'t>((name, detail): (&'t str, &'t str), sort: OutlineSort, span: Span) -> Part<'t> {
    Part { name, detail, sort, whole: span, named: span, parts: Vec::new() }
}
