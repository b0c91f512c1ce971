//! Ways to break a schedule: each gives all its mutants of one schedule.

use roundelay_core::ids::{OpId, RankId, RegionId};
use roundelay_core::schedule::rational::Rat;
use roundelay_core::schedule::{Buffer, Op, OpKind, Operand, Region, Schedule};

/// A name and the mutants.
pub(crate) type Class = (&'static str, fn(&Schedule) -> Vec<Schedule>);

pub(crate) const CLASSES: &[Class] = &[
    ("delete a post", |s| delete_each(s, |op| op.kind == OpKind::Post)),
    ("delete a wait", |s| delete_each(s, |op| op.kind == OpKind::Wait)),
    ("delete a post and its wait", delete_pairs),
    ("delete a move", |s| delete_each(s, |op| op.kind == OpKind::Move)),
    ("repeat a reduce", |s| {
        each(s, |op| op.srcs > 1, |m, at| edit(m, at, |list, k| list.insert(k, list[k])))
    }),
    ("reduce becomes copy", |s| {
        each(
            s,
            |op| op.srcs == 2,
            |m, at| {
                m.ops[at].arg += 1;
                m.ops[at].srcs = 1;
            },
        )
    }),
    ("copy becomes reduce", |s| each(s, |op| (op.srcs, op.dsts) == (1, 1), copy_to_reduce)),
    ("shift one operand", |s| operands(s, |s, op, k| shift(s, op, k..=k))),
    ("shift all operands", |s| {
        let all = |s: &mut Schedule, op: Op, k: usize| {
            k == 0 && shift(s, op, 0..=usize::from(op.srcs + op.dsts) - 1)
        };
        operands(s, all)
    }),
    ("change the peer", |s| {
        operands(s, |s, op, k| {
            let operand = &mut s.operands[op.arg as usize + k];
            operand.rank = RankId((operand.rank.0 + 1) % s.nranks);
            true
        })
    }),
    ("swap neighbours", swap_neighbours),
    ("swap sources", |s| {
        each(
            s,
            |op| op.srcs > 1,
            |m, at| {
                let first = m.ops[at].arg as usize;
                m.operands.swap(first, first + 1);
            },
        )
    }),
];

fn each(
    schedule: &Schedule,
    which: impl Fn(&Op) -> bool,
    change: impl Fn(&mut Schedule, usize),
) -> Vec<Schedule> {
    let hits = schedule.ops.iter().enumerate().filter(|(_, op)| which(op));
    let change = |(at, _)| {
        let mut mutant = schedule.clone();
        change(&mut mutant, at);
        mutant
    };
    hits.map(change).collect()
}

/// Changes the op list of the stream of op `at`; `change` gets the list and the place of the op in it.
fn edit(schedule: &mut Schedule, at: usize, change: impl FnOnce(&mut Vec<Op>, usize)) {
    let stream = schedule.stream_of(OpId(at as u32)).index();
    let first = schedule.streams[stream].first.index();
    let len = schedule.streams[stream].len as usize;
    let mut list = schedule.ops[first..first + len].to_vec();
    change(&mut list, at - first);
    schedule.streams[stream].len = list.len() as u32;
    schedule.ops.splice(first..first + len, list);
    let mut next = 0;
    for stream in &mut schedule.streams {
        stream.first = OpId(next);
        next += stream.len;
    }
}

fn delete(schedule: &mut Schedule, at: usize) {
    edit(schedule, at, |list, k| {
        list.remove(k);
    });
}

fn delete_each(schedule: &Schedule, which: impl Fn(&Op) -> bool) -> Vec<Schedule> {
    each(schedule, which, delete)
}

fn delete_pairs(schedule: &Schedule) -> Vec<Schedule> {
    let ops = &schedule.ops;
    // One stream has each end of a channel, so the k-th of each are the k-th in the op list.
    let nth = |at: usize| {
        ops[..at].iter().filter(|op| (op.kind, op.arg) == (ops[at].kind, ops[at].arg)).count()
    };
    let partner = |post: usize| {
        let wait = |at: &usize| ops[*at].kind == OpKind::Wait && ops[*at].arg == ops[post].arg;
        (0..ops.len()).filter(wait).nth(nth(post))
    };
    each(
        schedule,
        |op| op.kind == OpKind::Post,
        |mutant, post| {
            if let Some(wait) = partner(post) {
                delete(mutant, post.max(wait));
                delete(mutant, post.min(wait));
            }
        },
    )
}

fn copy_to_reduce(schedule: &mut Schedule, at: usize) {
    let op = schedule.ops[at];
    let (src, dst) = (schedule.srcs(&op)[0], schedule.dsts(&op)[0]);
    let op = &mut schedule.ops[at];
    (op.arg, op.srcs) = (schedule.operands.len() as u32, 2);
    schedule.operands.extend([dst, src, dst]);
}

/// A mutant for each operand of each move for which `change` does something.
fn operands(
    schedule: &Schedule,
    change: impl Fn(&mut Schedule, Op, usize) -> bool,
) -> Vec<Schedule> {
    let moves = schedule.ops.iter().filter(|op| op.kind == OpKind::Move);
    let all = moves.flat_map(|op| (0..usize::from(op.srcs + op.dsts)).map(move |k| (*op, k)));
    all.filter_map(|(op, k)| {
        let mut mutant = schedule.clone();
        change(&mut mutant, op, k).then_some(mutant)
    })
    .collect()
}

/// Moves operands to the next block of the same width, or the one before; scratch stays where it is.
fn shift(schedule: &mut Schedule, op: Op, which: std::ops::RangeInclusive<usize>) -> bool {
    let mut shifted = false;
    for k in which {
        let operand = schedule.operands[op.arg as usize + k];
        let region = *schedule.region(operand);
        if matches!(region.buffer, Buffer::Scratch(_)) {
            continue;
        }
        let Some(next) = neighbour(schedule, operand, region) else { return false };
        schedule.regions.push(next);
        let id = RegionId(schedule.regions.len() as u32 - 1);
        schedule.operands[op.arg as usize + k].region = id;
        shifted = true;
    }
    shifted
}

fn neighbour(schedule: &Schedule, operand: Operand, region: Region) -> Option<Region> {
    let width = region.hi.minus(region.lo)?;
    let plus = Rat::new(
        region.hi.num() * width.den() + width.num() * region.hi.den(),
        region.hi.den() * width.den(),
    )?;
    if plus <= schedule.units(region.buffer, operand.rank) {
        return Some(Region { lo: region.hi, hi: plus, ..region });
    }
    Some(Region { lo: region.lo.minus(width)?, hi: region.lo, ..region })
}

fn swap_neighbours(schedule: &Schedule) -> Vec<Schedule> {
    let pairs = schedule.streams.iter().flat_map(|stream| {
        let first = stream.first.index();
        (first + 1..first + stream.len as usize).map(|at| (at - 1, at))
    });
    let swap = |(a, b)| {
        let mut mutant = schedule.clone();
        mutant.ops.swap(a, b);
        mutant
    };
    pairs.map(swap).collect()
}
