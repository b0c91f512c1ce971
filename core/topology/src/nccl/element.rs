//! The tree of a topology file: elements with the tags and attributes that NCCL knows.

use roundelay_base::diagnostics::Code;

use crate::Problem;
use crate::file::{File, show};

/// An element of a topology file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Element {
    /// The name of the element, such as `gpu`.
    pub tag: &'static str,
    /// The attributes, each with its value.
    pub attributes: Vec<(&'static str, String)>,
    /// The elements in it, in order of the file.
    pub children: Vec<Element>,
    /// The byte at which it begins, for messages.
    pub at: usize,
}

impl Element {
    /// Returns an element that stands in no file.
    pub fn new(tag: &'static str, attributes: &[(&'static str, &str)]) -> Self {
        let attributes = attributes.iter().map(|(name, value)| (*name, (*value).to_owned()));
        Self { tag, attributes: attributes.collect(), ..Self::default() }
    }

    /// Returns the value of an attribute, if it has one that is not empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.raw(name).map(str::trim).filter(|value| !value.is_empty())
    }

    /// Returns the value of an attribute with its blanks, as it stands in the file.
    pub fn raw(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(n, _)| *n == name).map(|(_, value)| &**value)
    }

    /// Sets the value of an attribute that may be there.
    pub fn set(&mut self, name: &'static str, value: String) {
        self.attributes.retain(|(n, _)| *n != name);
        self.attributes.push((name, value));
    }

    /// Returns the children of a tag.
    pub fn all<'a>(&'a self, tag: &'a str) -> impl Iterator<Item = &'a Self> {
        self.children.iter().filter(move |child| child.tag == tag)
    }

    /// Whether it lists `NVLinks`, or AMD's links.
    pub fn is_cable(&self) -> bool {
        ["nvlink", "xgmi"].contains(&self.tag)
    }

    /// Whether it is a PCI device whose class begins with `prefix`.
    pub fn is_class(&self, prefix: &str) -> bool {
        self.tag == "pci" && self.get("class").is_some_and(|class| class.starts_with(prefix))
    }
}

impl<'a> File<'a> {
    /// Returns the problem of an element whose content makes no sense.
    pub fn wrong(&self, element: &Element, title: impl Into<String>) -> Problem {
        self.problem(Code::NotATopology, element.at, title)
    }

    /// Returns a number in an attribute; `None` if it is absent.
    pub fn number(
        &self,
        element: &Element,
        name: &str,
        range: std::ops::RangeInclusive<i64>,
    ) -> Result<Option<i64>, Problem> {
        let Some(text) = element.get(name) else { return Ok(None) };
        let value = integer(text).filter(|value| range.contains(value));
        value.map(Some).ok_or_else(|| {
            let (tag, shown) = (element.tag, show(text));
            let title = format!("`{name}=\"{shown}\"` of a <{tag}> is no number that makes sense");
            let range = format!("it is {}..={}", range.start(), range.end());
            let problem = self.wrong(element, title).note(range);
            let decimal = text.trim_start_matches(['-', '+']);
            if decimal.starts_with('0') && decimal.bytes().all(|b| b.is_ascii_digit()) {
                problem.note("NCCL reads a number that begins with 0 as octal")
            } else {
                problem
            }
        })
    }

    /// Returns an attribute that must be there.
    pub fn text(&self, element: &'a Element, name: &str) -> Result<&'a str, Problem> {
        element.get(name).ok_or_else(|| self.lacks(element, name))
    }

    /// Returns the problem of an attribute that is not there.
    pub fn lacks(&self, element: &Element, name: &str) -> Problem {
        self.wrong(element, format!("a <{}> without `{name}`", element.tag))
    }
}

/// Reads an integer as C's `strtol` reads one of base 0: `0x1f` is of base 16, `017` of base 8. A text that goes on
/// behind the digits is none.
pub fn integer(text: &str) -> Option<i64> {
    let negative = text.starts_with('-');
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (digits, base) = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None if digits.starts_with('0') => (digits, 8),
        None => (digits, 10),
    };
    // A second sign would be read as a sign.
    let value = i64::from_str_radix(digits, base).ok().filter(|_| !digits.starts_with(['-', '+']));
    value.map(|value| if negative { -value } else { value })
}
