//! Tokens with their meanings, for colors that follow names, and the form of the call around a place.

use roundelay_core::check::hir::Ty;
use roundelay_core::collective::Collective;
use roundelay_core::source::Span;
use roundelay_core::syntax::token::{CONTEXTUAL, KEYWORDS, Tok};

use super::names::{Named, variable};
use super::place::{Place, before, word};
use super::text::EditorText;

/// The sort of a token.
#[derive(Clone, Copy)]
pub enum TokenSort {
    /// A word of the language.
    Keyword,
    /// The name of an algorithm, a step or a signal.
    Function,
    /// A parameter of an algorithm.
    Parameter,
    /// Another name that an algorithm declares.
    Variable,
    /// A member of a value.
    Property,
    /// A collective, or a type.
    Type,
    /// A number.
    Number,
    /// A text between quotes.
    String,
}

/// The form of a call around a place.
pub struct CallForm {
    /// The name of what is called.
    pub name: String,
    /// The parameters, each with its type.
    pub parameters: Vec<String>,
    /// The argument at the place, from 0.
    pub argument: u32,
}

/// The calls of the language, with their parameters.
const CALLS: [(&str, &[&str]); 5] = [
    ("copy", &["from", "to"]),
    ("reduce", &["from", "into"]),
    ("peer", &["number"]),
    ("split", &["pieces"]),
    ("block", &["index"]),
];

impl EditorText {
    /// Returns the tokens that have a sort.
    pub fn sorted_tokens(&self) -> impl Iterator<Item = (Span, TokenSort)> {
        let tokens = 0..self.source.tokens().len();
        tokens.filter_map(|token| Some((Span::new(token, token + 1), self.sort(token)?)))
    }

    fn sort(&self, token: usize) -> Option<TokenSort> {
        let tokens = self.source.tokens();
        match &tokens[token] {
            Tok::Int(_) | Tok::Quantity(_) => Some(TokenSort::Number),
            Tok::Str(_) => Some(TokenSort::String),
            Tok::Ident(name) => match self.named(token)? {
                Named::Var(algorithm, var) => Some(match variable(algorithm, var).ty {
                    Ty::Step => TokenSort::Function,
                    _ if algorithm.params.iter().any(|param| param.var == var) => {
                        TokenSort::Parameter
                    }
                    _ => TokenSort::Variable,
                }),
                Named::Own(_) => Some(TokenSort::Function),
                Named::Word(_) if Collective::from_name(name).is_some() => Some(TokenSort::Type),
                Named::Word(_) if tokens.get(token + 1) == Some(&Tok::LParen) => {
                    Some(TokenSort::Function)
                }
                Named::Word(_) if token > 0 && tokens[token - 1] == Tok::Dot => {
                    Some(TokenSort::Property)
                }
                Named::Word(_) => None,
            },
            _ => {
                let text = self.source.text()?;
                let text = &text[self.source.range(Span::new(token, token + 1))];
                let known = KEYWORDS.contains(&text) || CONTEXTUAL.contains(&text);
                known.then_some(TokenSort::Keyword)
            }
        }
    }

    /// Returns the form of the call whose arguments a place is among.
    pub fn call_at(&self, at: Place) -> Option<CallForm> {
        let tokens = self.source.tokens();
        let (mut depth, mut argument) = (0, 0);
        let mut token = before(&self.source, at)?;
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
                let text = self.source.text_at(Span::new(open + 1, close));
                text.split(',')
                    .map(|one| one.trim().to_owned())
                    .filter(|one| !one.is_empty())
                    .collect()
            }
        };
        Some(CallForm { name: name.to_owned(), parameters, argument })
    }
}
