//! Each rule, broken once: it is that rule that is reported.

use roundelay_core::ids::{LaneId, OpId, RankId, RegionId, SpanId};
use roundelay_core::schedule::legality::check;
use roundelay_core::schedule::rational::Rat;
use roundelay_core::schedule::{Buffer, OpKind, Schedule};

use super::{RING, SLOTS, TWISTED, lay_out};

fn broken(text: &str, nranks: u32, damage: impl FnOnce(&mut Schedule)) -> String {
    let mut schedule = lay_out(text, nranks);
    assert_eq!(check(&schedule), Ok(()));
    damage(&mut schedule);
    check(&schedule).unwrap_err().iter().map(|i| i.rule).collect::<Vec<_>>().join("; ")
}

fn first(schedule: &Schedule, kind: OpKind) -> usize {
    schedule.ops.iter().position(|op| op.kind == kind).unwrap()
}

#[test]
fn every_rule_is_told() {
    let rules = [
        broken(RING, 3, |s| s.root = RankId(3)),
        broken(TWISTED, 3, |s| s.streams[1].index = 2),
        broken(RING, 3, |s| s.streams.truncate(2)),
        broken(RING, 3, |s| s.streams[1].len -= 1),
        broken(RING, 3, |s| s.lanes[0].push(1)),
        broken(TWISTED, 3, |s| {
            let lanes = s.lanes.len() as u32;
            s.channels.iter_mut().find(|c| c.from != c.to).unwrap().lane = LaneId(lanes);
        }),
        broken(SLOTS, 1, |s| {
            let slot = s.regions.iter_mut().find(|r| r.slot == 1).unwrap();
            slot.slot = 2;
        }),
        broken(RING, 3, |s| s.regions[0].base = Rat::ONE),
        broken(RING, 3, |s| {
            let op = first(s, OpKind::Post);
            s.ops[op].arg = 1000;
        }),
        broken(RING, 3, |s| s.operands[0].region = RegionId(1000)),
        broken(RING, 3, |s| {
            let op = first(s, OpKind::Move);
            s.ops[op].dsts = 0;
        }),
        broken(RING, 3, |s| s.operands[0].rank = RankId(3)),
        broken(RING, 3, |s| s.regions[0].hi = Rat::whole(2)),
        broken(RING, 3, |s| {
            let op = s.ops[first(s, OpKind::Move)];
            s.operands[op.arg as usize + 1] = s.operands[op.arg as usize];
        }),
        broken(RING, 3, |s| {
            let op = s.ops[first(s, OpKind::Move)];
            s.operands[op.arg as usize].rank = RankId(1);
            s.operands[op.arg as usize + 1].rank = RankId(2);
        }),
        broken(RING, 3, |s| {
            let fold = *s.ops.iter().find(|op| op.srcs == 2).unwrap();
            s.operands[fold.arg as usize + 1].region = s.operands[0].region;
            let input = s.regions[s.operands[0].region.index()];
            assert_eq!(input.buffer, Buffer::Input);
        }),
        broken(RING, 3, |s| {
            let fold = *s.ops.iter().find(|op| op.srcs == 2).unwrap();
            s.operands[fold.arg as usize + 1] = s.operands[fold.arg as usize + 2];
        }),
        broken(RING, 3, |s| {
            let op = first(s, OpKind::Post);
            s.ops[op].kind = OpKind::Wait;
        }),
    ];
    let expected = [
        "there is at least one rank, and the root is one of them",
        "streams are sorted by rank, numbered from 0, and every rank has a main one",
        "streams are sorted by rank, numbered from 0, and every rank has a main one; \
         streams cover the ops one after the other",
        "streams cover the ops one after the other",
        "lane 0 is the lane outside every `parallel`",
        "channels join ranks that exist, in lanes that exist",
        "regions lie within their slot, and cut no less than nothing",
        "regions lie within their slot, and cut no less than nothing",
        "operands and channels exist",
        "operands and channels exist",
        "a move has 1 to 8 sources and 1 to 8 destinations",
        "operands are of ranks that exist",
        "a region lies within its rank's buffer",
        "the input is never a destination",
        "one operand of a move is on its own rank",
        "the operands of a move are equal in length and cut alike, for every count",
        "destinations of a move are apart from each other and from its sources but the first",
        "a signal is posted by its sender and awaited by its receiver",
    ];
    assert_eq!(rules, expected);
}

#[test]
fn the_op_is_named() {
    let mut schedule = lay_out(RING, 3);
    let wait = first(&schedule, OpKind::Wait);
    schedule.ops[wait].kind = OpKind::Post;
    schedule.ops[wait].at = SpanId(0);
    let illegal = check(&schedule).unwrap_err();
    assert_eq!(illegal[0].op, Some(OpId(wait as u32)));
    assert!(illegal[0].to_string().starts_with(&format!("op {wait} breaks the rule: a signal")));
}
