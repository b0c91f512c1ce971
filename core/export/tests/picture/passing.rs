//! Lines of topology pictures lead past the nodes that they do not end at.

use roundelay_core::ids::RankId;
use roundelay_machines::nccl::{self, Assumption};
use roundelay_pictures::topology_svg::{Marks, svg};
use roundelay_topology::Fabric;
use roundelay_topology::search::ring_around;

use super::elements::{Element, elements};
use super::topologies::{numbers, read};

const SHAPES: [&str; 34] = [
    "full_mesh(2)",
    "full_mesh(3)",
    "full_mesh(8) without (0, 1)",
    "full_mesh(16)",
    "full_mesh(20)",
    "full_mesh(24) without (0, 1) without (2, 4)",
    "full_mesh(32) without (0, 1) without (0, 2) without (3, 19) without (7, 8)",
    "full_mesh(64) without (0, 2)",
    "ring(3)",
    "ring(16)",
    "ring(64)",
    "torus([4, 4])",
    "torus([2, 8])",
    "torus([5, 3])",
    "torus([8, 8])",
    "torus([3, 3, 3])",
    "torus([4, 4, 4])",
    "torus([2, 2, 2])",
    "torus([2, 2, 2, 2])",
    "torus([3, 3, 3, 3])",
    "crossbar(2)",
    "crossbar(8)",
    "crossbar(32)",
    "spine_leaf(2, 1, 2)",
    "spine_leaf(4, 3, 16)",
    "spine_leaf(8, 8, 4)",
    "spine_leaf(2, 2, 40)",
    "islands(2, 8)",
    "islands(8, 8)",
    "islands(3, 5)",
    "islands(2, 24)",
    "groups([8, 4])",
    "groups([1, 2, 30])",
    "groups([4, 4, 4, 4, 4])",
];

pub(crate) const FILES: [(&str, &str); 6] = [
    ("simccl-8a100-nvswitch-5nic.xml", ""),
    ("azure-ncv4-4a100-pcie.xml", ""),
    ("azure-ndv4-8a100-vm.xml", "sm=80,nvlinks=12"),
    ("aws-p4d-8a100-vm.xml", "sm=80,nvlinks=12"),
    ("rccl-4p3l-mesh.xml", ""),
    ("rccl-8p90a-partial-mesh.xml", ""),
];

pub(crate) fn file(name: &str, assume: &str) -> Fabric {
    let path = format!("{}/../../../tests/topo/{name}", env!("CARGO_MANIFEST_DIR"));
    let bytes = std::fs::read(&path).expect(&path);
    let assume = (!assume.is_empty()).then(|| Assumption::parse(assume).expect("it is said"));
    nccl::read(name, &bytes, assume).unwrap_or_else(|e| panic!("{name}: {}", e.title)).topology
}

/// A node: its middle, and half of its width and height. Ranks are round.
struct Node {
    at: (f64, f64),
    half: (f64, f64),
    round: bool,
}

impl Node {
    /// Whether lines to that place end at it.
    fn middle(&self, (x, y): (f64, f64)) -> bool {
        (x - self.at.0).hypot(y - self.at.1) < 0.2
    }

    fn holds(&self, (x, y): (f64, f64)) -> bool {
        let (x, y) = ((x - self.at.0).abs(), (y - self.at.1).abs());
        if self.round { x.hypot(y) < self.half.0 } else { x < self.half.0 && y < self.half.1 }
    }
}

fn nodes(all: &[Element]) -> Vec<Node> {
    let get = |e: &Element, name: &str| e.get(name).unwrap().parse::<f64>().unwrap();
    let node = |e: &Element| match () {
        () if e.is("circle", "rank") => {
            let r = get(e, "r");
            Some(Node { at: (get(e, "cx"), get(e, "cy")), half: (r, r), round: true })
        }
        () if e.is("rect", "switch") => {
            let half = (get(e, "width") / 2.0, get(e, "height") / 2.0);
            let at = (get(e, "x") + half.0, get(e, "y") + half.1);
            Some(Node { at, half, round: false })
        }
        () => None,
    };
    all.iter().filter_map(node).collect()
}

/// The pieces of a line, each as points along it: straight, or a curve of the second or third degree.
fn pieces(line: &str) -> Vec<Vec<(f64, f64)>> {
    let mut all = Vec::new();
    let mut from = None;
    let line = line.replace(['Q', 'C'], "L");
    for piece in line.split(['M', 'L', 'Z']).filter(|p| !p.is_empty()) {
        let places = numbers(piece);
        let mut points: Vec<_> = places.chunks(2).map(|p| (p[0], p[1])).collect();
        let to = *points.last().expect("an end");
        if let Some(from) = from {
            points.insert(0, from);
            all.push((0..=400).map(|t| along(&points, f64::from(t) / 400.0)).collect());
        }
        from = Some(to);
    }
    all
}

/// A point of the curve with these control points, by de Casteljau.
fn along(points: &[(f64, f64)], t: f64) -> (f64, f64) {
    let mut points = points.to_vec();
    while points.len() > 1 {
        let mix = |a: f64, b: f64| a + (b - a) * t;
        points = points.windows(2).map(|p| (mix(p[0].0, p[1].0), mix(p[0].1, p[1].1))).collect();
    }
    points[0]
}

/// From node to node: pieces that end between nodes are put together.
fn ways(pieces: Vec<Vec<(f64, f64)>>, nodes: &[Node]) -> Vec<Vec<(f64, f64)>> {
    let mut all: Vec<Vec<(f64, f64)>> = Vec::new();
    for piece in pieces {
        let open = |way: &Vec<(f64, f64)>| !nodes.iter().any(|n| n.middle(way[way.len() - 1]));
        match all.last_mut() {
            Some(last) if open(last) => last.extend(piece),
            _ => all.push(piece),
        }
    }
    all
}

/// Returns the faults of the picture: lines that meet a node in between.
fn meetings(picture: &str) -> Vec<String> {
    let all = elements(picture);
    let nodes = nodes(&all);
    // Behind the last name comes the legend.
    let last = all.iter().rposition(|e| e.is("text", "name")).expect("nodes have names");
    let mut found = Vec::new();
    for (at, element) in all[..last].iter().enumerate().filter(|(_, e)| e.tag == "path") {
        if element.is("path", "arrow") {
            continue;
        }
        let line = element.get("d").expect("a line");
        for points in ways(pieces(line), &nodes) {
            let ends = [points[0], *points.last().expect("an end")];
            let foreign = nodes.iter().filter(|n| !ends.iter().any(|end| n.middle(*end)));
            for node in foreign.filter(|n| points.iter().any(|p| n.holds(*p))) {
                let title = all.get(at + 1).filter(|e| e.tag == "title").map(|e| &e.text);
                found.push(format!(
                    "{:?} {title:?} {line} meets {:?}",
                    element.get("class"),
                    node.at
                ));
            }
        }
    }
    found
}

/// Returns a ring, and the missing links of a full mesh.
pub(crate) fn marks(topology: &Fabric) -> Marks {
    let n = topology.nranks();
    let joined = |a: RankId, b: RankId| topology.out(a.into()).iter().any(|l| l.to == b.into());
    let pairs = (0..n).flat_map(|a| (a + 1..n).map(move |b| (RankId(a), RankId(b))));
    let alone = topology.nodes().len() == n as usize;
    let dense = alone && topology.links().len() * 4 >= (n * (n - 1)) as usize * 3;
    Marks {
        rings: ring_around(topology, n).into_iter().collect(),
        cut: pairs.filter(|(a, b)| dense && !joined(*a, *b)).collect(),
        ..Marks::default()
    }
}

#[test]
fn no_line_leads_through_a_node_that_it_does_not_end_at() {
    let shapes = SHAPES.iter().map(|text| ((*text).to_owned(), read(text)));
    let files = FILES.iter().map(|(name, assume)| ((*name).to_owned(), file(name, assume)));
    let mut wrong = Vec::new();
    for (name, topology) in shapes.chain(files) {
        let marks = marks(&topology);
        for (what, marks) in [("alone", &Marks::default()), ("marked", &marks)] {
            let picture = svg(&topology, marks);
            let found = meetings(&picture);
            if let Some(first) = found.first() {
                wrong.push(format!("{name}, {what}: {} lines, the first {first}", found.len()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
