//! An AllReduce as moves in waves, of trees or of a list of sends, and its page. The runtime of the contest has one-shot
//! flags, one set for each link, and streams in order; trees that wait for each slice alone would lose signals there and
//! pay for each of them.

use std::collections::BTreeMap;

use crate::page::{fill, list, starts};
use crate::steps::{Send, SendList, Spread};
use crate::tree_page::lowest_terms;
use roundelay_topology::search::disjoint_trees::SpanningTree;

use super::page;

/// The most parts into which weights cut the data; finer weights are rounded.
const PARTS: u128 = 1 << 20;

/// Consecutive pieces that one rank sends to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// The sender.
    pub from: u32,
    /// The receiver.
    pub to: u32,
    /// The first piece.
    pub begin: usize,
    /// The piece behind the last one.
    pub end: usize,
}

/// The moves of a slice of the data. A rank sends in a wave what it has had before the wave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waves {
    /// The number of ranks.
    pub nranks: u32,
    /// The weights of the pieces.
    pub weights: Vec<u64>,
    /// The moves of partial sums, which the receivers add to their own.
    pub up: Vec<Vec<Move>>,
    /// The moves of whole sums.
    pub down: Vec<Vec<Move>>,
}

/// A tree, and the weight of its part of the data.
pub type Weighted = (SpanningTree, u64);

/// The part of the data that goes along a tree, from the first number to the second.
type Span<'a> = (u128, u128, &'a SpanningTree);

impl Waves {
    /// Returns the waves of trees: up the first ones to their roots, and down the others from the same roots. Each of the
    /// two has the same part of all its weights for each root. `None` if there is nothing to send.
    pub fn of_trees(nranks: u32, up: &[Weighted], down: &[Weighted]) -> Option<Self> {
        let total = |trees: &[Weighted]| trees.iter().map(|tree| u128::from(tree.1)).sum::<u128>();
        let (total_up, total_down) = (total(up), total(down));
        let (up, down) = (spans(up, total_down)?, spans(down, total_up)?);
        let total = total_up.checked_mul(total_down)?;
        let parts = total.min(PARTS);
        let part = |at: u128| at.checked_mul(parts).map(|product| product / total);
        let mut cuts = Vec::new();
        for (begin, end, _) in up.iter().chain(&down) {
            cuts.extend([part(*begin)?, part(*end)?]);
        }
        cuts.sort_unstable();
        cuts.dedup();
        let pieces = |span: &Span<'_>| {
            let place = |at| part(at).and_then(|at| cuts.binary_search(&at).ok());
            Some((place(span.0)?, place(span.1)?))
        };
        let height = |spans: &[Span<'_>]| spans.iter().map(|span| span.2.depth()).max();
        let (up_waves, down_waves) = (height(&up)?, height(&down)?);
        let mut waves = vec![Wave::default(); (up_waves + down_waves) as usize];
        for (spans, is_up) in [(&up, true), (&down, false)] {
            for span in spans {
                let (begin, end) = pieces(span)?;
                let depths = span.2.depths()?;
                for ((rank, parent), depth) in (0..).zip(&span.2.parent).zip(depths) {
                    let Some(parent) = parent.map(|parent| parent.0) else { continue };
                    let (wave, way) = if is_up {
                        (up_waves - depth, (rank, parent))
                    } else {
                        (up_waves + depth - 1, (parent, rank))
                    };
                    waves[wave as usize].entry(way).or_default().push((begin, end));
                }
            }
        }
        let weights: Vec<u64> = cuts.windows(2).map(|cut| (cut[1] - cut[0]) as u64).collect();
        let mut up: Vec<_> = waves.into_iter().map(joined).collect();
        let down = up.split_off(up_waves as usize);
        (!up.is_empty()).then_some(Self { nranks, weights: lowest_terms(&weights), up, down })
    }

    /// Returns the waves of an AllReduce in rounds; `None` if there is nothing to send.
    pub fn of_sends(sends: &SendList) -> Option<Self> {
        let (up, down) = (sends.up.as_ref()?, sends.down.as_ref()?);
        let of = |spread: &Spread, turned: bool| {
            let wave = |sends: &Vec<Send>| {
                let mut wave = Wave::default();
                for send in sends {
                    let way = (send.from.0, send.to.0);
                    let way = if turned { (way.1, way.0) } else { way };
                    let piece = (send.root.0 * spread.chunks + send.chunk) as usize;
                    wave.entry(way).or_default().push((piece, piece + 1));
                }
                joined(wave)
            };
            spread.rounds.iter().map(wave).collect::<Vec<_>>()
        };
        let mut backwards = of(up, true);
        backwards.reverse();
        let pieces = (up.chunks == down.chunks).then_some(up.nranks * up.chunks)?;
        (!backwards.is_empty()).then(|| Self {
            nranks: up.nranks,
            weights: vec![1; pieces as usize],
            up: backwards,
            down: of(down, false),
        })
    }

    /// The number of waves.
    pub fn number(&self) -> usize {
        self.up.len() + self.down.len()
    }

    /// The number of moves of a slice.
    pub fn moves(&self) -> usize {
        self.up.iter().chain(&self.down).map(Vec::len).sum()
    }

    /// Returns the page of an algorithm with these waves on `topology`. `docs` is the first line of its comment.
    pub fn page(&self, name: &str, docs: &str, topology: &str) -> String {
        let all = || self.up.iter().chain(&self.down);
        let column = |of: &dyn Fn(&Move) -> usize| list(all().flatten().map(of));
        // The slots of a rank's inbox, by its moves in all waves up.
        let mut taken = vec![0_usize; self.nranks as usize];
        let slots = self.up.iter().flatten().map(|at| {
            taken[at.to as usize] += 1;
            taken[at.to as usize] - 1
        });
        let slots = list(slots);
        let total: u64 = self.weights.iter().sum();
        let largest =
            self.up.iter().flatten().map(|at| self.weights[at.begin..at.end].iter().sum());
        let largest: u64 = largest.max().unwrap_or(total).max(1);
        let words = [
            ("DOCS", docs.to_owned()),
            ("NAME", name.to_owned()),
            ("TOPOLOGY", topology.to_owned()),
            ("RANKS", self.nranks.to_string()),
            ("WEIGHTS", list(&self.weights)),
            ("FIRST", list(starts(all().map(Vec::len)))),
            ("GIVER", column(&|at| at.from as usize)),
            ("TAKER", column(&|at| at.to as usize)),
            ("BEGIN", column(&|at| at.begin)),
            ("END", column(&|at| at.end)),
            ("SLOTS", slots),
            ("UP", self.up.len().to_string()),
            ("WAVES", self.number().to_string()),
            ("INBOX", taken.iter().max().copied().unwrap_or(0).max(1).to_string()),
            ("PARTS", (total / largest).to_string()),
        ];
        fill(page::ALGORITHM, &words)
    }
}

/// The ranges of pieces that go from one rank to another.
type Wave = BTreeMap<(u32, u32), Vec<(usize, usize)>>;

/// Joins ranges that adjoin into one move.
fn joined(wave: Wave) -> Vec<Move> {
    let mut moves: Vec<Move> = Vec::new();
    for ((from, to), mut ranges) in wave {
        ranges.sort_unstable();
        for (begin, end) in ranges.into_iter().filter(|range| range.0 < range.1) {
            match moves.last_mut().filter(|at| (at.from, at.to, at.end) == (from, to, begin)) {
                Some(last) => last.end = end,
                None => moves.push(Move { from, to, begin, end }),
            }
        }
    }
    moves
}

/// Returns the part of the data of each tree, where each unit of weight has `scale` units of the data. Trees of one root
/// are side by side, so that ranks which send all of its part do so in one move.
fn spans(trees: &[Weighted], scale: u128) -> Option<Vec<Span<'_>>> {
    let mut order: Vec<&Weighted> = trees.iter().collect();
    order.sort_by(|a, b| (a.0.root, &a.0.parent).cmp(&(b.0.root, &b.0.parent)));
    let mut spans: Vec<Span<'_>> = Vec::new();
    for (tree, weight) in order {
        let begin = spans.last().map_or(0, |last| last.1);
        let length = u128::from(*weight).checked_mul(scale)?;
        spans.push((begin, begin.checked_add(length)?, tree));
    }
    Some(spans)
}
