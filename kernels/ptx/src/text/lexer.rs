//! Tokens of a PTX text.

use crate::bad_text::BadText;

/// A token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'t> {
    /// A name, an opcode with its modifiers, a directive, a register or a label.
    Word(&'t str),
    /// An integer, as 64 bits.
    Integer(u64),
    /// The bits of an f32, `0f3F800000`.
    Float32(u32),
    /// The bits of an f64, `0d3FF0000000000000`.
    Float64(u64),
    /// The text between quotes.
    Quoted(&'t str),
    /// Any other character.
    Mark(char),
}

/// A token and its line, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Placed<'t> {
    pub(super) token: Token<'t>,
    pub(super) line: u32,
}

/// Returns the tokens of a text without its comments.
pub(super) fn tokens(text: &str) -> Result<Vec<Placed<'_>>, BadText> {
    let mut found = Vec::with_capacity(text.len() / 5);
    let mut in_comment = None;
    let mut number = 0;
    for line in text.lines() {
        number += 1;
        let mut rest = line;
        loop {
            if in_comment.is_some() {
                let Some(end) = rest.find("*/") else { break };
                rest = &rest[end + 2..];
                in_comment = None;
            }
            rest = rest.trim_start();
            if rest.is_empty() || rest.starts_with("//") {
                break;
            }
            if let Some(behind) = rest.strip_prefix("/*") {
                (in_comment, rest) = (Some(number), behind);
                continue;
            }
            let (token, behind) = next(rest).map_err(|what| BadText::new(number, what))?;
            found.push(Placed { token, line: number });
            rest = behind;
        }
    }
    match in_comment {
        Some(line) => Err(BadText::new(line, "the comment has no end")),
        None => Ok(found),
    }
}

/// Returns the token at the start of a text that is not empty, and the text behind it.
fn next(text: &str) -> Result<(Token<'_>, &str), String> {
    let first = text.chars().next().unwrap_or('\0');
    if let Some(behind) = text.strip_prefix('"') {
        let (quoted, behind) = behind.split_once('"').ok_or("a quote has no end")?;
        return Ok((Token::Quoted(quoted), behind));
    }
    if first.is_ascii_digit() {
        let end = text.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(text.len());
        let (word, behind) = text.split_at(end);
        let token = literal(word).ok_or_else(|| format!("`{word}` is not a number"))?;
        return Ok((token, behind));
    }
    if is_word(first) {
        let (mut end, bytes) = (0, text.as_bytes());
        while let Some(byte) = bytes.get(end) {
            if is_word(*byte as char) || byte.is_ascii_digit() {
                end += 1;
            } else if bytes[end..].starts_with(b"::") {
                end += 2;
            } else {
                break;
            }
        }
        let (word, behind) = text.split_at(end);
        return Ok((Token::Word(word), behind));
    }
    if first.is_ascii_graphic() {
        return Ok((Token::Mark(first), &text[1..]));
    }
    Err(format!("the character {first:?} is not of PTX"))
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphabetic() || matches!(c, '_' | '$' | '%' | '.')
}

fn literal(word: &str) -> Option<Token<'_>> {
    let of = |digits: &str, radix| u64::from_str_radix(digits, radix).ok();
    if let Some(bits) = word.strip_prefix("0f").or_else(|| word.strip_prefix("0F")) {
        return u32::from_str_radix(bits, 16).ok().filter(|_| bits.len() == 8).map(Token::Float32);
    }
    if let Some(bits) = word.strip_prefix("0d").or_else(|| word.strip_prefix("0D")) {
        return of(bits, 16).filter(|_| bits.len() == 16).map(Token::Float64);
    }
    let word = word.strip_suffix('U').unwrap_or(word);
    let value = match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        Some(digits) => of(digits, 16),
        None if word.len() > 1 && word.starts_with('0') => of(word, 8),
        None => of(word, 10),
    };
    value.map(Token::Integer)
}
