//! One broken schedule for each structural rule: that rule is reported, and no other.

use roundelay_core::ids::{LaneId, OpId, RankId, RegionId, ScratchId};
use roundelay_core::rational::Rat;
use roundelay_core::schedule::{Buffer, OpKind, Schedule, SignalKind, legality};
use roundelay_core::verify::verify;

use crate::proof::schedule;

/// Streams, lanes, scratch, a fold, and a push.
const EVERYTHING: &str = "
algorithm Everything() -> AllGather {
    scratch inbox: 2 like input;
    view unit = output.split(nranks);
    parallel far in 1..nranks {
        let to = peer((rank + far) % nranks);
        let from = peer((rank - far) % nranks);
        from.TxAck();
        to.RxAck();
        copy(local.input, to.unit[rank]);
        to.TxDataSignal();
        from.RxDataSignal();
    }
    copy(local.input, [local.unit[rank], local.inbox[1]]);
    reduce(local.input, local.inbox[1]);
}";

type Break = (&'static str, fn(&mut Schedule));

const BREAKS: &[Break] = &[
    ("ranks", |s| s.root = RankId(s.nranks)),
    ("ranks", |s| s.nranks = 0),
    ("tiling", |s| s.streams[1].first = OpId(0)),
    ("tiling", |s| s.ops.truncate(s.ops.len() - 1)),
    ("stream order", |s| s.streams[1].index = 2),
    ("stream order", |s| s.nranks += 1),
    ("stream order", |s| s.streams[0].rank = RankId(u32::MAX)),
    ("interned", |s| s.channels.push(s.channels[0])),
    ("interned", |s| s.lanes.push(s.lanes[1].clone())),
    ("interned", |s| s.scratch.push(s.scratch[0].clone())),
    ("interned", |s| s.scratch[0].name = "output".into()),
    ("outer lane", |s| s.lanes[0].push(7)),
    ("outer lane", |s| s.lanes.clear()),
    ("buffer", |s| s.regions[0].buffer = Buffer::Scratch(ScratchId(9))),
    ("slot", |s| s.scratch[0].slots = 1),
    ("slot", |s| s.regions[0].slot = 1),
    ("interval", |s| (s.regions[0].lo, s.regions[0].hi) = (Rat::ONE, Rat::ZERO)),
    ("slot width", |s| s.scratch[0].width = Rat::new(1, 2).unwrap()),
    ("ends", |s| s.channels[0].to = RankId(s.nranks)),
    ("signal ends", |s| ends(s, SignalKind::Ack, 0, 0)),
    ("signal ends", |s| ends(s, SignalKind::Fork, 0, 1)),
    ("lane", |s| lane(s, SignalKind::Ack, 9)),
    ("lane", |s| lane(s, SignalKind::Fork, 9)),
    ("lane", |s| lane(s, SignalKind::Join, 0)),
    ("signal shape", |s| first(s, OpKind::Post).finish = true),
    ("channel", |s| first(s, OpKind::Wait).arg = u32::MAX),
    ("own end", |s| {
        let ack = s.channels.iter().position(|c| c.kind == SignalKind::Ack).unwrap() as u32;
        let post =
            |op: &&mut roundelay_core::schedule::Op| op.kind == OpKind::Post && op.arg == ack;
        s.ops.iter_mut().find(post).unwrap().kind = OpKind::Wait;
    }),
    ("fork and join", |s| {
        let fork = s.channels.iter().position(|c| c.kind == SignalKind::Fork).unwrap() as u32;
        let at = |kind| s.ops.iter().position(|op| op.kind == kind && op.arg == fork).unwrap();
        let (post, wait) = (at(OpKind::Post), at(OpKind::Wait));
        s.ops.swap(post, wait);
    }),
    ("operand count", |s| first(s, OpKind::Move).srcs = 9),
    ("operand count", |s| first(s, OpKind::Move).dsts = 0),
    ("operands", |s| first(s, OpKind::Move).arg = u32::MAX),
    ("operand", |s| s.operands[0].rank = RankId(s.nranks)),
    ("operand", |s| s.operands[0].region = RegionId(u32::MAX)),
    ("bounds", |s| {
        let region = s.operands[0].region.index();
        (s.regions[region].lo, s.regions[region].hi) = (Rat::ONE, Rat::whole(2));
    }),
    ("input", |s| s.operands[1].region = s.operands[0].region),
    ("local", |s| (s.operands[0].rank, s.operands[1].rank) = (RankId(1), RankId(1))),
    ("lengths", |s| {
        let region = s.operands[1].region.index();
        s.regions[region].hi = s.regions[region].lo;
    }),
    ("overlap", |s| {
        let op = s.ops.iter().find(|op| op.dsts == 2).copied().unwrap();
        s.operands[op.arg as usize + 2] = s.operands[op.arg as usize + 1];
    }),
    ("slave stream", |s| {
        let first = s.streams[1].first.index();
        s.ops.swap(first, first + 1);
    }),
    ("slave stream", |s| {
        let last = (s.streams[1].first.0 + s.streams[1].len) as usize - 1;
        s.ops.swap(last, last - 1);
    }),
];

fn first(schedule: &mut Schedule, kind: OpKind) -> &mut roundelay_core::schedule::Op {
    schedule.ops.iter_mut().find(|op| op.kind == kind).unwrap()
}

fn ends(schedule: &mut Schedule, kind: SignalKind, from: u32, to: u32) {
    let channel = schedule.channels.iter_mut().find(|c| c.kind == kind).unwrap();
    (channel.from, channel.to) = (RankId(from), RankId(to));
}

fn lane(schedule: &mut Schedule, kind: SignalKind, lane: u32) {
    let channel = schedule.channels.iter_mut().find(|c| c.kind == kind).unwrap();
    channel.lane = LaneId(lane);
}

#[test]
fn each_broken_rule_is_reported_alone() {
    let legal = schedule(EVERYTHING, 3);
    assert_eq!(legality::check(&legal), Ok(()));
    for (rule, broken) in BREAKS {
        let mut schedule = legal.clone();
        broken(&mut schedule);
        let found = legality::check(&schedule).expect_err(rule);
        assert!(found.iter().all(|illegal| illegal.rule == *rule), "{rule}: {found:#?}");
        assert!(verify(&schedule).is_err(), "{rule}");
    }
}
