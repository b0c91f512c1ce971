//! The text above and below the picture: its name and the meaning of its lines. It also completes the file.

use roundelay_core::units::wrap;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::cables::Cables;
use super::pairs::{rate, value};
use super::{Body, MARGIN, Marks, STYLE, ring_class, shown, width};
use crate::picture::{LETTER, caption, legend, page, px};
use roundelay_core::rational::Rat;
use roundelay_topology::{Fabric, LinkKind, Node, NodeKind};

/// The least width of a picture, for captions without too many line breaks.
const NARROWEST: f64 = 460.0;
/// The most entries for links, by kind and bandwidth.
const ENTRIES: usize = 12;
/// The most lines of a caption.
const LINES: usize = 12;

/// Returns the class of a kind of link in the style.
pub(super) fn class(kind: LinkKind) -> &'static str {
    match kind {
        LinkKind::NvLink => "nvl",
        LinkKind::C2c => "c2c",
        LinkKind::Pci | LinkKind::Memory => "pci",
        LinkKind::Sys => "sys",
        LinkKind::Net => "net",
    }
}

/// The number of colors of cables that are busy.
const LOADS: u32 = 5;

/// Returns the class of a cable that is busy for that share of a run.
pub(super) fn load(share: f64) -> String {
    let level = (share * f64::from(LOADS)).ceil().clamp(0.0, f64::from(LOADS));
    format!("u{level}")
}

/// Returns the singular and plural of a kind of link; `machine` tells whether parts of a machine are drawn, and not
/// only cables.
fn named(kind: LinkKind, machine: bool) -> [&'static str; 2] {
    match kind {
        LinkKind::NvLink if machine => ["NVLink or xGMI link", "NVLink or xGMI links"],
        LinkKind::NvLink => ["cable", "cables"],
        LinkKind::C2c => ["link from chip to chip", "links from chip to chip"],
        LinkKind::Pci => ["PCI Express link", "PCI Express links"],
        LinkKind::Memory => ["link inside of a CPU", "links inside of CPUs"],
        LinkKind::Sys => ["link between CPUs", "links between CPUs"],
        LinkKind::Net => ["network cable", "network cables"],
    }
}

/// Returns the whole file: caption, drawing, legend.
pub(super) fn finish(topology: &Fabric, marks: &Marks, cables: &Cables, body: &Body) -> String {
    let drawn = body.area.size();
    let wide = drawn.x.max(NARROWEST);
    let letters = (wide / LETTER) as usize;
    let mut text = String::new();
    let counted = counted(topology, cables);
    let unit = topology.is_relative() && cables.count > 0;
    let unit = unit.then(|| "B: bandwidth of one link in one direction".to_owned());
    let said = std::iter::once(&counted).chain(&unit).chain(&cables.remark);
    let said = said.chain(marks.trees.caption()).chain(&marks.caption);
    let said = said.flat_map(|words| wrap(words, letters)).take(LINES);
    let top = caption(&mut text, MARGIN, (topology.name(), letters), said) + 8.0;
    let x = MARGIN + (wide - drawn.x) / 2.0 - body.area.low.x;
    let _ = write!(
        text,
        "<g transform=\"translate({} {})\">\n{}</g>\n",
        px(x),
        px(top - body.area.low.y),
        body.text
    );
    let below = (MARGIN, top + drawn.y + MARGIN + 8.0);
    let y = legend(&mut text, below, wide, entries(topology, marks, cables));
    let trees = if marks.trees.any() { include_str!("trees.css") } else { "" };
    let style = format!("{STYLE}{trees}");
    page(topology.name(), (wide + 2.0 * MARGIN, y + MARGIN), (&style, ""), &text)
}

/// Returns the counts of a topology, for example `8 ranks, 1 CPU, 2 switches, 27 cables`.
fn counted(topology: &Fabric, cables: &Cables) -> String {
    let plural =
        |n: usize, one: &str, more: &str| format!("{n} {}", if n == 1 { one } else { more });
    let ranks = topology.nranks() as usize;
    let mut parts = vec![plural(ranks, "rank", "ranks")];
    let what = |node: &Node| match node.kind {
        NodeKind::Rank => None,
        NodeKind::Cpu => Some(("CPU", "CPUs")),
        NodeKind::Cache => Some(("L3 cache", "L3 caches")),
        NodeKind::Pci => Some(("PCI switch", "PCI switches")),
        NodeKind::Nic => Some(("network card", "network cards")),
        NodeKind::Net if node.name == "network" => Some(("network", "networks")),
        NodeKind::NvSwitch | NodeKind::Net => Some(("switch", "switches")),
    };
    let mut others: BTreeMap<_, usize> = BTreeMap::new();
    for name in topology.nodes().iter().filter_map(what) {
        *others.entry(name).or_default() += 1;
    }
    parts.extend(others.into_iter().map(|((one, more), count)| plural(count, one, more)));
    parts.push(plural(cables.count, "cable", "cables"));
    parts.join(", ")
}

/// Returns samples with their meaning.
fn entries(topology: &Fabric, marks: &Marks, cables: &Cables) -> Vec<(String, String)> {
    let stroke = |class: &str| format!(r#"<path class="{class}" d="M0 0L30 0"/>"#);
    let mut kinds: BTreeMap<(LinkKind, std::cmp::Reverse<Rat>), usize> = BTreeMap::new();
    for cable in &cables.drawn {
        *kinds.entry((cable.kind, std::cmp::Reverse(cable.capacity))).or_default() += 1;
    }
    let widest = cables.drawn.iter().map(|c| c.capacity).max().map_or(1.0, value);
    let machine = topology.nodes().iter().any(|node| node.kind == NodeKind::Cpu);
    let mut all = Vec::new();
    if !marks.load.is_empty() {
        let busy = |share: &f64| *share > 0.0;
        let idle = "carries nothing".to_owned();
        all.extend((!marks.load.iter().all(busy)).then(|| (stroke("u0"), idle)));
        all.extend((1..=LOADS).map(|level| {
            let most = 100 * level / LOADS;
            (stroke(&format!("u{level}")), format!("up to {most} % of the run"))
        }));
        kinds.clear();
    }
    for ((kind, std::cmp::Reverse(capacity)), count) in kinds.into_iter().take(ENTRIES) {
        let class = format!("{} {}", class(kind), width(value(capacity) / widest));
        let ([one, more], rate) = (named(kind, machine), rate(topology, capacity));
        let words = match count {
            // One line represents several cables.
            _ if cables.remark.is_some() => format!("{more}, up to {rate} each"),
            1 => format!("1 {one}, {rate}"),
            _ => format!("{count} {more}, {rate} each"),
        };
        all.push((stroke(&class), words));
    }
    let discs: usize = cables.meshes.iter().map(|mesh| mesh.cables).sum();
    if discs > 0 {
        let sample = r#"<circle class="disc" cx="22" cy="0" r="7"/>"#.to_owned();
        all.push((sample, format!("cables that are not drawn one by one ({discs})")));
    }
    if !marks.cut.is_empty() || cables.meshes.iter().any(|mesh| !mesh.missing.is_empty()) {
        all.push((stroke("cut"), "missing cable".to_owned()));
    }
    for i in 0..marks.rings.len() {
        let name =
            if marks.rings.len() == 1 { "ring".to_owned() } else { format!("ring {}", i + 1) };
        all.push((stroke(&ring_class(topology, i)), name));
    }
    all.extend(marks.trees.entries().map(|(class, words)| (stroke(&class), words)));
    if marks.trees.any() {
        let sample = r#"<circle class="root" cx="22" cy="0" r="7"/>"#.to_owned();
        all.push((sample, if marks.trees.roots().len() > 1 { "roots" } else { "root" }.to_owned()));
    }
    if shown(&marks.binding) {
        let part = if marks.binding.len() == 2 { "side" } else { "part" };
        for i in 0..marks.binding.len() {
            let sample = format!(r#"<circle class="part{i}" cx="22" cy="0" r="7"/>"#);
            all.push((sample, format!("{part} {} of the cut", i + 1)));
        }
    }
    all
}
