//! Packed trees as a page of the language: the trees as data, and a call of the library's algorithm that runs them.

use std::fmt::Write as _;

use roundelay_core::collective::Collective;
use roundelay_core::ids::RankId;
use roundelay_core::topology::packing::{Packing, WeightedTree};

/// The width of a line, in characters.
const WIDTH: usize = 100;
/// The most streams that trees of different weights are divided into.
const STREAMS: u64 = 512;

/// Trees that become a page.
#[derive(Clone, Debug)]
pub struct TreesPage<'a> {
    /// The collective.
    pub collective: Collective,
    /// The root of Broadcast and Reduce.
    pub root: RankId,
    /// The trees, through all ranks.
    pub packing: &'a Packing,
    /// The topology in the language, where it has a text: the page then demands its links.
    pub topology: Option<&'a str>,
    /// The slices into which the data of a tree is cut, one behind the other.
    pub slices: u32,
    /// Lines at the head of the page.
    pub head: &'a [String],
}

impl TreesPage<'_> {
    /// The name of the page's algorithm.
    pub fn name(&self) -> String {
        format!("Packed{}", self.collective)
    }

    /// Returns the page.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for line in self.head {
            let _ = writeln!(text, "// {line}");
        }
        let trees = &self.packing.trees;
        let nranks = trees.first().map_or(1, |tree| tree.tree.parent.len());
        let (collective, name) = (self.collective, self.name());
        let turned = turned(trees, nranks);
        let listed = turned.as_deref().unwrap_or(trees);
        let many =
            if trees.len() == 1 { "one tree".into() } else { format!("{} trees", trees.len()) };
        let _ = writeln!(
            text,
            "\n/// {collective} of {nranks} ranks along {many}, each with its part of the data."
        );
        let _ = writeln!(text, "pub algorithm {name}(");
        if matches!(collective, Collective::Broadcast | Collective::Reduce) {
            let _ = writeln!(text, "    root: Rank = {},", self.root);
        }
        if let Some(topology) = self.topology {
            let _ = writeln!(text, "    topology: Topology = {topology},");
        }
        let _ = writeln!(text, "    slices: int = {},\n) -> {collective} {{", self.slices);
        let (form, which) = match turned {
            Some(_) => {
                ("turned", ", of the trees of rank 0; the other ranks have the same, turned")
            }
            None => ("parents", ", tree by tree"),
        };
        let _ = writeln!(text, "    // The parent of each rank{which}.");
        let _ = writeln!(text, "    let parents = [");
        for tree in listed {
            text += &row(tree);
        }
        text += "    ];\n";
        let weights = weights(listed);
        if weights.iter().all(|weight| *weight == 1) {
            let _ = writeln!(text, "    let trees = Trees::{form}(parents);");
        } else {
            let all: Vec<String> = weights.iter().map(u64::to_string).collect();
            let _ = writeln!(text, "    let weights = {};", list(&all));
            // Links are shared by streams: a stream for each unit of weight gives each tree its part of them.
            let trees = format!("Trees::{form}(parents, weights)");
            let even = streams(self.packing) > trees_of(self.packing);
            let trees = if even { format!("Trees::even({trees})") } else { trees };
            let _ = writeln!(text, "    let trees = {trees};");
        }
        let root = match collective {
            Collective::Broadcast | Collective::Reduce => "root, ",
            _ => "",
        };
        let _ =
            writeln!(text, "\n    Trees{collective}({root}trees, slices) on (input, output);\n}}");
        text
    }
}

/// Returns the weights of trees in lowest terms.
fn weights(trees: &[WeightedTree]) -> Vec<u64> {
    let gcd = |mut a: u64, mut b: u64| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let common = trees.iter().fold(0, |common, tree| gcd(common, tree.weight)).max(1);
    trees.iter().map(|tree| tree.weight / common).collect()
}

fn trees_of(packing: &Packing) -> u64 {
    packing.trees.len() as u64
}

/// Returns the streams of a rank on the page of a packing: one for each unit of weight, in lowest terms, unless these
/// are too many.
pub fn streams(packing: &Packing) -> u64 {
    let units: u64 = weights(&packing.trees).iter().sum();
    if units <= STREAMS { units } else { trees_of(packing) }
}

/// Returns a line with the parents of all ranks in a tree.
fn row(tree: &WeightedTree) -> String {
    let parent = |of: &Option<RankId>| of.map_or("-1".to_owned(), |rank| rank.to_string());
    let numbers: Vec<String> = tree.tree.parent.iter().map(parent).collect();
    lines(&numbers)
}

/// Returns lines of as many items as fit, each with a comma.
fn lines(items: &[String]) -> String {
    let (mut text, mut line) = (String::new(), String::from("       "));
    for item in items {
        if line.len() + item.len() + 2 > WIDTH {
            let _ = writeln!(text, "{line}");
            line = String::from("       ");
        }
        let _ = write!(line, " {item},");
    }
    let _ = writeln!(text, "{line}");
    text
}

/// Returns a list, with a line for as many items as fit.
fn list(items: &[String]) -> String {
    let whole = format!("[{}]", items.join(", "));
    if whole.len() + 20 <= WIDTH {
        return whole;
    }
    format!("[\n{}    ]", lines(items))
}

/// Returns the trees of rank 0, if the trees of each other rank are the same, turned by its number.
fn turned(trees: &[WeightedTree], nranks: usize) -> Option<Vec<WeightedTree>> {
    let own: Vec<WeightedTree> =
        trees.iter().filter(|tree| tree.tree.root == RankId(0)).cloned().collect();
    if own.len() * nranks != trees.len() || nranks < 2 {
        return None;
    }
    let n = nranks as u32;
    let mut all: Vec<(Vec<Option<RankId>>, u64)> =
        trees.iter().map(|tree| (tree.tree.parent.clone(), tree.weight)).collect();
    all.sort_unstable();
    let by = |turn: u32| {
        own.iter().map(move |tree| {
            let parent = |rank: u32| {
                let of = tree.tree.parent[((rank + n - turn) % n) as usize];
                of.map(|of| RankId((of.0 + turn) % n))
            };
            ((0..n).map(parent).collect::<Vec<_>>(), tree.weight)
        })
    };
    let mut images: Vec<_> = (0..n).flat_map(by).collect();
    images.sort_unstable();
    (images == all).then_some(own)
}
