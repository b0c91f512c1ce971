//! The protocol's form of a text's parts, hints, lenses and colors, of the words that may stand at a place, and of a call.

use lsp_types::{
    CodeLens, Command, CompletionItem, CompletionItemKind, DocumentSymbol, Documentation,
    FoldingRange, InlayHint, InlayHintLabel, InlayHintTooltip, MarkupContent, MarkupKind,
    ParameterInformation, ParameterLabel, Position, Range, SemanticToken, SemanticTokenType,
    SemanticTokens, SignatureHelp, SignatureInformation, SymbolKind, TextEdit,
};
use serde_json::{Value, json};

use super::document::Document;
use super::lines::Lines;
use super::options::{Hints, Options};
use roundelay_ide::{
    Completion, CompletionSort, OutlineSort, Part, ProofState, TextHint, TokenSort,
};

/// The sorts of tokens, in the order of [`TokenSort`].
pub(super) const SORTS: [SemanticTokenType; 8] = [
    SemanticTokenType::KEYWORD,
    SemanticTokenType::FUNCTION,
    SemanticTokenType::PARAMETER,
    SemanticTokenType::VARIABLE,
    SemanticTokenType::PROPERTY,
    SemanticTokenType::TYPE,
    SemanticTokenType::NUMBER,
    SemanticTokenType::STRING,
];

pub(super) fn symbol_kind(sort: OutlineSort) -> SymbolKind {
    match sort {
        OutlineSort::Algorithm => SymbolKind::FUNCTION,
        OutlineSort::Executor => SymbolKind::OBJECT,
        OutlineSort::Region => SymbolKind::FIELD,
        OutlineSort::Step => SymbolKind::METHOD,
        OutlineSort::Variable => SymbolKind::VARIABLE,
    }
}

pub(super) fn markdown(value: String) -> MarkupContent {
    MarkupContent { kind: MarkupKind::Markdown, value }
}

impl Document {
    pub(super) fn symbols(&self) -> Vec<DocumentSymbol> {
        let lines = self.lines();
        self.outline().into_iter().map(|part| symbol(&lines, part)).collect()
    }

    pub(super) fn folds(&self) -> Vec<FoldingRange> {
        let fold = |(first, last)| FoldingRange {
            start_line: first - 1,
            end_line: last - 1,
            ..Default::default()
        };
        self.text.folds().into_iter().map(fold).collect()
    }

    /// Returns the hints within a range, of the sorts that the user wants.
    pub(super) fn hints(&self, range: Range, wanted: Hints) -> Vec<InlayHint> {
        let lines = self.lines();
        let mut all = Vec::new();
        if wanted.signals {
            all.extend(self.signal_hints());
        }
        if wanted.counts {
            all.extend(self.count_hints());
        }
        if wanted.lengths {
            all.extend(self.length_hints());
        }
        let hint = |TextHint { behind, label, meaning }| InlayHint {
            position: lines.range(behind).end,
            label: InlayHintLabel::String(label),
            kind: None,
            text_edits: None,
            tooltip: Some(InlayHintTooltip::String(meaning)),
            padding_left: Some(true),
            padding_right: None,
            data: None,
        };
        let mut all: Vec<_> = all.into_iter().map(hint).collect();
        all.retain(|hint| range.start <= hint.position && hint.position <= range.end);
        all
    }

    /// Returns the state of each algorithm's proof, for a client that shows it.
    pub(super) fn lights(&self) -> Value {
        let lines = self.lines();
        let count = |(nranks, proved): &_| json!({ "nranks": nranks, "proved": proved });
        let light = |of: ProofState<'_>| {
            json!({
                "name": of.name,
                "range": lines.range(of.named),
                "state": of.state,
                "title": of.title,
                "counts": of.counts.iter().map(count).collect::<Vec<_>>(),
            })
        };
        let algorithms: Vec<_> = self.states().map(light).collect();
        json!({ "uri": self.uri, "version": self.version, "algorithms": algorithms })
    }

    /// Returns lines above each algorithm that has a verdict: the verdict, and commands that show a run.
    pub(super) fn lenses(&self, options: &Options) -> Vec<CodeLens> {
        let lines = self.lines();
        if self.proof.is_none() {
            return Vec::new();
        }
        let lens = |of: ProofState<'_>| {
            let range = lines.range(of.named);
            let command = |title: &str, command: &str| {
                let named = [self.uri.as_str(), of.name];
                let arguments = (!command.is_empty()).then(|| named.map(Value::from).to_vec());
                let (title, command) = (title.to_owned(), command.to_owned());
                CodeLens { range, command: Some(Command { title, command, arguments }), data: None }
            };
            let mut lenses = vec![command(of.title, "")];
            if of.is_proved && !self.is_rust {
                let picture = options.command("roundelay.picture", "roundelay.simulate");
                lenses.push(command("simulate", picture));
                let run = options.command("roundelay.run", "roundelay.execute");
                lenses.push(command("run", run));
            }
            lenses
        };
        self.states().flat_map(lens).collect()
    }

    pub(super) fn completions(&self, at: Position) -> Vec<CompletionItem> {
        let lines = self.lines();
        let word = |of: Completion| {
            let (filter_text, text_edit) = match of.replaced {
                Some((span, text)) => {
                    (Some(text.clone()), Some(TextEdit::new(lines.range(span), text).into()))
                }
                None => (None, None),
            };
            CompletionItem {
                label: of.label,
                kind: Some(completion_kind(of.sort)),
                detail: Some(of.detail),
                documentation: of.meaning.map(|text| Documentation::MarkupContent(markdown(text))),
                filter_text,
                text_edit,
                ..Default::default()
            }
        };
        self.text.completions(lines.place(at)).into_iter().map(word).collect()
    }

    /// Returns the tokens that have a sort, in the protocol's form: each relative to the one before.
    pub(super) fn colored(&self) -> SemanticTokens {
        let lines = self.lines();
        let mut before = Position::new(0, 0);
        let token = |(span, sort): (_, TokenSort)| {
            let Range { start, end } = lines.range(span);
            let column = if start.line == before.line { before.character } else { 0 };
            let token = SemanticToken {
                delta_line: start.line - before.line,
                delta_start: start.character - column,
                length: end.character.saturating_sub(start.character),
                token_type: sort as u32,
                token_modifiers_bitset: 0,
            };
            before = start;
            token
        };
        SemanticTokens { result_id: None, data: self.text.sorted_tokens().map(token).collect() }
    }

    /// Returns the form of the call whose arguments a place is among.
    pub(super) fn call_at(&self, at: Position) -> Option<SignatureHelp> {
        let call = self.text.call_at(self.lines().place(at))?;
        let label = |text: &String| ParameterInformation {
            label: ParameterLabel::Simple(text.clone()),
            documentation: None,
        };
        let signature = SignatureInformation {
            label: format!("{}({})", call.name, call.parameters.join(", ")),
            documentation: None,
            parameters: Some(call.parameters.iter().map(label).collect()),
            active_parameter: Some(call.argument),
        };
        Some(SignatureHelp {
            signatures: vec![signature],
            active_signature: Some(0),
            active_parameter: Some(call.argument),
        })
    }
}

const fn completion_kind(sort: CompletionSort) -> CompletionItemKind {
    match sort {
        CompletionSort::Algorithm => CompletionItemKind::FUNCTION,
        CompletionSort::Attribute => CompletionItemKind::PROPERTY,
        CompletionSort::Collective => CompletionItemKind::CLASS,
        CompletionSort::Field => CompletionItemKind::FIELD,
        CompletionSort::Keyword => CompletionItemKind::KEYWORD,
        CompletionSort::Machine => CompletionItemKind::VALUE,
        CompletionSort::Signal => CompletionItemKind::METHOD,
        CompletionSort::Variable => CompletionItemKind::VARIABLE,
    }
}

#[expect(deprecated, reason = "the field is part of the protocol's struct")]
fn symbol(lines: &Lines<'_>, part: Part<'_>) -> DocumentSymbol {
    let children: Vec<_> = part.parts.into_iter().map(|part| symbol(lines, part)).collect();
    DocumentSymbol {
        name: part.name.to_owned(),
        detail: Some(part.detail.to_owned()),
        kind: symbol_kind(part.sort),
        tags: None,
        deprecated: None,
        range: lines.range(part.whole),
        selection_range: lines.range(part.named),
        // An algorithm without names has an empty list.
        children: matches!(part.sort, OutlineSort::Algorithm).then_some(children),
    }
}
