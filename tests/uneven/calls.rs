//! Calls of ranks with a count for each block: threads of a communicator, and processes' engines in threads.

use std::sync::Arc;

use roundelay::{
    Algorithm as _, Call, Collective, Comm, DType, Error, Level, Options, Rank, ReduceOp, World,
    select, tools,
};
use roundelay_core::counts::{Block, RankBlocks};
use roundelay_core::ids::RankId;
use roundelay_core::values::params::ParamValue;
#[cfg(target_os = "linux")]
use roundelay_kernels::network::{Channels, How};
use roundelay_kernels::shared_memory::{self, BlocksPlan};
use roundelay_kernels::{bytes_of, bytes_of_mut};
use roundelay_tests::takes_all;

use super::{expected, vectors};

/// The blocks of a rank; each lies `gap` elements behind the one before.
fn blocks(
    (collective, root): (Collective, u32),
    (rank, n): (u32, u32),
    counts: &[u64],
    gap: u64,
) -> RankBlocks {
    let spread = |units: u32, block: &dyn Fn(u32) -> Option<u64>| {
        let mut start = 0;
        let of = (0..units).map(|unit| {
            let count = counts[block(unit).expect("blocks") as usize];
            let block = Block { start, count };
            start += count + gap;
            block
        });
        of.collect::<Vec<_>>()
    };
    let (rank, root) = (RankId(rank), RankId(root));
    let input = spread(collective.input_units(rank, n, root), &|unit| {
        collective.input_block(rank, unit, n)
    });
    let output = spread(collective.output_units(rank, n, root), &|unit| {
        collective.output_block(rank, unit, n)
    });
    RankBlocks::new(collective, root, rank, n, input, output).expect("blocks")
}

/// Returns a buffer in which packed elements lie in their blocks, and `fill` between them.
fn laid_out(packed: &[i64], blocks: &[Block], fill: i64) -> Vec<i64> {
    let mut all = vec![fill; Block::end(blocks) as usize];
    let mut from = 0;
    for block in blocks.iter().filter(|block| block.count > 0) {
        let len = block.count as usize;
        all[block.start as usize..][..len].copy_from_slice(&packed[from..from + len]);
        from += len;
    }
    all
}

/// The places of a rank's buffers.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Places {
    Private,
    Shared,
    /// The input of every second rank is shared.
    Mixed,
}

/// Runs every algorithm with blocks between the ranks of a world, at a level, for several vectors in turn; of long blocks,
/// unless all cases are wanted, every second algorithm, from the first or the second one on.
fn serves(level: Level, n: u32, places: Places, long: Option<usize>) {
    let worlds =
        shared_memory::World::together(n, Options::default().level(level)).expect("worlds");
    let worlds: Vec<_> = worlds.into_iter().map(Arc::new).collect();
    for (at, algorithm) in select::library().iter().enumerate() {
        if long.is_some_and(|first| at % 2 != first) && !takes_all() {
            continue;
        }
        let collective = algorithm.collective();
        let Some(number) = collective.blocks(n) else { continue };
        let mut algorithm = algorithm.clone();
        let root = if collective.is_rooted() { n / 2 } else { 0 };
        if collective.is_rooted() {
            algorithm.set("root", ParamValue::Int(root.into())).expect("a root");
        }
        let Ok(proved) = roundelay_core::prove(&algorithm, n) else { continue };
        let mut all = vectors(number as usize);
        if long.is_some() {
            // One block has several tiles, or is 2^20 times as long as others, and one has just more than a tile.
            let mut vector = all.swap_remove(4);
            vector[0] = if places == Places::Shared { 1 << 20 } else { 150_001 };
            vector[(number / 2) as usize] = 33_000;
            all = vec![vector];
        }
        let named = &format!("{} at {n}, {level}, {places:?}", algorithm.name());
        std::thread::scope(|threads| {
            for (rank, world) in (0..n).zip(&worlds) {
                let (proved, all) = (proved.clone(), &all);
                threads.spawn(move || {
                    let plan = BlocksPlan::new(world, &proved, DType::I64, ReduceOp::Sum);
                    let plan = plan.expect(named);
                    for (counts, gap) in all.iter().zip([0, 3].into_iter().cycle()) {
                        let of = blocks((collective, root), (rank, n), counts, gap);
                        let (inputs, wanted) =
                            expected(collective, n as usize, root as usize, counts);
                        let at = rank as usize;
                        let input = laid_out(&inputs[at], of.input(), -1);
                        let wanted = laid_out(&wanted[at], of.output(), -7);
                        let mut output = vec![-7; wanted.len()];
                        let shared = match places {
                            Places::Private => false,
                            Places::Shared => true,
                            Places::Mixed => rank % 2 == 0,
                        };
                        if shared {
                            let mut lent = world.alloc::<i64>(input.len()).expect("memory");
                            lent.copy_from_slice(&input);
                            plan.run_bytes(&of, bytes_of(&lent), bytes_of_mut(&mut output))
                                .expect(named);
                        } else {
                            plan.run_bytes(&of, bytes_of(&input), bytes_of_mut(&mut output))
                                .expect(named);
                        }
                        assert!(output == wanted, "{named}, rank {rank}, {counts:?}, gap {gap}");
                    }
                });
            }
        });
    }
}

#[test]
fn one_plan_between_processes_serves_every_vector() {
    for n in [1, 2, 3, 5, 8] {
        for places in [Places::Private, Places::Shared, Places::Mixed] {
            serves(Level::O2, n, places, None);
        }
        serves(Level::O1, n, Places::Private, None);
    }
    serves(Level::O0, 4, Places::Private, None);
}

#[test]
fn blocks_longer_than_a_tile_pass_between_processes() {
    for (first, level) in [Level::O2, Level::O1].into_iter().enumerate() {
        serves(level, 3, Places::Private, Some(first));
    }
    for (first, places) in [Places::Mixed, Places::Shared].into_iter().enumerate() {
        serves(Level::O2, 4, places, Some(first));
    }
}

/// Runs `each` on a thread for each rank of a world of several hosts, which `given` changes first.
#[cfg(target_os = "linux")]
fn with_hosts_by(
    places: &[Vec<u32>],
    given: impl Fn(World) -> World + Sync,
    each: impl Fn(&mut Rank<'_>) + Sync,
) {
    let how = How { synchronous: true, patience: 3, most: 1 << 12, fails_after: u64::MAX, seed: 3 };
    let channels = Channels::new(places.iter().map(Vec::len).sum::<usize>() as u32, how);
    std::thread::scope(|threads| {
        for host in places {
            let worlds = shared_memory::World::together(host.len() as u32, Options::default());
            for (world, me) in worlds.expect("worlds").into_iter().zip(host) {
                let (carrier, given, each) = (channels[*me as usize].clone(), &given, &each);
                let world = World::over_hosts(world, places.to_vec(), *me, carrier);
                threads.spawn(move || each(&mut given(world.expect("a world")).rank()));
            }
        }
    });
    assert_eq!(channels[0].open(), 0);
}

/// Runs `each` on a thread for each rank, of a communicator and then of a world.
fn with_ranks(n: u32, each: impl Fn(&mut Rank<'_>) + Sync) {
    let comm = Comm::new(n).expect("ranks");
    let worlds = shared_memory::World::together(n, Options::default()).expect("worlds");
    let worlds: Vec<World> = worlds.into_iter().map(World::over_host).collect();
    std::thread::scope(|threads| {
        for rank in 0..n {
            let (comm, each) = (&comm, &each);
            threads.spawn(move || each(&mut comm.rank(rank).expect("a rank")));
        }
    });
    std::thread::scope(|threads| {
        for world in &worlds {
            let each = &each;
            threads.spawn(move || each(&mut world.rank()));
        }
    });
}

/// Makes the call of a collective with a count for each block that the rank's own counts say.
fn call(
    rank: &mut Rank<'_>,
    collective: Collective,
    root: u32,
    (inputs, outputs): (&[usize], &[usize]),
    input: &[i64],
    output: &mut [i64],
) -> Result<(), Error> {
    match collective {
        Collective::AllGather => rank.all_gather_v(input, output, outputs),
        Collective::ReduceScatter => rank.reduce_scatter_v(input, output, inputs, ReduceOp::Sum),
        Collective::Gather => rank.gather_v(input, output, outputs, root),
        Collective::Scatter => rank.scatter_v(input, output, inputs, root),
        _ => rank.all_to_all_v(input, inputs, output, outputs),
    }
}

const WITH_BLOCKS: [Collective; 5] = [
    Collective::AllGather,
    Collective::ReduceScatter,
    Collective::Gather,
    Collective::Scatter,
    Collective::AllToAll,
];

#[test]
fn ranks_call_with_a_count_for_each_block() {
    for n in [1, 4] {
        with_ranks(n, serves_all);
    }
    for hosts in [vec![vec![0, 1], vec![2, 3]], vec![vec![2], vec![0, 1]], vec![vec![0]]] {
        with_hosts_by(&hosts, |world| world, serves_all);
    }
}

/// Makes each call with blocks for several vectors of counts.
fn serves_all(rank: &mut Rank<'_>) {
    for collective in WITH_BLOCKS {
        serves_each_vector(rank, collective);
    }
}

/// Makes the call of a collective for several vectors of counts, with packed blocks and with blocks apart.
fn serves_each_vector(rank: &mut Rank<'_>, collective: Collective) {
    let n = rank.nranks();
    let roots = if collective.is_rooted() { n } else { 1 };
    let vectors = vectors(collective.blocks(n).expect("blocks") as usize);
    for (root, counts) in (0..roots).cycle().zip(vectors) {
        let (inputs, wanted) = expected(collective, n as usize, root as usize, &counts);
        let (at, id) = (rank.id() as usize, rank.id());
        let of = blocks((collective, root), (id, n), &counts, 0);
        let known = |blocks: &[Block]| -> Vec<usize> {
            blocks.iter().map(|block| block.count as usize).collect()
        };
        let mut output = vec![-1; wanted[at].len()];
        let given = (&*known(of.input()), &*known(of.output()));
        call(rank, collective, root, given, &inputs[at], &mut output).expect("all ranks call");
        assert_eq!(output, wanted[at], "{collective} of {counts:?}");
        // The same blocks, apart from each other.
        let of = blocks((collective, root), (id, n), &counts, 2);
        let input = laid_out(&inputs[at], of.input(), -1);
        let wanted = laid_out(&wanted[at], of.output(), -7);
        let mut output = vec![-7; wanted.len()];
        let called = Call { collective, root, count: 0, dtype: DType::I64, op: ReduceOp::Sum };
        rank.call_blocks(called, &of, &input, &mut output).expect("all ranks call");
        assert_eq!(output, wanted, "{collective} of {counts:?}, apart");
    }
}

/// Every algorithm with blocks, as sends and receives between hosts.
#[test]
#[cfg(target_os = "linux")]
fn messages_between_hosts_serve_every_vector() {
    let mut served = 0;
    for algorithm in select::library() {
        let collective = algorithm.collective();
        for hosts in [vec![vec![0, 1], vec![2, 3]], vec![vec![2, 4], vec![0, 1, 3]]] {
            let n = hosts.iter().map(Vec::len).sum::<usize>() as u32;
            if collective.blocks(n).is_none() || roundelay_core::prove(algorithm, n).is_err() {
                continue;
            }
            served += 1;
            with_hosts_by(
                &hosts,
                |world| world.using_between(&(0..=u64::MAX), algorithm.clone()),
                |rank| {
                    serves_each_vector(rank, collective);
                },
            );
        }
    }
    assert!(served > 40, "{served}");
}

/// A count that two ranks give differently is told with its block, on every rank, and later calls work.
#[test]
fn counts_that_differ_are_told_with_their_block() {
    with_ranks(3, |rank| {
        for collective in WITH_BLOCKS {
            let number = collective.blocks(3).expect("blocks") as usize;
            let alike = vec![2_u64; number];
            let mut other = alike.clone();
            // The block of rank 2, or from rank 1 to rank 2: ranks 1 and 2 do not agree.
            let block = if collective == Collective::AllToAll { 5 } else { 2 };
            other[block] = 3;
            let root = 1;
            let mine = if rank.id() == 2 { &alike } else { &other };
            let make = |rank: &mut Rank<'_>, counts: &[u64]| {
                let of = blocks((collective, root), (rank.id(), 3), counts, 0);
                let known = |blocks: &[Block]| -> Vec<usize> {
                    blocks.iter().map(|block| block.count as usize).collect()
                };
                let given = (&*known(of.input()), &*known(of.output()));
                let input = vec![1; given.0.iter().sum()];
                let mut output = vec![-1; given.1.iter().sum()];
                call(rank, collective, root, given, &input, &mut output)
            };
            // A rank that reads from no other rank may have left the call: it is told by a later call, which is not
            // made then. The difference is known when all ranks are behind it.
            let mut told: Vec<Error> = make(rank, mine).err().into_iter().collect();
            if let Err(refused) = rank.barrier() {
                told.push(refused);
                rank.barrier().expect("it is told once");
            } else if told.is_empty() {
                told.push(rank.barrier().expect_err(collective.name()));
            }
            assert_eq!(told.len(), 1, "{collective}: {told:?}");
            let refused = &told[0];
            assert_eq!(refused.code().as_str(), "E0414", "{collective}: {refused}");
            let block = if collective == Collective::AllToAll {
                "in the block from rank 1 to rank 2"
            } else {
                "in the block of rank 2"
            };
            let text = refused.to_string();
            assert!(text.contains(block), "{collective}: {text}");
            assert!(text.contains("3 elements") && text.contains("2 elements"), "{text}");
            make(rank, &alike).expect("all ranks agree");
        }
    });
}

/// Ranks that make different calls are told both, and no block.
#[test]
fn other_calls_than_those_of_blocks_are_told_by_name() {
    with_ranks(2, |rank| {
        let (mut output, counts) = ([0_i64; 2], [1, 1]);
        let refused = match rank.id() {
            0 => rank.all_gather_v(&[1], &mut output, &counts),
            _ => rank.all_to_all_v(&[1, 1], &counts, &mut output, &counts),
        };
        let text = refused.expect_err("the calls differ").to_string();
        assert!(text.contains("AllGatherV of i64") && text.contains("AllToAllV of i64"), "{text}");
        assert!(text.contains("[E0414]") && !text.contains("in the block"), "{text}");
        rank.all_gather_v(&[rank.id().into()], &mut output, &counts).expect("both ranks call");
        assert_eq!(output, [0, 1]);
    });
}

#[test]
fn bad_blocks_are_refused_before_anything_moves() {
    with_ranks(2, |rank| {
        let mut output = [7_i64; 4];
        let code = |made: Result<(), Error>| made.expect_err("it is refused").code().as_str();
        assert_eq!(code(rank.all_gather_v(&[1], &mut output, &[1, 1])), "E0402");
        assert_eq!(code(rank.all_gather_v(&[1], &mut output, &[4])), "E0432");
        assert_eq!(code(rank.all_gather_v(&[1], &mut output, &[1, 2, 1])), "E0432");
        let (sends, receives) = ([1, 1], [2, 2]);
        let own = rank.all_to_all_v(&[1, 1], &sends, &mut output, &receives);
        assert_eq!(code(own), "E0432", "the block to the rank itself has two counts");
        assert_eq!(code(rank.gather_v(&[1], &mut output, &[2, 2], 9)), "E0411");
        let huge = rank.all_gather_v(&[1_i64], &mut output, &[usize::MAX, 2]);
        assert!(["E0402", "E0432"].contains(&code(huge)));
        // Blocks of another rank, of other ranks, or of another collective are no blocks of this call.
        let called = |collective| Call {
            collective,
            root: 0,
            count: 0,
            dtype: DType::I64,
            op: ReduceOp::Sum,
        };
        let gather = called(Collective::AllGather);
        let others = blocks((Collective::AllGather, 0), (1 - rank.id(), 2), &[1, 1], 0);
        assert_eq!(code(rank.call_blocks(gather, &others, &[1], &mut output)), "E0432");
        let many = blocks((Collective::AllGather, 0), (rank.id(), 5000), &vec![0; 5000], 0);
        assert_eq!(code(rank.call_blocks(gather, &many, &[1], &mut output)), "E0432");
        let all = blocks((Collective::AllToAll, 0), (rank.id(), 2), &[1; 4], 0);
        assert_eq!(code(rank.call_blocks(gather, &all, &[1, 1], &mut output)), "E0432");
        let rooted = blocks((Collective::Gather, 1), (rank.id(), 2), &[1, 1], 0);
        let refused = rank.call_blocks(called(Collective::Gather), &rooted, &[1], &mut output);
        assert_eq!(code(refused), "E0432", "the blocks are of another root");
        assert_eq!(output, [7; 4]);
        // None of these were calls.
        let mut all = [0; 3];
        let input = [[1, 2].as_slice(), &[3]][rank.id() as usize];
        rank.all_gather_v(input, &mut all, &[2, 1]).expect("both ranks call");
        assert_eq!(all, [1, 2, 3]);
    });
    let of = |input: Vec<Block>, output: Vec<Block>| {
        RankBlocks::new(Collective::AllGather, RankId(0), RankId(0), 2, input, output)
            .map(drop)
            .map_err(|problem| problem.to_string())
    };
    let at = |start, count| Block { start, count };
    let overlap = of(Block::pack([2]), vec![at(0, 2), at(1, 2)]).expect_err("they overlap");
    assert!(overlap.contains("blocks 0 and 1 of the output of rank 0 overlap"), "{overlap}");
    let empty = of(Block::pack([2]), vec![at(0, 2), at(1, 0)]);
    assert_eq!(empty, Ok(()), "a block without elements overlaps no other");
    assert!(of(Block::pack([2]), vec![at(0, 2), at(u64::MAX, 2)]).is_err());
    assert!(of(Block::pack([3]), Block::pack([2, 2])).is_err());
}

/// An algorithm that is right for equal counts alone is refused with the reason.
#[test]
fn an_algorithm_for_equal_counts_is_refused() {
    let source = include_str!("../wrong/E0319_wrong_place.coll").replace("#[uneven]\n", "");
    let algorithm = tools::algorithms(&source, None, &[]).expect("it compiles").remove(0);
    let worlds = shared_memory::World::together(2, Options::default()).expect("worlds");
    std::thread::scope(|threads| {
        for world in worlds {
            let algorithm = algorithm.clone();
            threads.spawn(move || {
                let world = World::over_host(world).using_between(&(0..=u64::MAX), algorithm);
                let refused = world.rank().all_gather_v(&[1_i64], &mut [0; 2], &[1, 1]);
                let refused = refused.expect_err("it moves blocks to other places");
                assert_eq!(refused.code().as_str(), "E0319", "{refused}");
            });
        }
    });
}
