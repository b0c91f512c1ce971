//! Worlds of several hosts: each host is threads that share an arena, and a carrier between threads brings messages from
//! host to host.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use roundelay::compiler::counts::{Block, RankBlocks};
use roundelay::library::{RingAllReduce, RingBroadcast};
use roundelay::{Call, Collective, DType, Error, Options, OrderClass, Promises, ReduceOp, World};
use roundelay_kernels::network::{Channels, How};
use roundelay_kernels::shared_memory;

use super::{code, hasty, me, patient, until};

/// A carrier that takes its time.
const SLOW: How =
    How { synchronous: true, patience: 5, most: 1 << 12, fails_after: u64::MAX, seed: 3 };
/// One that is done at once.
const EAGER: How =
    How { synchronous: false, patience: 0, most: 1 << 30, fails_after: u64::MAX, seed: 4 };

/// All hosts, in any order and size.
fn places() -> [Vec<Vec<u32>>; 4] {
    [
        vec![vec![0, 1], vec![2, 3]],
        vec![vec![2], vec![3, 0, 1]],
        vec![vec![0], vec![1], vec![2]],
        vec![vec![5, 0, 3], vec![1, 2, 4]],
    ]
}

/// Returns each rank's result, in their order, and the number of requests that the carrier has left.
fn each<R: Send>(
    places: &[Vec<u32>],
    how: How,
    options: Options,
    rank: impl Fn(World) -> R + Sync,
) -> (Vec<R>, usize) {
    let nranks = places.iter().map(Vec::len).sum::<usize>();
    let channels = Channels::new(nranks as u32, how);
    let mut returned: Vec<Option<R>> = (0..nranks).map(|_| None).collect();
    thread::scope(|threads| {
        let mut ranks = Vec::new();
        for host in places {
            let worlds =
                shared_memory::World::together(host.len() as u32, options).expect("worlds");
            for (world, me) in worlds.into_iter().zip(host) {
                let (carrier, rank) = (channels[*me as usize].clone(), &rank);
                let world = World::over_hosts(world, places.to_vec(), *me, carrier);
                let world = world.expect("a world");
                ranks.push((*me as usize, threads.spawn(move || rank(world))));
            }
        }
        for (me, thread) in ranks {
            returned[me] = Some(thread.join().expect("no panic"));
        }
    });
    (returned.into_iter().flatten().collect(), channels[0].open())
}

/// Everything that a rank can call, of a length that leaves pieces of unequal length.
fn all(world: &World, len: usize) {
    let (mut rank, me, n) = (world.rank(), me(world), world.nranks());
    let everybody: u32 = (0..n).sum();
    let mut buffer = vec![me; len];
    rank.all_reduce(&mut buffer, ReduceOp::Sum).expect("a sum");
    assert_eq!(buffer, vec![everybody; len]);
    let mut sums = vec![0; len];
    rank.all_reduce_into(&vec![me; len], &mut sums, ReduceOp::Sum).expect("a sum");
    assert_eq!(sums, vec![everybody; len]);
    let blocks = |of: &dyn Fn(u32) -> u32| -> Vec<u32> {
        (0..n).flat_map(|block| vec![of(block); len]).collect()
    };
    rank.reduce_scatter(&blocks(&|block| block + me), &mut sums, ReduceOp::Sum).expect("sums");
    assert_eq!(sums, vec![n * me + everybody; len]);
    let mut gathered = vec![0; len * n as usize];
    rank.all_gather(&vec![me * 7; len], &mut gathered).expect("all");
    assert_eq!(gathered, blocks(&|block| block * 7));
    rank.all_to_all(&blocks(&|block| 100 * me + block), &mut gathered).expect("all");
    assert_eq!(gathered, blocks(&|block| 100 * block + me));
    for root in [0, n - 1] {
        let mut buffer = vec![me; len];
        rank.broadcast(&mut buffer, root).expect("the root's");
        assert_eq!(buffer, vec![root; len]);
        let mut buffer = vec![me + 1; len];
        rank.reduce(&mut buffer, ReduceOp::Max, root).expect("the largest");
        assert_eq!(buffer, vec![if me == root { n } else { me + 1 }; len]);
        let whole = if me == root { blocks(&|block| block + 5) } else { Vec::new() };
        rank.scatter(&whole, &mut sums, root).expect("mine");
        assert_eq!(sums, vec![me + 5; len]);
        let mut whole = if me == root { vec![0; len * n as usize] } else { Vec::new() };
        rank.gather(&vec![me * 3; len], &mut whole, root).expect("all");
        assert_eq!(whole, if me == root { blocks(&|block| block * 3) } else { Vec::new() });
    }
    let (collective, dtype, op) = (Collective::AllGather, DType::U8, ReduceOp::Sum);
    let call = Call { collective, root: 0, count: 1, dtype, op };
    let mut bytes = vec![0; n as usize];
    rank.call_bytes(call, &[me as u8], &mut bytes).expect("all");
    assert_eq!(bytes, (0..n as u8).collect::<Vec<_>>());
    bytes.fill(0);
    bytes[me as usize] = me as u8 + 1;
    rank.call_bytes_in_place(call, &mut bytes).expect("all");
    assert_eq!(bytes, (1..=n as u8).collect::<Vec<_>>());
    rank.barrier().expect("all are there");
}

#[test]
fn every_collective() {
    for places in places() {
        for how in [SLOW, EAGER] {
            let (_, open) = each(&places, how, patient(), |world| {
                // One rank uses the library's algorithms, chosen by the links between the hosts.
                let world =
                    if how.synchronous { world } else { world.measure_link().expect("times") };
                for len in [0, 1, 7, 30_001] {
                    all(&world, len);
                }
            });
            assert_eq!(open, 0, "{places:?}");
        }
    }
}

/// An AllReduce of several parts, of which one is between hosts while others are on them: each op, each length of the last
/// part, and with an average, which is not made of parts.
#[test]
fn sums_in_parts() {
    for places in places() {
        for how in [SLOW, EAGER] {
            let (_, open) = each(&places, how, patient(), |world| {
                let (mut rank, me, n) = (world.rank(), me(&world), world.nranks());
                for (len, op) in [
                    (65_536, ReduceOp::Sum),
                    (65_537, ReduceOp::Max),
                    (200_003, ReduceOp::Prod),
                    (196_608, ReduceOp::Bxor),
                    (100_000, ReduceOp::Avg),
                ] {
                    // Values for which each op gives another result, everywhere.
                    let value = |rank: u32, at: usize| (at as u32 % 251 + 1) * (rank + 1);
                    let input: Vec<u32> = (0..len).map(|at| value(me, at)).collect();
                    let right: Vec<u32> = (0..len)
                        .map(|at| {
                            let all = (0..n).map(|rank| value(rank, at));
                            match op {
                                ReduceOp::Max => all.max().expect("ranks"),
                                ReduceOp::Prod => all.fold(1, u32::wrapping_mul),
                                ReduceOp::Bxor => all.fold(0, |a, b| a ^ b),
                                ReduceOp::Avg => all.sum::<u32>() / n,
                                _ => all.sum(),
                            }
                        })
                        .collect();
                    let mut output = vec![0; len];
                    rank.all_reduce_into(&input, &mut output, op).expect("a sum");
                    assert!(output == right, "{places:?} {len} {op}");
                    let mut buffer = input.clone();
                    rank.all_reduce(&mut buffer, op).expect("a sum");
                    assert!(buffer == right, "{places:?} {len} {op} in place");
                }
                // All ranks have equal bits, in whatever order the sums are made.
                let mut floats: Vec<f32> =
                    (0..70_000).map(|at| 1.0 / (at + me + 1) as f32).collect();
                rank.all_reduce(&mut floats, ReduceOp::Sum).expect("a sum");
                let bits: Vec<u32> = floats.iter().map(|float| float.to_bits()).collect();
                let mut root = bits.clone();
                rank.broadcast(&mut root, 0).expect("the root's");
                assert!(bits == root, "{places:?}");
            });
            assert_eq!(open, 0, "{places:?}");
        }
    }
}

/// While a thread is in a call, another is refused, between the parts of the call too, and the call goes on.
#[test]
fn threads_that_call_at_once() {
    let places = vec![vec![0, 1], vec![2, 3]];
    let (refused, _) = each(&places, SLOW, patient(), |world| {
        let me = me(&world);
        if me == 3 {
            thread::sleep(Duration::from_millis(300));
        }
        thread::scope(|threads| {
            let call = threads.spawn(|| {
                let mut buffer = vec![1_u32; 100_000];
                world.rank().all_reduce(&mut buffer, ReduceOp::Sum).expect("a sum");
                assert_eq!(buffer, vec![4; 100_000]);
            });
            let mut refused = 0;
            while me == 0 && !call.is_finished() {
                thread::sleep(Duration::from_millis(20));
                if call.is_finished() {
                    break;
                }
                // The others do not make this call: it must not begin.
                let error = world.rank().all_reduce(&mut [1_u32], ReduceOp::Max).expect_err("busy");
                assert_eq!(error.code().as_str(), "E0412", "{error}");
                refused += 1;
            }
            refused
        })
    });
    assert!(refused[0] > 3, "{refused:?}");
}

/// Calls with a count for each block return at once, too, before the last rank knows its counts.
fn counts_are_brought_together_later(world: &World) {
    let (me, n) = (me(world), world.nranks());
    let (collective, dtype, op) = (Collective::AllGather, DType::U32, ReduceOp::Sum);
    let call = Call { collective, root: 0, count: 0, dtype, op };
    let counts = || (0..u64::from(n)).map(|rank| 3 * rank);
    let gather = || {
        let own = vec![me; 3 * me as usize];
        let (mine, all) = (Block::pack([own.len() as u64]), Block::pack(counts()));
        let blocks = RankBlocks::new(collective, 0.into(), me.into(), n, mine, all);
        let output = vec![0; counts().sum::<u64>() as usize];
        world.nonblocking().call_blocks(call, blocks.expect("they fit"), own, output)
    };
    let mut cast = [me];
    let begun = if me + 1 < n {
        // The last rank waits for a message that this one sends after its calls have begun.
        let begun = [gather(), gather()];
        world.send(&[me], n - 1).expect("it goes");
        begun
    } else {
        for from in 0..me {
            world.recv(&mut cast, from).expect("it comes");
        }
        [gather(), gather()]
    };
    let right: Vec<u32> = (0..n).flat_map(|rank| vec![rank; 3 * rank as usize]).collect();
    for pending in begun {
        assert_eq!(pending.wait().expect("all come").1, right);
    }
}

#[test]
fn algorithms_that_are_named_and_calls_that_do_not_block() {
    for places in places() {
        each(&places, SLOW, patient(), |world| {
            let world = world
                .using(RingAllReduce::new())
                .using_rooted(|root| RingBroadcast::new().root(root));
            let (me, n) = (me(&world), world.nranks());
            let sum = world.nonblocking().all_reduce(vec![me; 10_000], ReduceOp::Sum);
            let all = world.nonblocking().all_gather(vec![me], vec![0; n as usize]);
            assert_eq!(sum.wait().expect("a sum"), vec![(0..n).sum::<u32>(); 10_000]);
            assert_eq!(all.wait().expect("all").1, (0..n).collect::<Vec<_>>());
            let mut buffer = [me; 100];
            world
                .scope(|scope| {
                    scope.broadcast(&mut buffer[..], n - 1).wait()?;
                    Ok(())
                })
                .expect("the last one's");
            assert_eq!(buffer, [n - 1; 100]);
            counts_are_brought_together_later(&world);
            let mut lent = world.alloc::<u32>(1000).expect("memory");
            lent.fill(me);
            world.rank().all_reduce(&mut lent, ReduceOp::Max).expect("the largest");
            assert_eq!(lent[999], n - 1);
        });
    }
}

/// Sums of several hosts have the promised order; without a promise, calls on two levels have one order on all ranks.
#[test]
fn an_order_is_promised_across_hosts() {
    let part = |rank: u32| [1.0e8_f32, 1.0, -1.0e8, 1.0, 3.0, 0.1][rank as usize];
    for places in places() {
        let nranks = places.iter().map(Vec::len).sum::<usize>() as u32;
        let promised = (0..nranks - 1).rev().fold(part(nranks - 1), |sum, rank| part(rank) + sum);
        for count in [1, 700, 30_000] {
            let (collective, op) = (Collective::AllReduce, ReduceOp::Sum);
            let call = Call { collective, root: 0, count, dtype: DType::F32, op };
            let (sums, _) = each(&places, EAGER, patient(), |world| {
                let kept = world.order_of(&call).expect("it runs");
                assert!(kept.has(OrderClass::AllRanks) && kept.most_roundings() > Some(0));
                let world = world.in_order(Promises::all());
                assert_eq!(world.order_of(&call).expect("it runs"), Promises::all());
                let mut numbers = vec![part(me(&world)); count as usize];
                world.rank().all_reduce(&mut numbers, op).expect("it is right");
                numbers
            });
            assert!(sums.iter().flatten().all(|sum| sum.to_bits() == promised.to_bits()));
        }
    }
}

/// Messages of one rank to another come in order, beside any calls, between hosts and on one.
#[test]
fn messages_beside_calls() {
    for places in places() {
        each(&places, EAGER, patient(), |world| {
            let (me, n) = (me(&world), world.nranks());
            let (to, from) = ((me + 1) % n, (me + n - 1) % n);
            thread::scope(|threads| {
                threads.spawn(|| {
                    for turn in 0..30 {
                        world
                            .send(&vec![me * 100 + turn; turn as usize * 97], to)
                            .expect("it goes");
                    }
                });
                threads.spawn(|| {
                    for turn in 0..30 {
                        let mut buffer = vec![0; turn as usize * 97];
                        world.recv(&mut buffer, from).expect("it comes");
                        assert_eq!(buffer, vec![from * 100 + turn; turn as usize * 97]);
                    }
                });
                for turn in 0..30 {
                    let mut buffer = vec![me + turn; 20_000];
                    world.rank().all_reduce(&mut buffer, ReduceOp::Sum).expect("a sum");
                    assert_eq!(buffer, vec![(0..n).sum::<u32>() + n * turn; 20_000]);
                }
            });
            // One that does not fit is gone, and the next is as good as ever.
            world.send(&[1_u32, 2], to).expect("it goes");
            world.send(&[3.5_f32], to).expect("it goes");
            world.send(&[4_u8], to).expect("it goes");
            assert_eq!(code(world.recv(&mut [0_u32], from)), "E0402");
            assert_eq!(code(world.recv(&mut [0_u32], from)), "E0403");
            let mut last = [0_u8];
            world.recv(&mut last, from).expect("it comes");
            assert_eq!(last, [4]);
            assert_eq!(code(world.send(&[1_u8], n)), "E0411");
            assert_eq!(code(world.recv(&mut [1_u8], n)), "E0411");
        });
    }
}

#[test]
fn ranks_of_one_host_can_be_a_world() {
    let places = places()[3].clone();
    each(&places, SLOW, patient(), |world| {
        let me = me(&world);
        let host = places.iter().position(|ranks| ranks.contains(&me)).expect("a host") as u32;
        let part = world.split(Some(host), -i64::from(me)).expect("a world").expect("a color");
        let mut sum = [me];
        part.rank().all_reduce(&mut sum, ReduceOp::Sum).expect("a sum");
        assert_eq!(sum, [places[host as usize].iter().sum::<u32>()]);
        assert_eq!(code(world.split(Some(0), 0)), "E0427");
        assert_eq!(code(world.shrink()), "E0427");
        world.rank().barrier().expect("nothing is broken");
    });
}

/// A carrier that fails ends the call with its own message, for the rank that gets it; the other ranks learn of it from
/// that rank, or wait for it in vain. The carrier keeps nothing of the call.
#[test]
fn a_carrier_that_fails() {
    let mut cut = 0;
    for places in places() {
        for (fails_after, len) in [(0, 5000), (1, 5000), (5, 5000), (12, 5000), (150, 200_000)] {
            let how = How { fails_after, ..SLOW };
            let (codes, open) = each(&places, how, hasty(), |world| {
                let mut buffer = vec![1_u32; len];
                let first = world.rank().all_reduce(&mut buffer, ReduceOp::Sum).err();
                let second = code(world.rank().barrier());
                (first.map(|error| error.to_string()).unwrap_or_default(), second)
            });
            assert_eq!(open, 0, "what was begun is taken back");
            cut += codes.iter().filter(|(first, _)| first.contains("wire is cut")).count();
            for (first, second) in codes {
                let known = ["E0429", "E0413", "E0405"].iter().any(|code| first.contains(code));
                assert!(known, "{first}");
                assert_eq!(second, "E0413", "{first}");
            }
        }
    }
    assert!(cut >= 16, "{cut}");
}

/// A rank that never comes is waited for until the deadline, and the message names the wait.
#[test]
fn a_rank_that_does_not_come() {
    let places = vec![vec![0, 1], vec![2, 3]];
    let gave_up = AtomicU32::new(0);
    let (told, open) = each(&places, SLOW, hasty(), |world| {
        if me(&world) == 3 {
            // It stays until the others have given up.
            until(&gave_up, 3);
            return String::new();
        }
        let mut buffer = vec![1_u32; 1000];
        let error =
            world.rank().all_reduce(&mut buffer, ReduceOp::Sum).expect_err("one is missing");
        gave_up.fetch_add(1, Ordering::Release);
        error.to_string()
    });
    assert_eq!(open, 0);
    // On its host, the other rank knows that it did not make the call.
    assert!(told[2].contains("rank 2 waited") && told[2].contains("for rank 3"), "{}", told[2]);
    for told in &told[..2] {
        let far = told.contains("of another host has not") && told.contains("doubling.coll:");
        assert!(told.contains("E0405") && far || told.contains("E0413"), "{told}");
    }
    assert!(told[..2].iter().any(|told| told.contains("E0405")), "{told:?}");
}

/// A rank that leaves is told by its name among all ranks.
#[test]
fn a_rank_that_leaves() {
    let places = vec![vec![1], vec![0, 3, 2]];
    let (told, _) = each(&places, SLOW, patient().deadline(Duration::from_secs(5)), |world| {
        match me(&world) {
            3 => {
                drop(world);
                return "E0428 rank 3".to_owned();
            }
            1 => return "E0428 rank 3".to_owned(),
            _ => {}
        }
        world.rank().barrier().expect_err("one left").to_string()
    });
    for told in told {
        assert!(told.contains("rank 3") && told.contains("E0428"), "{told}");
    }
}

#[test]
fn calls_that_differ() {
    let places = vec![vec![0, 1], vec![3, 2]];
    // On one host the calls are compared, and on the other no message comes.
    let (codes, open) = each(&places, SLOW, hasty(), |world| {
        let len = if me(&world) == 3 { 50 } else { 40 };
        let first = code(world.rank().all_reduce(&mut vec![1_u32; len], ReduceOp::Sum));
        (first, code(world.rank().barrier()))
    });
    assert_eq!(open, 0);
    assert!(codes[2..].iter().all(|(first, _)| first == "E0414"), "{codes:?}");
    assert!(codes[..2].iter().all(|(first, _)| first == "E0405" || first == "E0413"), "{codes:?}");
    assert!(codes.iter().all(|(_, second)| second == "E0413"), "{codes:?}");
    // Between hosts, messages of other calls do not meet, whatever their lengths.
    for (ours, theirs) in [(ReduceOp::Sum, ReduceOp::Max), (ReduceOp::Sum, ReduceOp::Prod)] {
        let (codes, open) = each(&places, EAGER, hasty(), |world| {
            let op = if me(&world) < 2 { ours } else { theirs };
            code(world.rank().all_reduce(&mut [1_u32; 40], op))
        });
        assert_eq!(open, 0);
        assert!(codes.iter().all(|code| code == "E0405" || code == "E0413"), "{codes:?}");
    }
    // A world of one host is as good as ever after it.
    each(&[vec![1, 0]], EAGER, patient(), |world| {
        let len = me(&world) as usize + 1;
        let refused = world.rank().all_reduce(&mut vec![1_u32; len], ReduceOp::Sum);
        let text = refused.expect_err("they differ").to_string();
        assert!(text.contains("E0414"), "{text}");
        world.rank().barrier().expect("all are there");
    });
}

#[test]
fn hosts_that_make_no_sense() {
    let carrier = || Channels::new(8, EAGER)[0].clone();
    let of = |ranks: u32, hosts: Vec<Vec<u32>>, rank: u32| -> Result<World, Error> {
        let world = shared_memory::World::together(ranks, patient()).expect("worlds").remove(0);
        World::over_hosts(world, hosts, rank, carrier())
    };
    assert_eq!(code(of(1, vec![], 0)), "E0409");
    assert_eq!(code(of(1, vec![vec![0], vec![1]], 2)), "E0411");
    for (ranks, hosts, rank) in [
        (1, vec![vec![0], vec![0]], 0),
        (1, vec![vec![0], vec![2]], 0),
        (2, vec![vec![0], vec![1]], 0),
        (2, vec![vec![0, 1], vec![2]], 1),
        (1, vec![vec![0], vec![u32::MAX]], 0),
    ] {
        assert_eq!(code(of(ranks, hosts.clone(), rank)), "E0427", "{hosts:?}");
    }
    assert_eq!(code(of(2, vec![vec![1], vec![], vec![0, 2]], 0)), "none");
}

/// An abort ends the calls of this host with its reason.
#[test]
fn an_abort_is_told() {
    let (told, _) = each(&[vec![0, 1], vec![2]], SLOW, hasty(), |world| match me(&world) {
        0 => {
            world.abort("of a wrong input").expect("it is told");
            String::new()
        }
        1 => world.rank().barrier().expect_err("it is ended").to_string(),
        _ => String::new(),
    });
    assert!(told[1].contains("of a wrong input"), "{}", told[1]);
}

/// One carrier serves threads that send and others that are in calls.
#[test]
fn worlds_are_shared_by_threads() {
    fn shared<T: Send + Sync>(_: &T) {}
    each(&[vec![0], vec![1]], EAGER, patient(), |world| shared(&Arc::new(world)));
}
