//! Reads XML into a bounded tree of the elements of NCCL's topology files; the other elements are ignored.
//!
//! This is separate from the meaning of the elements, so that a hostile file is dealt with in one place: text is
//! streamed, unknown tags and attributes are dropped, and the rest is counted. Entities are never expanded beyond the
//! five that XML has.

use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

use roundelay_base::diagnostics::Code;
use roundelay_base::foreign;
use roundelay_topology::Problem;
use roundelay_topology::file::{File, show};
use roundelay_topology::nccl::element::Element;

/// The most nested elements.
const DEPTH: usize = 64;
/// The most elements that are kept.
const ELEMENTS: usize = 1 << 14;
/// The most attributes of an element.
const ATTRIBUTES: usize = 64;
/// The most bytes of a value.
const VALUE: usize = 1 << 10;

const TAGS: [&str; 12] =
    ["system", "cpu", "pci", "gpu", "nvlink", "xgmi", "c2c", "pcilink", "nic", "net", "l3", "core"];

const NAMES: [&str; 39] = [
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
    "distance",
    "cpus",
];

fn unreadable(file: File, at: usize, title: impl Into<String>) -> Problem {
    file.problem(Code::UnreadableXml, at, title)
}

/// Reads the root element.
pub(super) fn parse(file: File) -> Result<Element, Problem> {
    let mut reader = Reader::from_str(file.text);
    reader.config_mut().allow_dangling_amp = true;
    let mut open: Vec<(String, Option<Element>)> = Vec::new();
    let (mut root, mut kept) = (None, 0);
    loop {
        let at = reader.buffer_position() as usize;
        let event = reader.read_event().map_err(|error| {
            unreadable(file, reader.error_position() as usize, format!("broken XML: {error}"))
        })?;
        match event {
            Event::Start(ref start) | Event::Empty(ref start) => {
                if open.is_empty() {
                    check_root(file, start, root.is_some(), at)?;
                }
                if open.len() >= DEPTH {
                    let title = format!("elements nest more than {DEPTH} deep");
                    return Err(unreadable(file, at, title));
                }
                let skipped = open.last().is_some_and(|(_, parent)| parent.is_none());
                let tag = TAGS.into_iter().find(|tag| *tag == start.name().as_ref());
                let element = match tag {
                    Some(tag) if !skipped => Some(element_of(file, tag, start, at)?),
                    _ => None,
                };
                kept += usize::from(element.is_some());
                if kept > ELEMENTS {
                    let title = format!("more than {ELEMENTS} elements");
                    return Err(file.problem(Code::NotATopology, at, title));
                }
                if matches!(event, Event::Empty(_)) {
                    close(element, &mut open, &mut root);
                } else {
                    open.push((show(start.name().as_ref()), element));
                }
            }
            Event::End(_) => {
                let (_, element) = open.pop().unwrap_or_default();
                close(element, &mut open, &mut root);
            }
            Event::Text(text) if open.is_empty() && !text.trim().is_empty() => {
                return Err(unreadable(file, at, "text outside of any element: this is not XML"));
            }
            Event::Eof => break,
            _ => {}
        }
    }
    let end = file.text.len();
    if let Some((name, _)) = open.last() {
        return Err(unreadable(file, end, format!("the file ends inside of <{name}>"))
            .help("is it cut off?"));
    }
    root.ok_or_else(|| unreadable(file, end, "the file holds no XML element"))
}

/// Checks that the root element is that of a topology, and the only one.
fn check_root(file: File, start: &BytesStart, second: bool, at: usize) -> Result<(), Problem> {
    if second {
        return Err(unreadable(file, at, "a second element after the first"));
    }
    let name = start.name();
    let name = name.as_ref();
    if name == "system" {
        return Ok(());
    }
    let problem = match foreign::of_root(name) {
        Some(found) => {
            let title = format!("the file is {}", found.what);
            let problem = file.problem(Code::NotATopology, at, title);
            match found.taker {
                Some(command) => problem.note(format!("`{command}` takes it")),
                None => problem,
            }
        }
        None => {
            let title = format!("the file begins with <{}>, not with <system>", show(name));
            file.problem(Code::NotATopology, at, title)
        }
    };
    Err(problem.help("NCCL writes the topology to the file that NCCL_TOPO_DUMP_FILE names"))
}

/// Returns the element of a tag, with the attributes that NCCL knows.
fn element_of(
    file: File,
    tag: &'static str,
    start: &BytesStart,
    at: usize,
) -> Result<Element, Problem> {
    let mut element = Element { tag, at, ..Element::default() };
    for (count, attribute) in start.attributes().with_checks(false).enumerate() {
        let broken = |error: &dyn std::fmt::Display| {
            unreadable(file, at, format!("broken attribute of <{tag}>: {error}"))
        };
        let attribute = attribute.map_err(|error| broken(&error))?;
        if count >= ATTRIBUTES {
            return Err(
                file.wrong(&element, format!("a <{tag}> of more than {ATTRIBUTES} attributes"))
            );
        }
        let Some(name) = NAMES.into_iter().find(|name| *name == attribute.key.as_ref()) else {
            continue;
        };
        if attribute.value.len() > VALUE {
            return Err(file.wrong(&element, format!("`{name}` of a <{tag}> is too long")));
        }
        if element.attributes.iter().any(|(n, _)| *n == name) {
            return Err(unreadable(file, at, format!("a <{tag}> has `{name}` twice")));
        }
        let value = attribute.normalized_value(XmlVersion::Implicit1_0);
        let value = value.map_err(|error| broken(&error))?;
        element.attributes.push((name, value.into_owned()));
    }
    Ok(element)
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
