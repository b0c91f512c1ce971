//! The token table: every keyword, contextual word and operator once. The enum, the flattener's
//! operators and the generated lexer all come from it, so the two frontends cannot disagree.
//!
//! It depends on nothing else in the crate, because the generator of the lexer (`xtask`) includes
//! it by path and must build even when a generated file is broken.

use std::fmt;

/// The quantity of a number with a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Quantity {
    /// Bytes; of a bandwidth, bytes a second.
    Bytes(u64),
    /// Nanoseconds.
    Time(u64),
}

macro_rules! tokens {
    (keywords { $($kw:ident $kw_text:literal)* }
     contextual { $($word:ident $word_text:literal)* }
     punctuation { $($punct:ident $punct_text:literal)* }) => {
        /// A token, the same from macro input and from text.
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub enum Tok {
            /// An identifier.
            Ident(String),
            /// An integer literal, never negative.
            Int(i64),
            /// An amount of data or of time: `25GB`, `2us`.
            Quantity(Quantity),
            /// A string literal, unescaped.
            Str(String),
            /// A doc comment, without the slashes.
            Doc(String),
            /// `rust { … }`: the text between the braces, in the escape module's normal form.
            Rust(String),
            /// Characters that are no token; they have been reported.
            Unknown,
            $(#[doc = $kw_text] $kw,)*
            $(#[doc = $word_text] $word,)*
            $(#[doc = $punct_text] $punct,)*
        }

        /// Words that are never identifiers.
        pub const KEYWORDS: &[&str] = &[$($kw_text),*];

        /// Words that are keywords only where [`mark_contextual`] finds them in place.
        pub const CONTEXTUAL: &[&str] = &[$($word_text),*];

        /// Brackets and operators; the longest match wins.
        pub const PUNCTUATION: &[&str] = &[$($punct_text),*];

        impl Tok {
            /// Returns the hard keyword written `text`.
            pub fn keyword(text: &str) -> Option<Self> {
                match text { $($kw_text => Some(Self::$kw),)* _ => None }
            }

            fn contextual(text: &str) -> Option<Self> {
                match text { $($word_text => Some(Self::$word),)* _ => None }
            }

            /// Returns the bracket or operator written `text`.
            pub fn punctuation(text: &str) -> Option<Self> {
                match text { $($punct_text => Some(Self::$punct),)* _ => None }
            }

            /// Returns the spelling of a token that has only one.
            pub fn text(&self) -> Option<&'static str> {
                match self {
                    $(Self::$kw => Some($kw_text),)*
                    $(Self::$word => Some($word_text),)*
                    $(Self::$punct => Some($punct_text),)*
                    _ => None,
                }
            }
        }
    };
}

tokens! {
    keywords {
        Algorithm "algorithm"
        As "as"
        Else "else"
        False "false"
        For "for"
        If "if"
        In "in"
        Let "let"
        Pub "pub"
        True "true"
    }
    contextual {
        Executor "executor"
        Fifo "fifo"
        Like "like"
        On "on"
        Otherwise "otherwise"
        Parallel "parallel"
        Require "require"
        Scratch "scratch"
        Step "step"
        Use "use"
        View "view"
        When "when"
        Within "within"
        Without "without"
    }
    punctuation {
        LParen "("
        RParen ")"
        LBrace "{"
        RBrace "}"
        LBracket "["
        RBracket "]"
        Comma ","
        Semi ";"
        Colon ":"
        PathSep "::"
        Dot "."
        DotDot ".."
        DotDotEq "..="
        Arrow "->"
        FatArrow "=>"
        Assign "="
        EqEq "=="
        NotEq "!="
        Lt "<"
        Le "<="
        Gt ">"
        Ge ">="
        Shl "<<"
        Shr ">>"
        AndAnd "&&"
        OrOr "||"
        And "&"
        Or "|"
        Caret "^"
        Plus "+"
        Minus "-"
        Star "*"
        Slash "/"
        Percent "%"
        Not "!"
        Pound "#"
    }
}

impl Tok {
    /// Returns the keyword or identifier written `text`.
    pub fn word(text: &str) -> Self {
        Self::keyword(text).unwrap_or_else(|| Self::Ident(text.to_owned()))
    }

    fn ends_operand(&self) -> bool {
        matches!(
            self,
            Self::Ident(_)
                | Self::Int(_)
                | Self::True
                | Self::False
                | Self::Rust(_)
                | Self::RParen
                | Self::RBracket
                | Self::RBrace
        )
    }
}

/// Turns contextual words that stand in their places into keywords: a statement's first word when a name (after
/// `require` and `within`: an expression) follows, the `like` of a `scratch` or `fifo` statement, a `without` between a
/// value and a bracket, the `on` between two brackets, a `use` before a string, an `executor` before its name and
/// `for`, and the `when` and `otherwise` that begin its size classes. In other places they stay identifiers, so `for
/// step in 0..3` and `view.split(2)` have their plain meaning.
pub fn mark_contextual(tokens: &mut [Tok]) {
    for i in 0..tokens.len() {
        let Tok::Ident(text) = &tokens[i] else { continue };
        let Some(word) = Tok::contextual(text) else { continue };
        let before = i.checked_sub(1).map(|p| &tokens[p]);
        let begins = matches!(before, Some(Tok::LBrace | Tok::RBrace | Tok::Semi));
        let next = tokens.get(i + 1);
        let named = begins && matches!(next, Some(Tok::Ident(_)));
        let in_place = match word {
            Tok::Like => false,
            Tok::On => before == Some(&Tok::RParen) && next == Some(&Tok::LParen),
            Tok::Use => {
                matches!(before, None | Some(Tok::Semi)) && matches!(next, Some(Tok::Str(_)))
            }
            Tok::Executor => {
                matches!(next, Some(Tok::Ident(_))) && tokens.get(i + 2) == Some(&Tok::For)
            }
            Tok::Otherwise => begins && next == Some(&Tok::FatArrow),
            Tok::Within => {
                let value = || match next {
                    Some(Tok::LParen) => !is_call(&tokens[i + 1..]),
                    next => matches!(next, Some(Tok::Ident(_) | Tok::LBracket | Tok::If)),
                };
                begins && value()
            }
            Tok::Without => {
                let behind = before.is_some_and(|t| t.ends_operand() && *t != Tok::RBrace);
                behind && next == Some(&Tok::LParen)
            }
            Tok::Require => {
                use Tok::{Assign, Comma, Dot, PathSep, RBrace, RBracket, RParen, Semi};
                let continues = |t: &Tok| {
                    matches!(t, Assign | Comma | Dot | PathSep | RBrace | RBracket | RParen | Semi)
                };
                begins && next.is_some_and(|t| !continues(t))
            }
            _ => named,
        };
        if in_place {
            let like = match word {
                Tok::Scratch => like_of(&tokens[i..]),
                Tok::Fifo => Some(1).filter(|_| next == Some(&Tok::Ident("like".to_owned()))),
                _ => None,
            };
            if let Some(like) = like {
                tokens[i + like] = Tok::Like;
            }
            tokens[i] = word;
        }
    }
}

/// Whether the bracket group at the start of `rest` ends the statement.
fn is_call(rest: &[Tok]) -> bool {
    let mut depth = 0_usize;
    let close = rest.iter().position(|tok| {
        match tok {
            Tok::LParen => depth += 1,
            Tok::RParen => depth -= 1,
            _ => {}
        }
        depth == 0
    });
    close.is_none_or(|close| matches!(rest.get(close + 1), None | Some(Tok::Semi)))
}

/// Returns the index of the keyword `like` in a `scratch` statement: after the slot count, which ends an operand as
/// nothing else before a name does, or else right after the colon.
fn like_of(statement: &[Tok]) -> Option<usize> {
    let end = statement.iter().position(|t| *t == Tok::Semi)?;
    let find = |fits: fn(&Tok) -> bool| {
        (3..end).find(|&i| {
            matches!(&statement[i], Tok::Ident(text) if text == "like")
                && fits(&statement[i - 1])
                && statement[i + 1] != Tok::Semi
        })
    };
    find(Tok::ends_operand).or_else(|| find(|t| *t == Tok::Colon))
}

impl fmt::Display for Tok {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ident(name) => f.write_str(name),
            Self::Int(value) => value.fmt(f),
            Self::Quantity(Quantity::Bytes(bytes)) => write!(f, "{bytes}B"),
            Self::Quantity(Quantity::Time(time)) => write!(f, "{time}ns"),
            Self::Str(text) => write!(f, "\"{}\"", text.escape_debug()),
            Self::Doc(text) => write!(f, "///{text}"),
            Self::Rust(text) => write!(f, "rust {{ {text} }}"),
            other => f.write_str(other.text().unwrap_or_default()),
        }
    }
}
