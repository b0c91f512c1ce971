//! Signal elision against the proof: the remaining signals suffice, and none of them is superfluous.

use roundelay_core::ids::{OpId, RankId};
use roundelay_core::layout::Algorithm as _;
use roundelay_core::optimize::elide::{Elided, Unchanged, Why, elide, reasons};
use roundelay_core::schedule::demands::Budget;
use roundelay_core::schedule::{OpKind, Schedule, SignalKind, legality};
use roundelay_core::values::resource::Resource;
use roundelay_core::verify::Callers;
use roundelay_core::verify::{Proof, Reduction, Signals, verify_called};

use crate::optimize::{admitted, algorithms, library, of_library};

const BOTH: [Callers; 2] = [Callers::Each, Callers::One];

fn proved(schedule: &Schedule, callers: Callers, what: &str) -> Proof {
    verify_called(schedule, Signals::default(), callers)
        .unwrap_or_else(|found| panic!("{what}, {callers:?}: {found:#?}"))
}

fn elided(schedule: &Schedule, callers: Callers) -> Elided {
    elide(schedule, callers).unwrap_or_else(|found| panic!("{}: {found:#?}", schedule.algorithm))
}

/// Each op of a kind, in the order of the table.
fn ops(schedule: &Schedule, kind: OpKind) -> Vec<OpId> {
    let of = |at: &usize| schedule.ops[*at].kind == kind;
    (0..schedule.ops.len()).filter(of).map(|at| OpId(at as u32)).collect()
}

/// Without a post and its wait.
fn without(schedule: &Schedule, post: OpId, wait: OpId) -> Schedule {
    let mut less = schedule.clone();
    for at in [post.max(wait), post.min(wait)] {
        let stream = less.stream_of(at).index();
        less.ops.remove(at.index());
        less.streams[stream].len -= 1;
        for later in &mut less.streams[stream + 1..] {
            later.first.0 -= 1;
        }
    }
    less
}

#[test]
fn the_ring_keeps_what_it_must() {
    for nranks in 3..=33 {
        let ring = of_library("RingAllReduce", nranks);
        let few = elided(&ring, Callers::Each);
        assert!(few.least);
        for rank in (0..nranks).map(RankId) {
            let waits = |kind| few.waits(rank, kind);
            let kept = (waits(SignalKind::Ack), waits(SignalKind::Data));
            assert_eq!(kept, (2 * (nranks as usize - 1), 1), "rank {rank} of {nranks}");
        }
        let n = nranks as usize;
        assert_eq!(few.between_ranks(), (n * (2 * n - 1), n * (2 * n - 3)));
        let one = elided(&ring, Callers::One);
        // No rank leaves before all have ended: no signal of that is needed.
        assert_eq!(one.between_ranks().0, n * (2 * n - 2), "{nranks}");
    }
}

#[test]
fn the_ring_says_why() {
    let few = elided(&of_library("RingAllReduce", 4), Callers::Each);
    let all: Vec<_> = reasons(&few)
        .into_iter()
        .map(|r| format!("{} {} x{}: {}", r.line, r.signal, r.times, r.why))
        .collect();
    expect_test::expect![[r#"
        25 TxAck x8: rank 3 writes its output at line 27, then rank 0 reads it at line 27
        25 TxAck x4: rank 3 writes its output at line 21, then rank 0 reads it at line 27
        33 TxAck x8: rank 3 writes its output at line 35, then rank 0 reads it at line 35
        33 TxAck x4: rank 3 writes its output at line 27, then rank 0 reads it at line 35
        36 TxDataSignal x4: rank 1 reads rank 0's output at line 35, then rank 0's caller returns"#]].assert_eq(&all.join("\n"));
}

#[test]
fn what_is_left_of_the_library_is_proved() {
    for algorithm in library() {
        for nranks in 1..=17 {
            let Some(schedule) = admitted(&algorithm, nranks) else { continue };
            for callers in BOTH {
                let what = format!("{} at {nranks} ranks", algorithm.name());
                let before = proved(&schedule, callers, &what);
                let few = elided(&schedule, callers);
                assert_eq!(few.unchanged, None, "{what}");
                assert_eq!(legality::check(&few.schedule), Ok(()), "{what}");
                let after = proved(&few.schedule, callers, &what);
                same(&schedule, &before, &few.schedule, &after, &what);
                let waits = |s: &Schedule| ops(s, OpKind::Wait).len();
                assert_eq!(few.kept.len() + few.dropped, waits(&schedule), "{what}");
                assert_eq!(few.kept.len(), waits(&few.schedule), "{what}");
                let again = elided(&few.schedule, callers);
                assert_eq!((again.dropped, &again.schedule), (0, &few.schedule), "{what}");
            }
        }
    }
}

/// Asserts that moves and their proofs are equal, except for their places.
fn same(a: &Schedule, before: &Proof, b: &Schedule, after: &Proof, what: &str) {
    let moves = [ops(a, OpKind::Move), ops(b, OpKind::Move)];
    let plain = |s: &Schedule, moves: &[OpId]| moves.iter().map(|m| *s.op(*m)).collect::<Vec<_>>();
    assert_eq!(plain(a, &moves[0]), plain(b, &moves[1]), "{what}");
    assert_eq!((&a.operands, &a.regions), (&b.operands, &b.regions), "{what}");
    let rank = |moves: &[OpId], finish: &[OpId]| {
        let mut all: Vec<_> = finish.iter().map(|op| moves.binary_search(op)).collect();
        all.sort_unstable();
        all
    };
    assert_eq!(rank(&moves[0], &before.finish), rank(&moves[1], &after.finish), "{what}");
    let rest = |p: &Proof| (p.scale_outputs, p.in_place, p.reduce_depth);
    assert_eq!(rest(before), rest(after), "{what}");
    let trees = |p: &Proof| p.reduction.as_ref().map(Reduction::in_every_mode);
    assert_eq!(trees(before), trees(after), "{what}");
}

#[test]
fn no_signal_is_left_that_is_not_needed() {
    for algorithm in library() {
        for nranks in 2..=5 {
            let Some(schedule) = admitted(&algorithm, nranks) else { continue };
            for callers in BOTH {
                let few = elided(&schedule, callers);
                let what = format!("{} at {nranks} ranks, {callers:?}", algorithm.name());
                assert!(few.least, "{what}");
                for kept in few.kept.iter().filter(|kept| kept.why != Why::Stream) {
                    let less = without(&few.schedule, kept.post, kept.wait);
                    assert_eq!(legality::check(&less), Ok(()), "{what}");
                    let verdict = verify_called(&less, Signals::default(), callers);
                    assert!(verdict.is_err(), "{what}: {kept:?} is not needed");
                }
            }
        }
    }
}

#[test]
fn a_caller_for_each_keeps_what_one_does_not_need() {
    let mut fewer = 0;
    for algorithm in library() {
        let Some(schedule) = admitted(&algorithm, 8) else { continue };
        let [each, one] = BOTH.map(|callers| elided(&schedule, callers).between_ranks().0);
        assert!(one <= each, "{}: {one} and {each}", algorithm.name());
        fewer += usize::from(one < each);
        let one = elided(&schedule, Callers::One);
        let ends = |why| {
            matches!(why, Why::Enter { .. } | Why::Exit { .. } | Why::Conflict { across: true, .. })
        };
        assert!(one.kept.iter().all(|kept| !ends(kept.why)), "{}", algorithm.name());
    }
    assert!(fewer > 20, "{fewer}");
}

/// A barrier tells the ranks that may pull: the signal of the seventh rank on the left comes by way of two ranks that
/// do not need it.
const BY_BARRIER: &str = include_str!("by_barrier.coll");

#[test]
fn what_others_pass_on_is_found() {
    for nranks in [8, 16, 32] {
        let schedule = admitted(&algorithms("test", BY_BARRIER)[0], nranks).expect("it fits");
        proved(&schedule, Callers::Each, "barriers");
        for callers in BOTH {
            let few = elided(&schedule, callers);
            proved(&few.schedule, callers, "elided barriers");
            let (kept, dropped) = few.between_ranks();
            let all = usize::try_from(nranks * nranks * nranks.ilog2()).expect("few");
            assert_eq!(kept + dropped, all);
            // Seven is one, two and four: three words a round, of all that the barrier says.
            let three = usize::try_from(nranks * nranks * 3).expect("few");
            assert!(few.least && kept <= three, "{nranks}: {kept} of {all}");
        }
    }
}

#[test]
fn what_is_not_ordered_is_refused() {
    let ring = of_library("RingAllReduce", 4);
    let few = elided(&ring, Callers::Each);
    for kept in few.kept.iter().step_by(5) {
        let less = without(&few.schedule, kept.post, kept.wait);
        let found = elide(&less, Callers::Each).expect_err("it races");
        let proof = verify_called(&less, Signals::default(), Callers::Each).expect_err("it races");
        assert_eq!(found, proof);
    }
    let mut stuck = ring.clone();
    let post = ops(&stuck, OpKind::Post)[0];
    stuck.ops[post.index()].kind = OpKind::Wait;
    assert!(elide(&stuck, Callers::Each).is_err(), "a wait too many");
}

#[test]
fn what_counts_steps_or_is_too_large_stays_and_says_so() {
    let ring = of_library("RingAllReduce", 4);
    for resource in Resource::ALL {
        let mut schedule = ring.clone();
        let at = schedule.ops[0].at;
        schedule.demands.budgets.push(Budget { resource, most: 9, at });
        let few = elided(&schedule, Callers::Each);
        let stays = matches!(resource, Resource::Ports | Resource::Fifo);
        assert_eq!(few.unchanged, stays.then_some(Unchanged::Budget(resource)));
        assert_eq!(few.dropped == 0, stays, "{resource}");
        assert_eq!(few.schedule == schedule, stays, "{resource}");
    }
    let text = "algorithm Far(root: Rank = 0) -> Broadcast {
        if rank == root { copy(local.input, local.output); }
        peer((rank + 1) % nranks).TxAck();
        peer((rank - 1) % nranks).RxAck();
    }";
    let far = admitted(&algorithms("test", text)[0], 17_000).expect("it fits");
    let few = elided(&far, Callers::One);
    assert_eq!((few.unchanged, few.dropped, few.kept.len()), (Some(Unchanged::TooMuch), 0, 17_000));
    assert_eq!(few.schedule, far);
}

/// Two ways lead to rank 2: a short one from before rank 0 writes, and a long one from after.
const RELAY: &str = "
algorithm Relay(root: Rank = 0) -> Broadcast {
    if rank == root { peer(1).TxAck(); copy(local.input, local.output); peer(3).TxAck(); }
    if rank == 1 { peer(0).RxAck(); peer(2).TxAck(); }
    if rank == 3 { peer(0).RxAck(); peer(4).TxAck(); }
    if rank == 4 { peer(3).RxAck(); peer(2).TxAck(); }
    if rank == 2 { peer(1).RxAck(); peer(4).RxAck(); copy(peer(0).output, local.output); }
}";

#[test]
fn a_way_begins_after_what_it_tells_of() {
    let relay = admitted(&algorithms("test", RELAY)[0], 5).expect("it fits");
    let few = elided(&relay, Callers::One);
    assert_eq!(few.between_ranks(), (3, 2));
    let waits = [0, 1, 2, 3, 4].map(|rank| few.waits(RankId(rank), SignalKind::Ack));
    assert_eq!(waits, [0, 0, 1, 1, 1], "by way of ranks 3 and 4");
}
