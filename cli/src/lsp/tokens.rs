//! Tokens with their meanings, for colors that follow names, and the form of the call around a place.

use lsp_types::{
    ParameterInformation, ParameterLabel, Position, SemanticToken, SemanticTokenType,
    SemanticTokens, SignatureHelp, SignatureInformation,
};
use roundelay_core::check::hir::Ty;
use roundelay_core::collective::Collective;
use roundelay_core::source::Span;
use roundelay_core::syntax::token::{CONTEXTUAL, KEYWORDS, Tok};

use super::document::Document;
use super::names::{Named, variable};
use super::place::{Lines, word};

/// The sorts of tokens, in the order of their numbers.
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

/// The calls of the language, with their parameters.
const CALLS: [(&str, &[&str]); 5] = [
    ("copy", &["from", "to"]),
    ("reduce", &["from", "into"]),
    ("peer", &["number"]),
    ("split", &["pieces"]),
    ("block", &["index"]),
];

impl Document {
    /// Returns the tokens that have a sort, in the protocol's form: each relative to the one before.
    pub(super) fn colored(&self) -> SemanticTokens {
        let lines = Lines::of(&self.source);
        let mut before = Position::new(0, 0);
        let mut data = Vec::new();
        for token in 0..self.source.tokens().len() {
            let Some(sort) = self.sort(token) else { continue };
            let range = lines.range(&self.source, Span::new(token, token + 1));
            let kind = SORTS.iter().position(|known| *known == sort).expect("a sort of the list");
            let same_line = range.start.line == before.line;
            let column = if same_line { before.character } else { 0 };
            data.push(SemanticToken {
                delta_line: range.start.line - before.line,
                delta_start: range.start.character - column,
                length: range.end.character.saturating_sub(range.start.character),
                token_type: kind as u32,
                token_modifiers_bitset: 0,
            });
            before = range.start;
        }
        SemanticTokens { result_id: None, data }
    }

    fn sort(&self, token: usize) -> Option<SemanticTokenType> {
        let tokens = self.source.tokens();
        match &tokens[token] {
            Tok::Int(_) | Tok::Quantity(_) => Some(SemanticTokenType::NUMBER),
            Tok::Str(_) => Some(SemanticTokenType::STRING),
            Tok::Ident(name) => match self.named(token)? {
                Named::Var(algorithm, var) => Some(match variable(algorithm, var).ty {
                    Ty::Step => SemanticTokenType::FUNCTION,
                    _ if algorithm.params.iter().any(|param| param.var == var) => {
                        SemanticTokenType::PARAMETER
                    }
                    _ => SemanticTokenType::VARIABLE,
                }),
                Named::Own(_) => Some(SemanticTokenType::FUNCTION),
                Named::Word(_) if Collective::from_name(name).is_some() => {
                    Some(SemanticTokenType::TYPE)
                }
                Named::Word(_) if tokens.get(token + 1) == Some(&Tok::LParen) => {
                    Some(SemanticTokenType::FUNCTION)
                }
                Named::Word(_) if token > 0 && tokens[token - 1] == Tok::Dot => {
                    Some(SemanticTokenType::PROPERTY)
                }
                Named::Word(_) => None,
            },
            _ => {
                let text = self.source.text()?;
                let text = &text[self.source.range(Span::new(token, token + 1))];
                let known = KEYWORDS.contains(&text) || CONTEXTUAL.contains(&text);
                known.then_some(SemanticTokenType::KEYWORD)
            }
        }
    }

    /// Returns the form of the call whose arguments a place is among.
    pub(super) fn call_at(&self, at: Position) -> Option<SignatureHelp> {
        let lines = Lines::of(&self.source);
        let tokens = self.source.tokens();
        let (mut depth, mut argument) = (0, 0);
        let mut token = lines.before(&self.source, at)?;
        let called = loop {
            match &tokens[token] {
                Tok::RParen | Tok::RBracket => depth += 1,
                Tok::LParen | Tok::LBracket if depth > 0 => depth -= 1,
                Tok::LParen => break token.checked_sub(1)?,
                Tok::Comma if depth == 0 => argument += 1,
                Tok::LBrace | Tok::RBrace | Tok::Semi => return None,
                _ => {}
            }
            token = token.checked_sub(1)?;
        };
        let name = word(&self.source, called)?;
        let parameters: Vec<String> = match self.named(called)? {
            Named::Word(_) => {
                let (_, known) = CALLS.iter().find(|(known, _)| *known == name)?;
                known.iter().map(|parameter| (*parameter).to_owned()).collect()
            }
            Named::Own(algorithm) => {
                let vars = algorithm.params.iter().map(|param| variable(algorithm, param.var));
                vars.map(|var| format!("{}: {}", var.name, var.ty.name())).collect()
            }
            // A step's parameters stand behind its name.
            Named::Var(algorithm, var) => {
                let step = variable(algorithm, var);
                let open = step.span.hi as usize;
                let close = (open..tokens.len()).find(|at| tokens[*at] == Tok::RParen)?;
                let text = self.source.written(Span::new(open + 1, close));
                text.split(',')
                    .map(|one| one.trim().to_owned())
                    .filter(|one| !one.is_empty())
                    .collect()
            }
        };
        let label = |text: &String| ParameterInformation {
            label: ParameterLabel::Simple(text.clone()),
            documentation: None,
        };
        let signature = SignatureInformation {
            label: format!("{name}({})", parameters.join(", ")),
            documentation: None,
            parameters: Some(parameters.iter().map(label).collect()),
            active_parameter: Some(argument),
        };
        Some(SignatureHelp {
            signatures: vec![signature],
            active_signature: Some(0),
            active_parameter: Some(argument),
        })
    }
}
