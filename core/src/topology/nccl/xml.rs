//! Reads XML into a bounded tree of the elements of NCCL's topology files; the other elements are ignored.
//!
//! This is separate from the meaning of the elements, so that a hostile file is dealt with in one place: text is
//! streamed, unknown tags and attributes are dropped, and the rest is counted. Entities are never expanded beyond the
//! five that XML has.

use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

use crate::diagnostics::Code;
use crate::foreign;
use crate::topology::Problem;
use crate::topology::file::{File, shown};

/// The most nested elements.
const DEPTH: usize = 64;
/// The most elements that are kept.
const ELEMENTS: usize = 1 << 14;
/// The most attributes of an element.
const ATTRIBUTES: usize = 64;
/// The most bytes of a value.
const VALUE: usize = 1 << 10;

const TAGS: [&str; 10] =
    ["system", "cpu", "pci", "gpu", "nvlink", "xgmi", "c2c", "pcilink", "nic", "net"];

const NAMES: [&str; 37] = [
    "version",
    "host_hash",
    "numaid",
    "affinity",
    "arch",
    "vendor",
    "familyid",
    "modelid",
    "busid",
    "class",
    "device",
    "subsystem_vendor",
    "subsystem_device",
    "link_speed",
    "link_width",
    "dev",
    "sm",
    "gcn",
    "rank",
    "gdr",
    "target",
    "count",
    "tclass",
    "bw",
    "name",
    "speed",
    "port",
    "latency",
    "guid",
    "maxconn",
    "coll",
    "gin",
    "rma",
    "rail",
    "plane",
    "mlopart",
    "keep",
];

/// An element of a topology file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Element {
    pub(super) tag: &'static str,
    pub(super) attributes: Vec<(&'static str, String)>,
    pub(super) children: Vec<Element>,
    /// The byte at which it begins, for messages.
    at: usize,
}

impl Element {
    pub(super) fn new(tag: &'static str, attributes: &[(&'static str, &str)]) -> Self {
        let attributes = attributes.iter().map(|(name, value)| (*name, (*value).to_owned()));
        Self { tag, attributes: attributes.collect(), ..Self::default() }
    }

    /// Returns the value of an attribute, if it has one that is not empty.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.raw(name).map(str::trim).filter(|value| !value.is_empty())
    }

    /// Returns the value of an attribute with its blanks, as it stands in the file.
    pub(super) fn raw(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(n, _)| *n == name).map(|(_, value)| &**value)
    }

    /// Sets the value of an attribute that may be there.
    pub(super) fn set(&mut self, name: &'static str, value: String) {
        self.attributes.retain(|(n, _)| *n != name);
        self.attributes.push((name, value));
    }

    pub(super) fn all<'a>(&'a self, tag: &'a str) -> impl Iterator<Item = &'a Self> {
        self.children.iter().filter(move |child| child.tag == tag)
    }

    /// Whether it lists `NVLinks`, or AMD's links.
    pub(super) fn is_cable(&self) -> bool {
        ["nvlink", "xgmi"].contains(&self.tag)
    }

    /// Whether it is a PCI device whose class begins with `prefix`.
    pub(super) fn is_class(&self, prefix: &str) -> bool {
        self.tag == "pci" && self.get("class").is_some_and(|class| class.starts_with(prefix))
    }
}

impl<'a> File<'a> {
    fn unreadable(&self, at: usize, title: impl Into<String>) -> Problem {
        self.problem(Code::UnreadableXml, at, title)
    }

    /// Returns the problem of an element whose content makes no sense.
    pub(super) fn wrong(&self, element: &Element, title: impl Into<String>) -> Problem {
        self.problem(Code::NotATopology, element.at, title)
    }

    /// Returns a number in an attribute; `None` if it is absent.
    pub(super) fn number(
        &self,
        element: &Element,
        name: &str,
        range: std::ops::RangeInclusive<i64>,
    ) -> Result<Option<i64>, Problem> {
        let Some(text) = element.get(name) else { return Ok(None) };
        let value = integer(text).filter(|value| range.contains(value));
        value.map(Some).ok_or_else(|| {
            let (tag, shown) = (element.tag, shown(text));
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
    pub(super) fn text(&self, element: &'a Element, name: &str) -> Result<&'a str, Problem> {
        element.get(name).ok_or_else(|| self.lacks(element, name))
    }

    pub(super) fn lacks(&self, element: &Element, name: &str) -> Problem {
        self.wrong(element, format!("a <{}> without `{name}`", element.tag))
    }

    /// Reads the root element.
    pub(super) fn parse(&self) -> Result<Element, Problem> {
        let mut reader = Reader::from_str(self.text);
        reader.config_mut().allow_dangling_amp = true;
        let mut open: Vec<(String, Option<Element>)> = Vec::new();
        let (mut root, mut kept) = (None, 0);
        loop {
            let at = reader.buffer_position() as usize;
            let event = reader.read_event().map_err(|error| {
                self.unreadable(reader.error_position() as usize, format!("broken XML: {error}"))
            })?;
            match event {
                Event::Start(ref start) | Event::Empty(ref start) => {
                    if open.is_empty() {
                        self.root(start, root.is_some(), at)?;
                    }
                    if open.len() >= DEPTH {
                        let title = format!("elements nest more than {DEPTH} deep");
                        return Err(self.unreadable(at, title));
                    }
                    let skipped = open.last().is_some_and(|(_, parent)| parent.is_none());
                    let tag = TAGS.into_iter().find(|tag| *tag == start.name().as_ref());
                    let element = match tag {
                        Some(tag) if !skipped => Some(self.element(tag, start, at)?),
                        _ => None,
                    };
                    kept += usize::from(element.is_some());
                    if kept > ELEMENTS {
                        let title = format!("more than {ELEMENTS} elements");
                        return Err(self.problem(Code::NotATopology, at, title));
                    }
                    if matches!(event, Event::Empty(_)) {
                        close(element, &mut open, &mut root);
                    } else {
                        open.push((shown(start.name().as_ref()), element));
                    }
                }
                Event::End(_) => {
                    let (_, element) = open.pop().unwrap_or_default();
                    close(element, &mut open, &mut root);
                }
                Event::Text(text) if open.is_empty() && !text.trim().is_empty() => {
                    return Err(self.unreadable(at, "text outside of any element: this is not XML"));
                }
                Event::Eof => break,
                _ => {}
            }
        }
        let end = self.text.len();
        if let Some((name, _)) = open.last() {
            return Err(self
                .unreadable(end, format!("the file ends inside of <{name}>"))
                .help("is it cut off?"));
        }
        root.ok_or_else(|| self.unreadable(end, "the file holds no XML element"))
    }

    fn root(&self, start: &BytesStart, second: bool, at: usize) -> Result<(), Problem> {
        if second {
            return Err(self.unreadable(at, "a second element after the first"));
        }
        let name = start.name();
        let name = name.as_ref();
        if name == "system" {
            return Ok(());
        }
        let problem = match foreign::of_root(name) {
            Some(found) => {
                let title = format!("the file is {}", found.what);
                let problem = self.problem(Code::NotATopology, at, title);
                match found.taker {
                    Some(command) => problem.note(format!("`{command}` takes it")),
                    None => problem,
                }
            }
            None => {
                let title = format!("the file begins with <{}>, not with <system>", shown(name));
                self.problem(Code::NotATopology, at, title)
            }
        };
        Err(problem.help("NCCL writes the topology to the file that NCCL_TOPO_DUMP_FILE names"))
    }

    fn element(
        &self,
        tag: &'static str,
        start: &BytesStart,
        at: usize,
    ) -> Result<Element, Problem> {
        let mut element = Element { tag, at, ..Element::default() };
        for (count, attribute) in start.attributes().with_checks(false).enumerate() {
            let broken = |error: &dyn std::fmt::Display| {
                self.unreadable(at, format!("broken attribute of <{tag}>: {error}"))
            };
            let attribute = attribute.map_err(|error| broken(&error))?;
            if count >= ATTRIBUTES {
                return Err(
                    self.wrong(&element, format!("a <{tag}> of more than {ATTRIBUTES} attributes"))
                );
            }
            let Some(name) = NAMES.into_iter().find(|name| *name == attribute.key.as_ref()) else {
                continue;
            };
            if attribute.value.len() > VALUE {
                return Err(self.wrong(&element, format!("`{name}` of a <{tag}> is too long")));
            }
            if element.attributes.iter().any(|(n, _)| *n == name) {
                return Err(self.unreadable(at, format!("a <{tag}> has `{name}` twice")));
            }
            let value = attribute.normalized_value(XmlVersion::Implicit1_0);
            let value = value.map_err(|error| broken(&error))?;
            element.attributes.push((name, value.into_owned()));
        }
        Ok(element)
    }
}

/// Reads an integer as C's `strtol` reads one of base 0: `0x1f` is of base 16, `017` of base 8. A text that goes on
/// behind the digits is none.
pub(super) fn integer(text: &str) -> Option<i64> {
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

fn close(
    element: Option<Element>,
    open: &mut [(String, Option<Element>)],
    root: &mut Option<Element>,
) {
    match open.last_mut() {
        Some((_, parent)) => {
            if let (Some(parent), Some(element)) = (parent, element) {
                parent.children.push(element);
            }
        }
        None => *root = element,
    }
}
