//! Rings: one, two ways around one, and several.

use roundelay_core::layout::Algorithm as _;
use roundelay_core::rational::Rat;
use roundelay_core::schedule::Schedule;

use super::pulls::{Pull, algorithm, along, proved, pulls, schedule, text};

const RING: &str = include_str!("../../../stdlib/library/ring.coll");
const TWISTED: &str = include_str!("../../../stdlib/library/twisted_ring.coll");
const MULTI: &str = include_str!("../../../stdlib/library/multi_ring.coll");

fn natural(n: i64) -> Vec<i64> {
    (0..n).collect()
}

/// A ring that is neither the natural one nor evenly spaced, from 5 ranks on.
fn shuffled(n: i64) -> Vec<i64> {
    let (even, odd): (Vec<i64>, Vec<i64>) = (0..n).rev().partition(|r| r % 2 == 0);
    odd.into_iter().chain(even).collect()
}

fn parts(n: i64, units: i64) -> Rat {
    Rat::new(n as u64, units as u64).expect("a small fraction")
}

/// Where a rank stands in a ring.
fn place(order: &[i64], rank: i64) -> i64 {
    order.iter().position(|r| *r == rank).expect("every rank is in the ring") as i64
}

/// AllReduce around `order` of share `share` of `shares`; blocks are named by places.
fn all_reduce(order: &[i64], rank: i64, share: i64, shares: i64) -> Vec<Pull> {
    let n = order.len() as i64;
    let left = along(order, rank, -1);
    let me = place(order, rank);
    let pull = |block: i64, reduces| {
        Pull::piece(left, share * n + block.rem_euclid(n), parts(shares * n, 1), reduces)
    };
    let first = (0..n - 1).map(|round| pull(me - round - 1, true));
    first.chain((0..n - 1).map(|round| pull(me - round, false))).collect()
}

/// Part `part` of `of` of the blocks of the ranks further and further left.
fn blocks(order: &[i64], rank: i64, first: i64, part: i64, of: i64, reduces: bool) -> Vec<Pull> {
    let n = order.len() as i64;
    let left = along(order, rank, -1);
    let block = |round: i64| along(order, rank, -(round + first));
    let pull = |round| Pull::piece(left, block(round) * of + part, parts(of, 1), reduces);
    (0..n - 1).map(pull).collect()
}

/// Asserts the pulls of every rank, by streams: each is a ring, given by its order.
fn assert_pulls(
    schedule: &Schedule,
    rings: &[Vec<i64>],
    stream: impl Fn(&[i64], i64, i64) -> Vec<Pull>,
) {
    for (rank, streams) in (0..).zip(pulls(schedule)) {
        let expected: Vec<_> = (0..).zip(rings).map(|(i, order)| stream(order, rank, i)).collect();
        assert_eq!(streams, expected, "{} at {}, rank {rank}", schedule.algorithm, schedule.nranks);
    }
}

fn backwards(order: &[i64]) -> Vec<i64> {
    // The place of a rank stays its place: all orders count blocks from one rank on.
    order[..1].iter().chain(order[1..].iter().rev()).copied().collect()
}

fn assert_port(schedule: &Schedule, units: f64) {
    let port = schedule.busiest_port();
    assert!((port - units).abs() < 1e-9, "{}: {port}, not {units}", schedule.algorithm);
}

#[test]
fn one_block_a_round_around_the_ring() {
    for n in 2..=64_i64 {
        for order in [natural(n), shuffled(n)] {
            let order_text = text(&order);
            let all = algorithm(RING, "RingAllReduce", &[("ring", &order_text)]);
            let all = schedule(&all, n as u32);
            assert_pulls(&all, std::slice::from_ref(&order), |order, rank, _| {
                all_reduce(order, rank, 0, 1)
            });
            assert_port(&all, 2.0 * (n - 1) as f64 / n as f64);

            let scatter = algorithm(RING, "RingReduceScatter", &[("ring", &order_text)]);
            let scatter = schedule(&scatter, n as u32);
            assert_pulls(&scatter, std::slice::from_ref(&order), |order, rank, _| {
                blocks(order, rank, 2, 0, 1, true)
            });
            assert_port(&scatter, (n - 1) as f64);

            let gather = algorithm(RING, "RingAllGather", &[("ring", &order_text)]);
            let gather = schedule(&gather, n as u32);
            assert_pulls(&gather, std::slice::from_ref(&order), |order, rank, _| {
                blocks(order, rank, 1, 0, 1, false)
            });
            assert_port(&gather, (n - 1) as f64);
        }
        let plain = |name| schedule(&algorithm(RING, name, &[]), n as u32);
        assert_pulls(&plain("RingReduceScatter"), &[natural(n)], |o, r, _| {
            blocks(o, r, 2, 0, 1, true)
        });
        assert_pulls(&plain("RingAllGather"), &[natural(n)], |o, r, _| {
            blocks(o, r, 1, 0, 1, false)
        });
    }
}

#[test]
fn slices_go_from_the_root_around_and_around_to_it() {
    for n in 2..=64_i64 {
        for (slices, root) in [(1, 0), (3, n - 1), (8, n / 2)] {
            let (root_text, slices_text) = (root.to_string(), slices.to_string());
            for order in [natural(n), shuffled(n)] {
                let order_text = text(&order);
                let set =
                    [("root", &*root_text), ("slices", &*slices_text), ("ring", &*order_text)];
                let left = |rank| along(&order, rank, -1);
                for (name, first, reduces) in
                    [("RingBroadcast", root, false), ("RingReduce", along(&order, root, 1), true)]
                {
                    let schedule = schedule(&algorithm(RING, name, &set), n as u32);
                    for (rank, streams) in (0..).zip(pulls(&schedule)) {
                        // The first rank pulls nothing.
                        let pulled = if rank == first { 0 } else { slices };
                        let pull = |s| Pull::piece(left(rank), s, parts(slices, 1), reduces);
                        assert_eq!(streams, [(0..pulled).map(pull).collect::<Vec<_>>()]);
                    }
                    assert_port(&schedule, 1.0);
                }
            }
        }
    }
}

#[test]
fn half_of_each_block_each_way() {
    for n in 2..=64_i64 {
        for order in [natural(n), shuffled(n)] {
            let order_text = text(&order);
            let ways = [order.clone(), backwards(&order)];
            let gather = algorithm(TWISTED, "TwistedRingAllGather", &[("ring", &order_text)]);
            let gather = schedule(&gather, n as u32);
            assert_pulls(&gather, &ways, |o, r, way| blocks(o, r, 1, way, 2, false));
            let scatter = algorithm(TWISTED, "TwistedRingReduceScatter", &[("ring", &order_text)]);
            let scatter = schedule(&scatter, n as u32);
            assert_pulls(&scatter, &ways, |o, r, way| blocks(o, r, 2, way, 2, true));
            for schedule in [gather, scatter] {
                assert_port(&schedule, (n - 1) as f64);
                // Half of that goes over each link: left and right share the traffic of a port.
                let over = |a: i64, b: i64| {
                    let link =
                        schedule.traffic().filter(|u| (u.from.0, u.to.0) == (a as u32, b as u32));
                    link.filter_map(|u| u.units)
                        .map(|u| u.num() as f64 / u.den() as f64)
                        .sum::<f64>()
                };
                if n > 2 {
                    let units = over(order[0], order[1]);
                    assert!((units - (n - 1) as f64 / 2.0).abs() < 1e-9, "{units} at {n}");
                }
            }
        }
    }
}

#[test]
fn each_ring_carries_its_part() {
    for n in 2..=16_i64 {
        let rings = [natural(n), shuffled(n), backwards(&shuffled(n))];
        let k = rings.len() as i64;
        let orders = rings.iter().map(|order| text(order)).collect::<Vec<_>>().join(";");
        let reduce = algorithm(MULTI, "MultiRingAllReduce", &[("rings", &orders)]);
        let all = schedule(&reduce, n as u32);
        assert_pulls(&all, &rings, |order, rank, i| all_reduce(order, rank, i, k));
        let scatter = algorithm(MULTI, "MultiRingReduceScatter", &[("rings", &orders)]);
        let scatter = schedule(&scatter, n as u32);
        assert_pulls(&scatter, &rings, |order, rank, i| blocks(order, rank, 2, i, k, true));
        let gather = algorithm(MULTI, "MultiRingAllGather", &[("rings", &orders)]);
        let gather = schedule(&gather, n as u32);
        assert_pulls(&gather, &rings, |order, rank, i| blocks(order, rank, 1, i, k, false));
    }
}

#[test]
fn rings_are_proved_in_as_many_rounds_as_their_formulas_say() {
    for n in 1..=33_u32 {
        let rounds = |file, name| proved(&algorithm(file, name, &[]), n).steps;
        let once = n - 1;
        assert_eq!(rounds(RING, "RingAllReduce"), 2 * once);
        assert_eq!(rounds(RING, "RingReduceScatter"), once);
        assert_eq!(rounds(RING, "RingAllGather"), once);
        assert_eq!(rounds(TWISTED, "TwistedRingAllReduce"), 2 * once);
        assert_eq!(rounds(TWISTED, "TwistedRingReduceScatter"), once);
        assert_eq!(rounds(TWISTED, "TwistedRingAllGather"), once);
        // Eight slices: the last one sets out seven rounds after the first.
        let pipelined = if n == 1 { 0 } else { n - 2 + 8 };
        assert_eq!(rounds(RING, "RingBroadcast"), pipelined);
        assert_eq!(rounds(RING, "RingReduce"), pipelined);
    }
    // Its default is as many rings as a full mesh has channels: many streams for many ranks.
    for n in 1..=12 {
        let rounds = |name| proved(&algorithm(MULTI, name, &[]), n).steps;
        assert_eq!(rounds("MultiRingAllReduce"), 2 * (n - 1));
        assert_eq!(rounds("MultiRingReduceScatter"), n - 1);
        assert_eq!(rounds("MultiRingAllGather"), n - 1);
    }
}

#[test]
fn every_root_and_any_order() {
    for n in 1..=9_i64 {
        for order in [natural(n), shuffled(n), backwards(&shuffled(n))] {
            let order_text = text(&order);
            let both = [text(&order), text(&shuffled(n))].join(";");
            for (file, name, parameter, value) in [
                (RING, "RingAllReduce", "ring", &order_text),
                (RING, "RingReduceScatter", "ring", &order_text),
                (RING, "RingAllGather", "ring", &order_text),
                (TWISTED, "TwistedRingAllReduce", "ring", &order_text),
                (TWISTED, "TwistedRingReduceScatter", "ring", &order_text),
                (TWISTED, "TwistedRingAllGather", "ring", &order_text),
                (MULTI, "MultiRingReduceScatter", "rings", &both),
                (MULTI, "MultiRingAllGather", "rings", &both),
            ] {
                assert!(proved(&algorithm(file, name, &[(parameter, value)]), n as u32).in_place);
            }
            for root in 0..n {
                for slices in ["1", "2", "5"] {
                    let root = root.to_string();
                    let set = [("root", &*root), ("slices", slices), ("ring", &*order_text)];
                    for name in ["RingBroadcast", "RingReduce"] {
                        assert!(proved(&algorithm(RING, name, &set), n as u32).in_place);
                    }
                }
            }
        }
    }
}

#[test]
fn what_a_ring_cannot_do_is_refused() {
    for (file, name, set, why) in [
        (RING, "RingBroadcast", ("slices", "0"), "set slices to 1 or more"),
        (RING, "RingReduce", ("slices", "-1"), "set slices to 1 or more"),
        (MULTI, "MultiRingReduceScatter", ("rings", "0,1,2,3;0,1"), "the ring names 2 ranks"),
        (MULTI, "MultiRingAllGather", ("rings", "0,1,2,3;0,1,2,0"), "names rank 0 twice"),
    ] {
        let refused = algorithm(file, name, &[set]).schedule(4).expect_err("a refusal");
        assert!(refused[0].title.contains(why), "{}", refused[0].title);
    }
}
