//! First calls that check themselves, because the environment says so: right data passes in every kind of call, a
//! fault of the engine is found and named alike by all ranks, and another value of the variable is an error.

use roundelay::compiler::counts::{Block, RankBlocks};
use roundelay::{Call, Collective, DType, ReduceOp, World};
use roundelay_kernels::shared_memory::Fault;

use super::ranks::{Told, case, end, run_under, say};

/// A rank's life.
fn live(case: &str) -> ! {
    let world = match World::from_env() {
        Ok(world) => world,
        Err(error) => {
            say(&error.to_string());
            end();
        }
    };
    match case {
        "flip" => flip(&world),
        _ => every_call(&world),
    }
    end();
}

/// Byte 8 of the output of rank 1 is wrong in the first call of the world, which is a check.
fn flip(world: &World) {
    let (mut rank, mut sums) = (world.rank(), [1.5_f32; 100]);
    if rank.id() == 1 {
        world.inject(1, 0, || (), Fault::Flip(8));
    }
    let error = rank.all_reduce(&mut sums, ReduceOp::Sum).expect_err("it is found");
    say(&error.to_string());
    assert!(sums.iter().all(|x| x.to_bits() == 1.5_f32.to_bits()), "the call was not made");
    rank.all_reduce(&mut sums, ReduceOp::Sum).expect("the fault is gone");
    assert!(sums.iter().all(|x| x.to_bits() == 4.5_f32.to_bits()));
}

/// All kinds of calls, blocking and not, of which none is wrong.
fn every_call(world: &World) {
    let mut rank = world.rank();
    let (me, n) = (rank.id(), rank.nranks());
    for turn in 0..2_u32 {
        for count in [0, 1, 1000, 100_000] {
            let mut sums = vec![me + turn; count];
            rank.all_reduce(&mut sums, ReduceOp::Sum).expect("a sum");
            assert!(sums.iter().all(|x| *x == 3 + n * turn));
            let mut lent = world.alloc::<u32>(count).expect("memory");
            lent.fill(me);
            rank.all_reduce(&mut lent, ReduceOp::Max).expect("a maximum");
            assert!(lent.iter().all(|x| *x == n - 1));
            let pending = world.nonblocking().all_gather(vec![me; count], vec![9; 3 * count]);
            let (_, all) = pending.wait().expect("all");
            assert!(all.iter().enumerate().all(|(at, x)| *x as usize == at / count));
        }
        let mut buffer = [f64::from(me); 7];
        rank.broadcast(&mut buffer, 2).expect("a copy");
        assert!(buffer.iter().all(|x| x.to_bits() == 2_f64.to_bits()));
        // The last block is the first in memory, and there are gaps.
        let there = [(8, 2), (4, 0), (1, 3)].map(|(start, count)| Block { start, count });
        let (collective, dtype) = (Collective::AllGather, DType::I32);
        let call = Call { collective, root: 0, count: 0, dtype, op: ReduceOp::Sum };
        let mine = Block::pack([there[me as usize].count]);
        let mut output = [-1; 10];
        let input = vec![me as i32; mine[0].count as usize];
        let blocks = RankBlocks::new(collective, 0.into(), me.into(), n, mine, there.to_vec());
        let blocks = blocks.expect("blocks");
        rank.call_blocks(call, &blocks, &input, &mut output).expect("blocks");
        assert_eq!(output, [-1, 2, 2, 2, -1, -1, -1, -1, 0, 0]);
    }
    let half = world.split(Some(me % 2), 0).expect("a world").expect("with a color");
    half.rank().barrier().expect("all come");
    say("right");
}

fn ranks(check: &str, case: &str) -> Vec<Told> {
    let variable = format!("ROUNDELAY_CHECK={check}");
    run_under(&["env", &variable], "checks::first_calls_check_themselves", 3, case, |_, _| ())
}

#[test]
fn first_calls_check_themselves() {
    if let Some(case) = case() {
        live(&case);
    }
    let said = |told: &[Told]| -> Vec<String> {
        let all = |told: &Told| {
            assert!(told.status.success(), "{}", told.all);
            told.said.join("\n")
        };
        told.iter().map(all).collect()
    };
    assert_eq!(said(&ranks("first", "right")), ["right"; 3]);
    let errors = said(&ranks("first", "flip"));
    assert_eq!(errors, [errors[0].as_str(); 3], "all ranks are told alike");
    for words in
        ["OneShotMeshAllReduce", "AllReduce of 100 f32, sum", "element 2", "rank 1", "[E0433]"]
    {
        assert!(errors[0].contains(words), "{words}: {}", errors[0]);
    }
    for error in said(&ranks("often", "right")) {
        assert!(error.contains("`often`; give `first` or `never`"), "{error}");
    }
}
