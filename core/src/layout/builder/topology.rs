//! Rings and topologies at one rank. They are searched for and laid out once for all ranks.

use std::sync::Arc;

use super::{At, Builder, Stop};
use crate::ids::{RankId, SpanId};
use crate::topology::Topology;
use crate::values::arith::Fault;
use crate::values::groups::Groups;
use crate::values::ranked_topology::RankedTopology;
use crate::values::ring::{Ring, RingAtRank, RingOrder};
use crate::values::rings::Rings;
use roundelay_topology::Problem;
use roundelay_topology::shape::Shape;

impl Builder<'_> {
    /// Returns this rank's seat in `ring`.
    pub(crate) fn ring(&mut self, at: At, ring: &Ring) -> Result<RingAtRank, Stop> {
        let ring_order = self.tables.ring_order(ring, self.size());
        let ring_order = self.found(at, ring_order)?;
        Ok(self.ring_at_rank(&ring_order))
    }

    /// Returns this rank's seats in several rings.
    pub(crate) fn rings(&mut self, at: At, rings: &Rings) -> Result<Vec<RingAtRank>, Stop> {
        let ring_orders = self.tables.ring_orders(rings, self.size());
        let ring_orders = self.found(at, ring_orders)?;
        Ok(ring_orders.iter().map(|ring_order| self.ring_at_rank(ring_order)).collect())
    }

    /// Returns a ring as the parameter of an algorithm that the program calls.
    pub(crate) fn given_ring(&self, ring: &RingAtRank) -> Result<Ring, Fault> {
        Ok(Ring::order(self.numbers::<Vec<i64>>(ring.order.iter().copied())?))
    }

    /// Returns the topology of a constructor.
    pub(crate) fn topology(
        &mut self,
        at: At,
        shape: Result<Shape, Problem>,
    ) -> Result<RankedTopology, Stop> {
        let shape = self.found(at, shape)?;
        let topology = self.tables.topology(shape);
        let topology = self.found(at, topology)?;
        self.site(at, topology)
    }

    /// Returns the topology that the run was placed on, if there is one; a called algorithm is placed on none.
    pub(crate) fn placed(&self) -> Option<Arc<Topology>> {
        self.path.is_empty().then(|| self.tables.placed.clone()).flatten()
    }

    /// Returns the groups of the topology that the run was placed on; inside of `within` there is none.
    pub(crate) fn natural_groups(&self) -> Groups {
        let placed = self.placed().filter(|_| self.ranks().is_none());
        Groups::natural(placed.as_ref())
    }

    /// Demands the links of the topology that the run was placed on.
    pub(crate) fn on_placed(&mut self) -> Result<(), Stop> {
        let Some(topology) = self.placed() else { return Ok(()) };
        let ranked = self.topology_param(0, Some(&topology))?;
        self.on_topology(0, ranked.topology);
        Ok(())
    }

    /// Returns a topology that was given, or else the full mesh.
    pub(crate) fn topology_param(
        &mut self,
        at: At,
        given: Option<&Arc<Topology>>,
    ) -> Result<RankedTopology, Stop> {
        let topology = match given {
            Some(topology) => topology.clone(),
            None => {
                let mesh = self.tables.topology(Shape::full_mesh(self.size()));
                self.found(at, mesh)?
            }
        };
        self.site(at, topology)
    }

    fn site(&mut self, at: At, topology: Arc<Topology>) -> Result<RankedTopology, Stop> {
        let nranks = self.size();
        let holds = topology.holds(nranks);
        self.found(at, holds)?;
        Ok(RankedTopology { topology, nranks })
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
        found.map_err(|problem| self.fail(problem.into_finding(SpanId(at))))
    }
}
