//! Files without GPUs: NCCL finds these on the live machine, so a reader has to be told.

use super::xml::{Element, File};
use crate::diagnostics::Code;
use crate::topology::Problem;

/// What the GPUs are that a file leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assumption {
    /// The CUDA capability, such as 80.
    pub sm: u32,
    /// `NVLinks` of each GPU to one `NVSwitch`; 0 for none.
    pub nvlinks: u32,
}

impl Assumption {
    /// From text: `sm=80,nvlinks=12`, or `sm=80` alone for GPUs without `NVLinks`.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let bad = |why: &str| {
            Problem::new(Code::PartialTopology, format!("cannot assume this of the GPUs: {why}"))
                .help("write `sm=80,nvlinks=12`")
        };
        let (mut sm, mut nvlinks) = (None, None);
        for part in text.split(',') {
            let (name, value) = part.split_once('=').ok_or_else(|| bad("it is not name=number"))?;
            let number = |range: std::ops::RangeInclusive<u32>| {
                value.trim().parse().ok().filter(|n| range.contains(n)).ok_or_else(|| {
                    bad(&format!("{} is {}..={}", name.trim(), range.start(), range.end()))
                })
            };
            let before = match name.trim() {
                "sm" => sm.replace(number(30..=999)?),
                "nvlinks" => nvlinks.replace(number(0..=64)?),
                _ => return Err(bad("only sm and nvlinks can be given")),
            };
            if before.is_some() {
                return Err(bad(&format!("{} is given twice", name.trim())));
            }
        }
        let sm = sm.ok_or_else(|| bad("sm is missing"))?;
        Ok(Self { sm, nvlinks: nvlinks.unwrap_or(0) })
    }
}

/// Puts GPUs and network cards into a file that has no GPU; what was assumed, in sentences.
pub(super) fn complete(
    file: File,
    root: &mut Element,
    assume: Option<Assumption>,
) -> Result<Vec<String>, Problem> {
    let (gpus, devices) = (count(root, &|e| e.tag == "gpu"), count(root, &|e| e.is_class("0x03")));
    let cards = count(root, &|e| e.is_class("0x02") && e.all("nic").next().is_none());
    match assume {
        _ if gpus == 0 && devices == 0 => {
            Err(file.wrong(root, "no GPU, and no PCI device of class 0x03 that could be one"))
        }
        None if gpus == 0 => {
            let title = "the file names no GPU: NCCL finds them on the live machine";
            let note = format!("{devices} PCI devices are of class 0x03, {cards} of class 0x02");
            Err(Problem::new(Code::PartialTopology, title)
                .note(note)
                .help("say what they are, for example `--assume sm=80,nvlinks=12`"))
        }
        Some(_) if gpus > 0 => {
            Ok(vec!["The file names its GPUs: nothing was assumed about them.".to_owned()])
        }
        None => Ok(Vec::new()),
        Some(assume) => {
            let mut gpus = 0;
            fill(root, assume, &mut gpus);
            let links = match assume.nvlinks {
                0 => "without NVLinks".to_owned(),
                n => format!("each with {n} NVLinks to one NVSwitch"),
            };
            let mut sentences = vec![format!(
                "The {gpus} PCI devices of class 0x03 are GPUs of sm {}, {links}.",
                assume.sm
            )];
            if cards > 0 {
                sentences.push(format!("The {cards} PCI devices of class 0x02 are network cards."));
            }
            Ok(sentences)
        }
    }
}

fn count(element: &Element, wanted: &dyn Fn(&Element) -> bool) -> usize {
    usize::from(wanted(element)) + element.children.iter().map(|c| count(c, wanted)).sum::<usize>()
}

fn fill(element: &mut Element, assume: Assumption, next: &mut u32) {
    if element.is_class("0x03") {
        let (sm, rank) = (assume.sm.to_string(), next.to_string());
        let mut gpu =
            Element::new("gpu", &[("dev", &rank), ("sm", &sm), ("rank", &rank), ("gdr", "1")]);
        *next += 1;
        if assume.nvlinks > 0 {
            let count = assume.nvlinks.to_string();
            gpu.children.push(switch(&count));
        }
        element.children.push(gpu);
    } else if element.is_class("0x02") && element.all("nic").next().is_none() {
        element.children.push(Element::new("nic", &[]));
    } else {
        element.children.iter_mut().for_each(|child| fill(child, assume, next));
    }
}

/// So many `NVLinks` to the only `NVSwitch`.
pub(super) fn switch(count: &str) -> Element {
    let target = ("target", "ffff:ff:ff.f");
    Element::new("nvlink", &[target, ("count", count), ("tclass", "0x068000")])
}
