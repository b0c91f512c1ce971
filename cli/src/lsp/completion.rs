//! Words that may stand at a place: members behind a dot, else names, words of the language and algorithms.

use lsp_types::{
    CompletionItem, CompletionItemKind, Documentation, MarkupContent, MarkupKind, Position,
    TextEdit,
};
use roundelay::{Algorithm as _, select};
use roundelay_core::check::ATTRIBUTES;
use roundelay_core::check::hir::Ty;
use roundelay_core::collective::Collective;
use roundelay_core::source::Span;
use roundelay_core::syntax::token::{CONTEXTUAL, KEYWORDS, Tok};
use roundelay_core::topology::nccl::NamedMachine;
use roundelay_core::topology::shape::ShapeKind;

use super::document::Document;
use super::hover::{docs, word_meaning};
use super::names::{Named, variable};
use super::place::{Lines, word};

impl Document {
    pub(super) fn completions(&self, at: Position) -> Vec<CompletionItem> {
        let lines = Lines::of(&self.source);
        let last = lines.before(&self.source, at);
        // The word at hand is not yet whole, so the token before it counts.
        let before = match last {
            Some(last) if word(&self.source, last).is_some() => last.checked_sub(1),
            other => other,
        };
        let is = |token: Option<usize>, wanted: &Tok| {
            token.is_some_and(|token| self.source.tokens().get(token) == Some(wanted))
        };
        if let Some(machines) = last.and_then(|last| self.machines(&lines, last)) {
            return machines;
        }
        if is(before, &Tok::Dot) {
            let base = before.and_then(|dot| dot.checked_sub(1));
            return base.map_or_else(Vec::new, |base| self.members(base));
        }
        if is(before, &Tok::LBracket) && is(before.and_then(|at| at.checked_sub(1)), &Tok::Pound) {
            let attribute = |(name, meaning): &(&str, &str)| CompletionItem {
                documentation: Some(documentation(meaning)),
                ..item(name, CompletionItemKind::PROPERTY, "an attribute")
            };
            return ATTRIBUTES.iter().map(attribute).collect();
        }
        if is(before, &Tok::Arrow) {
            let item = |collective: &Collective| {
                item(collective.name(), CompletionItemKind::CLASS, "a collective")
            };
            return Collective::ALL.iter().map(item).collect();
        }
        let own = self.checked.algorithms.iter();
        let mut all: Vec<_> = own
            .clone()
            .map(|a| item(&a.name, CompletionItemKind::FUNCTION, a.collective.name()))
            .collect();
        let inside = last.and_then(|last| self.enclosing(last));
        let vars = inside.into_iter().flat_map(|algorithm| &algorithm.vars);
        all.extend(vars.map(|var| item(&var.name, CompletionItemKind::VARIABLE, var.ty.name())));
        let library = select::library().iter();
        all.extend(library.map(|known| CompletionItem {
            documentation: Some(documentation(docs(known.docs()).trim_start())),
            ..item(known.name(), CompletionItemKind::FUNCTION, known.collective().name())
        }));
        for function in
            ["copy", "reduce", "peer", "len", "rank", "nranks", "local", "input", "output"]
        {
            all.push(item(function, CompletionItemKind::KEYWORD, "of the language"));
        }
        let shapes = ShapeKind::ALL.iter().map(|kind| (kind.name(), kind.form()));
        let gpus = ("gpus", "the last argument of a topology: gpus(sm=90) or gpus(gfx942)");
        for (name, form) in shapes.chain([gpus]) {
            all.push(item(name, CompletionItemKind::FUNCTION, form));
        }
        let keywords = KEYWORDS.iter().chain(CONTEXTUAL);
        all.extend(keywords.map(|word| item(word, CompletionItemKind::KEYWORD, "of the language")));
        all.sort_by(|a, b| a.label.cmp(&b.label));
        all.dedup_by(|a, b| a.label == b.label);
        all
    }

    /// Returns the machines that have a name, where a text is the first argument of `machine`.
    fn machines(&self, lines: &Lines, text: usize) -> Option<Vec<CompletionItem>> {
        let tokens = self.source.tokens();
        let before = |many: usize| text.checked_sub(many).and_then(|at| tokens.get(at));
        let is_text = matches!(tokens.get(text), Some(Tok::Str(_) | Tok::Unknown));
        let is_argument = before(1) == Some(&Tok::LParen)
            && matches!(before(2), Some(Tok::Ident(word)) if word == ShapeKind::Machine.name());
        if !is_text || !is_argument {
            return None;
        }
        let range = lines.range(&self.source, Span::new(text, text + 1));
        let machine = |machine: &NamedMachine| {
            let quoted = format!("\"{}\"", machine.name);
            CompletionItem {
                filter_text: Some(quoted.clone()),
                text_edit: Some(TextEdit::new(range, quoted).into()),
                ..item(machine.name, CompletionItemKind::VALUE, machine.product)
            }
        };
        Some(NamedMachine::ALL.iter().map(machine).collect())
    }

    /// Returns the members of the value that a token ends.
    fn members(&self, base: usize) -> Vec<CompletionItem> {
        let inside = self.enclosing(base);
        let declared = |word: &str| {
            inside.and_then(|algorithm| algorithm.vars.iter().rfind(|var| var.name == word))
        };
        let ty = match self.named(base) {
            Some(Named::Var(algorithm, var)) => variable(algorithm, var).ty,
            Some(Named::Word("local")) => Ty::Peer,
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
            Some(first) if first.is_uppercase() => CompletionItemKind::METHOD,
            _ => CompletionItemKind::FIELD,
        };
        let members = ty.members().into_iter();
        let mut all: Vec<_> = members.map(|name| item(name, kind(name), ty.name())).collect();
        // A peer has the regions of the program.
        let regions =
            inside.filter(|_| ty == Ty::Peer).into_iter().flat_map(|algorithm| &algorithm.vars);
        let regions = regions.filter(|var| matches!(var.ty, Ty::Region | Ty::Pieces));
        all.extend(regions.map(|var| item(&var.name, CompletionItemKind::FIELD, var.ty.name())));
        all
    }
}

fn item(label: &str, kind: CompletionItemKind, detail: &str) -> CompletionItem {
    CompletionItem {
        label: label.to_owned(),
        kind: Some(kind),
        detail: Some(detail.to_owned()),
        documentation: word_meaning(label).map(documentation),
        ..Default::default()
    }
}

fn documentation(text: &str) -> Documentation {
    let value = text.to_owned();
    Documentation::MarkupContent(MarkupContent { kind: MarkupKind::Markdown, value })
}
