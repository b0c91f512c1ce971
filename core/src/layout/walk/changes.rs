//! The change of each value from rank to rank, where a walk of rank 0 stands for all ranks.
//!
//! A value is the same at all ranks, or turned with the rank. Everything that decides which ops there are must be the
//! same at all ranks: bounds of loops, conditions, sizes. Peers must be turned, and a piece's number is either. A
//! number is turned exactly where it is the rank's digit plus a constant, around the radix; so comparisons by size,
//! products and bits of the rank leave the class.

use super::Walk;
use super::values::Value;
use crate::layout::area::{Area, Cut};
use crate::layout::builder::{Builder, Stop};
pub(super) use crate::layout::turning::Change;
use crate::layout::turning::{BY_RANK, Digits, Turning, unlike};
use crate::program::ir::{Call, Expr, Op, Param, Pass, VarId};
use crate::rational::Rat;
use crate::syntax::ast::BinOp;
use crate::values::groups::GroupPlace;
use crate::values::ring::RingAtRank;
use std::collections::BTreeMap;

impl<'p> Walk<'p> {
    /// Leaves the class of programs whose ranks do the same, where changes are followed.
    pub(super) fn outside(
        &self,
        b: &mut Builder<'_>,
        expr: &Expr,
        why: impl Into<String>,
    ) -> Result<(), Stop> {
        let (at, exact) = (self.at, self.exact(expr.span));
        let Some(turning) = b.turning() else { return Ok(()) };
        turning.leave(at, exact, why);
        Err(Stop)
    }

    /// Follows the value that a variable gets.
    pub(super) fn follow(
        &mut self,
        b: &mut Builder<'_>,
        var: VarId,
        value: &'p Expr,
    ) -> Result<(), Stop> {
        if b.turning().is_some() {
            let change = self.change(b, value)?;
            self.changes[var.index()] = change;
        }
        Ok(())
    }

    /// Checks that values are the same at all ranks.
    pub(super) fn still(
        &mut self,
        b: &mut Builder<'_>,
        exprs: impl IntoIterator<Item = &'p Expr>,
        what: &str,
    ) -> Result<(), Stop> {
        if b.turning().is_none() {
            return Ok(());
        }
        for expr in exprs {
            match self.change(b, expr)? {
                Change::Fixed => {}
                Change::Other(why) => self.outside(b, expr, format!("{what}: {why}"))?,
                _ => self.outside(b, expr, format!("{what} changes with the rank"))?,
            }
        }
        Ok(())
    }

    /// Checks that a peer is turned with the rank.
    pub(super) fn turned_peer(&mut self, b: &mut Builder<'_>, peer: &'p Expr) -> Result<(), Stop> {
        let Some(whole) = b.turning().map(|turning| turning.whole()) else { return Ok(()) };
        match self.change(b, peer)? {
            Change::Turned(digits) if digits == whole => Ok(()),
            Change::Fixed => self.outside(b, peer, "this peer is the same for all ranks"),
            Change::Other(why) => self.outside(b, peer, format!("this peer: {why}")),
            _ => self.outside(b, peer, "this peer does not move with the rank"),
        }
    }

    /// Checks that the ranks of places are turned with the rank.
    pub(super) fn turned_places(
        &mut self,
        b: &mut Builder<'_>,
        places: impl IntoIterator<Item = &'p Expr>,
    ) -> Result<(), Stop> {
        if b.turning().is_none() {
            return Ok(());
        }
        places.into_iter().try_for_each(|place| self.turned_peer(b, place))
    }

    pub(super) fn turned_pass(&mut self, b: &mut Builder<'_>, pass: &'p Pass) -> Result<(), Stop> {
        let Pass { from, own, dst, to } = pass;
        if let Some(peers) = b.turning().and_then(|_| self.program.list_of_peers(pass)) {
            self.outside(b, peers, "a list of peers is not followed from rank to rank")?;
        }
        self.turned_places(b, [from, own, dst, to].into_iter().flatten())
    }

    /// Returns the digits that the ranks inside of a `within` count.
    pub(super) fn group_digits(
        &mut self,
        b: &mut Builder<'_>,
        ranks: &'p Expr,
    ) -> Result<Option<Digits>, Stop> {
        if b.turning().is_none() {
            return Ok(None);
        }
        match self.change(b, ranks)? {
            Change::Members(digit) => Ok(Some(Digits::One(digit))),
            _ => {
                self.outside(b, ranks, "these ranks are no group of neighbors of one size")?;
                Ok(None)
            }
        }
    }

    /// Follows the arguments of a call to the parameters of the program that is called.
    pub(super) fn follow_args(&mut self, b: &mut Builder<'_>, call: &'p Call) -> Result<(), Stop> {
        if b.turning().is_none() {
            return Ok(());
        }
        let mut changes = BTreeMap::new();
        for (index, arg) in &call.args {
            changes.insert(*index, self.change(b, arg)?);
        }
        if let Some(turning) = b.turning() {
            turning.args = changes;
        }
        Ok(())
    }

    /// Follows the value of a parameter: from a caller, from outside, or its default.
    pub(super) fn param_changes(
        &mut self,
        b: &mut Builder<'_>,
        param: &'p Param,
        from_call: Option<Change>,
        given: bool,
    ) -> Result<(), Stop> {
        if b.turning().is_none() {
            return Ok(());
        }
        let change = match (from_call, &param.default, &self.vars[param.var.index()]) {
            // A list of members that a caller names has other numbers in the program that is called.
            (Some(Change::Members(_)), ..) => BY_RANK,
            (Some(change @ (Change::Fixed | Change::Turned(_) | Change::Near(_))), ..) => {
                let rings =
                    matches!(self.vars[param.var.index()], Value::Ring(_) | Value::Groups(_));
                if rings { self.object_change(b, param.var) } else { change }
            }
            (Some(change @ Change::Other(_)), ..) => change,
            (None, Some(default), _) if !given => self.change(b, default)?,
            // A ring or groups have another look from the program that is called.
            (Some(Change::Ring(_) | Change::Groups) | None, ..) => self.object_change(b, param.var),
        };
        self.changes[param.var.index()] = change;
        Ok(())
    }

    fn object_change(&self, b: &mut Builder<'_>, var: VarId) -> Change {
        let value = self.vars[var.index()].clone();
        of_object(b, &value)
    }

    /// Returns a piece of a region, which moves with the rank where its number does.
    pub(super) fn piece(
        &mut self,
        b: &mut Builder<'_>,
        expr: &'p Expr,
        (piece, whole, cut): (Area, Area, Cut),
    ) -> Result<Area, Stop> {
        if b.turning().is_none() {
            return Ok(piece);
        }
        let number = &expr.args[1];
        let digits = match self.change(b, number)? {
            Change::Fixed => return Ok(piece),
            Change::Turned(digits) => digits,
            Change::Other(why) => {
                self.outside(b, number, format!("the number of this piece: {why}"))?;
                return Ok(piece);
            }
            _ => {
                self.outside(b, number, "the number of this piece may leave the range")?;
                return Ok(piece);
            }
        };
        let Some(turning) = b.turning() else { return Ok(piece) };
        let radix = i64::from(turning.radix(digits));
        let axes = match cut {
            Cut::Even(n) if n == radix => {
                turning.moved(whole.axes, digits, (whole.region.lo, piece.width(), false))
            }
            Cut::Slots(n) if n == radix => {
                let one = Rat::ONE;
                turning.moved(whole.axes, digits, (Rat::ZERO, one, true))
            }
            _ => {
                self.outside(b, expr, "there are not as many pieces as ranks that count them")?;
                None
            }
        };
        match axes {
            Some(axes) => Ok(Area { axes, ..piece }),
            None => {
                self.outside(b, expr, "the pieces are too fine")?;
                Ok(piece)
            }
        }
    }

    /// Returns the change of an expression's value from rank to rank.
    fn change(&mut self, b: &mut Builder<'_>, expr: &'p Expr) -> Result<Change, Stop> {
        let args = &expr.args;
        let Some(turning) = b.turning() else { return Ok(Change::Fixed) };
        let (whole, seen) = (turning.whole(), turning.seen(turning.within.len()));
        Ok(match expr.op {
            // The axes of a region are its own.
            Op::Int(_)
            | Op::Nranks
            | Op::Rate(_)
            | Op::Time(_)
            | Op::Machine(_)
            | Op::Gpus(_)
            | Op::Reducing
            | Op::Input
            | Op::Output
            | Op::Piece
            | Op::Pieces
            | Op::Split => Change::Fixed,
            Op::Var(var) => self.changes[var.index()],
            Op::Rank => Change::Turned(seen),
            Op::Local => Change::Turned(whole),
            Op::On => self.change(b, &args[0])?,
            Op::Binary(op @ (BinOp::And | BinOp::Or)) => {
                if self.change(b, &args[0])? != Change::Fixed {
                    return Ok(BY_RANK);
                }
                if self.holds(b, &args[0])? == (op == BinOp::Or) {
                    return Ok(Change::Fixed);
                }
                if self.change(b, &args[1])? == Change::Fixed { Change::Fixed } else { BY_RANK }
            }
            Op::Binary(op) => {
                let changes = [self.change(b, &args[0])?, self.change(b, &args[1])?];
                if changes == [Change::Fixed; 2] {
                    return Ok(Change::Fixed);
                }
                let values = [self.int(b, &args[0])?, self.int(b, &args[1])?];
                b.turning().map_or(BY_RANK, |turning| turning.result(op, changes, values))
            }
            Op::If => {
                if self.change(b, &args[0])? != Change::Fixed {
                    return Ok(BY_RANK);
                }
                let chosen = if self.holds(b, &args[0])? { &args[1] } else { &args[2] };
                self.change(b, chosen)?
            }
            Op::Len => match self.change(b, &args[0])? {
                Change::Other(why) => Change::Other(why),
                _ => Change::Fixed,
            },
            Op::Peer => match self.change(b, &args[0])? {
                Change::Turned(digits) if digits == seen => Change::Turned(whole),
                Change::Fixed if seen == whole => Change::Fixed,
                _ => BY_RANK,
            },
            Op::RankOf => match self.change(b, &args[0])? {
                Change::Turned(digits) if digits == whole => Change::Turned(seen),
                Change::Fixed if seen == whole => Change::Fixed,
                _ => BY_RANK,
            },
            Op::RingLeft | Op::RingRight => match self.change(b, &args[0])? {
                Change::Ring(_) => Change::Turned(whole),
                other => unlike(other),
            },
            Op::RingPosition => match self.change(b, &args[0])? {
                Change::Ring(digits) => Change::Turned(digits),
                other => unlike(other),
            },
            Op::RingSeat | Op::RingPositionOf => {
                let (ring, number) = (self.change(b, &args[0])?, self.change(b, &args[1])?);
                let seat = expr.op == Op::RingSeat;
                match (ring, number) {
                    (Change::Ring(digits), Change::Turned(of)) if digits == of && seat => {
                        Change::Turned(whole)
                    }
                    (Change::Ring(digits), Change::Turned(of)) if digits == of && of == seen => {
                        Change::Turned(digits)
                    }
                    (Change::Ring(digits), Change::Fixed) if digits == whole => Change::Fixed,
                    (other, _) => unlike(other),
                }
            }
            Op::GroupsIndex | Op::GroupsPosition | Op::GroupsEven => {
                let digit = usize::from(expr.op == Op::GroupsPosition);
                match self.change(b, &args[0])? {
                    Change::Groups if expr.op == Op::GroupsEven => Change::Fixed,
                    Change::Groups => Change::Turned(Digits::One(digit)),
                    other => unlike(other),
                }
            }
            Op::GroupsIndexOf | Op::GroupsPositionOf => {
                let digit = usize::from(expr.op == Op::GroupsPositionOf);
                match (self.change(b, &args[0])?, self.change(b, &args[1])?) {
                    (Change::Groups, Change::Turned(digits)) if digits == whole => {
                        Change::Turned(Digits::One(digit))
                    }
                    (Change::Groups, Change::Fixed) => Change::Fixed,
                    (other, _) => unlike(other),
                }
            }
            Op::GroupsMine | Op::GroupsAcross => match self.change(b, &args[0])? {
                Change::Groups if seen == whole => {
                    Change::Members(usize::from(expr.op == Op::GroupsMine))
                }
                other => unlike(other),
            },
            Op::GroupsAt => match (self.change(b, &args[0])?, self.change(b, &args[1])?) {
                (Change::Groups, Change::Fixed) if seen == whole => Change::Fixed,
                (other, _) => unlike(other),
            },
            Op::Tree(_)
            | Op::TreeDoubleBinary
            | Op::TreeParents
            | Op::TreeRoot
            | Op::TreeParent
            | Op::TreeChildren
            | Op::TreeLevel
            | Op::TreeDepth
            | Op::Trees(_)
            | Op::TreesDoubleBinary
            | Op::TreesParents
            | Op::TreesTurned
            | Op::TreesEven
            | Op::TreesAt
            | Op::TreesWeights
            | Op::TreesWeightsOf
            | Op::TreesPositionOf => Change::Other("the ranks of a tree have different parts"),
            Op::RingsChannels | Op::RingsDisjoint | Op::RingsAt => {
                Change::Other("rings are searched on a topology")
            }
            // Everything else is a function of its operands alone.
            _ => {
                for arg in args {
                    match self.change(b, arg)? {
                        Change::Fixed => {}
                        other => return Ok(unlike(other)),
                    }
                }
                let rings = [Op::RingNatural, Op::RingTwisted, Op::RingOrder, Op::RingAround];
                let groups = [
                    Op::GroupsOf,
                    Op::GroupsSizes,
                    Op::GroupsColors,
                    Op::GroupsBalanced,
                    Op::GroupsNatural,
                    Op::GroupsIslands,
                    Op::GroupsRails,
                ];
                if rings.contains(&expr.op) || groups.contains(&expr.op) {
                    let object = self.value(b, expr)?;
                    of_object(b, &object)
                } else {
                    Change::Fixed
                }
            }
        })
    }
}

/// Returns the change of an object: a ring in the natural order, or groups of neighbors of one size.
fn of_object(b: &mut Builder<'_>, value: &Value) -> Change {
    match value {
        Value::Ring(ring) if natural(b, ring) => {
            let turning = b.turning();
            turning.map_or(Change::Fixed, |t| Change::Ring(t.seen(t.within.len())))
        }
        Value::Ring(_) => Change::Other("the ring has another order than that of the ranks"),
        Value::Rings(_) => Change::Other("rings are searched on a topology"),
        Value::Tree(_) | Value::Trees(_) => {
            Change::Other("the ranks of a tree have different parts")
        }
        Value::Groups(groups) => of_groups(b, groups),
        _ => Change::Fixed,
    }
}

/// Whether a ring has the order of the ranks' numbers.
fn natural(b: &Builder<'_>, ring: &RingAtRank) -> bool {
    let numbers = (0..).zip(ring.order.iter());
    ring.order.len() == b.size() as usize
        && numbers.into_iter().all(|(number, rank)| b.find_rank(number) == Ok(*rank))
}

/// Returns the change of groups; where they are groups of neighbors of one size that other turns would serve, notes
/// their number and size.
fn of_groups(b: &mut Builder<'_>, groups: &GroupPlace) -> Change {
    const UNEVEN: Change = Change::Other("the groups are not of neighbors and of one size");
    let all: Vec<_> = groups.all().collect();
    let size = all.first().map_or(0, Vec::len) as u32;
    let flat = all.iter().flatten();
    let neighbors = groups.even() && (0..).zip(flat).all(|(number, rank)| rank.0 == number);
    let Some(turning) = b.turning() else { return Change::Fixed };
    if !neighbors || size == 0 || !turning.within.is_empty() {
        return UNEVEN;
    }
    let many = [all.len() as u32, size];
    if many.contains(&1) {
        return Change::Other("there is one group, or one rank in each");
    }
    if turning.turns.radices() == many {
        return Change::Groups;
    }
    turning.groups.get_or_insert(many);
    Change::Other("the ranks of a group have numbers of their own")
}

impl Builder<'_> {
    /// Returns the changes of values from rank to rank, where they are followed.
    pub(super) fn turning(&mut self) -> Option<&mut Turning> {
        self.tables.turning.as_mut()
    }

    /// Returns a change for each of `vars` variables, where changes are followed.
    pub(super) fn changes(&self, vars: usize) -> Vec<Change> {
        if self.tables.turning.is_some() { vec![Change::Fixed; vars] } else { Vec::new() }
    }

    /// Takes the changes of the values that a call gives to parameters.
    pub(super) fn changed_args(&mut self) -> BTreeMap<usize, Change> {
        self.turning().map(|turning| std::mem::take(&mut turning.args)).unwrap_or_default()
    }

    /// Lays out the body of a `within` whose ranks count these digits.
    pub(super) fn seeing(
        &mut self,
        digits: Option<Digits>,
        body: impl FnOnce(&mut Self) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        if let (Some(turning), Some(digits)) = (self.turning(), digits) {
            turning.within.push(digits);
        }
        let done = body(self);
        if let (Some(turning), Some(_)) = (self.turning(), digits) {
            turning.within.pop();
        }
        done
    }
}
