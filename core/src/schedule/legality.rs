//! What every schedule must be like, whoever made it: a table of rules, run after each pass in tests and
//! before a proof of a schedule that was read from text.

use std::fmt;

use super::lengths::{self, Lengths};
use super::rational::Rat;
use super::{Buffer, Op, OpKind, Operand, Schedule, SignalKind, Stream};
use crate::ids::{OpId, RankId};

/// A rule that a schedule breaks, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Illegal {
    /// The rule's name.
    pub rule: &'static str,
    /// The op that breaks it; none for rules about the whole.
    pub op: Option<OpId>,
}

impl fmt::Display for Illegal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.op {
            Some(op) => write!(f, "op {op} breaks the rule: {}", self.rule),
            None => write!(f, "the schedule breaks the rule: {}", self.rule),
        }
    }
}

/// A rule about the whole.
type Whole = (&'static str, fn(&Schedule) -> bool);
/// A rule about one op of a stream.
type Each = (&'static str, fn(&Schedule, &Stream, &Op) -> bool);

const WHOLE: [Whole; 6] = [
    ("there is at least one rank, and the root is one of them", |s| {
        s.nranks > 0 && s.root.0 < s.nranks
    }),
    ("streams are sorted by rank, numbered from 0, and every rank has a main one", streams_sorted),
    ("streams cover the ops one after the other", streams_cover),
    ("lane 0 is the lane outside every `parallel`", |s| s.lanes.first().is_some_and(Vec::is_empty)),
    ("channels join ranks that exist, in lanes that exist", channels_exist),
    ("regions lie within their slot, and cut no less than nothing", regions_ordered),
];

/// In the order in which they may rely on each other.
const EACH: [Each; 9] = [
    ("operands and channels exist", op_refers),
    ("a move has 1 to 8 sources and 1 to 8 destinations", |_, _, op| {
        op.kind != OpKind::Move || ((1..=8).contains(&op.srcs) && (1..=8).contains(&op.dsts))
    }),
    ("operands are of ranks that exist", |s, _, op| operands(s, op).all(|o| o.rank.0 < s.nranks)),
    ("a region lies within its rank's buffer", |s, _, op| {
        operands(s, op).all(|o| within_buffer(s, *o))
    }),
    ("the input is never a destination", |s, _, op| {
        op.kind != OpKind::Move || s.dsts(op).iter().all(|d| s.region(*d).buffer != Buffer::Input)
    }),
    ("one operand of a move is on its own rank", |s, stream, op| {
        op.kind != OpKind::Move || operands(s, op).any(|o| o.rank == stream.rank)
    }),
    ("the operands of a move are equal in length and cut alike, for every count", |s, _, op| {
        let mut all = operands(s, op).map(|o| (s.region(*o).lo, s.region(*o).hi));
        let first = all.next();
        all.all(|other| first.is_some_and(|f| lengths::compare(f, other) == Lengths::Equal))
    }),
    ("destinations of a move are apart from each other and from its sources but the first", apart),
    ("a signal is posted by its sender and awaited by its receiver", |s, stream, op| {
        let (fork, channel) = match op.kind {
            OpKind::Move => return true,
            _ => (s.channel(op).kind, s.channel(op)),
        };
        let inner = matches!(fork, SignalKind::Fork | SignalKind::Join);
        let end = if op.kind == OpKind::Post { channel.from } else { channel.to };
        end == stream.rank && inner == (channel.from == channel.to)
    }),
];

/// Every rule that `schedule` breaks; of each, the first op that does.
pub fn check(schedule: &Schedule) -> Result<(), Vec<Illegal>> {
    let broken = |&&(_, holds): &&Whole| !holds(schedule);
    let whole: Vec<_> =
        WHOLE.iter().filter(broken).map(|(rule, _)| Illegal { rule, op: None }).collect();
    if !whole.is_empty() {
        return Err(whole);
    }
    let mut illegal: Vec<Illegal> = Vec::new();
    for stream in &schedule.streams {
        for at in stream.first.0..stream.first.0 + stream.len {
            let op = schedule.op(OpId(at));
            // A later rule may not even be asked where an earlier one is broken.
            let broken = EACH.iter().find(|(_, holds)| !holds(schedule, stream, op));
            if let Some((rule, _)) = broken
                && !illegal.iter().any(|known| known.rule == *rule)
            {
                illegal.push(Illegal { rule, op: Some(OpId(at)) });
            }
        }
    }
    if illegal.is_empty() { Ok(()) } else { Err(illegal) }
}

fn streams_sorted(s: &Schedule) -> bool {
    let mut rank = 0;
    let mut index = 0;
    for stream in &s.streams {
        if stream.rank == RankId(rank) && stream.index == index {
            index += 1;
        } else if stream.rank == RankId(rank + 1) && stream.index == 0 && index > 0 {
            (rank, index) = (rank + 1, 1);
        } else {
            return false;
        }
    }
    rank + 1 == s.nranks && index > 0
}

fn streams_cover(s: &Schedule) -> bool {
    let mut next = 0;
    for stream in &s.streams {
        if stream.first.0 != next {
            return false;
        }
        next += stream.len;
    }
    next as usize == s.ops.len()
}

fn channels_exist(s: &Schedule) -> bool {
    s.channels.iter().all(|channel| {
        let inner = matches!(channel.kind, SignalKind::Fork | SignalKind::Join);
        let lane = channel.lane.index();
        let known = if inner { s.streams.len() } else { s.lanes.len() };
        channel.from.0 < s.nranks && channel.to.0 < s.nranks && lane < known
    })
}

fn regions_ordered(s: &Schedule) -> bool {
    s.regions.iter().all(|r| {
        let ordered = r.base <= r.lo && r.lo <= r.hi;
        ordered
            && match r.buffer {
                Buffer::Input | Buffer::Output => r.slot == 0 && r.base == Rat::ZERO,
                Buffer::Scratch(id) => s.scratch.get(id.index()).is_some_and(|scratch| {
                    let fits = r.hi.minus(r.base).is_some_and(|width| width <= scratch.width);
                    r.slot < scratch.slots && fits
                }),
            }
    })
}

fn op_refers(s: &Schedule, _: &Stream, op: &Op) -> bool {
    let first = op.arg as usize;
    if op.kind != OpKind::Move {
        return first < s.channels.len();
    }
    let last = first + op.srcs as usize + op.dsts as usize;
    s.operands
        .get(first..last)
        .is_some_and(|all| all.iter().all(|operand| operand.region.index() < s.regions.len()))
}

fn operands<'s>(s: &'s Schedule, op: &Op) -> impl Iterator<Item = &'s Operand> + use<'s> {
    let (srcs, dsts): (&[_], &[_]) =
        if op.kind == OpKind::Move { (s.srcs(op), s.dsts(op)) } else { (&[], &[]) };
    srcs.iter().chain(dsts)
}

fn within_buffer(s: &Schedule, operand: Operand) -> bool {
    let region = s.region(operand);
    matches!(region.buffer, Buffer::Scratch(_)) || region.hi <= s.units(region.buffer, operand.rank)
}

fn apart(s: &Schedule, _: &Stream, op: &Op) -> bool {
    if op.kind != OpKind::Move {
        return true;
    }
    let overlap = |a: &Operand, b: &Operand| {
        let (x, y) = (s.region(*a), s.region(*b));
        let same = a.rank == b.rank && x.buffer == y.buffer && x.slot == y.slot;
        same && x.lo < y.hi && y.lo < x.hi
    };
    let (srcs, dsts) = (s.srcs(op), s.dsts(op));
    // A fold may go back to its first source: that is a reduce.
    let others = if op.srcs > 1 { &srcs[1..] } else { srcs };
    dsts.iter().enumerate().all(|(i, dst)| {
        !dsts[..i].iter().any(|other| overlap(other, dst))
            && !others.iter().any(|o| overlap(o, dst))
    })
}
