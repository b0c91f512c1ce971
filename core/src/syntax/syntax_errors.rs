//! The words of a syntax error: the parser's list of terminals becomes a few classes, and common mistakes get a hint.

use super::suggestions;
use super::token::{CONTEXTUAL, KEYWORDS, Tok};
use crate::diagnostics::near::distance;
use crate::diagnostics::{Code, Diagnostic};
use crate::source::Span;
use crate::syntax::Source;

const STATEMENT: &[&str] =
    &["let", "view", "for", "if", "parallel", "require", "scratch", "step", "fifo", "within"];
const OPERATOR: &[&str] = &[
    "without", "on", "==", "!=", "<", "<=", ">", ">=", "<<", ">>", "&&", "||", "&", "|", "^", "+",
    "-", "*", "/", "%", ".", "[", "(", "::",
];
const EXPRESSION: &[&str] =
    &["identifier", "integer", "quantity", "true", "false", "rust", "(", "[", "-", "!", "if"];
const TYPES: &[&str] =
    &["int", "bool", "peer", "Rank", "Ring", "Rings", "Tree", "Trees", "Groups", "Topology"];
const ITEM: &[&str] = &["algorithm", "executor", "pub", "doc comment", "#", "use"];

/// Returns the error at token `at`, where the parser would have taken one of `expected`.
pub(super) fn syntax_error(source: &Source, at: usize, expected: &[String]) -> Diagnostic {
    let expected: Vec<&str> = expected.iter().map(|e| e.trim_matches('"')).collect();
    let tokens = source.tokens();
    let found = tokens.get(at);
    let semicolon = lacks_semicolon(source, at, &expected);
    let classes = if semicolon { vec!["`;`".to_owned()] } else { classes(&expected) };
    let title = match (classes.is_empty(), found) {
        (true, None) => "the source ends too early".to_owned(),
        (true, Some(tok)) => format!("unexpected {}", describe(tok)),
        (false, None) => format!("expected {}, found the end", alternatives(&classes)),
        (false, Some(tok)) => {
            format!("expected {}, found {}", alternatives(&classes), describe(tok))
        }
    };
    if let Some(suggestion) = suggestions::suggestion(source, at) {
        let title = suggestion.title.unwrap_or(title);
        let error = Diagnostic::new(Code::SyntaxError, suggestion.at, title);
        let error = error.label(suggestion.label).help(suggestion.help);
        return Diagnostic { edits: suggestion.edit.into_iter().collect(), ..error };
    }
    let primary = Span::new(at, (at + 1).min(tokens.len()));
    let error = |at, label: &str| Diagnostic::new(Code::SyntaxError, at, &*title).label(label);
    match hint(source, at, &expected, semicolon) {
        Some(Hint::Help(help)) => error(primary, "unexpected").help(help),
        Some(Hint::Meant(word, place)) => {
            let meant = error(place, "unexpected").suggest(word);
            Diagnostic { primary, ..meant }
        }
        None if semicolon => {
            let error = error(Span::new(at - 1, at), "this statement lacks its `;`");
            let error = if found.is_some() { error.other(primary, "unexpected") } else { error };
            let end = source.text_at(Span::new(at - 1, at)) + ";";
            error.help("add `;` at the end of this statement").edit(Span::new(at - 1, at), end)
        }
        None => error(primary, "unexpected"),
    }
}

fn describe(tok: &Tok) -> String {
    match tok {
        Tok::Ident(name) => format!("`{}`", super::literal::shorten(name)),
        Tok::Int(value) => format!("`{value}`"),
        Tok::Str(_) => "a string".to_owned(),
        Tok::Quantity(_) => "a number with a unit".to_owned(),
        Tok::Doc(_) => "a doc comment".to_owned(),
        Tok::Rust(_) => "a `rust { … }` escape".to_owned(),
        other => format!("`{other}`"),
    }
}

/// Returns the classes that cover `expected`, the specific classes first; at most four.
fn classes(expected: &[&str]) -> Vec<String> {
    let mut rest = expected.to_vec();
    let mut found = Vec::new();
    let mut take = |class: &str, sign: &[&str], members: &[&str], rest: &mut Vec<&str>| {
        if sign.iter().all(|s| rest.contains(s)) {
            rest.retain(|e| !members.contains(e));
            found.push(class.to_owned());
        }
    };
    let statement: Vec<&str> = [STATEMENT, EXPRESSION].concat();
    take("a statement", &["let", "identifier"], &statement, &mut rest);
    take("a statement", STATEMENT, STATEMENT, &mut rest);
    take("an algorithm", &["algorithm", "pub"], ITEM, &mut rest);
    take("an expression", &["identifier", "integer", "("], EXPRESSION, &mut rest);
    // After a whole operand `:` or `=` would make its first word an argument's name: no author forgot that.
    if rest.contains(&".") {
        rest.retain(|e| ![":", "="].contains(e));
    }
    take("an operator", &["+", "*", "."], OPERATOR, &mut rest);
    // The tokens that may follow every operand say little; the delimiters say which token is missing.
    take("an operator", &[".", "["], OPERATOR, &mut rest);
    let mut list: Vec<String> = rest
        .iter()
        .map(|e| match *e {
            "identifier" => "a name".to_owned(),
            "integer" => "an integer".to_owned(),
            "quantity" => "an amount such as `25GB/s`".to_owned(),
            "string" => "a string".to_owned(),
            "doc comment" => "a doc comment".to_owned(),
            "rust" => "a `rust { … }` escape".to_owned(),
            other => format!("`{other}`"),
        })
        .collect();
    list.append(&mut found);
    list.dedup();
    if list.len() > 4 {
        list.truncate(3);
        list.push("something else".to_owned());
    }
    list
}

fn alternatives(classes: &[String]) -> String {
    match classes {
        [one] => one.clone(),
        [head @ .., last] => format!("{} or {last}", head.join(", ")),
        [] => String::new(),
    }
}

/// Whether the statement that ends these tokens is a `require`.
fn requires(tokens: &[Tok]) -> bool {
    let ends = |tok: &Tok| matches!(tok, Tok::Semi | Tok::LBrace | Tok::RBrace);
    let start = tokens.iter().rposition(ends).map_or(0, |end| end + 1);
    matches!(tokens.get(start), Some(Tok::Require))
}

/// A correction at an unexpected token.
enum Hint {
    Help(String),
    /// The keyword that was probably meant by the word at a place.
    Meant(&'static str, Span),
}

fn hint(source: &Source, at: usize, expected: &[&str], semicolon: bool) -> Option<Hint> {
    if let Some(help) = habit(source, at, expected) {
        return Some(Hint::Help(help));
    }
    let tokens = source.tokens();
    // Where a semicolon is missing, the word of the next line is correct.
    let found = tokens.get(at).filter(|_| !semicolon);
    let before = at.checked_sub(1).and_then(|i| tokens.get(i));
    let before = before.filter(|_| suggestions::begins_statement(tokens, at - 1));
    if let Some((word, is_before)) = misspelt(found, before, expected) {
        let place = at - usize::from(is_before);
        return Some(Hint::Meant(word, Span::new(place, place + 1)));
    }
    let head = suggestions::head(tokens, at).filter(|_| expected.contains(&"{"));
    head.map(|head| Hint::Help(format!("the body of `{head}` stands in braces: `{{ … }}`")))
}

/// Returns the correction of a form that other languages have.
fn habit(source: &Source, at: usize, expected: &[&str]) -> Option<String> {
    let tokens = source.tokens();
    let found = tokens.get(at);
    let before = at.checked_sub(1).and_then(|i| tokens.get(i));
    match (before, found) {
        (Some(Tok::Ident(word)), _) if word == "mut" => {
            Some("values never change: there is no `mut`".to_owned())
        }
        (Some(Tok::Ident(name)), Some(Tok::Ident(ty)))
            if expected.contains(&":") && TYPES.contains(&ty.as_str()) =>
        {
            Some(format!("a type stands after a colon: `{name}: {ty}`"))
        }
        (Some(Tok::Minus), Some(Tok::Quantity(_))) => {
            Some("bandwidths and latencies are never negative".to_owned())
        }
        (_, Some(Tok::DotDotEq)) => Some("ranges are half open: write `a..b + 1`".to_owned()),
        (_, Some(Tok::EqEq | Tok::NotEq | Tok::Lt | Tok::Le | Tok::Gt | Tok::Ge))
            if expected.contains(&"&&") =>
        {
            Some("comparisons do not chain: join two with `&&`".to_owned())
        }
        (_, Some(Tok::Doc(_))) => {
            Some("a doc comment belongs to an algorithm; use `//` here".to_owned())
        }
        (_, Some(Tok::Ident(word))) if word == "step" && expected.contains(&"algorithm") => {
            let place = "inside its braces, before its first call";
            Some(format!("a `step` belongs to an algorithm: write it {place}"))
        }
        (_, Some(Tok::Semi)) if expected.contains(&",") && requires(&tokens[..at]) => {
            let form = "`require nranks == 2, \"two ranks swap\";`";
            Some(format!("a `require` says why it refuses other ranks: {form}"))
        }
        (_, Some(Tok::Else)) if expected.contains(&"}") => {
            Some("the two sides of an `if` expression are single expressions".to_owned())
        }
        _ => None,
    }
}

/// Whether a statement would be complete here, and a line or block ends.
fn lacks_semicolon(source: &Source, at: usize, expected: &[&str]) -> bool {
    let line = |i: usize| source.location(Span::new(i, i + 1));
    expected.contains(&";")
        && at > 0
        && source
            .tokens()
            .get(at)
            .is_none_or(|tok| *tok == Tok::RBrace || line(at - 1).end_line < line(at).line)
}

/// Returns the keyword that the unexpected word, or the word before it that begins a statement, was probably meant to
/// be, and whether it is the word before.
fn misspelt(
    found: Option<&Tok>,
    before: Option<&Tok>,
    expected: &[&str],
) -> Option<(&'static str, bool)> {
    let words = || KEYWORDS.iter().chain(CONTEXTUAL).copied();
    if let Some(Tok::Ident(text)) = found
        && let Some(word) = words().find(|w| text != w && expected.contains(w) && near(text, w))
    {
        return Some((word, false));
    }
    let Some(Tok::Ident(text)) = before else { return None };
    let word =
        words().find(|w| text != w && near(text, w) && (STATEMENT.contains(w) || *w == "else"))?;
    Some((word, true))
}

/// Whether `a` is `b` with one typing error, or two in a long word.
fn near(a: &str, b: &str) -> bool {
    let limit = if b.chars().count() > 5 { 2 } else { 1 };
    b.len() >= 2 && distance(a, b) <= limit
}
