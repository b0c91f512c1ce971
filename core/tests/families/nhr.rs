//! NHR: the slices that each rank pulls in each step, and their sources, against the tables and the closed form.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use roundelay_core::check::Frontend;
use roundelay_core::collective::Collective;
use roundelay_core::compile;
use roundelay_core::layout::{Algorithm as _, Configured};
use roundelay_core::optimize::join;
use roundelay_core::program::CompiledSource;
use roundelay_core::rational::Rat;
use roundelay_core::schedule::{Buffer, Op, OpKind, Operand, Schedule, SignalKind, Stream};
use roundelay_core::syntax::Source;
use roundelay_core::verify::verify;

const NHR: &str = include_str!("../../../stdlib/library/nhr.coll");

fn algorithm(name: &str, set: &[(&str, &str)]) -> Configured {
    static PROGRAM: LazyLock<(Source, CompiledSource)> = LazyLock::new(|| {
        let source = Source::from_text("nhr.coll", NHR);
        let program = compile(&source, Frontend::File).expect("the library compiles");
        (source, program)
    });
    let (source, program) = &*PROGRAM;
    let found = program.algorithms.iter().find(|a| a.name == name);
    let mut algorithm = Configured::new(found.expect("it is in the file").clone(), source);
    for (name, value) in set {
        algorithm.set_text(name, value).expect("a value that fits");
    }
    algorithm
}

fn schedule(name: &str, nranks: u32, set: &[(&str, &str)]) -> Schedule {
    algorithm(name, set).schedule(nranks).expect("every rank count is admitted")
}

/// The pull of one rank in one step: slices in order of their numbers; the rank of its owner for a whole buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Pull {
    from: u32,
    slices: Vec<u32>,
    adds: bool,
}

/// All pulls of each rank in order, one entry for each step in which it pulls.
///
/// A step begins where a rank waits for an ack. The contents of a scratch slot follow from the pull that filled it: so
/// pulls are followed in the order in which they run, and a slot that was never filled is not read.
fn pulls(schedule: &Schedule) -> Vec<Vec<Pull>> {
    let n = schedule.nranks;
    let mut slots: BTreeMap<(u32, u32), u32> = BTreeMap::new();
    let mut all = vec![Vec::new(); n as usize];
    let mut next: Vec<usize> = schedule.streams.iter().map(|s| s.first.index()).collect();
    let mut posted = vec![0_u64; schedule.channels.len()];
    let mut waited = posted.clone();
    assert_eq!(next.len(), n as usize, "one stream a rank");
    // The slice that an operand is.
    let slice = |slots: &BTreeMap<(u32, u32), u32>, operand: Operand| {
        let region = schedule.region(operand);
        if let Buffer::Scratch(_) = region.buffer {
            return slots[&(operand.rank.0, region.slot)];
        }
        let units = schedule.units(region.buffer, operand.rank);
        let length = region.hi.minus(region.lo).unwrap();
        let buffer_of_one = units == Rat::ONE && length == Rat::ONE;
        if buffer_of_one {
            // A whole buffer of an AllReduce; else the output of a ReduceScatter or a Scatter, or the input of an
            // AllGather: the rank's own slice.
            let shared = schedule.collective == Collective::AllReduce;
            return if shared { 0 } else { operand.rank.0 };
        }
        let parts = u64::from(n) * units.den() / units.num();
        assert_eq!((length.num() * parts, region.lo.den()), (length.den(), region.lo.den()));
        (region.lo.num() * parts / region.lo.den()) as u32
    };
    loop {
        let mut moved = false;
        for (rank, stream) in schedule.streams.iter().enumerate() {
            while next[rank] < stream.first.index() + stream.len as usize {
                let op = &schedule.ops[next[rank]];
                match op.kind {
                    OpKind::Post => posted[op.arg as usize] += 1,
                    OpKind::Wait if waited[op.arg as usize] == posted[op.arg as usize] => break,
                    OpKind::Wait => {
                        waited[op.arg as usize] += 1;
                        let channel = schedule.channel(op);
                        if channel.kind == SignalKind::Ack {
                            let from = channel.from.0;
                            all[rank].push(Pull { from, slices: Vec::new(), adds: false });
                        }
                    }
                    OpKind::Move => {
                        let srcs = schedule.srcs(op);
                        let dst = schedule.dsts(op)[0];
                        let far = srcs.iter().find(|src| src.rank.0 != rank as u32);
                        assert_eq!(dst.rank.0, rank as u32, "NHR pulls");
                        // Before the first step whole buffers are copied.
                        if let Some(&far) = far {
                            let found = slice(&slots, far);
                            let pull: &mut Pull = all[rank].last_mut().expect("an ack first");
                            assert_eq!(far.rank.0, pull.from, "one peer a step");
                            pull.slices.push(found);
                            pull.adds = srcs.len() > 1;
                            if srcs.len() > 1 {
                                assert_eq!(slice(&slots, dst), found, "slices meet their like");
                            }
                        }
                        let region = schedule.region(dst);
                        if let Buffer::Scratch(_) = region.buffer {
                            let of = slice(&slots, far.copied().unwrap_or(srcs[0]));
                            slots.insert((dst.rank.0, region.slot), of);
                        }
                    }
                }
                next[rank] += 1;
                moved = true;
            }
        }
        if !moved {
            break;
        }
    }
    for pull in all.iter_mut().flatten() {
        pull.slices.sort_unstable();
    }
    all
}

/// A step as the tables write it: `a->b[x,y]`, by sender.
fn table(pulls: &[Vec<Pull>], step: usize) -> String {
    let mut sends: Vec<(u32, String)> = Vec::new();
    for (to, steps) in pulls.iter().enumerate() {
        let Pull { from, slices, .. } = &steps[step];
        let slices: Vec<_> = slices.iter().map(u32::to_string).collect();
        sends.push((*from, format!("{from}->{to}[{}]", slices.join(","))));
    }
    sends.sort();
    sends.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join(" ")
}

fn steps(nranks: u32) -> u32 {
    nranks.next_power_of_two().ilog2()
}

/// The closed form of step k: how far the peers are, and which slices move, seen from the rank that gets them.
fn reduce_scatter(nranks: u32, rank: u32, k: u32) -> Pull {
    let at = |i: u32| (i64::from(rank) - i64::from(i << (k + 1))).rem_euclid(nranks.into()) as u32;
    let mut slices: Vec<_> = (0..count(nranks, k)).map(at).collect();
    slices.sort_unstable();
    Pull { from: (rank + (1 << k)) % nranks, slices, adds: true }
}

fn all_gather(nranks: u32, rank: u32, k: u32) -> Pull {
    let from = (i64::from(rank) - (1 << k)).rem_euclid(nranks.into()) as u32;
    Pull { from, adds: false, ..reduce_scatter(nranks, from, k) }
}

fn count(nranks: u32, k: u32) -> u32 {
    (nranks - 1 + (1 << k)) >> (k + 1)
}

#[test]
fn the_tables_for_four_ranks() {
    let expected = [
        "0->3[1,3] 1->0[0,2] 2->1[1,3] 3->2[0,2]",
        "0->2[2] 1->3[3] 2->0[0] 3->1[1]",
        "0->2[0] 1->3[1] 2->0[2] 3->1[3]",
        "0->1[0,2] 1->2[1,3] 2->3[0,2] 3->0[1,3]",
    ];
    let all = pulls(&schedule("NhrAllReduce", 4, &[]));
    let scatter = pulls(&schedule("NhrReduceScatter", 4, &[]));
    let gather = pulls(&schedule("NhrAllGather", 4, &[]));
    for (s, row) in expected.into_iter().enumerate() {
        assert_eq!(table(&all, s), row);
        assert_eq!(table(if s < 2 { &scatter } else { &gather }, s % 2), row);
    }
    let reordered = [
        "0->3[2,3] 1->0[0,1] 2->1[2,3] 3->2[0,1]",
        "0->2[1] 1->3[3] 2->0[0] 3->1[2]",
        "0->2[0] 1->3[2] 2->0[1] 3->1[3]",
        "0->1[0,1] 1->2[2,3] 2->3[0,1] 3->0[2,3]",
    ];
    let all = pulls(&schedule("NhrAllReduce", 4, &[("reorder", "true")]));
    for (s, row) in reordered.into_iter().enumerate() {
        assert_eq!(table(&all, s), row);
    }
}

#[test]
fn the_table_for_five_ranks() {
    let reordered = [
        "0->4[1,2] 1->0[0,4] 2->1[2,3] 3->2[0,1] 4->3[3,4]",
        "0->3[4] 1->4[2] 2->0[0] 3->1[3] 4->2[1]",
        "0->1[3] 1->2[1] 2->3[4] 3->4[2] 4->0[0]",
    ];
    let all = pulls(&schedule("NhrAllReduce", 5, &[("reorder", "true")]));
    assert!(all.iter().all(|steps| steps.len() == 6));
    for (s, row) in reordered.into_iter().enumerate() {
        assert_eq!(table(&all, s), row);
        // The all-gather is the mirror: a rank that sent gets back.
        for rank in 0..5 {
            let up = &all[rank][s];
            let back = &all[up.from as usize][5 - s];
            assert_eq!((back.from as usize, &back.slices), (rank, &up.slices));
        }
    }
    assert!(table(&all, 5).starts_with("0->1[0,4] "));
}

#[test]
fn two_phases_are_the_closed_form() {
    for n in 2..=64 {
        let all = pulls(&schedule("NhrAllReduce", n, &[]));
        let scatter = pulls(&schedule("NhrReduceScatter", n, &[]));
        let gather = pulls(&schedule("NhrAllGather", n, &[]));
        for rank in 0..n {
            let down: Vec<_> = (0..steps(n)).map(|k| reduce_scatter(n, rank, k)).collect();
            let up: Vec<_> = (0..steps(n)).rev().map(|k| all_gather(n, rank, k)).collect();
            let at = rank as usize;
            assert_eq!(scatter[at], down, "ReduceScatter, rank {rank} of {n}");
            assert_eq!(gather[at], up, "AllGather, rank {rank} of {n}");
            assert_eq!(all[at], [down, up].concat(), "AllReduce, rank {rank} of {n}");
        }
        one_peer_each_way(&all, n);
    }
}

/// In every step each rank is pulled from once; and (n - 1)/n of the data come in a phase.
fn one_peer_each_way(all: &[Vec<Pull>], n: u32) {
    let phase = steps(n) as usize;
    for step in 0..2 * phase {
        let mut senders: Vec<_> = all.iter().map(|steps| steps[step].from).collect();
        senders.sort_unstable();
        assert_eq!(senders, (0..n).collect::<Vec<_>>(), "step {step} of {n} ranks");
    }
    for rank in all {
        for half in [&rank[..phase], &rank[phase..]] {
            assert_eq!(half.iter().map(|pull| pull.slices.len()).sum::<usize>(), n as usize - 1);
        }
    }
}

/// Moves of each rank between two signals of its stream that read from another rank, in order.
fn pieces(schedule: &Schedule) -> Vec<Vec<usize>> {
    let of_stream = |stream: &Stream| {
        let ops = &schedule.ops[stream.first.index()..][..stream.len as usize];
        let runs = ops.split(|op| op.kind != OpKind::Move);
        let remote = |op: &&Op| schedule.srcs(op).iter().any(|src| src.rank != stream.rank);
        runs.map(|run| run.iter().filter(remote).count()).filter(|count| *count > 0).collect()
    };
    schedule.streams.iter().map(of_stream).collect()
}

/// Only the places of slices change, and for powers of two (and 6, 12, 24) every message is one run.
#[test]
fn reordering_moves_places_and_nothing_else() {
    let runs = |pull: &Pull| 1 + pull.slices.windows(2).filter(|w| w[0] + 1 != w[1]).count();
    for n in 2..=64 {
        let plain = pulls(&schedule("NhrAllReduce", n, &[]));
        let reordered = schedule("NhrAllReduce", n, &[("reorder", "true")]);
        let moved = pulls(&reordered);
        let expected: Vec<Vec<_>> = moved.iter().map(|of| of.iter().map(runs).collect()).collect();
        assert_eq!(pieces(&join(&reordered)), expected, "{n} ranks: a move for each run, joined");
        let map = places(n);
        for (plain, moved) in plain.iter().flatten().zip(moved.iter().flatten()) {
            let mut slices: Vec<_> = plain.slices.iter().map(|s| map[*s as usize]).collect();
            slices.sort_unstable();
            assert_eq!(*moved, Pull { slices, ..plain.clone() }, "{n} ranks");
        }
        one_peer_each_way(&moved, n);
        let reduce_scatter = || moved.iter().flat_map(|steps_of| &steps_of[..steps(n) as usize]);
        let (most, broken) = (
            reduce_scatter().map(runs).max().unwrap(),
            reduce_scatter().filter(|pull| runs(pull) > 1).count(),
        );
        if n.is_power_of_two() || [6, 12, 24].contains(&n) {
            assert_eq!(most, 1, "{n} ranks");
        }
        match n {
            5 => assert_eq!((most, broken), (2, 1)),
            33 => assert_eq!(most, 8),
            _ => {}
        }
        let all = |all: &[Vec<Pull>]| all.iter().flatten().map(runs).sum::<usize>();
        assert!(n < 4 || all(&moved) < all(&plain), "fewer runs for {n}");
    }
}

/// The order by its definition: parts split into even and odd positions while a step moves two slices or more.
fn places(n: u32) -> Vec<u32> {
    let mut parts = vec![(0..n).collect::<Vec<_>>()];
    for _ in (0..).take_while(|k| count(n, *k) > 1) {
        let odd = parts.iter().any(|part| part.len() % 2 == 1);
        let halves = |part: &Vec<u32>| {
            [0, 1].map(|from| part.iter().copied().skip(from).step_by(2).collect::<Vec<_>>())
        };
        parts = parts.iter().flat_map(halves).collect();
        if odd {
            break;
        }
    }
    let mut map = vec![0; n as usize];
    for (place, slice) in parts.into_iter().flatten().enumerate() {
        map[slice as usize] = place as u32;
    }
    map
}

/// Every block walks down by the bits of its distance from the root, and the root sends each once.
#[test]
fn scatter_sends_what_it_holds() {
    for n in 2..=64 {
        for root in roots(n) {
            let set = [("root", &*root.to_string())];
            let all = pulls(&schedule("NhrScatter", n, &set));
            let broadcast = pulls(&schedule("NhrBroadcast", n, &set));
            let mut sent = 0;
            for rank in 0..n {
                let expected: Vec<_> = scatter(n, root, rank).into_iter().collect();
                assert_eq!(all[rank as usize], expected, "rank {rank} of {n}, root {root}");
                let first = expected.len();
                assert_eq!(broadcast[rank as usize][..first], expected, "rank {rank} of {n}");
                for (pull, k) in broadcast[rank as usize][first..].iter().zip((0..steps(n)).rev()) {
                    // The root has all, and pulls nothing.
                    let gathered = all_gather(n, rank, k);
                    let slices = if rank == root { vec![] } else { gathered.slices.clone() };
                    assert_eq!(*pull, Pull { slices, ..gathered }, "rank {rank} of {n}");
                }
                assert_eq!(broadcast[rank as usize].len(), first + steps(n) as usize);
                let roots = expected.iter().filter(|pull| pull.from == root);
                sent += roots.map(|pull| pull.slices.len()).sum::<usize>();
                assert!(expected.iter().all(|pull| {
                    // A rank holds the slices that it pulled, the root all.
                    let of = &all[pull.from as usize];
                    let holds = |s| of.iter().any(|pull| pull.slices.contains(s));
                    pull.from == root || pull.slices.iter().all(holds)
                }));
            }
            assert_eq!(sent, n as usize - 1, "{n} ranks, root {root}");
        }
    }
}

/// Returns the pull of `rank` in a Scatter: the slices whose route from the root leads through it, by walking each.
fn scatter(n: u32, root: u32, rank: u32) -> Option<Pull> {
    let mut pull: Option<Pull> = None;
    for slice in 0..n {
        let far = (root + n - slice) % n;
        let mut at = root;
        for k in (0..steps(n)).filter(|k| far >> k & 1 == 1) {
            let to = (at + n - (1 << k)) % n;
            if to == rank {
                let none = || Pull { from: at, slices: Vec::new(), adds: false };
                let pull = pull.get_or_insert_with(none);
                assert_eq!(pull.from, at, "one route");
                pull.slices.push(slice);
            }
            at = to;
        }
        assert_eq!(at, slice, "the route ends at the owner");
    }
    pull
}

fn roots(n: u32) -> Vec<u32> {
    let mut roots = vec![0, 1, n / 2, n - 1];
    roots.dedup();
    roots
}

/// Whole buffers: in step k the ranks whose distance from the root has bit k as its lowest send, and get back.
#[test]
fn one_shot_is_one_tree_up_and_down() {
    for n in 2..=64 {
        for root in roots(n) {
            let all = pulls(&schedule("NhrOneShotAllReduce", n, &[("root", &root.to_string())]));
            for rank in 0..n {
                let over = (rank + n - root) % n;
                let lowest = if over == 0 { steps(n) } else { over.trailing_zeros() };
                let mut expected: Vec<_> = (0..lowest)
                    .filter(|k| over + (1 << k) < n)
                    .map(|k| ((rank + (1 << k)) % n, true))
                    .collect();
                if over != 0 {
                    expected.push(((rank + n - (1 << lowest)) % n, false));
                }
                let found: Vec<_> = all[rank as usize].iter().map(|p| (p.from, p.adds)).collect();
                assert_eq!(found, expected, "rank {rank} of {n}, root {root}");
                assert!(all[rank as usize].iter().all(|pull| pull.slices.len() == 1));
            }
        }
    }
}

/// Volume by the schedule's own intervals: n - 1 slices leave and reach each port in a phase.
#[test]
fn the_busiest_port_carries_the_bound() {
    for n in 2..=64 {
        let slices = f64::from(n - 1);
        let port = |name| schedule(name, n, &[]).busiest_port();
        let all = [port("NhrAllReduce"), port("NhrBroadcast")];
        assert!((all[0] - 2.0 * slices / f64::from(n)).abs() < 1e-9, "{n}: {}", all[0]);
        assert!(all[1] < all[0] + 1e-9, "{n}: {}", all[1]);
        for name in ["NhrReduceScatter", "NhrAllGather", "NhrScatter"] {
            assert!((port(name) - slices).abs() < 1e-9, "{name} at {n}: {}", port(name));
        }
        assert!(port("NhrOneShotAllReduce") <= f64::from(steps(n)) + 1e-9);
    }
}

#[test]
fn proved_for_all_rank_counts_roots_and_orders_of_slices() {
    for n in 1..=33 {
        let mut cases = vec![
            schedule("NhrAllReduce", n, &[]),
            schedule("NhrAllReduce", n, &[("reorder", "true")]),
            schedule("NhrReduceScatter", n, &[]),
            schedule("NhrAllGather", n, &[]),
        ];
        let every: Vec<_> = if n <= 9 { (0..n).collect() } else { roots(n) };
        for root in every {
            for name in ["NhrScatter", "NhrBroadcast", "NhrOneShotAllReduce"] {
                cases.push(schedule(name, n, &[("root", &root.to_string())]));
            }
        }
        for case in cases {
            assert!(!case.out_of_place);
            let proof = verify(&case);
            assert!(proof.is_ok(), "{} at {n}, root {}: {proof:#?}", case.algorithm, case.root.0);
        }
    }
}
