//! Words that may stand at a place: members behind a dot, else names, words of the language and algorithms.

use roundelay::{Algorithm as _, select};
use roundelay_core::check::ATTRIBUTES;
use roundelay_core::check::hir::Ty;
use roundelay_core::collective::Collective;
use roundelay_core::source::Span;
use roundelay_core::syntax::token::{CONTEXTUAL, KEYWORDS, Tok};
use roundelay_topology::nccl::NamedMachine;
use roundelay_topology::shape::ShapeKind;

use super::hover::{docs, word_meaning};
use super::names::{Named, variable};
use super::place::{self, Place, word};
use super::text::EditorText;

/// The sort of a word.
#[derive(Clone, Copy)]
pub enum CompletionSort {
    /// The name of an algorithm.
    Algorithm,
    /// A word within `#[…]`.
    Attribute,
    /// The name of a collective.
    Collective,
    /// A member of a value, without parentheses.
    Field,
    /// A word of the language.
    Keyword,
    /// A text that describes a topology.
    Machine,
    /// A signal of a peer.
    Signal,
    /// A name that the algorithm declares.
    Variable,
}

/// A word that may stand at a place.
pub struct Completion {
    /// The word.
    pub label: String,
    /// The sort of the word.
    pub sort: CompletionSort,
    /// A few words about it, such as its type.
    pub detail: String,
    /// Its meaning, as Markdown.
    pub meaning: Option<String>,
    /// The token in whose place a text is to stand, where that text is not the word itself.
    pub replaced: Option<(Span, String)>,
}

impl EditorText {
    /// Returns the words that may stand at a place.
    pub fn completions(&self, at: Place) -> Vec<Completion> {
        let last = place::before(&self.source, at);
        // The word at hand is not yet whole, so the token before it counts.
        let before = match last {
            Some(last) if word(&self.source, last).is_some() => last.checked_sub(1),
            other => other,
        };
        let is = |token: Option<usize>, wanted: &Tok| {
            token.is_some_and(|token| self.source.tokens().get(token) == Some(wanted))
        };
        if let Some(machines) = last.and_then(|last| self.machines(last)) {
            return machines;
        }
        if is(before, &Tok::Dot) {
            let base = before.and_then(|dot| dot.checked_sub(1));
            return base.map_or_else(Vec::new, |base| self.members(base));
        }
        if is(before, &Tok::LBracket) && is(before.and_then(|at| at.checked_sub(1)), &Tok::Pound) {
            let attribute = |(name, meaning): &(&str, &str)| Completion {
                meaning: Some((*meaning).to_owned()),
                ..item(name, CompletionSort::Attribute, "an attribute")
            };
            return ATTRIBUTES.iter().map(attribute).collect();
        }
        if is(before, &Tok::Arrow) {
            let item = |collective: &Collective| {
                item(collective.name(), CompletionSort::Collective, "a collective")
            };
            return Collective::ALL.iter().map(item).collect();
        }
        let own = self.checked.algorithms.iter();
        let mut all: Vec<_> = own
            .clone()
            .map(|a| item(&a.name, CompletionSort::Algorithm, a.collective.name()))
            .collect();
        let inside = last.and_then(|last| self.enclosing(last));
        let vars = inside.into_iter().flat_map(|algorithm| &algorithm.vars);
        all.extend(vars.map(|var| item(&var.name, CompletionSort::Variable, var.ty.name())));
        let library = select::library().iter();
        all.extend(library.map(|known| Completion {
            meaning: Some(docs(known.docs()).trim_start().to_owned()),
            ..item(known.name(), CompletionSort::Algorithm, known.collective().name())
        }));
        for function in [
            "copy", "reduce", "fold", "peer", "len", "rank", "nranks", "local", "all", "input",
            "output",
        ] {
            all.push(item(function, CompletionSort::Keyword, "of the language"));
        }
        let shapes = ShapeKind::ALL.iter().map(|kind| (kind.name(), kind.form()));
        let gpus = ("gpus", "the last argument of a topology: gpus(sm=90) or gpus(gfx942)");
        let reducing = ("reducing", "the last argument of a topology whose switches reduce");
        for (name, form) in shapes.chain([gpus, reducing]) {
            all.push(item(name, CompletionSort::Algorithm, form));
        }
        let keywords = KEYWORDS.iter().chain(CONTEXTUAL);
        all.extend(keywords.map(|word| item(word, CompletionSort::Keyword, "of the language")));
        all.sort_by(|a, b| a.label.cmp(&b.label));
        all.dedup_by(|a, b| a.label == b.label);
        all
    }

    /// Returns the machines that have a name, where a text is the first argument of `machine`.
    fn machines(&self, text: usize) -> Option<Vec<Completion>> {
        let tokens = self.source.tokens();
        let before = |many: usize| text.checked_sub(many).and_then(|at| tokens.get(at));
        let is_text = matches!(tokens.get(text), Some(Tok::Str(_) | Tok::Unknown));
        let is_argument = before(1) == Some(&Tok::LParen)
            && matches!(before(2), Some(Tok::Ident(word)) if word == ShapeKind::Machine.name());
        if !is_text || !is_argument {
            return None;
        }
        let machine = |machine: &NamedMachine| {
            let quoted = format!("\"{}\"", machine.name);
            Completion {
                replaced: Some((Span::new(text, text + 1), quoted)),
                ..item(machine.name, CompletionSort::Machine, machine.product)
            }
        };
        Some(NamedMachine::ALL.iter().map(machine).collect())
    }

    /// Returns the members of the value that a token ends.
    fn members(&self, base: usize) -> Vec<Completion> {
        let inside = self.enclosing(base);
        let declared = |word: &str| {
            inside.and_then(|algorithm| algorithm.vars.iter().rfind(|var| var.name == word))
        };
        let ty = match self.named(base) {
            Some(Named::Var(algorithm, var)) => variable(algorithm, var).ty,
            Some(Named::Word("local")) => Ty::Peer,
            Some(Named::Word("all")) if declared("all").is_none() => Ty::All,
            Some(Named::Word("input" | "output")) => Ty::Region,
            // A statement that is not whole yet has no meaning, but its names have.
            Some(Named::Word(word)) => match declared(word) {
                Some(var) => var.ty,
                None => return Vec::new(),
            },
            // A call or an index: mostly a peer.
            None if self.source.tokens().get(base) == Some(&Tok::RParen) => Ty::Peer,
            _ => return Vec::new(),
        };
        let kind = |name: &str| match name.chars().next() {
            Some(first) if first.is_uppercase() => CompletionSort::Signal,
            _ => CompletionSort::Field,
        };
        let members = ty.members().into_iter();
        let mut all: Vec<_> = members.map(|name| item(name, kind(name), ty.name())).collect();
        // A peer has the regions of the program.
        let regions =
            inside.filter(|_| ty == Ty::Peer).into_iter().flat_map(|algorithm| &algorithm.vars);
        let regions = regions.filter(|var| matches!(var.ty, Ty::Region | Ty::Pieces));
        all.extend(regions.map(|var| item(&var.name, CompletionSort::Field, var.ty.name())));
        all
    }
}

fn item(label: &str, sort: CompletionSort, detail: &str) -> Completion {
    Completion {
        label: label.to_owned(),
        sort,
        detail: detail.to_owned(),
        meaning: word_meaning(label).map(str::to_owned),
        replaced: None,
    }
}
