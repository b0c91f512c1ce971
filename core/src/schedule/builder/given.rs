//! Values of a program as parameters of the algorithm that it calls: numbers of the ranks it sees.

use std::sync::Arc;

use super::{At, Builder, Stop};
use crate::schedule::arith::Fault;
use crate::schedule::groups::{Groups, Membership};
use crate::schedule::ring::Ring;
use crate::schedule::rings::Rings;
use crate::schedule::site::Site;
use crate::schedule::tree::{Tree, TreeNode};
use crate::schedule::value::{Flag, Int, List, RingAtRank, Seat, Seats};
use crate::topology::Topology;

/// A value that a parameter can take.
pub trait Given {
    /// What the parameter holds.
    type Plain;

    /// That, for the ranks that `builder`'s program sees.
    fn plain(self, builder: &Builder<'_>) -> Result<Self::Plain, Fault>;
}

impl Builder<'_> {
    /// The value of a called algorithm's parameter.
    pub fn given<T: Given>(&mut self, at: At, value: T) -> Result<T::Plain, Stop> {
        let plain = value.plain(self);
        self.settle(at, plain)
    }

    fn order(&self, ring: &RingAtRank) -> Result<Ring, Fault> {
        let numbers = ring.order.iter().map(|rank| self.number(*rank));
        Ok(Ring::order(numbers.collect::<Result<Vec<_>, _>>()?))
    }
}

impl Given for Int {
    type Plain = i64;
    fn plain(self, _: &Builder<'_>) -> Result<i64, Fault> {
        self.0
    }
}

impl Given for Flag {
    type Plain = bool;
    fn plain(self, _: &Builder<'_>) -> Result<bool, Fault> {
        self.0
    }
}

impl Given for List {
    type Plain = Vec<i64>;
    fn plain(self, _: &Builder<'_>) -> Result<Vec<i64>, Fault> {
        self.0
    }
}

impl Given for Seat {
    type Plain = Ring;
    fn plain(self, builder: &Builder<'_>) -> Result<Ring, Fault> {
        builder.order(&self.0?)
    }
}

impl Given for Seats {
    type Plain = Rings;
    fn plain(self, builder: &Builder<'_>) -> Result<Rings, Fault> {
        self.0?.iter().map(|ring| builder.order(ring)).collect()
    }
}

impl Given for TreeNode {
    type Plain = Tree;
    fn plain(self, builder: &Builder<'_>) -> Result<Tree, Fault> {
        let place = self.0?;
        let number = |rank| Ok(builder.number(rank)? as u32);
        let edges = place.edges().map(|(up, down)| Ok((number(up)?, number(down)?)));
        Ok(Tree::edges(number(place.root())?, edges.collect::<Result<_, Fault>>()?))
    }
}

impl Given for Membership {
    type Plain = Groups;
    fn plain(self, builder: &Builder<'_>) -> Result<Groups, Fault> {
        let place = self.0?;
        let lists = place.all().map(|group| builder.numbers(group));
        Ok(Groups::lists(lists.collect::<Result<_, Fault>>()?))
    }
}

impl Given for Site {
    type Plain = Arc<Topology>;
    fn plain(self, _: &Builder<'_>) -> Result<Arc<Topology>, Fault> {
        Ok(self.0?.topology)
    }
}
