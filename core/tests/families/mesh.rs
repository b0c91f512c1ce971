//! The mesh, recursive doubling, Bruck's algorithms and pairwise exchange: the partners of a rank in each step, and the
//! blocks that arrive.

use roundelay_core::check::Frontend;
use roundelay_core::compile;
use roundelay_core::diagnostics::Code;
use roundelay_core::ids::RankId;
use roundelay_core::layout::{Algorithm as _, Configured};
use roundelay_core::rational::Rat;
use roundelay_core::schedule::{Buffer, OpKind, Schedule};
use roundelay_core::syntax::Source;
use roundelay_core::verify::verify;

use crate::families::pulls::{Pull, algorithm, proved, pulls, schedule};

const MESH: &str = include_str!("../../../stdlib/library/mesh.coll");
const DOUBLING: &str = include_str!("../../../stdlib/library/doubling.coll");
const BRUCK: &str = include_str!("../../../stdlib/library/bruck.coll");
const PAIRWISE: &str = include_str!("../../../stdlib/library/pairwise.coll");

/// Returns the pulls of each rank, on its only stream.
fn of_ranks(schedule: &Schedule) -> Vec<Vec<Pull>> {
    let ranks = pulls(schedule).into_iter();
    ranks.map(|streams| <[_; 1]>::try_from(streams).expect("one stream").into()).map(one).collect()
}

fn one(only: Vec<Vec<Pull>>) -> Vec<Pull> {
    only.into_iter().flatten().collect()
}

/// Every rank's pulls at 2..=64 ranks, as `want(nranks, rank)` says.
fn pulls_are(text: &str, name: &str, want: impl Fn(i64, i64) -> Vec<Pull>) {
    let algorithm = algorithm(text, name, &[]);
    let mut met = 0;
    for nranks in 2..=64 {
        let Ok(schedule) = algorithm.schedule(nranks) else { continue };
        met += 1;
        for (rank, got) in of_ranks(&schedule).into_iter().enumerate() {
            assert_eq!(got, want(nranks.into(), rank as i64), "{name}, rank {rank} of {nranks}");
        }
    }
    assert!(met >= 6, "{name}: {met} rank counts");
}

/// Block `i` of a buffer of one unit, cut by the ranks; or unit `i`.
fn shard(from: i64, i: i64, n: i64, reduces: bool) -> Pull {
    Pull::piece(from, i, Rat::whole(n as u64), reduces)
}

fn unit(from: i64, i: i64, reduces: bool) -> Pull {
    Pull::piece(from, i, Rat::whole(1), reduces)
}

fn log(n: i64) -> i64 {
    (n as u64).ilog2().into()
}

fn ceil_log(n: i64) -> i64 {
    (n as u64).next_power_of_two().ilog2().into()
}

#[test]
fn every_algorithm_is_proved_and_its_busiest_port_carries_what_the_formula_says() {
    let pow = |n: i64| n & (n - 1) == 0;
    // Shares of the count through the busiest port, times n.
    type Volume = fn(i64) -> i64;
    let table: [(&str, &str, bool, Volume); 13] = [
        (MESH, "MeshAllReduce", false, |n| 2 * (n - 1)),
        (MESH, "OneShotMeshAllReduce", false, |n| n * (n - 1)),
        (MESH, "MeshReduceScatter", false, |n| n * (n - 1)),
        (MESH, "MeshAllGather", false, |n| n * (n - 1)),
        (MESH, "MeshAllToAll", false, |n| n * (n - 1)),
        (MESH, "MeshScatter", false, |n| n * (n - 1)),
        (MESH, "MeshGather", false, |n| n * (n - 1)),
        (DOUBLING, "RecursiveDoublingAllReduce", true, |n| n * log(n)),
        (DOUBLING, "RecursiveDoublingAllGather", true, |n| n * (n - 1)),
        (BRUCK, "BruckAllGather", false, |n| n * (n - 1)),
        // Every block moves once for each bit of its distance.
        (BRUCK, "BruckAllToAll", false, |n| {
            n * (1..n).map(|j| i64::from(j.count_ones())).sum::<i64>()
        }),
        (PAIRWISE, "PairwiseAllToAll", false, |n| n * (n - 1)),
        (PAIRWISE, "PairwiseReduceScatter", false, |n| n * (n - 1)),
    ];
    for (text, name, powers, volume) in table {
        let algorithm = algorithm(text, name, &[]);
        for nranks in 1..=33_u32 {
            let n = i64::from(nranks);
            if powers && !pow(n) {
                let refused = algorithm.schedule(nranks).expect_err("no power of two");
                assert_eq!(refused[0].code, Code::RankCountRefused, "{name}");
                continue;
            }
            proved(&algorithm, nranks);
            let schedule = schedule(&algorithm, nranks);
            let want = Rat::new(volume(n) as u64, n as u64).unwrap();
            assert_eq!(busiest(&schedule), want, "{name} at {nranks}");
        }
    }
}

/// The most that any rank receives or sends, in units.
fn busiest(schedule: &Schedule) -> Rat {
    let mut ports = vec![[Rat::whole(0); 2]; schedule.nranks as usize];
    let mut add = |rank: RankId, way: usize, units: Rat| {
        let port = &mut ports[rank.index()][way];
        *port = port.plus(units).unwrap();
    };
    for op in schedule.ops.iter().filter(|op| op.kind == OpKind::Move) {
        let [dst] = schedule.dsts(op) else { panic!("one destination") };
        for src in schedule.srcs(op).iter().filter(|src| src.rank != dst.rank) {
            let region = schedule.region(*src);
            let units = region.hi.minus(region.lo).unwrap();
            add(src.rank, 0, units);
            add(dst.rank, 1, units);
        }
    }
    ports.into_iter().flatten().max().unwrap()
}

#[test]
fn on_a_mesh_round_d_is_distance_d() {
    pulls_are(MESH, "MeshAllReduce", |n, rank| {
        let reduced = (1..n).map(|d| shard((rank + d) % n, rank, n, true));
        let fetched = (1..n).map(|d| shard((rank + d) % n, (rank + d) % n, n, false));
        reduced.chain(fetched).collect()
    });
    pulls_are(MESH, "MeshAllGather", |n, rank| {
        (1..n).map(|d| unit((rank + d) % n, (rank + d) % n, false)).collect()
    });
    pulls_are(MESH, "MeshAllToAll", |n, rank| {
        (1..n).map(|d| unit((rank + d) % n, (rank + d) % n, false)).collect()
    });
    // The input's block is copied to the output before.
    pulls_are(MESH, "MeshReduceScatter", |n, rank| {
        (1..n).map(|d| unit((rank + d) % n, rank, true)).collect()
    });
}

#[test]
fn one_shot_reduces_in_rank_order_on_every_rank() {
    let algorithm = algorithm(MESH, "OneShotMeshAllReduce", &[]);
    for nranks in 2..=64 {
        let schedule = schedule(&algorithm, nranks);
        for (rank, got) in of_ranks(&schedule).iter().enumerate() {
            let from: Vec<_> = got.iter().map(|pull| pull.from).collect();
            let n = i64::from(nranks);
            assert_eq!(from, (1..n).map(|d| (rank as i64 + d) % n).collect::<Vec<_>>());
        }
        // The slots that are folded into each output, in order.
        for stream in &schedule.streams {
            let ops = &schedule.ops[stream.first.index()..][..stream.len as usize];
            let to_output = ops.iter().filter(|op| {
                op.kind == OpKind::Move
                    && schedule.region(schedule.dsts(op)[0]).buffer == Buffer::Output
            });
            let slots: Vec<_> = to_output
                .map(|op| schedule.region(*schedule.srcs(op).last().unwrap()).slot)
                .collect();
            assert_eq!(slots, (0..nranks).rev().collect::<Vec<_>>());
        }
    }
}

#[test]
fn every_root_scatters_and_gathers_in_one_step() {
    for (name, reads) in [("MeshScatter", true), ("MeshGather", false)] {
        for nranks in [1_u32, 2, 3, 5, 8, 16] {
            for root in 0..nranks {
                let algorithm = algorithm(MESH, name, &[("root", &root.to_string())]);
                proved(&algorithm, nranks);
                let schedule = schedule(&algorithm, nranks);
                for stream in &schedule.streams {
                    let ops = &schedule.ops[stream.first.index()..][..stream.len as usize];
                    let moves: Vec<_> = ops.iter().filter(|op| op.kind == OpKind::Move).collect();
                    let [op] = moves[..] else { panic!("one move a rank") };
                    let (src, dst) = (schedule.srcs(op)[0], schedule.dsts(op)[0]);
                    let (at_root, here) = if reads { (src, dst) } else { (dst, src) };
                    assert_eq!((at_root.rank, here.rank), (RankId(root), stream.rank), "{name}");
                    let block = schedule.region(at_root);
                    assert_eq!(block.lo, Rat::whole(stream.rank.0.into()), "{name}");
                }
            }
        }
    }
}

#[test]
fn recursive_doubling_swaps_with_partners_at_1_2_4() {
    pulls_are(DOUBLING, "RecursiveDoublingAllReduce", |n, rank| {
        (0..log(n)).map(|k| unit(rank ^ (1 << k), 0, false)).collect()
    });
    pulls_are(DOUBLING, "RecursiveDoublingAllGather", |n, rank| {
        let steps = (0..log(n)).map(|k| {
            let partner = rank ^ (1 << k);
            let theirs = partner >> k << k;
            Pull::pieces(partner, &[[theirs, theirs + (1 << k)]], Rat::whole(1), false)
        });
        steps.collect()
    });
}

#[test]
fn bruck_gathers_1_2_4_blocks_and_then_the_rest() {
    let algorithm = algorithm(BRUCK, "BruckAllGather", &[]);
    for nranks in 2..=64_u32 {
        let n = i64::from(nranks);
        for (rank, got) in of_ranks(&schedule(&algorithm, nranks)).into_iter().enumerate() {
            let rank = rank as i64;
            let mut steps: Vec<(i64, Vec<i64>)> = Vec::new();
            for pull in got {
                let blocks =
                    pull.data.iter().flat_map(|[lo, hi]| lo.floor() as i64..hi.floor() as i64);
                match steps.last_mut() {
                    Some((from, all)) if *from == pull.from => all.extend(blocks),
                    _ => steps.push((pull.from, blocks.collect())),
                }
            }
            let want: Vec<_> = (0..ceil_log(n))
                .map(|k| {
                    let many = (1 << k).min(n - (1 << k));
                    let from = (rank + (1 << k)) % n;
                    (from, (0..many).map(|i| (from + i) % n).collect::<Vec<_>>())
                })
                .collect();
            assert_eq!(steps, want, "rank {rank} of {nranks}");
        }
    }
}

#[test]
fn bruck_exchanges_the_blocks_of_bit_k_in_step_k() {
    pulls_are(BRUCK, "BruckAllToAll", |n, rank| {
        let steps = (0..ceil_log(n)).flat_map(|k| {
            let blocks = (1..n).filter(move |j| j >> k & 1 == 1);
            blocks.map(move |j| unit((rank - (1 << k)).rem_euclid(n), j, false))
        });
        steps.collect()
    });
}

/// Partners in a round have each other as partners, and every two ranks meet once.
#[test]
fn pairwise_exchange_pairs_the_ranks_up() {
    for (name, reduces) in [("PairwiseAllToAll", false), ("PairwiseReduceScatter", true)] {
        pulls_are(PAIRWISE, name, |n, rank| {
            let rounds = (0..n).map(|round| match n & (n - 1) {
                0 => rank ^ round,
                _ => (round - rank).rem_euclid(n),
            });
            let others = rounds.filter(|partner| *partner != rank);
            let all: Vec<_> = others
                .map(|partner| unit(partner, if reduces { rank } else { partner }, reduces))
                .collect();
            assert_eq!(all.len() as i64, n - 1);
            all
        });
    }
}

/// The proof rejects an algorithm whose second exchange does not wait for the first.
#[test]
fn the_signals_of_the_mesh_are_needed() {
    let without = MESH.replacen(
        "reduce-scatter\n        let from = peer((rank + d) % nranks);\n        from.RxAck();",
        "reduce-scatter\n        let from = peer((rank + d) % nranks);",
        1,
    );
    assert_ne!(without, MESH);
    let source = Source::from_text("mesh.coll", &without);
    let program = compile(&source, Frontend::File).unwrap();
    let broken = Configured::new(program.algorithms[0].clone(), &source);
    assert!(verify(&schedule(&broken, 4)).is_err());
}
