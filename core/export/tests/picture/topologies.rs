//! Pictures of topologies: properties that a program can check in the file.

use super::elements::elements;
use super::passing::file;
use expect_test::expect_file;
use roundelay_core::check;
use roundelay_core::collective::Collective;
use roundelay_core::ids::RankId;
use roundelay_core::syntax::Source;
use roundelay_pictures::topology_svg::{Marks, TreeMarks, svg};
use roundelay_synthesis::packing::pack;
use roundelay_topology::Fabric;
use roundelay_topology::NodeKind;
use roundelay_topology::bounds::{Binding, bound};
use roundelay_topology::draft::Draft;

const SHAPES: [&str; 14] = [
    "full_mesh(1)",
    "full_mesh(2)",
    "full_mesh(8, 25GB/s, 2us) without (0, 1)",
    "ring(16)",
    "torus([4, 4])",
    "torus([3, 3, 3])",
    "torus([2, 2, 2, 2])",
    "crossbar(8)",
    "spine_leaf(8, 8, 4)",
    "islands(2, 8)",
    "islands(8, 8, 300GB/s, 50GB/s)",
    "groups([8, 4], 300GB/s, 50GB/s)",
    "groups([1, 2, 30])",
    "full_mesh(64)",
];

/// A dense mesh is a disc, in which missing or different links are still lines.
#[test]
fn a_large_mesh_is_a_disc() {
    let lines = |text: &str| {
        let all = elements(&svg(&read(text), &Marks::default()));
        let last = all.iter().rposition(|e| e.is("text", "name")).unwrap();
        let count = |tag, class| all[..last].iter().filter(|e| e.is(tag, class)).count();
        let said = all[..last].iter().filter(|e| e.is("text", "said")).map(|e| e.text.clone());
        (count("path", "nvl"), count("circle", "disc"), count("path", "cut"), said.collect())
    };
    assert_eq!(lines("full_mesh(16)"), (120, 0, 0, Vec::<String>::new()));
    let said = |words: [&str; 3]| words.map(str::to_owned).to_vec();
    let words = said(["all to all", "2016 cables", "25 GB/s, 2us each way"]);
    assert_eq!(lines("full_mesh(64, 25GB/s, 2us)"), (0, 1, 0, words));
    let words = said(["all to all", "2014 of 2016 cables", "1 B each way"]);
    let missing = lines("full_mesh(64) without (0, 1) without (3, 40)");
    assert_eq!(missing, (0, 1, 2, words));
    let (lines, discs, _, _) = lines("torus([3, 3, 3, 3])");
    assert_eq!((lines, discs), (324, 0), "few of all pairs");

    let mut draft = Draft::new("one cable is slow", 20, true).unwrap();
    let rat = |n, d| roundelay_core::rational::Rat::new(n, d).unwrap();
    for (a, b) in (0..20).flat_map(|a| (a + 1..20).map(move |b| (a, b))) {
        let share = if (a, b) == (4, 9) { rat(1, 2) } else { rat(1, 1) };
        let kind = roundelay_topology::LinkKind::NvLink;
        draft.cable(RankId(a).into(), RankId(b).into(), kind, share, 0).unwrap();
    }
    let slow = svg(&draft.build().unwrap(), &Marks::default());
    assert!(slow.contains("<title>4 - 9: 1/2 B each way</title>"), "the other cable is a line");
    assert!(slow.contains(">189 of 190 cables</text>") && !slow.contains("class=\"cut\""));
}

/// The margin around a picture, less the effect of rounding.
const MARGIN: f64 = 19.7;

pub(crate) fn read(text: &str) -> Fabric {
    let source = Source::from_text("topology", text);
    let read = check::topology::read(&source);
    read.unwrap_or_else(|e| panic!("{text}: {}", e[0].report(&source))).into()
}

/// The trees of the last rank, if the topology is small.
fn trees(topology: &Fabric) -> TreeMarks {
    let (n, collective) = (topology.nranks(), Collective::AllGather);
    if n > 16 {
        return TreeMarks::default();
    }
    let packing = pack(topology, n, collective, RankId(0), None).expect("trees");
    TreeMarks::from_packing(&packing, collective, RankId(n - 1))
}

/// Marks of every sort.
fn marked(topology: &Fabric) -> Marks {
    let ring: Vec<_> = topology.ranks().collect();
    let halves = ring.split_at(ring.len() / 2);
    Marks {
        rings: vec![ring.clone(), ring.iter().rev().copied().collect()],
        cut: vec![(RankId(0), RankId(topology.nranks() - 1))],
        binding: vec![halves.0.to_vec(), halves.1.to_vec()],
        load: Vec::new(),
        trees: trees(topology),
        caption: vec!["a < b & c".into(), "long ".repeat(100)],
    }
}

pub(crate) fn numbers(text: &str) -> Vec<f64> {
    let pieces = text.split(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-'));
    pieces.filter(|p| !p.is_empty()).map(|p| p.parse().expect(p)).collect()
}

#[test]
fn every_node_is_named_once() {
    for text in SHAPES {
        let topology = read(text);
        let picture = svg(&topology, &marked(&topology));
        let all = elements(&picture);
        let mut names: Vec<_> =
            all.iter().filter(|e| e.is("text", "name")).map(|e| &e.text).collect();
        let mut nodes: Vec<_> = topology.nodes().iter().map(|n| &n.name).collect();
        names.sort();
        nodes.sort();
        assert_eq!(names, nodes, "{text}");
        assert_eq!(picture, svg(&topology, &marked(&topology)), "{text}");
    }
}

#[test]
fn every_cable_is_a_line_with_its_bandwidth() {
    let topology = read("full_mesh(4, 25GB/s, 2us) without (0, 1)");
    let picture = svg(&topology, &Marks::default());
    let all = elements(&picture);
    let titles: Vec<_> = all.iter().filter(|e| e.tag == "title").map(|e| e.text.as_str()).collect();
    let cable = |pair: &str| format!("{pair}: 25 GB/s, 2us each way");
    let cables = ["0 - 2", "0 - 3", "1 - 2", "1 - 3", "2 - 3"].map(cable);
    assert_eq!(titles[1..], cables);
}

/// The words make sense to a reader who has read no other page.
#[test]
fn nodes_and_lines_are_called_what_they_are() {
    let words = |topology: &Fabric| -> Vec<String> {
        let all = elements(&svg(topology, &marked(topology)));
        all.into_iter().filter(|e| e.is("text", "small")).map(|e| e.text).collect()
    };
    let says = |topology: &Fabric, wanted: &[&str]| {
        let words = words(topology);
        for line in wanted {
            assert!(words.iter().any(|w| w == line), "{line}: {words:?}");
        }
    };
    let unit = "B: bandwidth of one link in one direction";
    let mesh = read("full_mesh(8) without (0, 1)");
    says(&mesh, &["8 ranks, 27 cables", unit, "27 cables, 1 B each"]);
    let islands = read("groups([4, 4], 100GB/s, 1us, 10GB/s, 5us)");
    let cables = ["12 cables, 100 GB/s each", "8 network cables, 10 GB/s each"];
    says(&islands, &["8 ranks, 1 network, 20 cables", cables[0], cables[1], "side 1 of the cut"]);
    assert!(!words(&islands).iter().any(|w| w == unit));
    says(&read("spine_leaf(2, 2, 1, 2)"), &["4 ranks, 3 switches, 6 cables"]);
    let machine = file("simccl-8a100-nvswitch-5nic.xml", "");
    says(
        &machine,
        &[
            "8 ranks, 2 CPUs, 12 PCI switches, 5 network cards, 6 switches, 39 cables",
            "8 NVLink or xGMI links, 240 GB/s each",
            "1 link between CPUs, 10 GB/s",
        ],
    );
    let many = words(&read("spine_leaf(64, 16, 64)"));
    assert!(many.contains(&"network cables, up to 1/4 B each".to_owned()), "{many:?}");
}

/// The text of a picture about the cut that limits a collective.
#[test]
fn cuts_in_words() {
    let text = |text: &str| {
        let bound = bound(&read(text), 8, Collective::AllReduce, RankId(0)).expect("a bound");
        (bound.binding.to_string(), format!("{:#}", bound.binding))
    };
    let both = |short: &str, long: &str| (short.to_owned(), long.to_owned());
    assert_eq!(text("full_mesh(8)"), both("8 singletons", "into 8 parts of one rank"));
    let halves = both("{0, 1, 2, 3} / rest", "between {0, 1, 2, 3} and the rest");
    assert_eq!(text("groups([4, 4], 100GB/s, 1us, 10GB/s, 5us)"), halves);
    let pairs = Binding::Partition([[0, 1], [2, 3], [4, 5]].map(|p| p.map(RankId).into()).into());
    let sets = "{0, 1} / {2, 3} / {4, 5}";
    assert_eq!(pairs.to_string(), format!("3 groups: {sets}"));
    assert_eq!(format!("{pairs:#}"), format!("into 3 parts: {sets}"));
}

#[test]
fn nothing_lies_outside() {
    for text in SHAPES {
        let topology = read(text);
        let picture = svg(&topology, &marked(&topology));
        assert!(!picture.contains("NaN") && !picture.contains("inf\""), "{text}");
        let all = elements(&picture);
        let size = numbers(all[0].get("viewBox").unwrap());
        let (wide, tall) = (size[2], size[3]);
        let group = all.iter().find(|e| e.tag == "g").unwrap();
        let by = numbers(group.get("transform").unwrap());
        let above = all.iter().take_while(|e| e.tag != "g").filter(|e| e.tag == "text");
        let caption = above.map(|e| e.get("y").unwrap().parse().unwrap()).fold(0.0, f64::max);
        let inside = |x: f64, y: f64| {
            let (x, y) = (x + by[0], y + by[1]);
            assert!(
                (MARGIN..=wide - MARGIN).contains(&x) && (caption..=tall).contains(&y),
                "{text}: {x} {y}"
            );
        };
        // Behind the picture comes the legend, which has places of its own.
        let last = all.iter().rposition(|e| e.is("text", "name")).unwrap();
        let start = all.iter().position(|e| e.tag == "g").unwrap();
        for element in &all[start..=last] {
            let get = |name: &str| element.get(name).map(|v| v.parse::<f64>().expect(v));
            if let (Some(x), Some(y), Some(r)) = (get("cx"), get("cy"), get("r")) {
                inside(x - r, y - r);
                inside(x + r, y + r);
            }
            if let (Some(x), Some(y)) = (get("x"), get("y")) {
                inside(x, y);
                inside(x + get("width").unwrap_or(0.0), y + get("height").unwrap_or(0.0));
            }
            let mut end = Vec::new();
            let line = element.get("d").unwrap_or("").replace(['Q', 'C'], "L");
            for piece in line.split(['M', 'L', 'Z']).filter(|p| !p.is_empty()) {
                let points = numbers(piece);
                if let [x, y, to_x, to_y] = points[..] {
                    inside((end[0] + 2.0 * x + to_x) / 4.0, (end[1] + 2.0 * y + to_y) / 4.0);
                }
                end = points[points.len() - 2..].to_vec();
                inside(end[0], end[1]);
            }
        }
    }
}

#[test]
fn names_are_escaped() {
    let mut draft = Draft::new("a<b & c>d", 2, true).unwrap();
    let switch = draft.switch("x<y&z\u{1}", NodeKind::Pci, None);
    let link = |draft: &mut Draft, rank: u32| {
        let kind = roundelay_topology::LinkKind::Pci;
        let one = roundelay_core::rational::Rat::ONE;
        draft.cable(RankId(rank).into(), switch, kind, one, 0).unwrap();
    };
    link(&mut draft, 0);
    link(&mut draft, 1);
    let topology = draft.build().unwrap();
    let picture = svg(&topology, &marked(&topology));
    let all = elements(&picture);
    assert_eq!(all[1].text, "a&lt;b &amp; c&gt;d");
    assert!(all.iter().any(|e| e.is("text", "name") && e.text == "x&lt;y&amp;z "));
}

#[test]
fn large_ones_stay_small() {
    for text in
        ["full_mesh(1024)", "spine_leaf(64, 16, 64)", "groups([100, 100])", "crossbar(4096)"]
    {
        let topology = read(text);
        let picture = svg(&topology, &marked(&topology));
        assert!(picture.len() < 2_000_000, "{text}: {}", picture.len());
    }
    let far = svg(&read("torus([8, 8, 8, 8])"), &Marks::default());
    assert!(far.contains("16384 cables inside of a part are not drawn"));
    assert!(far.contains(">16384 cables</text>") && far.contains(">that are not drawn</text>"));
}

#[test]
fn marks_of_ranks_that_are_not_there_are_left_out() {
    let topology = read("ring(4)");
    let far = RankId(9);
    let marks = Marks {
        rings: vec![vec![RankId(0), far], Vec::new()],
        cut: vec![(RankId(0), far)],
        binding: vec![vec![far, RankId(0), RankId(2)], vec![RankId(1)]],
        load: Vec::new(),
        trees: trees(&read("ring(10)")),
        caption: Vec::new(),
    };
    let picture = svg(&topology, &marks);
    let all = elements(&picture);
    assert_eq!(all.iter().filter(|e| e.is("circle", "part0")).count(), 3, "two, and the legend");
    assert!(!all.iter().any(|e| e.is("path", "ring0") || e.is("path", "cut")));
    assert!(!all.iter().any(|e| e.is("path", "tree") || e.is("circle", "root")));
}

#[test]
fn the_broken_mesh() {
    let topology = read("full_mesh(4) without (0, 1)");
    let marks = Marks {
        rings: vec![[0, 2, 1, 3].map(RankId).to_vec()],
        cut: vec![(RankId(0), RankId(1))],
        ..Marks::default()
    };
    let picture = svg(&topology, &marks);
    assert!(
        picture.contains("prefers-color-scheme:dark") && picture.contains(".page{fill:#ffffff}")
    );
    expect_file!["broken_mesh.svg"].assert_eq(&picture);
}
