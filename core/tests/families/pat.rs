//! PAT, an author's algorithm: hops, steps and slots in flight are read from its schedules.

use std::collections::BTreeMap;

use roundelay_core::schedule::{OpKind, Schedule, SignalKind};

use super::pulls::{algorithm, proved, schedule};

const PAT: &str = include_str!("../../../examples/pat.coll");

/// The sends of each rank: how many ranks ahead, grouped into runs between which the rank receives.
fn steps(schedule: &Schedule) -> Vec<Vec<(u32, usize)>> {
    let mut all = Vec::new();
    for stream in &schedule.streams {
        let mut steps: Vec<(u32, usize)> = Vec::new();
        let mut received = true;
        for op in &schedule.ops[stream.first.index()..][..stream.len as usize] {
            match op.kind {
                OpKind::Post if schedule.channel(op).kind == SignalKind::Tail => {
                    let to = schedule.channel(op).to.0;
                    let hop = (to + schedule.nranks - stream.rank.0) % schedule.nranks;
                    if received {
                        steps.push((hop, 0));
                    }
                    let (known, blocks) = steps.last_mut().expect("pushed above");
                    assert_eq!(*known, hop, "one peer a step");
                    *blocks += 1;
                    received = false;
                }
                OpKind::Wait if schedule.channel(op).kind == SignalKind::Tail => received = true,
                _ => {}
            }
        }
        all.push(steps);
    }
    all
}

/// The most blocks that were sent on a link and not received when a sender sent the next, as the program of the
/// sender lets it: credits it holds are blocks that are gone.
fn in_flight(schedule: &Schedule) -> usize {
    let mut most = 0;
    for stream in &schedule.streams {
        let mut out: BTreeMap<u32, usize> = BTreeMap::new();
        for op in &schedule.ops[stream.first.index()..][..stream.len as usize] {
            if op.kind == OpKind::Move {
                continue;
            }
            let channel = schedule.channel(op);
            match (op.kind, channel.kind) {
                (OpKind::Post, SignalKind::Tail) => {
                    let blocks = out.entry(channel.to.0).or_insert(0);
                    *blocks += 1;
                    most = most.max(*blocks);
                }
                (OpKind::Wait, SignalKind::Head) => *out.entry(channel.from.0).or_insert(0) -= 1,
                _ => {}
            }
        }
    }
    most
}

#[test]
fn hops_steps_and_buffers() {
    for nranks in 2..=64_u32 {
        let all = nranks.next_power_of_two();
        for aggregate in [1, 2, 4, 8, 16, 64] {
            let pat = algorithm(PAT, "PatAllGather", &[("aggregate", &aggregate.to_string())]);
            let schedule = schedule(&pat, nranks);
            let roots = aggregate.min(all);
            let far = roots.ilog2() as usize;
            let near = (all / roots).min(nranks) as usize - 1;
            for steps in steps(&schedule) {
                let blocks: usize = steps.iter().map(|(_, blocks)| blocks).sum();
                assert_eq!(blocks as u32, nranks - 1, "every block comes once");
                assert_eq!(steps.len(), far + near, "{nranks} ranks, {aggregate}");
                for (k, (hop, _)) in steps.iter().enumerate().take(far) {
                    assert_eq!(*hop, all >> (k + 1), "far hops come first");
                }
                for (j, (hop, blocks)) in (1..).zip(&steps[far..]) {
                    assert_eq!(*hop, 1 << u32::trailing_zeros(j), "a tree, depth first");
                    assert!(*blocks as u32 <= roots);
                }
            }
            assert!(in_flight(&schedule) as u32 <= roots, "{nranks} ranks, {aggregate}");
        }
    }
}

#[test]
fn any_rank_count() {
    for nranks in 1..=33 {
        for aggregate in ["1", "4", "32"] {
            proved(&algorithm(PAT, "PatAllGather", &[("aggregate", aggregate)]), nranks);
        }
    }
}
