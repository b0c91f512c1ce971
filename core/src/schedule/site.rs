//! Topologies as values of a program: every rank draws them, and they are laid out once.

use std::sync::Arc;

use super::arith::Fault;
use super::value::{Faulty, Flag, Int, List};
use crate::ids::RankId;
use crate::topology::Topology;
use crate::topology::shape::{Argument, Shape, ShapeKind, Size};

/// A topology that the ranks of a run are put on, or the fault of what it was made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site(pub(crate) Result<RankedTopology, Fault>);

/// A topology with the number of ranks of the run, which are the first of its ranks: a [`Site`] without a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RankedTopology {
    /// The topology, which may have more ranks than run.
    pub(crate) topology: Arc<Topology>,
    /// The number of ranks that run.
    pub(crate) nranks: u32,
}

impl RankedTopology {
    fn rank(&self, rank: i64) -> Result<RankId, Fault> {
        let nranks = self.nranks;
        let known = u32::try_from(rank).ok().filter(|r| *r < nranks);
        known.map(RankId).ok_or(Fault::Rank { rank, nranks })
    }

    pub(crate) fn linked(&self, a: i64, b: i64) -> Result<bool, Fault> {
        Ok(self.topology.linked(self.rank(a)?, self.rank(b)?))
    }

    pub(crate) fn neighbors(&self, rank: i64) -> Result<Vec<i64>, Fault> {
        Ok(self.members(self.topology.neighbors(self.rank(rank)?)))
    }

    pub(crate) fn relays(&self, a: i64, b: i64) -> Result<Vec<i64>, Fault> {
        Ok(self.members(self.topology.relays(self.rank(a)?, self.rank(b)?)))
    }

    pub(crate) fn missing(&self) -> Vec<i64> {
        let pairs = self.topology.missing(self.nranks).into_iter();
        pairs.flat_map(|(a, b)| [a, b]).map(|rank| rank.0.into()).collect()
    }

    pub(crate) fn shares(&self) -> Vec<i64> {
        self.topology.shares(self.nranks).into_iter().map(i64::from).collect()
    }

    pub(crate) fn hubs(&self) -> Vec<i64> {
        self.members(self.topology.hubs(self.nranks))
    }

    /// As numbers, those that have a place.
    pub(crate) fn members(&self, ranks: Vec<RankId>) -> Vec<i64> {
        ranks.into_iter().filter(|r| r.0 < self.nranks).map(|r| i64::from(r.0)).collect()
    }
}

impl Faulty for Site {
    fn faulty(fault: Fault) -> Self {
        Self(Err(fault))
    }
}

impl Site {
    fn ranked(&self) -> Result<&RankedTopology, Fault> {
        self.0.as_ref().map_err(|fault| *fault)
    }

    /// `topology.linked(a, b)`: whether data goes from a to b without passing through another rank.
    pub fn linked(&self, a: impl Into<Int>, b: impl Into<Int>) -> Flag {
        let linked = || self.ranked()?.linked(a.into().0?, b.into().0?);
        Flag(linked())
    }

    /// `topology.neighbors(rank)`: the ranks that it is linked to.
    pub fn neighbors(&self, rank: impl Into<Int>) -> List {
        let neighbors = || self.ranked()?.neighbors(rank.into().0?);
        List(neighbors())
    }

    /// `topology.relays(a, b)`: the ranks that a is linked to and that are linked to b.
    pub fn relays(&self, a: impl Into<Int>, b: impl Into<Int>) -> List {
        let relays = || self.ranked()?.relays(a.into().0?, b.into().0?);
        List(relays())
    }

    /// `topology.missing()`: the pairs of ranks that are not linked, one after the other.
    pub fn missing(&self) -> List {
        List(self.ranked().map(RankedTopology::missing))
    }

    /// `topology.shares()`: what part of the data each rank should own.
    pub fn shares(&self) -> List {
        List(self.ranked().map(RankedTopology::shares))
    }

    /// `topology.hubs()`: the ranks that are linked to all others.
    pub fn hubs(&self) -> List {
        List(self.ranked().map(RankedTopology::hubs))
    }
}

/// A topology's constructor with its arguments, some of which may be faults.
#[derive(Clone, Debug)]
pub struct Drawing {
    kind: ShapeKind,
    arguments: Vec<Result<Argument, Fault>>,
    cuts: Vec<(Int, Int)>,
}

impl Drawing {
    /// A constructor without arguments so far.
    pub fn new(kind: ShapeKind) -> Self {
        Self { kind, arguments: Vec::new(), cuts: Vec::new() }
    }

    /// A number of ranks, leaves and the like.
    #[must_use]
    pub fn size(mut self, size: impl Into<Int>) -> Self {
        self.arguments.push(size.into().0.map(|n| Argument::Size(Size::One(n))));
        self
    }

    /// A list of sizes.
    #[must_use]
    pub fn sizes(mut self, sizes: &List) -> Self {
        self.arguments.push(sizes.0.clone().map(|list| Argument::Size(Size::List(list))));
        self
    }

    /// A bandwidth in bytes a second.
    #[must_use]
    pub fn rate(mut self, bytes: u64) -> Self {
        self.arguments.push(Ok(Argument::Rate(bytes)));
        self
    }

    /// A latency in nanoseconds.
    #[must_use]
    pub fn time(mut self, nanoseconds: u64) -> Self {
        self.arguments.push(Ok(Argument::Time(nanoseconds)));
        self
    }

    /// Cuts the cable between ranks `a` and `b`, in both directions.
    #[must_use]
    pub fn without(mut self, a: impl Into<Int>, b: impl Into<Int>) -> Self {
        self.cuts.push((a.into(), b.into()));
        self
    }

    /// The shape, or the first fault among its arguments.
    pub(crate) fn shape(self) -> Result<Result<Shape, crate::topology::Problem>, Fault> {
        let arguments = self.arguments.into_iter().collect::<Result<Vec<_>, _>>()?;
        let cut = |(a, b): (Int, Int)| Ok((a.0?, b.0?));
        let cuts = self.cuts.into_iter().map(cut).collect::<Result<Vec<_>, Fault>>()?;
        let shape = Shape::new(self.kind, &arguments);
        Ok(shape.map(|s| cuts.into_iter().fold(s, |s, (a, b)| s.without(a, b))))
    }
}
