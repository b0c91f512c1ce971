//! Ways to break a schedule: each gives all its mutants of one schedule.

mod flows;
mod operands;
mod signals;

use roundelay_core::ids::OpId;
use roundelay_core::schedule::{Op, OpKind, Schedule};

/// A name and the mutants.
pub(crate) type Class = (&'static str, fn(&Schedule) -> Vec<Schedule>);

pub(crate) const CLASSES: &[Class] = &[
    ("delete a post", |s| delete_each(s, |op| op.kind == OpKind::Post)),
    ("delete a wait", |s| delete_each(s, |op| op.kind == OpKind::Wait)),
    ("delete a post and its wait", signals::delete_pairs),
    ("delete a move", |s| delete_each(s, |op| op.kind == OpKind::Move)),
    ("repeat a signal", |s| repeat(s, |op| op.kind != OpKind::Move)),
    ("repeat a move", |s| repeat(s, |op| op.kind == OpKind::Move)),
    ("reduce becomes copy", operands::reduce_to_copy),
    ("copy becomes reduce", operands::copy_to_reduce),
    ("swap sources", operands::swap_sources),
    ("swap slices", operands::swap_slices),
    ("shift one operand", operands::shift_one),
    ("shift all operands", operands::shift_all),
    ("halve all operands", operands::halve_all),
    ("change the peer", operands::change_peer),
    ("redirect a signal", signals::redirect),
    ("change the slot", operands::change_slot),
    ("swap slots", operands::swap_slots),
    ("write scratch early", flows::write_early),
    ("read scratch late", flows::read_late),
    ("merge two channels", flows::merge_channels),
    ("merge two streams", flows::merge_streams),
    ("swap neighbors", flows::swap_neighbors),
    ("swap posts", signals::swap_posts),
    ("round otherwise", operands::round_otherwise),
];

fn repeat(schedule: &Schedule, which: impl Fn(&Op) -> bool) -> Vec<Schedule> {
    each(schedule, which, |m, at| edit(m, at, |list, k| list.insert(k, list[k])))
}

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
    place_streams(schedule);
}

/// Streams follow each other in the op list.
fn place_streams(schedule: &mut Schedule) {
    let mut next = 0;
    for stream in &mut schedule.streams {
        stream.first = OpId(next);
        next += stream.len;
    }
}

pub(crate) fn delete(schedule: &mut Schedule, at: usize) {
    edit(schedule, at, |list, k| {
        list.remove(k);
    });
}

fn delete_each(schedule: &Schedule, which: impl Fn(&Op) -> bool) -> Vec<Schedule> {
    each(schedule, which, delete)
}
