//! The values of a harness's text, TOML or JSON, each with its place.

use std::fmt::Write as _;
use std::ops::Range;

use roundelay_core::diagnostics::near::nearest;
use roundelay_core::diagnostics::{Code, Diagnostic};
use roundelay_core::source::{Location, Span};
use roundelay_core::syntax::Source;
use toml::de::{DeTable, DeValue};

use crate::expression::Expression;

/// A mistake in a harness: the bytes of the text that are to blame, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The bytes.
    pub range: Range<usize>,
    /// The reason, in one line.
    pub title: String,
    /// The correction, if there is one.
    pub help: Option<String>,
}

impl Mistake {
    pub(crate) fn new(range: Range<usize>, title: impl Into<String>) -> Self {
        Self { range, title: title.into(), help: None }
    }

    pub(crate) fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }

    /// The mistake as a diagnostic (E0435), in the text of that name.
    pub fn diagnostic(&self, name: &str, text: &str) -> (Diagnostic, Source) {
        let source = pointed(name, text, &self.range);
        let found = Diagnostic::new(Code::BadHarness, Span::new(0, 1), self.title.clone());
        (Diagnostic { help: self.help.clone(), ..found }, source)
    }
}

/// A text in which messages point at bytes of it.
pub(crate) fn pointed(name: &str, text: &str, range: &Range<usize>) -> Source {
    let place = |at: usize| {
        let before = text.get(..at).unwrap_or(text);
        let line = before.rfind('\n').map_or(0, |end| end + 1);
        let lines = before.bytes().filter(|byte| *byte == b'\n').count();
        (lines as u32 + 1, before[line..].chars().count() as u32 + 1)
    };
    let (start, end) = (range.start.min(text.len()), range.end.min(text.len()));
    let ((line, column), (end_line, end_column)) = (place(start), place(end));
    let place = Location { line, column, end_line, end_column };
    Source::with_places(name, text, [(place, start as u32..end as u32)])
}

/// A value.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) value: NodeValue,
    pub(crate) range: Range<usize>,
}

#[derive(Clone, Debug)]
pub(crate) enum NodeValue {
    Whole(i64),
    Flag(bool),
    Text(String),
    List(Vec<Node>),
    Table(Vec<Field>),
    /// A float, a date, or null: no key takes one.
    Other(String),
}

/// A value with its key.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) key: String,
    pub(crate) at: Range<usize>,
    pub(crate) node: Node,
}

impl Node {
    /// Reads a text of TOML.
    pub(crate) fn of_toml(text: &str) -> Result<Self, Mistake> {
        let table = DeTable::parse(text).map_err(|error| {
            let mut title = "the harness is no TOML: ".to_owned();
            _ = write!(title, "{}", error.message().lines().next().unwrap_or_default());
            Mistake::new(error.span().unwrap_or_default(), title)
        })?;
        Ok(of_toml(DeValue::Table(table.into_inner()), 0..0))
    }

    /// Reads a text of JSON.
    pub(crate) fn of_json(text: &str) -> Result<Self, Mistake> {
        let value = serde_json::from_str(text).map_err(|error| {
            let before = text.lines().take(error.line().saturating_sub(1));
            let start = before.map(|line| line.len() + 1).sum::<usize>() + error.column();
            Mistake::new(start..start, format!("the harness is no JSON: {error}"))
        })?;
        Ok(of_json(value))
    }

    pub(crate) fn wrong(&self, title: impl Into<String>) -> Mistake {
        Mistake::new(self.range.clone(), title)
    }

    /// The fields of a table whose keys are among these.
    pub(crate) fn table(&self, keys: &[&str]) -> Result<&[Field], Mistake> {
        let fields = self.any_table()?;
        match fields.iter().find(|field| !keys.contains(&field.key.as_str())) {
            None => Ok(fields),
            Some(field) => {
                let wrong = Mistake::new(
                    field.at.clone(),
                    format!("`{}` is no key of this table", field.key),
                );
                Err(wrong.help(match nearest(&field.key, keys.iter().copied()) {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None => format!("its keys are {}", keys.join(", ")),
                }))
            }
        }
    }

    pub(crate) fn any_table(&self) -> Result<&[Field], Mistake> {
        match &self.value {
            NodeValue::Table(fields) => Ok(fields),
            _ => Err(self.wrong("a table is expected here")),
        }
    }

    /// The values of a list; a single value is a list of one.
    pub(crate) fn list(&self) -> &[Node] {
        match &self.value {
            NodeValue::List(all) => all,
            _ => std::slice::from_ref(self),
        }
    }

    pub(crate) fn text(&self) -> Result<String, Mistake> {
        match &self.value {
            NodeValue::Text(text) => Ok(text.clone()),
            _ => Err(self.wrong("a text in quotes is expected here")),
        }
    }

    pub(crate) fn texts(&self) -> Result<Vec<String>, Mistake> {
        self.list().iter().map(Self::text).collect()
    }

    pub(crate) fn flag(&self) -> Result<bool, Mistake> {
        match &self.value {
            NodeValue::Flag(flag) => Ok(*flag),
            _ => Err(self.wrong("`true` or `false` is expected here")),
        }
    }

    /// A whole number within a range.
    pub(crate) fn whole<T: TryFrom<i64>>(&self, least: i64, most: i64) -> Result<T, Mistake> {
        let wrong =
            || self.wrong(format!("a whole number from {least} to {most} is expected here"));
        match self.value {
            NodeValue::Whole(number) if (least..=most).contains(&number) => {
                T::try_from(number).map_err(|_| wrong())
            }
            _ => Err(wrong()),
        }
    }

    /// One of a few words.
    pub(crate) fn word<T: Copy>(&self, words: &[(&str, T)]) -> Result<T, Mistake> {
        let text = self.text()?;
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
        found.ok_or_else(|| {
            let names: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            let wrong = self.wrong(format!("`{text}` is none of the words that stand here"));
            wrong.help(match nearest(&text, names.iter().copied()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("they are {}", names.join(", ")),
            })
        })
    }

    pub(crate) fn expression(&self) -> Result<Expression, Mistake> {
        match &self.value {
            NodeValue::Whole(number) => Ok((*number).into()),
            NodeValue::Text(text) => Expression::parse(text).map_err(|(at, why)| {
                // Behind the quote; where the text has escapes, the whole of it is marked.
                let start = self.range.start + 1;
                let plain = self.range.len() == text.len() + 2;
                let range =
                    if plain { start + at.start..start + at.end } else { self.range.clone() };
                Mistake::new(range, why)
            }),
            _ => Err(self.wrong("a whole number or an expression in quotes is expected here")),
        }
    }

    pub(crate) fn expressions(&self) -> Result<Vec<Expression>, Mistake> {
        self.list().iter().map(Self::expression).collect()
    }

    /// Lays another table over this one: tables are joined, and other values replaced.
    pub(crate) fn overlay(&mut self, over: Node) {
        match (&mut self.value, over.value) {
            (NodeValue::Table(fields), NodeValue::Table(more)) => {
                for field in more {
                    match fields.iter_mut().find(|known| known.key == field.key) {
                        Some(known) => known.node.overlay(field.node),
                        None => fields.push(field),
                    }
                }
            }
            (value, over_value) => {
                *value = over_value;
                self.range = over.range;
            }
        }
    }
}

/// The value of a key.
pub(crate) fn get<'a>(fields: &'a [Field], key: &str) -> Option<&'a Node> {
    fields.iter().find(|field| field.key == key).map(|field| &field.node)
}

fn of_toml(value: DeValue, range: Range<usize>) -> Node {
    let value = match value {
        DeValue::String(text) => NodeValue::Text(text.into_owned()),
        DeValue::Integer(number) => {
            let digits = number.as_str().replace('_', "");
            match i64::from_str_radix(&digits, number.radix()) {
                Ok(number) => NodeValue::Whole(number),
                Err(_) => NodeValue::Other(digits),
            }
        }
        DeValue::Boolean(flag) => NodeValue::Flag(flag),
        DeValue::Array(all) => {
            let node = |item: toml::Spanned<DeValue>| {
                let range = item.span();
                of_toml(item.into_inner(), range)
            };
            NodeValue::List(all.into_iter().map(node).collect())
        }
        DeValue::Table(table) => {
            let field = |(key, item): (toml::Spanned<_>, toml::Spanned<DeValue>)| {
                let (at, range) = (key.span(), item.span());
                let key: std::borrow::Cow<str> = key.into_inner();
                Field { key: key.into_owned(), at, node: of_toml(item.into_inner(), range) }
            };
            let mut fields: Vec<Field> = table.into_iter().map(field).collect();
            fields.sort_by_key(|field| field.at.start);
            NodeValue::Table(fields)
        }
        DeValue::Float(float) => NodeValue::Other(float.as_str().to_owned()),
        DeValue::Datetime(date) => NodeValue::Other(date.to_string()),
    };
    Node { value, range }
}

fn of_json(value: serde_json::Value) -> Node {
    use serde_json::Value as Json;
    let value = match value {
        Json::Number(number) => {
            number.as_i64().map_or_else(|| NodeValue::Other(number.to_string()), NodeValue::Whole)
        }
        Json::Bool(flag) => NodeValue::Flag(flag),
        Json::String(text) => NodeValue::Text(text),
        Json::Array(all) => NodeValue::List(all.into_iter().map(of_json).collect()),
        Json::Object(fields) => {
            let field = |(key, value)| Field { key, at: 0..0, node: of_json(value) };
            NodeValue::Table(fields.into_iter().map(field).collect())
        }
        Json::Null => NodeValue::Other("null".to_owned()),
    };
    Node { value, range: 0..0 }
}
