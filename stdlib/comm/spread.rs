//! How ranks are spread over hosts, and the algorithms that suit that.

use std::sync::Arc;

use crate::library::{
    HierarchicalAllGather, HierarchicalAllReduce, HierarchicalBroadcast, HierarchicalReduceScatter,
    MeshAllToAll, MeshGather, MeshScatter, NhrAllGather, NhrAllReduce, NhrBroadcast,
    NhrReduceScatter, PairwiseAllToAll, RecursiveDoublingAllReduce, TreeBroadcast, TreeReduce,
};
use crate::{Algorithm, Collective, Groups, ReduceOp, Tree};

use super::call::Call;
use super::on_host::of_library;

/// From so many ranks on a direct exchange has too many messages at once.
const MESH: usize = 64;

/// The ranks of several hosts.
#[derive(Clone, Debug)]
pub(crate) struct Spread {
    groups: Groups,
    /// The ranks of each host.
    lists: Arc<[Vec<u32>]>,
    /// Ranks a host, where all hosts have equally many.
    each: Option<usize>,
}

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
        Self { groups: Groups::colors(colors), lists: filled.into(), each }
    }

    /// A binomial tree of the hosts, below the one of the root, and one in each host.
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
                // Without its lowest bit.
                parents[*rank as usize] = i64::from(ranks[place & (place - 1)]);
            }
        }
        Tree::parents(parents)
    }

    /// The library's algorithms of the two levels, for a call that is better made part by part: the one between hosts is
    /// then busy all the time. That is an AllReduce where any host has several ranks. It is the sum of sums, which an
    /// average is not.
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

    fn ranks(&self) -> usize {
        self.lists.iter().map(Vec::len).sum()
    }

    /// The library's algorithm for a call: on two levels where all hosts have equally many ranks, so that as little as
    /// can be goes between them.
    pub(crate) fn algorithm(&self, call: &Call, nranks: u32) -> Box<dyn Algorithm> {
        let root = i64::from(call.root);
        let groups = || self.groups.clone();
        let hosts = self.lists.len();
        let levels = hosts > 1 && self.each.is_some_and(|each| each > 1);
        let ring = self.each.is_some_and(|each| each > MESH);
        match call.collective {
            Collective::AllReduce if levels => {
                Box::new(HierarchicalAllReduce::new().groups(groups()).ring_inside(ring))
            }
            Collective::AllReduce => Box::new(NhrAllReduce::new()),
            Collective::ReduceScatter if levels => {
                Box::new(HierarchicalReduceScatter::new().groups(groups()).ring_inside(ring))
            }
            Collective::ReduceScatter => Box::new(NhrReduceScatter::new()),
            Collective::AllGather if levels => {
                Box::new(HierarchicalAllGather::new().groups(groups()).ring_inside(ring))
            }
            Collective::AllGather => Box::new(NhrAllGather::new()),
            Collective::Broadcast if levels => {
                Box::new(HierarchicalBroadcast::new().root(root).groups(groups()))
            }
            Collective::Broadcast if hosts < nranks as usize => {
                Box::new(TreeBroadcast::new().root(root).tree(self.tree(call.root)))
            }
            Collective::Broadcast => Box::new(NhrBroadcast::new().root(root)),
            Collective::Reduce => Box::new(TreeReduce::new().root(root).tree(self.tree(call.root))),
            Collective::Scatter => Box::new(MeshScatter::new().root(root)),
            Collective::Gather => Box::new(MeshGather::new().root(root)),
            Collective::AllToAll if nranks as usize > MESH => Box::new(PairwiseAllToAll::new()),
            Collective::AllToAll => Box::new(MeshAllToAll::new()),
        }
    }
}
