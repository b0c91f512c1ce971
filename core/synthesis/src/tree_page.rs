//! Packed trees as a page of the language: the trees as data, and a call of the library's algorithm that runs them.

use std::fmt::Write as _;

use crate::packing::{Packing, WeightedTree};
use crate::page::{lines, list};
use roundelay_core::collective::Collective;
use roundelay_core::ids::RankId;
use roundelay_core::rational::gcd;

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
        let first = self.packing.trees.first();
        let nranks = first.map_or(1, |tree| tree.tree.parent.len());
        let (collective, name) = (self.collective, self.name());
        let many = self.packing.trees.len() + self.packing.up.len();
        let many = if many == 1 { "one tree".into() } else { format!("{many} trees") };
        let rooted = matches!(collective, Collective::Broadcast | Collective::Reduce);
        let _ = writeln!(
            text,
            "\n/// {collective} of {nranks} ranks along {many}, each with its part of the data."
        );
        if let Some(topology) = self.topology {
            let _ = writeln!(text, "#[topology({topology})]");
        }
        let root = if rooted { format!("root: Rank = {}, ", self.root) } else { String::new() };
        let slices = self.slices;
        let _ =
            writeln!(text, "pub algorithm {name}({root}slices: int = {slices}) -> {collective} {{");
        let Packing { trees, up, at_once, .. } = self.packing;
        let names = if up.is_empty() {
            text += &lists(trees, "");
            "trees"
        } else {
            text += &lists(up, "up");
            text += &lists(trees, "down");
            "trees: up_trees, down: down_trees"
        };
        let root = if rooted { "root, " } else { "" };
        let ways = if *at_once { ", at_once: true" } else { "" };
        let call = format!("Trees{collective}({root}{names}, slices{ways})");
        let _ = writeln!(text, "\n    {call} on (input, output);");
        text + "}\n"
    }
}

/// Returns the statements that give trees their name: `trees`, or `up_trees`.
fn lists(trees: &[WeightedTree], which: &str) -> String {
    let nranks = trees.first().map_or(1, |tree| tree.tree.parent.len());
    // Those up and those down are pairs, in their order.
    let turned = if which.is_empty() { turned(trees, nranks) } else { None };
    let listed = turned.as_deref().unwrap_or(trees);
    let (form, of) = match turned {
        Some(_) => ("turned", ", of the trees of rank 0; the other ranks have the same, turned"),
        None => ("parents", ", tree by tree"),
    };
    let name = |name: &str| {
        if which.is_empty() { name.to_owned() } else { format!("{which}_{name}") }
    };
    let (parents, all) = (name("parents"), name("trees"));
    let mut text = format!("    // The parent of each rank{of}.\n    let {parents} = [\n");
    let parent = |of: &Option<RankId>| of.map_or("-1".to_owned(), |rank| rank.to_string());
    text.extend(listed.iter().map(|tree| lines(tree.tree.parent.iter().map(parent))));
    text += "    ];\n";
    let weights = weights(listed);
    if weights.iter().all(|weight| *weight == 1) {
        let _ = writeln!(text, "    let {all} = Trees::{form}({parents});");
        return text;
    }
    let numbers = list(weights);
    let weights = name("weights");
    let _ = writeln!(text, "    let {weights} = {numbers};");
    // Links are shared by streams: a stream for each unit of weight gives each tree its part of them.
    let given = format!("Trees::{form}({parents}, {weights})");
    let even = streams(trees) > trees.len() as u64;
    let trees = if even { format!("Trees::even({given})") } else { given };
    let _ = writeln!(text, "    let {all} = {trees};");
    text
}

/// Returns the weights of trees in lowest terms.
fn weights(trees: &[WeightedTree]) -> Vec<u64> {
    lowest_terms(&trees.iter().map(|tree| tree.weight).collect::<Vec<_>>())
}

/// Returns weights in lowest terms.
pub fn lowest_terms(weights: &[u64]) -> Vec<u64> {
    let common = weights.iter().fold(0, |common, weight| gcd(common, *weight)).max(1);
    weights.iter().map(|weight| weight / common).collect()
}

/// Returns the streams of a rank on the page of these trees: one for each unit of weight, in lowest terms, unless these
/// are too many.
pub fn streams(trees: &[WeightedTree]) -> u64 {
    let units: u64 = weights(trees).iter().sum();
    if units <= STREAMS { units } else { trees.len() as u64 }
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
