//! Reads XML into the elements of a program for MSCCL, each with the values that the runtime reads.
//!
//! This is apart from the meaning of the elements, so that one module handles hostile files: unknown elements are not
//! kept, kept elements are counted, and no entity is ever expanded. The runtime's reader takes less than XML; a text at
//! which it would stop is refused here too.

use std::ops::Range;

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use super::report::{TextReport, shown};
use super::runtime::{ATTRIBUTES, WORD};
use roundelay_core::diagnostics::Code;
use roundelay_core::dtype::named_enum;
use roundelay_core::foreign;

/// The most bytes of a file.
const BYTES: usize = 1 << 28;
/// The deepest nesting of elements.
const DEPTH: usize = 64;
/// The most elements that are kept.
const ELEMENTS: usize = 1 << 19;
/// The most different names of elements and attributes that warnings name.
const NAMES: usize = 32;

named_enum! {
    /// An element that the runtime knows, each within the one before.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Tag {
        Algo = "algo",
        Gpu = "gpu",
        Tb = "tb",
        Step = "step",
    }
}

impl Tag {
    /// Returns the attributes that the runtime reads.
    const fn attributes(self) -> &'static [&'static str] {
        match self {
            Self::Algo => &[
                "name",
                "proto",
                "nchannels",
                "nchunksperloop",
                "ngpus",
                "coll",
                "inplace",
                "outofplace",
                "minBytes",
                "maxBytes",
            ],
            Self::Gpu => &["id", "i_chunks", "o_chunks", "s_chunks"],
            Self::Tb => &["id", "send", "recv", "chan"],
            Self::Step => &[
                "s", "type", "srcbuf", "srcoff", "dstbuf", "dstoff", "cnt", "depid", "deps",
                "hasdep",
            ],
        }
    }
}

/// An element: the place of its tag, its values, and the elements in it.
#[derive(Debug)]
pub(super) struct Element<'t> {
    /// Its tag in the text.
    pub(super) at: Range<usize>,
    tag: Tag,
    values: [Option<&'t str>; 10],
    pub(super) inner: Vec<Element<'t>>,
}

impl<'t> Element<'t> {
    /// Returns the value of an attribute, if present.
    pub(super) fn get(&self, name: &str) -> Option<&'t str> {
        let index = self.tag.attributes().iter().position(|known| *known == name)?;
        self.values[index]
    }

    /// Returns the tag for messages, for example `<step>`.
    pub(super) fn name(&self) -> String {
        format!("<{}>", self.tag.name())
    }
}

/// Returns the range of `part` within `text`.
pub(super) fn range(text: &str, part: &str) -> Range<usize> {
    let start = (part.as_ptr() as usize).wrapping_sub(text.as_ptr() as usize);
    if start <= text.len() { start..(start + part.len()).min(text.len()) } else { 0..0 }
}

/// Returns the elements of a text; `None` for a text that cannot be read: then the report says why.
pub(super) fn parse<'t>(text: &'t str, report: &mut TextReport) -> Option<Element<'t>> {
    if text.len() > BYTES {
        let title = format!("the file has more than {} MiB", BYTES >> 20);
        report.error(Code::UnreadableXml, 0..0, title);
        return None;
    }
    let mut parser = Parser { text, report, open: Vec::new(), algo: None, kept: 0, names: 0 };
    match parser.all() {
        Ok(()) => parser.algo,
        Err(problem) => {
            let Stopped { code, at, title, help } = *problem;
            parser.report.error(code, at, title).help_if(help);
            None
        }
    }
}

/// The reason for which the reader stopped.
struct Stopped {
    code: Code,
    at: Range<usize>,
    title: String,
    help: Option<String>,
}

fn stopped<T>(code: Code, at: Range<usize>, title: impl Into<String>) -> Result<T, Box<Stopped>> {
    Err(Box::new(Stopped { code, at, title: title.into(), help: None }))
}

struct Parser<'t, 'r> {
    text: &'t str,
    report: &'r mut TextReport,
    /// The open elements; `None` for an unknown element, whose content is skipped.
    open: Vec<Option<Tag>>,
    algo: Option<Element<'t>>,
    kept: usize,
    /// The number of names in warnings so far.
    names: usize,
}

impl<'t> Parser<'t, '_> {
    fn all(&mut self) -> Result<(), Box<Stopped>> {
        let mut reader = Reader::from_str(self.text);
        reader.config_mut().allow_dangling_amp = true;
        loop {
            let from = reader.buffer_position() as usize;
            let event = match reader.read_event() {
                Ok(event) => event,
                Err(error) => {
                    let at = reader.error_position() as usize;
                    return stopped(Code::UnreadableXml, at..at, format!("broken XML: {error}"));
                }
            };
            let at = from..reader.buffer_position() as usize;
            match event {
                Event::Start(start) => {
                    let tag = self.element(&start, at)?;
                    self.open.push(tag);
                }
                Event::Empty(start) => {
                    self.element(&start, at)?;
                }
                Event::End(_) => {
                    self.open.pop();
                }
                Event::Comment(_) => {}
                Event::Text(_) => self.blanks(at)?,
                Event::Eof => break,
                Event::Decl(_) | Event::PI(_) | Event::DocType(_) | Event::CData(_) => {
                    let title = "the runtime's reader takes elements and comments alone";
                    return stopped(Code::RefusedByRuntime, at, title);
                }
                Event::GeneralRef(_) => {
                    let title = "the runtime's reader knows no references";
                    return stopped(Code::RefusedByRuntime, at, title);
                }
            }
        }
        let end = self.text.len()..self.text.len();
        if !self.open.is_empty() {
            let title = "the file ends inside of an element";
            let help = Some("is it cut off?".to_owned());
            let problem = Stopped { code: Code::UnreadableXml, at: end, title: title.into(), help };
            return Err(Box::new(problem));
        }
        if self.algo.is_none() {
            return stopped(Code::UnreadableXml, end, "the file holds no XML element");
        }
        Ok(())
    }

    /// Checks the text between elements: the runtime's reader skips only blanks and line ends.
    fn blanks(&self, at: Range<usize>) -> Result<(), Box<Stopped>> {
        let text = self.text.get(at.clone()).unwrap_or_default();
        let Some(first) = text.find(|c| !matches!(c, ' ' | '\n' | '\r')) else { return Ok(()) };
        let found = text[first..].chars().next().unwrap_or(' ');
        let here = at.start + first;
        let title = match found {
            '\t' => "a tab, where the runtime's reader takes blanks and line ends alone",
            _ => "text, where the runtime's reader takes elements alone",
        };
        stopped(Code::RefusedByRuntime, here..here + found.len_utf8(), title)
    }

    /// Handles the start of an element. An element that is unknown at its place is passed over with a warning.
    fn element(
        &mut self,
        start: &BytesStart<'t>,
        at: Range<usize>,
    ) -> Result<Option<Tag>, Box<Stopped>> {
        if self.open.len() >= DEPTH {
            let title = format!("elements nest more than {DEPTH} deep");
            return stopped(Code::UnreadableXml, at, title);
        }
        let name = start.name();
        let name: &str = name.as_ref();
        let expected = match self.open.last() {
            None => Some(Tag::Algo),
            Some(None) => return Ok(None),
            Some(Some(parent)) => Tag::ALL.get(*parent as usize + 1).copied(),
        };
        if let Some(tag) = expected.filter(|tag| tag.name() == name) {
            self.keep(tag, start, at)?;
            return Ok(Some(tag));
        }
        if self.open.is_empty() {
            return self.other_root(name, at);
        }
        self.passed_over(&format!("<{}>", shown(name)), at, "the runtime passes over this element");
        Ok(None)
    }

    fn other_root(&self, name: &str, at: Range<usize>) -> Result<Option<Tag>, Box<Stopped>> {
        if self.algo.is_some() {
            return stopped(Code::UnreadableXml, at, "a second element after the first");
        }
        let title = format!("the file begins with <{}>, not with <algo>", shown(name));
        let known = foreign::of_root(name).map(|found| match found.taker {
            Some(command) => format!("the file is {}: `{command}` takes it", found.what),
            None => format!("the file is {}, and no program", found.what),
        });
        let help = known.or_else(|| Some("a program for MSCCL is one <algo>".to_owned()));
        Err(Box::new(Stopped { code: Code::RefusedByRuntime, at, title, help }))
    }

    fn passed_over(&mut self, what: &str, at: Range<usize>, title: &str) {
        self.names += 1;
        if self.names <= NAMES {
            self.report.warn(what, at, format!("{title}: {what}"));
        }
    }

    fn keep(
        &mut self,
        tag: Tag,
        start: &BytesStart<'t>,
        at: Range<usize>,
    ) -> Result<(), Box<Stopped>> {
        self.kept += 1;
        if self.kept > ELEMENTS {
            let title = format!("more than {ELEMENTS} elements");
            return stopped(Code::UnreadableXml, at, title);
        }
        if tag == Tag::Algo && self.algo.is_some() {
            return stopped(Code::UnreadableXml, at, "a second <algo> after the first");
        }
        let element = self.values(tag, start, at)?;
        // The last element of each tag that contains it.
        let mut parent = self.algo.as_mut();
        for _ in 1..tag as usize {
            parent = parent.and_then(|parent| parent.inner.last_mut());
        }
        match parent {
            Some(parent) => parent.inner.push(element),
            None => self.algo = Some(element),
        }
        Ok(())
    }

    /// Reads the attributes of a tag as the runtime does: a blank before each, and double quotes around values.
    fn values(
        &mut self,
        tag: Tag,
        start: &BytesStart<'t>,
        at: Range<usize>,
    ) -> Result<Element<'t>, Box<Stopped>> {
        let mut element = Element { at: at.clone(), tag, values: [None; 10], inner: vec![] };
        let whole = self.text.get(at.clone()).unwrap_or_default();
        let inner = whole.trim_end_matches(['>', '/']);
        let mut rest = inner.get(1 + start.name().as_ref().len()..).unwrap_or_default();
        let mut count = 0;
        while !rest.is_empty() {
            let here = range(self.text, rest);
            let Some(next) = rest.strip_prefix(' ') else {
                let title = "the runtime's reader wants one blank before each attribute";
                return stopped(Code::RefusedByRuntime, here.start..here.start + 1, title);
            };
            count += 1;
            if next.is_empty() || next.starts_with(' ') {
                rest = next;
                continue;
            }
            let Some((name, value, after)) = attribute(next) else {
                let title =
                    "this is no attribute as the runtime's reader takes them: NAME=\"VALUE\"";
                let end = (here.start + 1).max(at.end.saturating_sub(1));
                return stopped(Code::RefusedByRuntime, here.start + 1..end, title);
            };
            rest = after;
            self.attribute(&mut element, (name, value), count)?;
        }
        Ok(element)
    }

    fn attribute(
        &mut self,
        element: &mut Element<'t>,
        (name, value): (&'t str, &'t str),
        count: usize,
    ) -> Result<(), Box<Stopped>> {
        let place = range(self.text, name).start..range(self.text, value).end + 1;
        if name.len() > WORD || value.len() > WORD {
            let title = format!("an attribute of more than {WORD} bytes");
            return stopped(Code::RefusedByRuntime, place, title);
        }
        let tag = element.tag.name();
        let index = element.tag.attributes().iter().position(|known| *known == name);
        let Some(index) = index.filter(|_| count <= ATTRIBUTES) else {
            let what = format!("`{}` of <{tag}>", shown(name));
            self.passed_over(&what, place, "the runtime does not read this attribute");
            return Ok(());
        };
        if element.values[index].is_some() {
            return stopped(Code::UnreadableXml, place, format!("<{tag}> has `{name}` twice"));
        }
        element.values[index] = Some(value);
        Ok(())
    }
}

/// Splits `name="value"` from the beginning of a text: name, value, and the rest.
fn attribute(text: &str) -> Option<(&str, &str, &str)> {
    let (name, rest) = text.split_once('=')?;
    let (value, after) = rest.strip_prefix('"')?.split_once('"')?;
    let good =
        !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || "/>\"'".contains(c));
    good.then_some((name, value, after))
}
