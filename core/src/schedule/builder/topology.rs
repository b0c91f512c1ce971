//! Rings and topologies at one rank: what a program asks of them, searched for and laid out once for all.

use std::sync::Arc;

use super::{At, Builder, Stop};
use crate::ids::{RankId, SpanId};
use crate::schedule::ring::{Ring, RingOrder};
use crate::schedule::rings::Rings;
use crate::schedule::site::{Drawing, RankedTopology, Site};
use crate::schedule::value::{Int, List, RingAtRank, Seat, Seats};
use crate::topology::shape::Shape;
use crate::topology::{Problem, Topology};

impl Builder<'_> {
    /// This rank's seat in `ring`.
    pub fn ring(&mut self, at: At, ring: &Ring) -> Result<Seat, Stop> {
        let ring_order = self.tables.ring_order(ring, self.size());
        let ring_order = self.found(at, ring_order)?;
        Ok(Seat(Ok(self.ring_at_rank(&ring_order))))
    }

    /// `ring.position_of(rank)`
    pub fn ring_position_of(&self, ring: &Seat, rank: impl Into<Int>) -> Int {
        let rank = rank.into();
        Int(ring.ask(|ring| ring.position_of(self.find_rank(rank.0?)?)))
    }

    /// This rank's seat in the ring of these ranks, in ring order.
    pub fn ring_order(&mut self, at: At, ranks: &List) -> Result<Seat, Stop> {
        let ranks = self.settle(at, ranks.0.clone())?;
        self.ring(at, &Ring::order(ranks))
    }

    /// This rank's seat in a ring of links of the topology.
    pub fn ring_around(&mut self, at: At, site: &Site) -> Result<Seat, Stop> {
        let topology = self.ranked(at, site)?.topology;
        self.ring(at, &Ring::around(topology))
    }

    /// This rank's seats in several rings.
    pub fn rings(&mut self, at: At, rings: &Rings) -> Result<Seats, Stop> {
        let ring_orders = self.tables.ring_orders(rings, self.size());
        let ring_orders = self.found(at, ring_orders)?;
        Ok(Seats(Ok(ring_orders.iter().map(|ring_order| self.ring_at_rank(ring_order)).collect())))
    }

    /// `Rings::channels(topology)`
    pub fn rings_channels(&mut self, at: At, site: &Site) -> Result<Seats, Stop> {
        let topology = self.ranked(at, site)?.topology;
        self.rings(at, &Rings::channels(topology))
    }

    /// `Rings::disjoint(topology, k)`
    pub fn rings_disjoint(
        &mut self,
        at: At,
        site: &Site,
        k: impl Into<Int>,
    ) -> Result<Seats, Stop> {
        let topology = self.ranked(at, site)?.topology;
        let k = self.settle(at, k.into().0)?;
        let k = u32::try_from(k.clamp(0, i64::from(u32::MAX))).unwrap_or(u32::MAX);
        self.rings(at, &Rings::disjoint(topology, k))
    }

    /// A topology's constructor.
    pub fn topology(&mut self, at: At, drawing: Drawing) -> Result<Site, Stop> {
        let shape = self.settle(at, drawing.shape())?;
        let shape = self.found(at, shape)?;
        let topology = self.tables.topology(shape);
        let topology = self.found(at, topology)?;
        self.site(at, topology)
    }

    /// The topology that the run is put on, if it is; a called algorithm is put on none.
    pub fn placed(&self) -> Option<Arc<Topology>> {
        self.path.is_empty().then(|| self.tables.placed.clone()).flatten()
    }

    /// Demands the links of the topology that the run is put on.
    pub(crate) fn on_placed(&mut self) -> Result<(), Stop> {
        let Some(topology) = self.placed() else { return Ok(()) };
        let site = self.topology_param(0, Some(&topology))?;
        self.on_topology(0, &site)
    }

    /// A topology that was given, or else the full mesh.
    pub fn topology_param(&mut self, at: At, given: Option<&Arc<Topology>>) -> Result<Site, Stop> {
        let topology = match given {
            Some(topology) => topology.clone(),
            None => {
                let mesh = self.tables.topology(Shape::full_mesh(self.size()));
                self.found(at, mesh)?
            }
        };
        self.site(at, topology)
    }

    fn site(&mut self, at: At, topology: Arc<Topology>) -> Result<Site, Stop> {
        let nranks = self.size();
        let holds = topology.holds(nranks);
        self.found(at, holds)?;
        Ok(Site(Ok(RankedTopology { topology, nranks })))
    }

    pub(super) fn ranked(&mut self, at: At, site: &Site) -> Result<RankedTopology, Stop> {
        self.settle(at, site.0.clone())
    }

    fn ring_at_rank(&self, ring_order: &RingOrder) -> RingAtRank {
        let here = RankId(self.here());
        let ranks = |numbers: &Arc<[RankId]>| match self.ranks() {
            None => numbers.clone(),
            Some(_) => numbers.iter().map(|rank| self.member(*rank)).collect(),
        };
        RingAtRank {
            left: self.member(ring_order.left(here)),
            right: self.member(ring_order.right(here, 1)),
            position: ring_order.position[here.index()],
            order: ranks(&ring_order.order),
        }
    }

    pub(super) fn found<T>(&mut self, at: At, found: Result<T, Problem>) -> Result<T, Stop> {
        found.map_err(|problem| self.fail(problem.at(SpanId(at))))
    }
}
