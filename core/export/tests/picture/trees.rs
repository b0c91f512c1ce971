//! Trees over a topology: the lines of a picture are the edges of the trees, each tree in its color.

use roundelay_topology::Fabric;
use std::collections::{BTreeMap, BTreeSet};

use super::elements::{Element, elements};
use super::topologies::{numbers, read};
use roundelay_core::collective::Collective::{
    self, AllGather, AllReduce, Broadcast, Reduce, ReduceScatter,
};
use roundelay_core::ids::RankId;
use roundelay_machines::links;
use roundelay_pictures::topology_svg::{Marks, TreeMarks, svg};
use roundelay_synthesis::packing::{Packing, WeightedTree, pack};
use roundelay_topology::NodeId;

const DGX1: &str = include_str!("../../../../examples/topologies/dgx1.links");
const NDV2: &str = include_str!("../../../../examples/topologies/ndv2_x2.links");

/// The steps along cables of a tree, from node to node in the direction of the data, each with its part of the data.
type Steps = BTreeMap<(NodeId, NodeId), u64>;

fn steps(tree: &WeightedTree, up: bool) -> Steps {
    let mut steps = Steps::new();
    for (rank, parent) in (0..).map(RankId).zip(&tree.tree.parent) {
        let Some(parent) = *parent else { continue };
        let ends = if up { [rank, parent] } else { [parent, rank] };
        for route in &tree.routes[rank.index()] {
            let [from, to] = ends.map(NodeId::from);
            let nodes = [&[from], &route.through[..], &[to]].concat();
            for pair in nodes.windows(2) {
                *steps.entry((pair[0], pair[1])).or_default() += route.weight;
            }
        }
    }
    steps
}

/// Packs trees, and draws those of a root.
fn drawn(topology: &Fabric, collective: Collective, root: u32) -> (Packing, Vec<Element>) {
    let packed = pack(topology, topology.nranks(), collective, RankId(root), None).expect("trees");
    let trees = TreeMarks::from_packing(&packed, collective, RankId(root));
    let picture = svg(topology, &Marks { trees, ..Marks::default() });
    assert!(!picture.contains("NaN"));
    (packed, elements(&picture))
}

/// The number of a tree by its class: `tree tree0`, or `tree tree0 dashed` for the ninth.
fn number(element: &Element) -> Option<usize> {
    let (tag, class) = (element.tag.as_str(), element.get("class")?);
    let number = class.strip_prefix("tree tree").filter(|_| tag == "path")?;
    match number.strip_suffix(" dashed") {
        Some(number) => Some(8 + number.parse::<usize>().expect("a number")),
        None => Some(number.parse().expect("a number")),
    }
}

fn center(element: &Element) -> [f64; 2] {
    ["cx", "cy"].map(|at| element.get(at).unwrap().parse().unwrap())
}

/// Checks every line of a picture against the trees, which are in the order of their colors.
fn check(topology: &Fabric, trees: &[&WeightedTree], up: bool, all: &[Element]) {
    let name = topology.name();
    // The places of all nodes: the middle of the name, which follows the node's shape.
    let names = all.iter().filter(|e| e.is("text", "name"));
    let places: BTreeMap<&str, [f64; 2]> = names
        .map(|e| (e.text.as_str(), ["x", "y"].map(|at| e.get(at).unwrap().parse().unwrap())))
        .collect();
    let node = |at: NodeId| topology.nodes()[at.index()].name.as_str();
    let both = |a: u64, b: u64, d: u64| a.is_multiple_of(d) && b.is_multiple_of(d);
    let gcd = |a: u64, b: u64| (1..=a).rev().find(|d| both(a, b, *d)).unwrap_or(b);
    let common = trees.iter().fold(0, |common, tree| gcd(tree.weight, common));
    let mut wanted: BTreeSet<(usize, String)> = BTreeSet::new();
    for (at, tree) in trees.iter().enumerate() {
        for ((from, to), weight) in steps(tree, up) {
            let weight = weight / common;
            let parts = if weight == 1 { "part" } else { "parts" };
            let words =
                format!("tree {}: {} to {}, {weight} {parts}", at + 1, node(from), node(to));
            wanted.insert((at, words));
        }
    }
    let mut found = BTreeSet::new();
    let mut lines = BTreeSet::new();
    for pair in all.windows(2) {
        let Some(at) = number(&pair[0]).filter(|_| pair[1].tag == "title") else { continue };
        let words = pair[1].text.clone();
        let line = pair[0].get("d").unwrap();
        let points = numbers(&line.replace(['M', 'L', 'Q', 'C'], " "));
        let ends = [&points[..2], &points[points.len() - 2..]];
        let (from, to) = words
            .split_once(": ")
            .unwrap()
            .1
            .rsplit_once(", ")
            .unwrap()
            .0
            .split_once(" to ")
            .unwrap();
        for (end, node) in ends.into_iter().zip([from, to]) {
            let place = places[node];
            let far = (end[0] - place[0]).hypot(end[1] - place[1]);
            assert!(far < 15.0, "{name}: {words} ends {far} from {node}");
        }
        assert!(found.insert((at, words)), "{name}: a line twice");
        assert!(lines.insert(line), "{name}: a line upon another");
    }
    assert_eq!(found, wanted, "{name}");
    // The legend has a line of each color, and a head is on each line.
    let legend = all.iter().filter_map(|e| number(e).filter(|_| e.get("d") == Some("M0 0L30 0")));
    assert_eq!(legend.collect::<Vec<_>>(), (0..trees.len()).collect::<Vec<_>>());
    assert_eq!(
        all.iter().filter(|e| e.is("path", "arrow") && e.is("path", "tree")).count(),
        lines.len()
    );
    let roots: BTreeSet<_> = trees.iter().map(|tree| node(tree.tree.root.into())).collect();
    let marked: Vec<_> = all.iter().filter(|e| e.is("circle", "root")).map(center).collect();
    let places: Vec<_> = roots.iter().map(|root| places[root]).collect();
    let (_, marked) = marked.split_last().expect("the legend's");
    assert_eq!(marked.len(), places.len());
    assert!(places.iter().all(|place| marked.contains(place)), "{name}: roots");
}

/// Returns trees by weight, the heaviest first.
fn by_weight<'a>(trees: impl Iterator<Item = &'a WeightedTree>) -> Vec<&'a WeightedTree> {
    let mut trees: Vec<_> = trees.collect();
    trees.sort_by_key(|tree| std::cmp::Reverse(tree.weight));
    trees
}

#[test]
fn lines_are_the_edges_of_trees() {
    let cut = read("full_mesh(8) without (0, 1)");
    let dgx1 = links::read("dgx1", DGX1).unwrap();
    let ndv2 = links::read("ndv2_x2", NDV2).unwrap();
    let cases = [
        (&cut, AllGather, 0),
        (&cut, ReduceScatter, 5),
        (&dgx1, AllGather, 3),
        (&dgx1, Reduce, 2),
        (&ndv2, Broadcast, 0),
        (&ndv2, ReduceScatter, 9),
        (&read("crossbar(8)"), AllGather, 1),
        (&read("spine_leaf(2, 4, 2)"), AllGather, 0),
        (&read("spine_leaf(4, 4, 2, 2)"), Broadcast, 6),
        (&read("groups([8, 4], 100GB/s, 1us, 25GB/s, 3us)"), AllGather, 11),
        (&read("islands(2, 4)"), Reduce, 1),
        (&read("torus([4, 4])"), Broadcast, 5),
    ];
    for (topology, collective, root) in cases {
        let (packing, all) = drawn(topology, collective, root);
        let own = packing.trees.iter().filter(|tree| tree.tree.root == RankId(root));
        let trees = by_weight(own);
        println!("{collective} on {}: {} trees", topology.name(), trees.len());
        check(topology, &trees, matches!(collective, Reduce | ReduceScatter), &all);
    }
}

/// Texts of the legend and below the name.
fn texts(all: &[Element]) -> Vec<&str> {
    all.iter().filter(|e| e.is("text", "small")).map(|e| e.text.as_str()).collect()
}

#[test]
fn the_legend_has_the_weights() {
    let (packing, all) = drawn(&read("full_mesh(8) without (0, 1)"), AllGather, 0);
    let own = packing.trees.iter().filter(|tree| tree.tree.root == RankId(0));
    let trees = by_weight(own);
    let texts = texts(&all);
    let caption = format!("{} trees of rank 0 for AllGather", trees.len());
    assert!(texts.contains(&caption.as_str()), "{texts:?}");
    for (at, tree) in (1..).zip(trees) {
        let line = format!("tree {at}: {} of 6 parts", tree.weight);
        assert!(texts.contains(&line.as_str()), "{line}: {texts:?}");
    }
}

/// More trees than colors: the ninth is dashed, and those beyond the sixteenth are told and left out.
#[test]
fn many_trees() {
    let ring = read("ring(4)");
    let mut packing = pack(&ring, 4, AllGather, RankId(0), None).unwrap();
    let tree = packing.trees[0].clone();
    let heavy = |weight: u64| {
        let mut tree = WeightedTree { weight, ..tree.clone() };
        tree.routes.iter_mut().flatten().for_each(|route| route.weight = weight);
        tree
    };
    packing.trees = (1..=20).map(heavy).collect();
    let trees = TreeMarks::from_packing(&packing, AllGather, RankId(0));
    let all = elements(&svg(&ring, &Marks { trees, ..Marks::default() }));
    check(&ring, &by_weight(packing.trees.iter())[..16], false, &all);
    let texts = texts(&all);
    assert!(texts.contains(&"20 trees of rank 0 for AllGather; the 16 heaviest are drawn"));
    assert!(texts.contains(&"tree 16: 5 of 210 parts"));
}

/// The few trees of an AllReduce are drawn whatever their roots are.
#[test]
fn trees_of_several_roots() {
    let ring = read("ring(4)");
    let mut packing = pack(&ring, 4, AllGather, RankId(0), None).unwrap();
    packing.trees.retain(|tree| tree.tree.root.0 < 2);
    let picture = |collective| {
        let trees = TreeMarks::from_packing(&packing, collective, RankId(1));
        elements(&svg(&ring, &Marks { trees, ..Marks::default() }))
    };
    check(&ring, &by_weight(packing.trees.iter()), false, &picture(AllReduce));
    let own = packing.trees.iter().filter(|tree| tree.tree.root == RankId(1));
    check(&ring, &by_weight(own), false, &picture(AllGather));
}
