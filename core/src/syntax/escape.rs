//! The normal form of a `rust { … }` escape: both frontends bring its tokens to this form, so that equal Rust code
//! gives equal text however it was spaced.

use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

use super::MAX_NESTING;

/// Returns the text of `tokens`; `None` if its groups are nested too deep.
pub(super) fn normalise(tokens: TokenStream) -> Option<String> {
    let mut text = String::new();
    write(tokens, 0, &mut text)?;
    Some(text)
}

fn write(tokens: TokenStream, depth: usize, out: &mut String) -> Option<()> {
    if depth > MAX_NESTING {
        return None;
    }
    let mut previous: Option<TokenTree> = None;
    for token in tokens {
        if previous.as_ref().is_some_and(|p| !glued(p, &token)) {
            out.push(' ');
        }
        match &token {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::Brace if group.stream().is_empty() => ("{", "}"),
                    Delimiter::Brace => ("{ ", " }"),
                    Delimiter::None => ("", ""),
                };
                out.push_str(open);
                write(group.stream(), depth + 1, out)?;
                out.push_str(close);
            }
            other => out.push_str(&other.to_string()),
        }
        previous = Some(token);
    }
    Some(())
}

/// Whether no blank goes between two tokens: where Rust needs none and authors write none.
fn glued(previous: &TokenTree, next: &TokenTree) -> bool {
    match (previous, next) {
        (TokenTree::Punct(a), TokenTree::Punct(_)) => a.spacing() == Spacing::Joint,
        (TokenTree::Punct(a), TokenTree::Group(_)) => a.as_char() == '!',
        (TokenTree::Punct(a), _) => matches!(a.as_char(), '.' | '\''),
        (TokenTree::Literal(_), TokenTree::Punct(b)) => matches!(b.as_char(), ',' | ';' | '?'),
        (_, TokenTree::Punct(b)) => {
            matches!(b.as_char(), ',' | ';' | '?' | '.')
        }
        (TokenTree::Ident(_) | TokenTree::Group(_), TokenTree::Group(b)) => {
            matches!(b.delimiter(), Delimiter::Parenthesis | Delimiter::Bracket)
        }
        _ => false,
    }
}
