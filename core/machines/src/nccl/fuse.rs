//! The trees of several files as one, as NCCL fuses the trees of the ranks of a host: elements that name one thing become
//! one, and hosts are told apart by their hash.

use std::collections::BTreeSet;

use roundelay_base::diagnostics::Code;
use roundelay_topology::Problem;
use roundelay_topology::file::File;
use roundelay_topology::nccl::element::Element;
use roundelay_topology::nccl::graph::{self, Completed};
use roundelay_topology::nccl::{System, places};

/// The elements that can be ranks.
const RANKS: [&str; 2] = ["gpu", "core"];

/// Returns the machines of several files as one, called `name`. A file without a hash of its host is a host of its own.
/// Where files give a rank twice, as files of single hosts do, the ranks are numbered anew, in the order of the files.
///
/// # Errors
/// E0607 where some have GPUs and some have cores alone, and the errors of a topology as a whole.
pub fn fuse(name: &str, systems: &[System]) -> Result<System, Problem> {
    let cores = systems.iter().filter(|system| system.topology.gpus().is_none()).count();
    if cores > 0 && cores < systems.len() {
        let title = "some of the machines have GPUs, and some have none";
        return Err(Problem::new(Code::NotATopology, title)
            .help("fuse machines of one kind: their ranks run one job"));
    }
    let mut facts = Completed::default();
    let mut fused = Element::new("system", &[]);
    for (at, system) in systems.iter().enumerate() {
        let mut root = system.root.clone();
        for cpu in root.children.iter_mut().filter(|child| child.tag == "cpu") {
            if places::host(cpu).is_empty() {
                cpu.set("host_hash", format!("0x{:x}", at + 1));
            }
        }
        merge(&mut fused, root);
        for (all, new) in
            [(&mut facts.assumptions, &system.assumptions), (&mut facts.notes, &system.notes)]
        {
            let new: Vec<_> = new.iter().filter(|text| !all.contains(text)).cloned().collect();
            all.extend(new);
        }
    }
    let (mut ranks, mut twice) = (BTreeSet::new(), false);
    each_rank(&mut fused, &mut |rank| {
        twice |= rank.get("rank").is_none_or(|text| !ranks.insert(text.to_owned()));
    });
    if twice {
        each_rank(&mut fused, &mut |rank| rank.attributes.retain(|(name, _)| *name != "rank"));
        let note = "the files have some ranks in common, so ranks are numbered by host, in the order of the files";
        facts.notes.push(note.to_owned());
    }
    graph::system(name, File { name, text: "" }, fused, facts)
}

/// Adds a tree to one whose root names the same thing: what is set stays, as in NCCL.
fn merge(into: &mut Element, from: Element) {
    for (name, value) in from.attributes {
        if into.get(name).is_none() {
            into.set(name, value);
        }
    }
    for child in from.children {
        let key = key(&child);
        match into
            .children
            .iter_mut()
            .find(|known| known.tag == child.tag && self::key(known) == key)
        {
            Some(known) => merge(known, child),
            None => into.children.push(child),
        }
    }
}

/// Returns what an element names, beside its tag and its place.
fn key(element: &Element) -> Vec<String> {
    let of = |name: &str| element.get(name).unwrap_or_default().to_lowercase();
    match element.tag {
        "cpu" => vec![places::host(element), of("numaid")],
        "pci" => vec![places::bus(&of("busid"))],
        "nvlink" | "xgmi" | "pcilink" => vec![places::bus(&of("target"))],
        "l3" => element.all("core").take(1).flat_map(key).collect(),
        _ => ["dev", "mlopart", "name", "port", "bw", "cpus"].map(of).to_vec(),
    }
}

fn each_rank(element: &mut Element, act: &mut impl FnMut(&mut Element)) {
    if RANKS.contains(&element.tag) {
        act(element);
    }
    element.children.iter_mut().for_each(|child| each_rank(child, act));
}
