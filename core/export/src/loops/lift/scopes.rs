//! The ranks that a part of a program sees: all ranks, or those of a `within`, which have new numbers. These numbers
//! become arithmetic on the rank in the whole run if the group allows it, or else tables.

use super::observations::each;
use super::{Around, Lift, LiftResult, Rows};
use crate::loops::grids::Grid;
use crate::loops::ir::{LoopNode, Number, Op, binary, executing, sum, times};
use roundelay_core::program::ir::Stmt;
use roundelay_core::syntax::ast::BinOp;

/// The ranks that statements see.
#[derive(Clone)]
pub(super) struct LiftScope {
    /// The executing rank's number among these ranks.
    pub(super) rank: Number,
    /// The number of these ranks.
    pub(super) size: Number,
    ranks: Ranks,
}

#[derive(Clone)]
enum Ranks {
    All,
    /// A group at equal distances, and its first rank.
    Grid(Grid, Number),
    /// Lists of ranks that each rank looked up, and the number of loops and calls around the lookup.
    Listed(Rows<Vec<i64>>, usize),
}

impl LiftScope {
    pub(super) fn all() -> Self {
        Self { rank: executing(), size: Number::leaf(Op::Nranks), ranks: Ranks::All }
    }

    /// Returns the groups of ranks at equal distances, where the scope is one of these.
    pub(super) fn grid(&self) -> Option<Grid> {
        match self.ranks {
            Ranks::Grid(grid, _) => Some(grid),
            _ => None,
        }
    }
}

impl Lift<'_> {
    /// Returns the condition under which the executing rank belongs to a `within` (`None` if always), and the ranks of
    /// the `within`; adds the variables for them. `None` if no rank belongs to it.
    pub(super) fn scope(
        &mut self,
        stmt: &Stmt,
        nodes: &mut Vec<LoopNode>,
    ) -> LiftResult<Option<(Option<Number>, LiftScope)>> {
        let seen: Vec<_> = self.traces.iter().map(|trace| trace.groups(stmt)).collect();
        let seen = self.here(&seen);
        let joined = each(&seen, |way, list| vec![(way.clone(), (!list.is_empty()).into())]);
        let joined = self.count(&joined)?;
        let condition = match joined.op {
            Op::Int(0) => return Ok(None),
            Op::Int(_) => None,
            _ => Some(joined),
        };
        let lists: Rows<Vec<i64>> = seen
            .into_iter()
            .map(|own| own.into_iter().filter(|(_, list)| !list.is_empty()).collect())
            .collect();
        let all =
            || (0..).zip(&lists).flat_map(|(rank, own)| own.iter().map(move |(_, l)| (rank, l)));
        let is = |grid: Grid| {
            all().all(|(rank, list)| {
                let members = (0..grid.size).map(|number| grid.member(rank, number));
                members.eq(list.iter().copied())
            })
        };
        let Some(grid) = Grid::all(self.nranks).find(|grid| is(*grid)) else {
            let size =
                self.entry(&each(&lists, |way, list| vec![(way.clone(), list.len() as i64)]))?;
            let number =
                |rank: i64, list: &Vec<i64>| list.iter().position(|member| *member == rank);
            let ranks = (0..).zip(&lists).map(|(rank, own)| {
                let number = |list| number(rank, list).unwrap_or_default() as i64;
                own.iter().map(|(way, list)| (way.clone(), number(list))).collect()
            });
            let rank = self.entry(&ranks.collect::<Vec<_>>())?;
            let rank = self.named("index", rank, nodes);
            return Ok(Some((
                condition,
                LiftScope { rank, size, ranks: Ranks::Listed(lists, self.around.len()) },
            )));
        };
        if grid.size == i64::from(self.nranks) {
            return Ok(Some((condition, LiftScope::all())));
        }
        let rank = self.named("index", grid.text(executing(), self.nranks), nodes);
        let first = if grid.stride * grid.size == i64::from(self.nranks) {
            binary(BinOp::Rem, executing(), Number::int(grid.stride))
        } else {
            binary(BinOp::Sub, executing(), times(rank.clone(), grid.stride))
        };
        let first = self.named("first", first, nodes);
        let size = Number::int(grid.size);
        Ok(Some((condition, LiftScope { rank, size, ranks: Ranks::Grid(grid, first) })))
    }

    /// Adds a variable that the program does not have.
    pub(super) fn named(&mut self, name: &str, value: Number, nodes: &mut Vec<LoopNode>) -> Number {
        let var = self.vars.len();
        self.vars.push(name.to_owned());
        nodes.push(LoopNode::Let(var, value));
        Number::var(var)
    }

    /// Returns the rank in the whole run of a number in a scope.
    pub(super) fn peer(&mut self, scope: &LiftScope, number: Number) -> LiftResult<Number> {
        if number == scope.rank {
            return Ok(executing());
        }
        match &scope.ranks {
            Ranks::All => Ok(number),
            Ranks::Grid(grid, first) => Ok(sum(first.clone(), times(number, grid.stride))),
            Ranks::Listed(lists, depth) => {
                let items = each(lists, |way, list| {
                    let item = |(i, member): (i64, &i64)| ([&way[..], &[i]].concat(), *member);
                    (0..).zip(list).map(item).collect()
                });
                self.listed_at(*depth, number, &items)
            }
        }
    }

    /// Returns the number in a scope of a rank in the whole run.
    pub(super) fn number_of(&mut self, scope: &LiftScope, peer: Number) -> LiftResult<Number> {
        if peer == executing() {
            return Ok(scope.rank.clone());
        }
        match &scope.ranks {
            Ranks::All => Ok(peer),
            Ranks::Grid(grid, _) => Ok(grid.text(peer, self.nranks)),
            Ranks::Listed(lists, depth) => {
                let items = each(lists, |way, list| {
                    let item = |(i, member): (i64, &i64)| ([&way[..], &[*member]].concat(), i);
                    (0..).zip(list).map(item).collect()
                });
                self.listed_at(*depth, peer, &items)
            }
        }
    }

    /// Returns an entry of values that were looked up within the first `depth` loops and calls.
    fn listed_at(&mut self, depth: usize, index: Number, items: &Rows<i64>) -> LiftResult<Number> {
        let inner = self.around.split_off(depth);
        self.around.push(Around::Loop(index));
        let entry = self.entry(items);
        self.around.truncate(depth);
        self.around.extend(inner);
        entry
    }
}
