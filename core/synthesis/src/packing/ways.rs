//! The ways of an edge between ranks through switches, each with a weight.

use super::Route;
use roundelay_topology::NodeId;

/// Ways that are handed out in order; their weights sum to the capacity of the edge.
#[derive(Clone, Debug, Default)]
pub(super) struct Ways(pub(super) Vec<Route>);

impl Ways {
    /// A link: it passes through nothing.
    pub(super) fn link(weight: u64) -> Self {
        Self(vec![Route { through: Vec::new(), weight }])
    }

    /// The nodes that the shortest of the ways passes through.
    pub(super) fn shortest(&self) -> usize {
        self.0.iter().map(|route| route.through.len()).min().unwrap_or(usize::MAX)
    }

    /// Puts the shortest way at the end, from which ways are taken.
    pub(super) fn sort(&mut self) {
        self.0.sort_by_key(|route| std::cmp::Reverse(route.through.len()));
    }

    /// Takes ways of this weight together, or all.
    pub(super) fn take(&mut self, mut weight: u64) -> Vec<Route> {
        let mut taken: Vec<Route> = Vec::new();
        while let Some(mut last) = self.0.pop_if(|_| weight > 0) {
            let some = last.weight.min(weight);
            weight -= some;
            let rest = last.weight - some;
            if rest > 0 {
                self.0.push(Route { weight: rest, ..last.clone() });
            }
            last.weight = some;
            taken.push(last);
        }
        taken
    }

    /// Adds ways that lead to `switch` and on from it, of equal weight together.
    pub(super) fn join(&mut self, to: Vec<Route>, switch: NodeId, from: Vec<Route>) {
        let mut from = Self(from);
        from.0.reverse();
        for first in to {
            for second in from.take(first.weight) {
                let mut through = first.through.clone();
                for node in [&[switch], &second.through[..]].concat() {
                    // A way that comes back to a node leaves out what is between.
                    let seen = through.iter().position(|before| *before == node);
                    through.truncate(seen.unwrap_or(through.len()));
                    through.push(node);
                }
                self.add(Route { through, weight: second.weight });
            }
        }
    }

    fn add(&mut self, route: Route) {
        match self.0.iter_mut().find(|known| known.through == route.through) {
            Some(known) => known.weight += route.weight,
            None => self.0.push(route),
        }
    }
}
