//! A topology as a picture: one self-contained SVG, for light and for dark pages.
//!
//! First every node gets its place (`layout`), then every cable its line (`cables`); the rest is drawing.

mod cables;
mod grid;
mod highlights;
mod legend;
mod meshes;
mod node_places;
mod pairs;
mod plane;
mod router;
mod tree;
mod trees;
mod ways;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::picture::{escape, px};
use cables::{Cable, Cables};
pub use highlights::{cut, load, marks};
use node_places::DrawnLayout;
use pairs::value;
use plane::{Area, NAME, PlanePoint, RADIUS, half};
use roundelay_core::ids::RankId;
use roundelay_topology::{Fabric, NodeId, NodeKind};
use router::Router;
pub use trees::TreeMarks;
use ways::{Bend, CableWay, controls};

/// The most rings that are drawn; the style has this number of colors for them.
const RINGS: usize = 3;
/// The most groups of a partition that are drawn; the style has this number of colors for them.
const PARTS: usize = 4;
/// The most ranks for which rings are drawn thick.
const CROWD: u32 = 24;
/// The distance between lines of text in a disc.
const SAID: f64 = 20.0;
/// The arrow heads of cables and of trees, which point to the right.
const CABLE_HEAD: &str = "M-6 -5L6 0L-6 5Z";
const TREE_HEAD: &str = "M-6 -4L6 0L-6 4Z";
/// The margin around the picture.
const MARGIN: f64 = 20.0;
/// Colors and widths. The hues are those of Okabe and Ito, which color-blind people tell apart.
const STYLE: &str = concat!(include_str!("../picture.css"), include_str!("style.css"));

/// The elements of a picture besides the topology.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Marks {
    /// Rings; the first few are drawn.
    pub rings: Vec<Vec<RankId>>,
    /// Pairs whose cable is missing.
    pub cut: Vec<(RankId, RankId)>,
    /// The groups between which the data of a lower bound must pass.
    pub binding: Vec<Vec<RankId>>,
    /// How busy each link is, from 0 to 1, in the order of the topology's links; empty to draw kinds of links instead.
    pub load: Vec<f64>,
    /// Trees that are drawn over the cables.
    pub trees: TreeMarks,
    /// Lines below the name.
    pub caption: Vec<String>,
}

impl Marks {
    /// Returns the marks that can be drawn in a topology.
    fn within(&self, topology: &Fabric) -> Self {
        let known = |r: &RankId| r.0 < topology.nranks();
        let rings = self.rings.iter().filter(|r| r.len() > 1 && r.iter().all(known));
        let cut = self.cut.iter().filter(|(a, b)| a != b && known(a) && known(b));
        let part = |p: &Vec<RankId>| p.iter().copied().filter(known).collect();
        Self {
            rings: rings.take(RINGS).cloned().collect(),
            cut: cut.copied().collect(),
            binding: self.binding.iter().map(part).collect(),
            load: if self.load.len() == topology.links().len() {
                self.load.clone()
            } else {
                Vec::new()
            },
            trees: self.trees.within(topology),
            caption: self.caption.clone(),
        }
    }
}

/// Returns the picture.
pub fn svg(topology: &Fabric, marks: &Marks) -> String {
    let layout = DrawnLayout::new(topology);
    let marks = &marks.within(topology);
    let cables = Cables::new(topology, &layout, &marks.load);
    let router = Router::new(topology, &layout, cables.count);

    let mut body = Body { area: Area::NONE, text: String::new() };
    for block in &layout.blocks {
        body.frame(block);
    }
    for mesh in &cables.meshes {
        body.disc(&layout.blocks[mesh.block]);
    }
    body.cables(&cables, marks.trees.any());
    let missing = cables.meshes.iter().flat_map(|mesh| &mesh.missing);
    for (a, b) in marks.cut.iter().chain(missing).collect::<BTreeSet<_>>() {
        body.path("cut", &[router.way((*a).into(), (*b).into(), 0)], None);
    }
    for (i, ring) in marks.rings.iter().enumerate() {
        body.path(&ring_class(topology, i), &router.ring(ring), None);
    }
    for line in marks.trees.lines(topology, &router) {
        body.path(&line.class, &[line.way], Some(&line.title));
        body.arrow(&line.class, &line.way, line.head, TREE_HEAD);
    }
    for mesh in &cables.meshes {
        body.said(&layout.blocks[mesh.block], &mesh.words);
    }
    body.parts(&layout, &marks.binding);
    body.roots(&layout, &marks.trees);
    body.nodes(topology, &layout);
    legend::finish(topology, marks, &cables, &body)
}

/// Returns the class of a ring in the style.
fn ring_class(topology: &Fabric, number: usize) -> String {
    let thin = if topology.nranks() > CROWD { " thin" } else { "" };
    format!("ring ring{number}{thin}")
}

/// Whether a partition has a group of several ranks, and few enough groups to show.
fn shown(binding: &[Vec<RankId>]) -> bool {
    (1..=PARTS).contains(&binding.len()) && binding.iter().any(|part| part.len() > 1)
}

/// The drawing so far, and its area.
struct Body {
    area: Area,
    text: String,
}

impl Body {
    fn include(&mut self, at: PlanePoint, size: f64) {
        self.area.include(Area::around(at, PlanePoint::new(size, size)));
    }

    fn frame(&mut self, block: &node_places::DrawnBlock) {
        let Some(title) = &block.frame else { return };
        let (low, size) = (block.area.low, block.area.size());
        self.area.include(block.area);
        let _ = writeln!(
            self.text,
            r#"<rect class="box" x="{}" y="{}" width="{}" height="{}" rx="10"/>"#,
            px(low.x),
            px(low.y),
            px(size.x),
            px(size.y)
        );
        if !title.is_empty() {
            self.label("small", PlanePoint::new(low.x + 8.0, low.y + 14.0), title);
        }
    }

    /// Writes the text of a disc in its middle.
    fn said(&mut self, block: &node_places::DrawnBlock, words: &[String]) {
        let middle = block.area.middle();
        let top = middle.y - (words.len() as f64 - 1.0) * SAID / 2.0;
        for (i, line) in words.iter().enumerate() {
            self.label("said", PlanePoint::new(middle.x, top + SAID * i as f64), line);
        }
    }

    /// Draws a disc in place of too many cables.
    fn disc(&mut self, block: &node_places::DrawnBlock) {
        let at = block.area.middle();
        let (x, y, r) = (px(at.x), px(at.y), px(block.area.size().x / 2.0 - 2.0 * RADIUS));
        let _ = writeln!(self.text, r#"<circle class="disc" cx="{x}" cy="{y}" r="{r}"/>"#);
    }

    fn label(&mut self, class: &str, at: PlanePoint, text: &str) {
        let (x, y) = (px(at.x), px(at.y));
        let _ =
            writeln!(self.text, r#"<text class="{class}" x="{x}" y="{y}">{}</text>"#, escape(text));
    }

    /// Draws the cables; `behind` tells whether trees are drawn over them.
    fn cables(&mut self, cables: &Cables, behind: bool) {
        let density = match cables.drawn.len() {
            _ if behind => "behind",
            0..=60 => "few",
            61..=400 => "some",
            _ => "many",
        };
        let widest = cables.drawn.iter().map(|c| c.capacity).max();
        let _ = writeln!(self.text, r#"<g class="{density}">"#);
        // The busiest cables are drawn last, above the others.
        let mut drawn: Vec<&Cable> = cables.drawn.iter().collect();
        drawn.sort_by(|a, b| a.load.unwrap_or(0.0).total_cmp(&b.load.unwrap_or(0.0)));
        for cable in drawn {
            let share = widest.map_or(1.0, |w| value(cable.capacity) / value(w));
            let class = match cable.load {
                Some(load) => legend::load(load),
                None => format!("{} {}", legend::class(cable.kind), width(share)),
            };
            self.path(&class, &[cable.way], Some(&cable.title));
            if cable.one_way {
                self.arrow(legend::class(cable.kind), &cable.way, 0.5, CABLE_HEAD);
            }
        }
        self.text.push_str("</g>\n");
    }

    fn path(&mut self, class: &str, ways: &[CableWay], title: Option<&str>) {
        let mut line = String::new();
        for (i, way) in ways.iter().enumerate() {
            let point = |p: PlanePoint| format!("{} {}", px(p.x), px(p.y));
            if i == 0 {
                let _ = write!(line, "M{}", point(way.from));
                self.include(way.from, RADIUS);
            }
            let _ = match way.bend {
                Bend::Straight => write!(line, "L{}", point(way.to)),
                Bend::Over(over) => write!(line, "Q{} {}", point(over), point(way.to)),
                Bend::Rows(first, second) => {
                    let (a, d) =
                        (PlanePoint::new(way.from.x, first), PlanePoint::new(way.to.x, second));
                    let [b, c] = controls(a, d).map(point);
                    let (a, d, to) = (point(a), point(d), point(way.to));
                    write!(line, "L{a}C{b} {c} {d}L{to}")
                }
            };
            self.include(way.middle(), 2.0);
            self.include(way.to, RADIUS);
        }
        let closed = if ways.len() > 1 { "Z" } else { "" };
        let _ = write!(self.text, r#"<path class="{class}" d="{line}{closed}""#);
        let _ = match title {
            Some(title) => writeln!(self.text, "><title>{}</title></path>", escape(title)),
            None => writeln!(self.text, "/>"),
        };
    }

    /// Draws an arrow head at a share of a line.
    fn arrow(&mut self, class: &str, way: &CableWay, share: f64, shape: &str) {
        let (from, to) = (way.at(share - 0.01), way.at(share + 0.01));
        let turn = (to.y - from.y).atan2(to.x - from.x).to_degrees();
        let at = way.at(share);
        let _ = writeln!(
            self.text,
            r#"<path class="arrow {class}" d="{shape}" transform="translate({} {}) rotate({})"/>"#,
            px(at.x),
            px(at.y),
            px(turn)
        );
    }

    /// Marks the roots of trees.
    fn roots(&mut self, layout: &DrawnLayout, trees: &TreeMarks) {
        for root in trees.roots() {
            let at = layout.places[root.index()];
            self.include(at, RADIUS + 7.0);
            let (x, y) = (px(at.x), px(at.y));
            let _ = writeln!(self.text, r#"<circle class="root" cx="{x}" cy="{y}" r="20"/>"#);
        }
    }

    fn parts(&mut self, layout: &DrawnLayout, binding: &[Vec<RankId>]) {
        if !shown(binding) {
            return;
        }
        for (i, part) in binding.iter().enumerate() {
            for rank in part {
                let at = layout.places[rank.index()];
                self.include(at, RADIUS + 5.0);
                let (x, y) = (px(at.x), px(at.y));
                let _ =
                    writeln!(self.text, r#"<circle class="part{i}" cx="{x}" cy="{y}" r="19"/>"#);
            }
        }
    }

    fn nodes(&mut self, topology: &Fabric, layout: &DrawnLayout) {
        for (i, (node, at)) in topology.nodes().iter().zip(&layout.places).enumerate() {
            let size = half(topology, NodeId(i as u32));
            self.area.include(Area::around(*at, size));
            let (x, y) = (px(at.x), px(at.y));
            if node.kind == NodeKind::Rank {
                let _ = writeln!(self.text, r#"<circle class="rank" cx="{x}" cy="{y}" r="15"/>"#);
                let class = if node.name.len() > 3 { "name long" } else { "name" };
                self.label(class, *at, &node.name);
                continue;
            }
            let (left, top) = (px(at.x - size.x), px(at.y - size.y));
            let (wide, tall) = (px(size.x * 2.0), px(size.y * 2.0));
            let _ = writeln!(
                self.text,
                r#"<rect class="switch" x="{left}" y="{top}" width="{wide}" height="{tall}" rx="4"/>"#
            );
            let short = match node.name.char_indices().nth(NAME) {
                Some((end, _)) => format!("{}…", &node.name[..end]),
                None => node.name.clone(),
            };
            self.label("name other", *at, &short);
        }
    }
}

/// Returns the class of a line, by its share of the largest bandwidth.
fn width(share: f64) -> &'static str {
    match share {
        s if s > 0.7 => "w3",
        s if s > 0.3 => "w2",
        s if s > 0.08 => "w1",
        _ => "w0",
    }
}
