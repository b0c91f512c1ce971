//! Groups: an ordered partition of the ranks, and a rank's membership in it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::arith::Fault;
use super::members::Members;
use crate::diagnostics::Code;
use crate::ids::RankId;
use crate::topology::Topology;
use roundelay_topology::Problem;

/// A partition of the ranks into groups, which have an order as their ranks have, for an algorithm's parameter of
/// type `Groups`.
///
/// The number of ranks is known when the algorithm is laid out: only then are the groups made and checked. Groups
/// count from 0, as do the positions of ranks within a group.
///
/// # Errors
/// When the algorithm is laid out: E0211 for groups that do not hold each rank once, E0604 for a topology with fewer
/// ranks than the run.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Groups(GroupForm);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum GroupForm {
    Of(i64),
    Sizes(Arc<[i64]>),
    Colors(Arc<[i64]>),
    Balanced,
    Islands(Arc<Topology>),
    Rails(Arc<Topology>),
    Lists(Arc<[Vec<i64>]>),
}

impl Groups {
    /// Returns groups of `size` consecutive ranks; the last group has the remaining ranks.
    pub const fn of(size: i64) -> Self {
        Self(GroupForm::Of(size))
    }

    /// Returns groups of consecutive ranks of the given sizes, which must add up to the number of ranks (E0211).
    pub fn sizes(sizes: impl IntoIterator<Item = i64>) -> Self {
        Self(GroupForm::Sizes(sizes.into_iter().collect()))
    }

    /// Returns the groups of ranks of equal color, as `MPI_Comm_split` makes them with equal keys. `colors` has one
    /// color for each rank, from 0 (E0211), and groups are in the order of their colors.
    pub fn colors(colors: impl IntoIterator<Item = i64>) -> Self {
        Self(GroupForm::Colors(colors.into_iter().collect()))
    }

    /// Returns groups of consecutive ranks of one size: the smallest divisor of the number of ranks that is at least
    /// its square root.
    pub const fn balanced() -> Self {
        Self(GroupForm::Balanced)
    }

    /// Returns the groups of ranks on `topology`: its islands if it has several, and else [`Self::balanced`].
    pub(crate) fn natural(topology: Option<&Arc<Topology>>) -> Self {
        match topology.filter(|topology| topology.islands().len() > 1) {
            Some(topology) => Self::islands(topology.clone()),
            None => Self::balanced(),
        }
    }

    /// Returns the [islands](roundelay_topology::Fabric::islands) of `topology`, one group for each.
    pub fn islands(topology: impl Into<Arc<Topology>>) -> Self {
        Self(GroupForm::Islands(topology.into()))
    }

    /// Returns groups across the islands of `topology`: group i holds rank i of each island that has more than i ranks.
    pub fn rails(topology: impl Into<Arc<Topology>>) -> Self {
        Self(GroupForm::Rails(topology.into()))
    }

    /// Returns the groups with these ranks.
    pub(crate) fn lists(groups: Arc<[Vec<i64>]>) -> Self {
        Self(GroupForm::Lists(groups))
    }

    /// Returns the groups of `nranks` ranks; the error is the reason why there are none.
    pub(crate) fn divide(&self, nranks: u32) -> Result<Partition, Problem> {
        let bad = |title, help: &str| Err(Problem::new(Code::BadParameter, title).help(help));
        let n = i64::from(nranks);
        match &self.0 {
            GroupForm::Of(size @ 1..) => {
                Ok(Partition::even(u32::try_from(*size).unwrap_or(nranks), nranks))
            }
            GroupForm::Of(size) => {
                bad(format!("groups of {size} ranks"), "a group has one rank or more")
            }
            GroupForm::Balanced => {
                let divides = |size: &u32| {
                    nranks.is_multiple_of(*size) && size.saturating_mul(*size) >= nranks
                };
                Ok(Partition::even((1..=nranks).find(divides).unwrap_or(nranks), nranks))
            }
            GroupForm::Sizes(sizes) => {
                if let Some(size) = sizes.iter().find(|size| **size < 1) {
                    return bad(format!("a group of {size} ranks"), "a group has one rank or more");
                }
                let sum = sizes.iter().fold(0, |sum: i64, size| sum.saturating_add(*size));
                if sum != n {
                    let title = format!("the groups hold {sum} ranks together, and there are {n}");
                    return bad(title, "the sizes of the groups add up to nranks");
                }
                let mut next = 0;
                Ok(Partition::new(sizes.iter().map(|size| {
                    next += *size as u32;
                    (next - *size as u32..next).collect()
                })))
            }
            GroupForm::Colors(colors) => {
                if colors.len() as i64 != n {
                    let title = format!("{} ranks have a color, and there are {n}", colors.len());
                    return bad(title, "write a color for each rank of 0..nranks");
                }
                let mut groups: BTreeMap<i64, Vec<u32>> = BTreeMap::new();
                for (rank, &color) in (0..).zip(colors.iter()) {
                    if color < 0 {
                        let title = format!("the color of rank {rank} is {color}");
                        return bad(title, "colors count from 0, and every rank is in a group");
                    }
                    groups.entry(color).or_default().push(rank);
                }
                Ok(Partition::new(groups.into_values()))
            }
            GroupForm::Lists(lists) => {
                let sum: usize = lists.iter().map(Vec::len).sum();
                if sum as i64 != n {
                    let title = format!("the groups hold {sum} ranks together, and there are {n}");
                    return bad(title, "every rank is in one group");
                }
                let group = |list: &Vec<i64>| list.iter().map(|rank| *rank as u32).collect();
                Ok(Partition::new(lists.iter().map(group)))
            }
            GroupForm::Islands(topology) => Ok(Partition::new(islands(topology, nranks)?)),
            GroupForm::Rails(topology) => {
                let islands = islands(topology, nranks)?;
                let longest = islands.iter().map(Vec::len).max().unwrap_or(0);
                let rail = |i| islands.iter().filter_map(|island| island.get(i).copied()).collect();
                Ok(Partition::new((0..longest).map(rail)))
            }
        }
    }
}

/// Returns the islands of the first `nranks` ranks.
fn islands(topology: &Topology, nranks: u32) -> Result<Vec<Vec<u32>>, Problem> {
    topology.holds(nranks)?;
    let known = |island: Vec<RankId>| -> Vec<u32> {
        island.into_iter().map(|rank| rank.0).filter(|rank| *rank < nranks).collect()
    };
    Ok(topology.islands().into_iter().map(known).filter(|island| !island.is_empty()).collect())
}

/// The groups of a known number of ranks.
#[derive(Debug, PartialEq, Eq)]
pub struct Partition {
    groups: Vec<Vec<u32>>,
    /// The group of each rank, and its position there.
    place: Vec<(u32, u32)>,
}

impl Partition {
    fn new(groups: impl IntoIterator<Item = Vec<u32>>) -> Self {
        let groups: Vec<Vec<u32>> = groups.into_iter().collect();
        let mut place = vec![(0, 0); groups.iter().map(Vec::len).sum()];
        for (index, group) in (0..).zip(&groups) {
            for (position, rank) in (0..).zip(group) {
                place[*rank as usize] = (index, position);
            }
        }
        Self { groups, place }
    }

    fn even(size: u32, nranks: u32) -> Self {
        let end = |from: u32| from.saturating_add(size).min(nranks);
        Self::new((0..nranks).step_by(size as usize).map(|from| (from..end(from)).collect()))
    }
}

/// A rank's membership in groups: the answers to `groups.index`, `groups.position` and the like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GroupPlace {
    pub(crate) groups: Arc<Partition>,
    /// The number of this rank among the members.
    pub(crate) me: u32,
    pub(crate) members: Members,
}

impl GroupPlace {
    pub(crate) fn index(&self) -> u32 {
        self.groups.place[self.me as usize].0
    }

    pub(crate) fn position(&self) -> u32 {
        self.groups.place[self.me as usize].1
    }

    pub(crate) fn len(&self) -> i64 {
        self.groups.groups.len() as i64
    }

    pub(crate) fn even(&self) -> bool {
        self.groups.groups.windows(2).all(|pair| pair[0].len() == pair[1].len())
    }

    /// Returns the group of a rank, and its position there.
    pub(crate) fn of(&self, rank: RankId) -> Result<(u32, u32), Fault> {
        let number = self.members.number(rank).ok_or(Fault::Outside { rank: rank.0 })?;
        Ok(self.groups.place[number as usize])
    }

    /// Returns the ranks of this rank's group.
    pub(crate) fn mine(&self) -> Vec<RankId> {
        self.ranks(&self.groups.groups[self.index() as usize])
    }

    /// Returns the ranks at this rank's position, in every group that is long enough.
    pub(crate) fn across(&self) -> Vec<RankId> {
        let position = self.position() as usize;
        let at = |group: &Vec<u32>| group.get(position).map(|rank| self.members.rank(*rank));
        self.groups.groups.iter().filter_map(at).collect()
    }

    /// Returns the ranks of group `index`.
    pub(crate) fn group(&self, index: i64) -> Result<Vec<RankId>, Fault> {
        let group = usize::try_from(index).ok().and_then(|i| self.groups.groups.get(i));
        group.map(|group| self.ranks(group)).ok_or(Fault::Index { index, len: self.len() })
    }

    /// Returns all groups.
    pub(crate) fn all(&self) -> impl Iterator<Item = Vec<RankId>> {
        self.groups.groups.iter().map(|group| self.ranks(group))
    }

    fn ranks(&self, group: &[u32]) -> Vec<RankId> {
        group.iter().map(|rank| self.members.rank(*rank)).collect()
    }
}
