//! The programs in a Rust file: the bodies of its `collective! { … }`, at their places, and blanks in place of all else.

use std::ops::Range;

/// The macro whose body is a program.
const MACRO: &str = "collective";

/// Returns the text with blanks in place of everything but the bodies of the macro. Each place keeps its line, and its
/// column in units of UTF-16.
pub(super) fn programs(text: &str) -> String {
    let mut blanked = String::with_capacity(text.len());
    let mut bodies = bodies(text).into_iter().peekable();
    for (at, c) in text.char_indices() {
        while bodies.next_if(|body| body.end <= at).is_some() {}
        let inside = bodies.peek().is_some_and(|body| body.contains(&at));
        match c {
            _ if inside => blanked.push(c),
            '\n' | '\r' | '\t' => blanked.push(c),
            _ => blanked.extend(std::iter::repeat_n(' ', c.len_utf16())),
        }
    }
    blanked
}

/// Returns the ranges of bytes between the brackets of each macro; a body without an end reaches to the end.
fn bodies(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        if let Some(skipped) = skipped(rest) {
            at += skipped;
        } else if let Some(open) = opened(text, at) {
            let end = open + closed(&text[open..]);
            found.push(open..end);
            at = end;
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    found
}

/// Returns the place behind the opening bracket, if the macro is called at a place.
fn opened(text: &str, at: usize) -> Option<usize> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    if text[..at].chars().next_back().is_some_and(is_part) {
        return None;
    }
    let rest = text[at..].strip_prefix(MACRO)?.trim_start().strip_prefix('!')?.trim_start();
    let open = rest.strip_prefix(['{', '(', '['])?;
    Some(text.len() - open.len())
}

/// Returns the bytes up to the bracket that closes what was opened before the text.
fn closed(text: &str) -> usize {
    let (mut at, mut depth) = (0, 1);
    while at < text.len() {
        let rest = &text[at..];
        if let Some(skipped) = skipped(rest) {
            at += skipped;
            continue;
        }
        let c = rest.chars().next().expect("the text goes on");
        match c {
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
        at += c.len_utf8();
    }
    text.len()
}

/// Returns the bytes of the comment, string or character that a text begins with, if it begins with one.
fn skipped(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    if text.starts_with("/*") {
        return Some(comment(text));
    }
    if let Some(rest) = text.strip_prefix('r') {
        let hashes = rest.len() - rest.trim_start_matches('#').len();
        let inside = rest[hashes..].strip_prefix('"')?;
        let end = format!("\"{}", "#".repeat(hashes));
        let length = inside.find(&end).map_or(inside.len(), |found| found + end.len());
        return Some(text.len() - inside.len() + length);
    }
    if let Some(inside) = text.strip_prefix('"') {
        return Some(1 + until(inside, '"'));
    }
    let inside = text.strip_prefix('\'')?;
    // A lifetime has no second quotation mark behind its first letter.
    let letter = inside.chars().next()?;
    let is_letter = letter == '\\' || inside[letter.len_utf8()..].starts_with('\'');
    is_letter.then(|| 1 + until(inside, '\''))
}

/// Returns the bytes up to and with a mark that no backslash stands before.
fn until(text: &str, mark: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == mark => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Returns the bytes of a comment in which others may nest.
fn comment(text: &str) -> usize {
    let (mut at, mut depth) = (0, 0);
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::{bodies, programs};

    fn inside(text: &str) -> Vec<&str> {
        bodies(text).into_iter().map(|body| &text[body]).collect()
    }

    #[test]
    fn bodies_are_found_and_nothing_else_is() {
        assert_eq!(
            inside("collective! { a { b } }\nfn f() {}\nroundelay::collective!(c);"),
            [" a { b } ", "c"]
        );
        assert_eq!(inside("my_collective! { a } collective_x! { b } collective { c }"), [""; 0]);
        assert_eq!(
            inside("// collective! { a }\n/* /* */ collective! { b } */ \"collective! { c }\""),
            [""; 0]
        );
        assert_eq!(inside("r#\"collective! { \"x\" }\"# collective! { d }"), [" d "]);
        assert_eq!(inside("fn f<'a>(x: &'a u8) { let c = '{'; } collective! { e }"), [" e "]);
        assert_eq!(
            inside("collective! { require x, \"}\"; // }\n }"),
            [" require x, \"}\"; // }\n "]
        );
        assert_eq!(inside("collective! { not closed"), [" not closed"]);
        assert_eq!(inside("let r = raw; collective![\u{1F40C}]"), ["\u{1F40C}"]);
    }

    #[test]
    fn every_place_keeps_its_line_and_column() {
        let text = "use x; // \u{1F40C}\nlet s = \"\u{1F40C}é\"; collective! { a }\n\tfn f() {}\n";
        let blanked = programs(text);
        let widths = |text: &str| -> Vec<usize> {
            text.split('\n').map(|line| line.encode_utf16().count()).collect()
        };
        assert_eq!(widths(&blanked), widths(text));
        assert_eq!(blanked.split_whitespace().collect::<Vec<_>>(), ["a"]);
        let column = |text: &str| {
            let line = text.lines().nth(1).unwrap();
            line[..line.find(" a ").unwrap()].encode_utf16().count()
        };
        assert_eq!(column(&blanked), column(text));
    }
}
