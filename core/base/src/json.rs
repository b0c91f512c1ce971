//! JSON as a value, whose objects keep their fields in the order in which they were given.

use std::fmt;

/// A value of JSON. `{}` prints it on one line.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    /// `null`.
    Null,
    /// `true` or `false`.
    Flag(bool),
    /// A number without decimals.
    Whole(u64),
    /// Any other number; one that is not finite is `null`.
    Decimal(f64),
    /// A text.
    Text(String),
    /// Values in brackets.
    List(Vec<Json>),
    /// Values by their names, in braces.
    Object(Vec<(&'static str, Json)>),
}

impl Json {
    /// Makes a list.
    pub fn list<T: Into<Self>>(values: impl IntoIterator<Item = T>) -> Self {
        Self::List(values.into_iter().map(Into::into).collect())
    }
}

impl From<bool> for Json {
    fn from(value: bool) -> Self {
        Self::Flag(value)
    }
}

impl From<u64> for Json {
    fn from(value: u64) -> Self {
        Self::Whole(value)
    }
}

impl From<u32> for Json {
    fn from(value: u32) -> Self {
        Self::Whole(value.into())
    }
}

impl From<f64> for Json {
    fn from(value: f64) -> Self {
        Self::Decimal(value)
    }
}

impl From<&str> for Json {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<&String> for Json {
    fn from(value: &String) -> Self {
        Self::Text(value.clone())
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(value) => value.fmt(f),
            Self::Whole(value) => value.fmt(f),
            // The shortest digits that are read back exactly, such as 1.0 and 1e-7.
            Self::Decimal(value) if value.is_finite() => write!(f, "{value:?}"),
            Self::Null | Self::Decimal(_) => f.write_str("null"),
            Self::Text(text) => quoted(text, f),
            Self::List(values) => {
                f.write_str("[")?;
                for (at, value) in values.iter().enumerate() {
                    write!(f, "{}{value}", if at > 0 { ", " } else { "" })?;
                }
                f.write_str("]")
            }
            Self::Object(fields) => {
                f.write_str("{")?;
                for (at, (name, value)) in fields.iter().enumerate() {
                    write!(f, "{}\"{name}\": {value}", if at > 0 { ", " } else { "" })?;
                }
                f.write_str("}")
            }
        }
    }
}

fn quoted(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str("\"")?;
    for c in text.chars() {
        match c {
            '"' | '\\' => write!(f, "\\{c}")?,
            '\n' => f.write_str("\\n")?,
            c if c < ' ' => write!(f, "\\u{:04x}", u32::from(c))?,
            c => write!(f, "{c}")?,
        }
    }
    f.write_str("\"")
}
