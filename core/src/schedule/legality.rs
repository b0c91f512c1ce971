//! The structural rules of every schedule, as a table: all other checks rely on them.
//!
//! The builder cannot break them; passes, the text form and manual edits can. Rules stand in the order in which they
//! are checked: each may rely on the rules before it, and of one op only its first broken rule is reported.

use std::hash::Hash;

use rustc_hash::FxHashSet;

use super::lengths::{self, Lengths};
use super::{
    Buffer, Channel, MOVE_LIMIT, Op, OpKind, Operand, Region, SWITCH_LIMIT, Schedule, SignalKind,
    Stream,
};
use crate::ids::{OpId, RankId};

/// A broken rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Illegal {
    /// Name of the rule.
    pub rule: &'static str,
    /// The demand of the rule, in words.
    pub demands: &'static str,
    /// The op that breaks the rule, if one op does.
    pub at: Option<OpId>,
}

/// One rule about things of type `T`; `holds` returns whether a thing keeps it.
struct Rule<T: ?Sized> {
    name: &'static str,
    demands: &'static str,
    holds: fn(&Schedule, &T) -> bool,
}

/// An op with the stream that it belongs to.
type Placed = (Stream, Op);

const fn rule<T: ?Sized>(
    name: &'static str,
    demands: &'static str,
    holds: fn(&Schedule, &T) -> bool,
) -> Rule<T> {
    Rule { name, demands, holds }
}

const WHOLE: &[Rule<()>] = &[
    rule("ranks", "there is a rank, and the root is one", |s, ()| s.root.0 < s.nranks),
    rule("multiple", "a count is a multiple of 1 at least", |s, ()| s.multiple > 0),
    rule("tiling", "streams cover the ops one after the other", |s, ()| tiled(s)),
    rule(
        "stream order",
        "each rank has its streams 0, 1, …, and ranks follow each other",
        |s, ()| ordered(s),
    ),
    rule("interned", "no channel, lane or name of a scratch stands in its table twice", |s, ()| {
        let names = ["input", "output"].into_iter().chain(s.scratch.iter().map(|s| &*s.name));
        distinct(&s.channels) && distinct(&s.lanes) && distinct(names)
    }),
    rule("outer lane", "lane 0 is the lane outside every `parallel`", |s, ()| {
        s.lanes.first().is_some_and(Vec::is_empty)
    }),
];

const REGIONS: &[Rule<Region>] = &[
    rule("buffer", "a region lies in a buffer that is declared", |s, r| match r.buffer {
        Buffer::Scratch(id) => id.index() < s.scratch.len(),
        _ => true,
    }),
    rule("slot", "a region lies in a slot that its scratch has; user buffers have none", |s, r| {
        match r.buffer {
            Buffer::Scratch(id) => r.slot < s.scratch[id.index()].slots,
            _ => r.slot == 0 && r.base == crate::rational::Rat::ZERO,
        }
    }),
    rule("interval", "base <= lo <= hi", |_, r| r.base <= r.lo && r.lo <= r.hi),
    rule("slot width", "a region is no wider than its slot", |s, r| match r.buffer {
        Buffer::Scratch(id) => {
            r.hi.minus(r.base).is_some_and(|width| width <= s.scratch[id.index()].width)
        }
        _ => true,
    }),
];

const CHANNELS: &[Rule<Channel>] = &[
    rule("ends", "both ends of a channel are ranks", |s, c| {
        c.from.0 < s.nranks && c.to.0 < s.nranks
    }),
    rule(
        "signal ends",
        "a signal of streams joins a rank with itself, any other signal two ranks",
        |_, c| (c.from != c.to) == c.kind.of_pairs(),
    ),
    rule(
        "lane",
        "a channel's lane exists; that of a fork or join is a slave stream of the rank",
        |s, c| {
            if c.kind.has_lane() {
                c.lane.index() < s.lanes.len()
            } else {
                c.lane.0 != 0 && c.lane.0 < streams(s, c.from)
            }
        },
    ),
];

const SIGNALS: &[Rule<Placed>] = &[
    rule("signal shape", "a post or wait has no operands and finishes nothing", |_, (_, op)| {
        (op.srcs, op.dsts, op.finish) == (0, 0, false)
    }),
    rule("channel", "a post or wait is on a channel that exists", |s, (_, op)| {
        (op.arg as usize) < s.channels.len()
    }),
    rule(
        "own end",
        "a rank posts where a channel begins and waits where it ends",
        |s, (stream, op)| {
            let channel = s.channel(op);
            stream.rank == if op.kind == OpKind::Post { channel.from } else { channel.to }
        },
    ),
    rule(
        "fork and join",
        "a slave stream waits for its fork and posts its join, others the reverse",
        |s, (stream, op)| {
            let channel = s.channel(op);
            let slave = channel.lane.0 == stream.index;
            match channel.kind {
                SignalKind::Fork => slave == (op.kind == OpKind::Wait),
                SignalKind::Join => slave == (op.kind == OpKind::Post),
                _ => true,
            }
        },
    ),
];

const MOVES: &[Rule<Placed>] = &[
    rule(
        "operand count",
        "a move has 1..=8 sources and 1..=8 destinations, and more only if a switch makes it",
        |_, (_, op)| {
            let most = if op.switch { SWITCH_LIMIT } else { MOVE_LIMIT };
            (1..=most).contains(&op.srcs) && (1..=most).contains(&op.dsts)
        },
    ),
    rule("operands", "a move's operands exist", |s, (_, op)| {
        op.arg as usize + op.operands() <= s.operands.len()
    }),
    rule("operand", "an operand is a region of a rank", |s, (_, op)| {
        all(s, op).all(|o| o.rank.0 < s.nranks && o.region.index() < s.regions.len())
    }),
    rule(
        "switch",
        "a switch takes one region of a rank or of several, and gives one region of a rank or of several",
        |s, (_, op)| !op.switch || [s.srcs(op), s.dsts(op)].into_iter().all(is_one_region),
    ),
    rule("bounds", "an operand lies within its rank's buffer", |s, (_, op)| {
        all(s, op).all(|o| {
            let region = s.region(*o);
            matches!(region.buffer, Buffer::Scratch(_))
                || region.hi <= s.units(region.buffer, o.rank)
        })
    }),
    rule("input", "no destination is an input", |s, (_, op)| {
        s.dsts(op).iter().all(|o| s.region(*o).buffer != Buffer::Input)
    }),
    rule("local", "an operand is local to the rank that moves", |s, (stream, op)| {
        all(s, op).any(|o| o.rank == stream.rank)
    }),
    rule("lengths", "operands are equally long and cut alike for every count", |s, (_, op)| {
        let interval = |o: &Operand| (s.region(*o).lo, s.region(*o).hi);
        let first = interval(&s.srcs(op)[0]);
        all(s, op).all(|o| lengths::compare(first, interval(o), s.multiple) == Lengths::Equal)
    }),
    rule(
        "overlap",
        "a destination is a source or overlaps none, and overlaps no other destination",
        |s, (_, op)| {
            let (srcs, dsts) = (s.srcs(op), s.dsts(op));
            dsts.iter().enumerate().all(|(i, dst)| {
                srcs.iter().all(|o| o == dst || !overlap(s, *o, *dst))
                    && dsts[..i].iter().all(|o| !overlap(s, *o, *dst))
            })
        },
    ),
];

const STREAMS: &[Rule<Stream>] = &[rule(
    "slave stream",
    "a slave stream begins with the wait for its fork and ends with the post of its join",
    |s, stream| {
        let ops = &s.ops[stream.first.index()..][..stream.len as usize];
        let is = |op: Option<&Op>, kind, signal| {
            op.is_some_and(|op| op.kind == kind && s.channel(op).kind == signal)
        };
        stream.index == 0
            || is(ops.first(), OpKind::Wait, SignalKind::Fork)
                && is(ops.last(), OpKind::Post, SignalKind::Join)
    },
)];

/// Returns all broken rules of the structure of `schedule`.
pub fn check(schedule: &Schedule) -> Result<(), Vec<Illegal>> {
    let mut found = Vec::new();
    found.extend(broken(schedule, WHOLE, &(), None));
    if found.is_empty() {
        found.extend(schedule.regions.iter().filter_map(|r| broken(schedule, REGIONS, r, None)));
        found.extend(schedule.channels.iter().filter_map(|c| broken(schedule, CHANNELS, c, None)));
    }
    if found.is_empty() {
        for stream in &schedule.streams {
            for (step, op) in
                schedule.ops[stream.first.index()..][..stream.len as usize].iter().enumerate()
            {
                let rules = if op.kind == OpKind::Move { MOVES } else { SIGNALS };
                let at = OpId(stream.first.0 + step as u32);
                found.extend(broken(schedule, rules, &(*stream, *op), Some(at)));
            }
        }
    }
    if found.is_empty() {
        for stream in &schedule.streams {
            let at = (stream.len > 0).then_some(stream.first);
            found.extend(broken(schedule, STREAMS, stream, at));
        }
    }
    if found.is_empty() { Ok(()) } else { Err(found) }
}

/// Returns the first rule that `thing` breaks.
fn broken<T: ?Sized>(
    schedule: &Schedule,
    rules: &[Rule<T>],
    thing: &T,
    at: Option<OpId>,
) -> Option<Illegal> {
    let rule = rules.iter().find(|rule| !(rule.holds)(schedule, thing))?;
    Some(Illegal { rule: rule.name, demands: rule.demands, at })
}

fn all<'s>(schedule: &'s Schedule, op: &Op) -> impl Iterator<Item = &'s Operand> {
    schedule.operands_of(op).iter()
}

fn distinct<T: Eq + Hash>(items: impl IntoIterator<Item = T>) -> bool {
    let mut seen: FxHashSet<T> = FxHashSet::default();
    items.into_iter().all(|item| seen.insert(item))
}

/// Whether operands are one region of ranks that differ.
fn is_one_region(operands: &[Operand]) -> bool {
    operands.iter().all(|operand| operand.region == operands[0].region)
        && distinct(operands.iter().map(|operand| operand.rank))
}

fn tiled(schedule: &Schedule) -> bool {
    let mut next = 0_u64;
    let adjoin = schedule.streams.iter().all(|stream| {
        let here = u64::from(stream.first.0) == next;
        next += u64::from(stream.len);
        here
    });
    adjoin && next == schedule.ops.len() as u64
}

fn ordered(schedule: &Schedule) -> bool {
    let mut ranks = 0;
    let mut streams = 0;
    for stream in &schedule.streams {
        if stream.index == 0 {
            ranks += 1;
            streams = 0;
        }
        if stream.index != streams || stream.rank.0.checked_add(1) != Some(ranks) {
            return false;
        }
        streams += 1;
    }
    ranks == schedule.nranks
}

/// Returns the number of streams of `rank`.
fn streams(schedule: &Schedule, rank: RankId) -> u32 {
    let first = schedule.streams.partition_point(|stream| stream.rank < rank);
    let after = schedule.streams.partition_point(|stream| stream.rank <= rank);
    (after - first) as u32
}

fn overlap(schedule: &Schedule, a: Operand, b: Operand) -> bool {
    let (left, right) = (schedule.region(a), schedule.region(b));
    a.rank == b.rank
        && (left.buffer, left.slot) == (right.buffer, right.slot)
        && (left.base != right.base || left.lo < right.hi && right.lo < left.hi)
}
