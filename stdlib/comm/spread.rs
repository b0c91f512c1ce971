//! The distribution of ranks over hosts, and the algorithms that suit it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::library::{
    HierarchicalAllGather, HierarchicalAllReduce, HierarchicalBroadcast, HierarchicalReduceScatter,
    MeshAllToAll, MeshGather, MeshScatter, NhrAllGather, NhrAllReduce, NhrBroadcast,
    NhrReduceScatter, PairwiseAllToAll, RecursiveDoublingAllReduce, TreeBroadcast, TreeReduce,
};
use crate::{Algorithm, Collective, Groups, ReduceOp, Tree};

use super::call::Call;
use super::on_host::of_library;
use super::wire::Wire;

/// The number of ranks from which a direct exchange has too many messages at once.
const MESH: usize = 64;
/// The numbers of slices into which trees may cut data that passes through them piece by piece.
const SLICES: [i64; 2] = [4, 16];

/// The ranks of several hosts.
#[derive(Clone, Debug)]
pub(crate) struct Spread {
    groups: Groups,
    /// The ranks of each host.
    lists: Arc<[Vec<u32>]>,
    /// Ranks a host, where all hosts have equally many.
    each: Option<usize>,
    /// The link between hosts, if it was measured.
    wire: OnceLock<Wire>,
    /// Which candidate was chosen by it.
    known: Arc<Mutex<BTreeMap<Sort, usize>>>,
}

/// The key of a choice: the collective, the root, and the logarithm of the size.
type Sort = (&'static str, u32, u32);

impl Spread {
    pub(crate) fn new(hosts: &[Vec<u32>]) -> Self {
        let mut colors = vec![0; hosts.iter().map(Vec::len).sum()];
        let filled: Vec<_> = hosts.iter().filter(|ranks| !ranks.is_empty()).cloned().collect();
        for (color, ranks) in (0..).zip(&filled) {
            for rank in ranks {
                colors[*rank as usize] = color;
            }
        }
        let each = filled.first().map(Vec::len);
        let each = each.filter(|each| filled.iter().all(|ranks| ranks.len() == *each));
        Self {
            groups: Groups::colors(colors),
            lists: filled.into(),
            each,
            wire: OnceLock::new(),
            known: Arc::default(),
        }
    }

    /// Makes a binomial tree of the hosts, rooted at the root's host, and a tree in each host.
    fn tree(&self, root: u32) -> Tree {
        let mut lists = self.lists.to_vec();
        let nranks = self.ranks();
        if let Some(host) = lists.iter().position(|ranks| ranks.contains(&root)) {
            lists.swap(0, host);
            let place = lists[0].iter().position(|rank| *rank == root).unwrap_or(0);
            lists[0].swap(0, place);
        }
        let first: Vec<u32> = lists.iter().map(|ranks| ranks[0]).collect();
        let mut parents = vec![-1; nranks];
        for ranks in lists.iter().chain([&first]) {
            for (place, rank) in ranks.iter().enumerate().skip(1) {
                // The parent's place is this place without its lowest bit.
                parents[*rank as usize] = i64::from(ranks[place & (place - 1)]);
            }
        }
        Tree::parents(parents)
    }

    /// Returns the library's algorithms of the two levels, for a call that is better made part by part, because the
    /// link between hosts is then busy all the time. This is true of an AllReduce where any host has several ranks. It
    /// is the sum of sums, so an average does not qualify.
    pub(crate) fn levels(&self, call: &Call, rank: u32) -> Option<[Box<dyn Algorithm>; 3]> {
        let hosts = self.lists.len();
        let here = self.lists.iter().find(|ranks| ranks.contains(&rank))?;
        let pays = call.collective == Collective::AllReduce
            && call.op != ReduceOp::Avg
            && hosts > 1
            && hosts < self.ranks();
        let across: Box<dyn Algorithm> = match hosts {
            2 => Box::new(RecursiveDoublingAllReduce::new()),
            _ => Box::new(NhrAllReduce::new()),
        };
        let inside =
            |collective| of_library(&Call { collective, root: 0, ..*call }, here.len() as u32);
        pays.then(|| [inside(Collective::Reduce), across, inside(Collective::Broadcast)])
    }

    /// Returns a rank of each host, with the number of the host's ranks.
    pub(crate) fn hosts(&self) -> impl Iterator<Item = (u32, u32)> {
        self.lists.iter().filter_map(|ranks| Some((*ranks.first()?, ranks.len() as u32)))
    }

    fn ranks(&self) -> usize {
        self.lists.iter().map(Vec::len).sum()
    }

    /// Returns the library's algorithm for a call: of the algorithms that suit hosts, the one that takes the least time
    /// by simulation on the measured link between hosts, or the first where no link was measured.
    pub(crate) fn algorithm(&self, call: &Call, nranks: u32) -> Box<dyn Algorithm> {
        let mut candidates = self.candidates(call, nranks);
        let at = match self.wire.get() {
            Some(wire) if candidates.len() > 1 => {
                // Sizes between two powers of two are alike.
                let size = call.count.saturating_mul(call.dtype.size() as u64).max(1).ilog2();
                let key = (call.collective.name(), call.root, size);
                let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
                *known.entry(key).or_insert_with(|| wire.fastest(&self.lists, call, &candidates))
            }
            _ => 0,
        };
        candidates.swap_remove(at)
    }

    /// Sets the link between hosts, once. All ranks set the same link.
    pub(crate) fn joined_by(&self, wire: Wire) {
        _ = self.wire.set(wire);
    }

    /// Returns the library's algorithms that suit a call: where all hosts have equally many ranks, the algorithm on two
    /// levels comes first, because it moves the fewest bytes between hosts.
    fn candidates(&self, call: &Call, nranks: u32) -> Vec<Box<dyn Algorithm>> {
        let root = i64::from(call.root);
        let groups = || self.groups.clone();
        let hosts = self.lists.len();
        let levels = hosts > 1 && self.each.is_some_and(|each| each > 1);
        let ring = self.each.is_some_and(|each| each > MESH);
        match call.collective {
            Collective::AllReduce if levels => vec![
                Box::new(HierarchicalAllReduce::new().groups(groups()).ring_inside(ring)),
                Box::new(NhrAllReduce::new()),
            ],
            Collective::AllReduce => vec![Box::new(NhrAllReduce::new())],
            Collective::ReduceScatter if levels => {
                let levels = || HierarchicalReduceScatter::new().groups(groups()).ring_inside(ring);
                vec![
                    Box::new(levels()),
                    Box::new(levels().ring_across(true)),
                    Box::new(NhrReduceScatter::new()),
                ]
            }
            Collective::ReduceScatter => vec![Box::new(NhrReduceScatter::new())],
            Collective::AllGather if levels => {
                let levels = || HierarchicalAllGather::new().groups(groups()).ring_inside(ring);
                vec![
                    Box::new(levels()),
                    Box::new(levels().ring_across(true)),
                    Box::new(NhrAllGather::new()),
                ]
            }
            Collective::AllGather => vec![Box::new(NhrAllGather::new())],
            Collective::Broadcast if levels => {
                let levels = |slices| {
                    HierarchicalBroadcast::new().root(root).groups(groups()).slices(slices)
                };
                let mut all: Vec<Box<dyn Algorithm>> = vec![Box::new(levels(1))];
                all.extend(SLICES.map(|slices| Box::new(levels(slices)) as Box<dyn Algorithm>));
                all.push(Box::new(NhrBroadcast::new().root(root)));
                all
            }
            Collective::Broadcast if hosts < nranks as usize => {
                vec![Box::new(TreeBroadcast::new().root(root).tree(self.tree(call.root)))]
            }
            Collective::Broadcast => vec![Box::new(NhrBroadcast::new().root(root))],
            Collective::Reduce => {
                let tree =
                    |slices| TreeReduce::new().root(root).tree(self.tree(call.root)).slices(slices);
                let mut all: Vec<Box<dyn Algorithm>> = vec![Box::new(tree(1))];
                all.extend(SLICES.map(|slices| Box::new(tree(slices)) as Box<dyn Algorithm>));
                all
            }
            Collective::Scatter => vec![Box::new(MeshScatter::new().root(root))],
            Collective::Gather => vec![Box::new(MeshGather::new().root(root))],
            Collective::AllToAll if nranks as usize > MESH => {
                vec![Box::new(PairwiseAllToAll::new())]
            }
            Collective::AllToAll => {
                vec![Box::new(MeshAllToAll::new()), Box::new(PairwiseAllToAll::new())]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;

    /// A slow link, on which the bytes between hosts decide, and a link that is faster than the memory.
    const LINKS: [Wire; 2] =
        [Wire { latency: 50e-6, bandwidth: 125e6 }, Wire { latency: 1e-7, bandwidth: 200e9 }];

    #[test]
    fn what_is_chosen_goes_by_link_and_size() {
        let hosts: Vec<Vec<u32>> = vec![vec![3, 0, 5, 6], vec![2, 1, 7, 4]];
        let (dtype, op) = (DType::F32, ReduceOp::Sum);
        let mut chosen = Vec::new();
        for wire in LINKS {
            let spread = Spread::new(&hosts);
            spread.joined_by(wire);
            for collective in Collective::ALL {
                let mut of = Vec::new();
                for count in [1, 1 << 10, 1 << 20] {
                    let call = Call { collective, root: 0, count, dtype, op };
                    let algorithm = spread.algorithm(&call, 8);
                    assert_eq!(algorithm.collective(), collective);
                    of.push((algorithm.name().to_owned(), format!("{:?}", algorithm.given())));
                }
                chosen.push((collective.name(), of));
            }
        }
        let of = |wire: usize, name: &str| {
            let at = chosen.iter().skip(wire * Collective::ALL.len());
            at.clone().find(|(collective, _)| *collective == name).expect("it is there").1.clone()
        };
        // Two levels are chosen where the link is slow, at every size, and not where it is fast.
        assert!(
            of(0, "AllGather").iter().all(|(name, _)| name.starts_with("Hierarchical")),
            "{chosen:?}"
        );
        assert!(of(1, "AllGather") != of(0, "AllGather"), "{chosen:?}");
        // Slices are chosen only for sizes that are worth a cut.
        let broadcasts = of(0, "Broadcast");
        assert_ne!(broadcasts[0], broadcasts[2], "{chosen:?}");
    }
}
