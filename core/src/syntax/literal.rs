//! The values of literals, for both frontends: they hand over the text of a literal and get its value.

use crate::diagnostics::{Code, Diagnostic};
use crate::source::Span;
use crate::syntax::token::{Quantity, Tok};

/// The reason why a literal has no value: the code, the title, and a correction if there is one.
type LiteralFault = (Code, String, Option<&'static str>);

/// Returns the token of literal `text`, which begins with a digit or a quote. A literal without a value becomes a token
/// that parses, so that no other error is reported at its place.
pub fn token(text: &str, span: Span, diagnostics: &mut Vec<Diagnostic>) -> Tok {
    let value = if text.starts_with('"') {
        unescape(text).map(Tok::Str)
    } else if text.starts_with(|c: char| c.is_ascii_digit()) {
        quantity(text).unwrap_or_else(|| integer(text).map(Tok::Int))
    } else {
        Err((
            Code::UnknownToken,
            format!("literals such as `{}` are not part of the language", shorten(text)),
            Some("there are integers, `true`, `false` and \"strings\""),
        ))
    };
    value.unwrap_or_else(|(code, title, help)| {
        let mut diagnostic = Diagnostic::new(code, span, title);
        diagnostic.help = help.map(str::to_owned);
        diagnostics.push(diagnostic);
        match code {
            Code::LiteralTooLarge if unit(text).is_some() => Tok::Quantity(Quantity::Bytes(1)),
            Code::LiteralTooLarge => Tok::Int(0),
            _ => Tok::Unknown,
        }
    })
}

/// Units of quantities: the suffix, the kind of quantity, and its factor and divisor.
const UNITS: &[Unit] = &[
    ("B", Quantity::Bytes, 1, 1),
    ("kB", Quantity::Bytes, 1_000, 1),
    ("KB", Quantity::Bytes, 1_000, 1),
    ("MB", Quantity::Bytes, 1_000_000, 1),
    ("GB", Quantity::Bytes, 1_000_000_000, 1),
    ("TB", Quantity::Bytes, 1_000_000_000_000, 1),
    ("Mb", Quantity::Bytes, 1_000_000, 8),
    ("Gb", Quantity::Bytes, 1_000_000_000, 8),
    ("Tb", Quantity::Bytes, 1_000_000_000_000, 8),
    ("ns", Quantity::Time, 1, 1),
    ("us", Quantity::Time, 1_000, 1),
    ("ms", Quantity::Time, 1_000_000, 1),
    ("s", Quantity::Time, 1_000_000_000, 1),
];

type Unit = (&'static str, fn(u64) -> Quantity, u64, u64);

/// Splits the text into the number and its unit.
fn unit(text: &str) -> Option<(&str, &'static Unit)> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'))?;
    let (number, unit) = text.split_at(end);
    Some((number, UNITS.iter().find(|(name, ..)| *name == unit)?))
}

/// Reads a decimal number with a unit; `None` if it has none of [`UNITS`].
fn quantity(text: &str) -> Option<Result<Tok, LiteralFault>> {
    let (number, (_, make, times, by)) = unit(text)?;
    let number: String = number.chars().filter(|c| *c != '_').collect();
    let (whole, decimals) = number.split_once('.').unwrap_or((&number, ""));
    let scale = u32::try_from(decimals.len()).ok().and_then(|d| 10_u128.checked_pow(d));
    let digits = format!("{whole}{decimals}").parse::<u128>().ok();
    let value = digits.zip(scale).and_then(|(digits, scale)| {
        let (all, by) = (digits.checked_mul((*times).into())?, scale.checked_mul((*by).into())?);
        let whole = all.is_multiple_of(by).then(|| u64::try_from(all / by).ok())?;
        whole.filter(|w| i64::try_from(*w).is_ok())
    });
    Some(value.map(|value| Tok::Quantity(make(value))).ok_or_else(|| {
        (
            Code::LiteralTooLarge,
            format!(
                "`{}` is not a whole number of bytes or nanoseconds, or too large",
                shorten(text)
            ),
            Some("the smallest units are 1 byte and 1 ns, and amounts fit 63 bits"),
        )
    }))
}

fn integer(text: &str) -> Result<i64, LiteralFault> {
    if text.contains('.') {
        return Err((
            Code::UnknownToken,
            format!("`{}` is not an integer", shorten(text)),
            Some("all numbers are 64-bit integers, but for those with a unit: `12.5GB/s`, `1.5us`"),
        ));
    }
    let digits: String = text.chars().filter(|c| *c != '_').collect();
    let (radix, digits) = match (digits.get(..2), digits.get(2..)) {
        (Some("0x"), Some(rest)) => (16, rest),
        (Some("0b"), Some(rest)) => (2, rest),
        _ => (10, &digits[..]),
    };
    let end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
    let (digits, suffix) = digits.split_at(end);
    let factor: i64 = match suffix {
        "" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => 0,
    };
    if factor == 0 || digits.is_empty() {
        return Err((
            Code::UnknownToken,
            format!("`{}` is not an integer", shorten(text)),
            Some("integers look like `42`, `1_000`, `0xff`, `0b1010`, `4KiB`, `4MiB` or `4GiB`"),
        ));
    }
    i64::from_str_radix(digits, radix).ok().and_then(|v| v.checked_mul(factor)).ok_or_else(|| {
        (
            Code::LiteralTooLarge,
            format!("`{}` does not fit a 64-bit integer", shorten(text)),
            Some("the largest integer is 9223372036854775807"),
        )
    })
}

/// Returns the value of a string literal with its quotes; Rust's escapes, on one line.
fn unescape(text: &str) -> Result<String, LiteralFault> {
    let bad = |what: &str| {
        (
            Code::UnknownToken,
            format!("{what} in a string"),
            Some(r#"the escapes are \n \r \t \0 \\ \" \' \x41 and \u{1f600}"#),
        )
    };
    let inner =
        text.strip_prefix('"').and_then(|t| t.strip_suffix('"')).ok_or_else(|| bad("a suffix"))?;
    let mut value = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        if c == '\n' {
            return Err(bad("a line break"));
        }
        if c != '\\' {
            value.push(c);
            continue;
        }
        let escaped = chars.next();
        let c = match escaped {
            Some('n') => Some('\n'),
            Some('r') => Some('\r'),
            Some('t') => Some('\t'),
            Some('0') => Some('\0'),
            Some(c @ ('\\' | '"' | '\'')) => Some(c),
            Some('x') => {
                let code: String = chars.by_ref().take(2).collect();
                u8::from_str_radix(&code, 16).ok().filter(u8::is_ascii).map(char::from)
            }
            Some('u') => {
                let code: String = chars.by_ref().take_while(|c| *c != '}').take(9).collect();
                code.strip_prefix('{')
                    .and_then(|c| u32::from_str_radix(&c.replace('_', ""), 16).ok())
                    .and_then(char::from_u32)
            }
            _ => None,
        };
        value.push(c.ok_or_else(|| {
            bad(&escaped.map_or("a lone `\\`".to_owned(), |c| {
                format!("unknown escape `\\{}`", c.escape_debug())
            }))
        })?);
    }
    Ok(value)
}

/// Returns the text of a `#[doc = …]` literal, which the compiler may write raw.
pub(super) fn doc(text: &str) -> Option<String> {
    match text.strip_prefix('r') {
        Some(raw) => {
            let hashes = raw.len() - raw.trim_start_matches('#').len();
            let quote = format!("\"{}", &raw[..hashes]);
            raw[hashes..].strip_prefix('"')?.strip_suffix(&quote).map(str::to_owned)
        }
        None => unescape(text).ok(),
    }
}

/// Returns the beginning of `text`, short enough for a title and printable.
pub(super) fn shorten(text: &str) -> String {
    const MAX: usize = 24;
    let mut short = String::new();
    for (i, c) in text.chars().enumerate() {
        if i == MAX {
            short.push('…');
            break;
        }
        if c.is_control() {
            short.extend(c.escape_default());
        } else {
            short.push(c);
        }
    }
    short
}
