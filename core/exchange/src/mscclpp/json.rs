//! JSON with the place of every value, as strict as the standard. Numbers are integers, since a plan has no others, and
//! a text with too many values is refused before it takes much memory.

use std::borrow::Cow;
use std::ops::Range;

/// A value and its place.
#[derive(Debug)]
pub(super) struct Value<'t> {
    pub(super) at: Range<usize>,
    pub(super) data: Data<'t>,
}

/// The data of a value.
#[derive(Debug)]
pub(super) enum Data<'t> {
    Null,
    Truth(bool),
    /// An integer that fits, or `None` for any other number.
    Number(Option<i128>),
    Text(Cow<'t, str>),
    List(Vec<Value<'t>>),
    /// The entries in their order, each with the place of its key.
    Map(Vec<(Cow<'t, str>, Range<usize>, Value<'t>)>),
}

impl Data<'_> {
    /// Returns the kind for messages.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Truth(_) => "a truth value",
            Self::Number(_) => "a number",
            Self::Text(_) => "a text",
            Self::List(_) => "a list",
            Self::Map(_) => "an object",
        }
    }
}

/// The error of a text that is not JSON, and its place.
#[derive(Debug)]
pub(super) struct Broken {
    pub(super) at: Range<usize>,
    pub(super) why: String,
}

/// The deepest nesting of brackets; a plan has fewer than ten levels.
const DEPTH: u32 = 32;
/// The most values of a text.
const VALUES: u32 = 1 << 23;

/// Returns the single value of a text.
pub(super) fn parse(text: &str) -> Result<Value<'_>, Broken> {
    let mut parser = Parser { text, at: 0, depth: 0, values: 0 };
    let value = parser.value()?;
    parser.blanks();
    match parser.peek() {
        None => Ok(value),
        Some(_) => Err(parser.broken("the plan ends here, and something follows")),
    }
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    depth: u32,
    values: u32,
}

impl<'t> Parser<'t> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn broken(&self, why: impl Into<String>) -> Broken {
        let rest = &self.text[self.at..];
        let why =
            if rest.is_empty() { "the file ends in the middle".to_owned() } else { why.into() };
        let end = self.at + rest.chars().next().map_or(0, char::len_utf8);
        Broken { at: self.at..end, why }
    }

    fn takes(&mut self, byte: u8) -> bool {
        self.blanks();
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    fn value(&mut self) -> Result<Value<'t>, Broken> {
        self.blanks();
        self.values += 1;
        if self.values > VALUES {
            return Err(self.broken(format!("more than {VALUES} values")));
        }
        let start = self.at;
        let data = match self.peek() {
            Some(b'{') => self.nested(Self::map)?,
            Some(b'[') => self.nested(Self::list)?,
            Some(b'"') => Data::Text(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            _ => self.word()?,
        };
        Ok(Value { at: start..self.at, data })
    }

    fn nested(
        &mut self,
        inner: fn(&mut Self) -> Result<Data<'t>, Broken>,
    ) -> Result<Data<'t>, Broken> {
        if self.depth == DEPTH {
            return Err(self.broken(format!("brackets nest deeper than {DEPTH}")));
        }
        self.depth += 1;
        self.at += 1;
        let data = inner(self)?;
        self.depth -= 1;
        Ok(data)
    }

    fn list(&mut self) -> Result<Data<'t>, Broken> {
        let mut items = Vec::new();
        if self.takes(b']') {
            return Ok(Data::List(items));
        }
        loop {
            items.push(self.value()?);
            if self.takes(b']') {
                return Ok(Data::List(items));
            }
            if !self.takes(b',') {
                return Err(self.broken("a `,` or a `]` is missing here"));
            }
        }
    }

    fn map(&mut self) -> Result<Data<'t>, Broken> {
        let mut entries = Vec::new();
        if self.takes(b'}') {
            return Ok(Data::Map(entries));
        }
        loop {
            self.blanks();
            let start = self.at;
            if self.peek() != Some(b'"') {
                return Err(self.broken("a key in quotes is missing here"));
            }
            let key = self.string()?;
            let place = start..self.at;
            if !self.takes(b':') {
                return Err(self.broken("a `:` is missing here"));
            }
            entries.push((key, place, self.value()?));
            if self.takes(b'}') {
                return Ok(Data::Map(entries));
            }
            if !self.takes(b',') {
                return Err(self.broken("a `,` or a `}` is missing here"));
            }
        }
    }

    fn word(&mut self) -> Result<Data<'t>, Broken> {
        let words =
            [("true", Data::Truth(true)), ("false", Data::Truth(false)), ("null", Data::Null)];
        let rest = &self.text[self.at..];
        match words.into_iter().find(|(word, _)| rest.starts_with(word)) {
            Some((word, data)) => {
                self.at += word.len();
                Ok(data)
            }
            None => Err(self.broken("no value of JSON begins so")),
        }
    }

    fn digits(&mut self) -> bool {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        self.at > start
    }

    fn number(&mut self) -> Result<Data<'t>, Broken> {
        let start = self.at;
        self.at += usize::from(self.peek() == Some(b'-'));
        let first = self.peek();
        let whole = self.at;
        if !self.digits() {
            return Err(self.broken("a number has a digit here"));
        }
        if first == Some(b'0') && self.at > whole + 1 {
            self.at = whole;
            return Err(self.broken("a number does not begin with 0"));
        }
        let end = self.at;
        if self.peek() == Some(b'.') {
            self.at += 1;
            if !self.digits() {
                return Err(self.broken("a number has a digit here"));
            }
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            if !self.digits() {
                return Err(self.broken("a number has a digit here"));
            }
        }
        let number = (self.at == end).then(|| self.text[start..end].parse().ok());
        Ok(Data::Number(number.flatten()))
    }

    fn string(&mut self) -> Result<Cow<'t, str>, Broken> {
        self.at += 1;
        let start = self.at;
        let mut owned: Option<String> = None;
        let mut plain = start;
        loop {
            match self.peek() {
                Some(b'"') => {
                    let rest = &self.text[plain..self.at];
                    self.at += 1;
                    return Ok(match owned {
                        None => Cow::Borrowed(rest),
                        Some(text) => Cow::Owned(text + rest),
                    });
                }
                Some(b'\\') => {
                    let text = owned.get_or_insert_default();
                    text.push_str(&self.text[plain..self.at]);
                    self.at += 1;
                    let escaped = self.escape()?;
                    owned.get_or_insert_default().push(escaped);
                    plain = self.at;
                }
                Some(0..=31) => return Err(self.broken("a control character within a text")),
                Some(_) => self.at += 1,
                None => return Err(self.broken("")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, Broken> {
        let escaped = match self.peek() {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode(),
            _ => return Err(self.broken("no character is escaped so")),
        };
        self.at += 1;
        Ok(escaped)
    }

    fn unicode(&mut self) -> Result<char, Broken> {
        let high = self.hex()?;
        let code = match high {
            0xd800..=0xdbff if self.text[self.at..].starts_with("\\u") => {
                self.at += 1;
                let low = self.hex()?;
                match low {
                    0xdc00..=0xdfff => 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00),
                    _ => high,
                }
            }
            _ => high,
        };
        char::from_u32(code).ok_or_else(|| self.broken("half of a character"))
    }

    /// Reads the four hexadecimal digits after a `u`.
    fn hex(&mut self) -> Result<u32, Broken> {
        self.at += 1;
        let digits = self.text.get(self.at..self.at + 4);
        let code = digits
            .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .and_then(|digits| u32::from_str_radix(digits, 16).ok());
        match code {
            Some(code) => {
                self.at += 4;
                Ok(code)
            }
            None => Err(self.broken("four digits of 16 are missing here")),
        }
    }
}
