//! The results of processes: own memory and memory of the arena, several algorithms in turn, ranks ahead of others.

use roundelay::library::{NcclRingAllReduce, NhrBroadcast, RingAllReduce, TwistedRingAllReduce};
use roundelay::{Error, Level, Options, ReduceOp, World};

use super::ranks::{DEADLINE, case, end, run, say};

/// Makes a rank's calls: several collectives and sizes in turn, so that each meets the state that the last call left.
fn calls(world: &World) -> Result<(), Error> {
    let mut rank = world.rank();
    let (me, n) = (rank.id() as i32, rank.nranks() as i32);
    for turn in 0..12_i32 {
        for count in [1_usize, 1000, 70_000] {
            let mut lent = world.alloc::<i32>(count)?;
            let mut own = vec![me + turn; count];
            lent.copy_from_slice(&own);
            let sum = n * (n - 1) / 2 + n * turn;
            rank.all_reduce(&mut own, ReduceOp::Sum)?;
            assert!(own.iter().all(|x| *x == sum), "turn {turn}, {count}");
            rank.all_reduce(&mut lent, ReduceOp::Sum)?;
            assert!(lent.iter().all(|x| *x == sum), "turn {turn}, {count}, lent");

            let root = (turn % n).cast_unsigned();
            let mut buffer = vec![me * 1000 + turn; count];
            rank.broadcast(&mut buffer, root)?;
            assert!(buffer.iter().all(|x| *x == root.cast_signed() * 1000 + turn));

            let mut all = vec![0; count * n as usize];
            rank.all_gather(&vec![me - turn; count], &mut all)?;
            let right = |(at, x): (usize, &i32)| *x == (at / count) as i32 - turn;
            assert!(all.iter().enumerate().all(right));
            // A rank that comes late, another one each time.
            if turn % n == me {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            let mut part = vec![0; count];
            rank.reduce_scatter(&all, &mut part, ReduceOp::Max)?;
            assert!(part.iter().all(|x| *x == me - turn));
        }
        rank.barrier()?;
    }
    Ok(())
}

fn world(level: Level) -> Result<World, Error> {
    World::from_env_with(Options::new().deadline(DEADLINE).level(level))
}

fn right(test: &str, nranks: u32, case: &str) {
    for told in run(test, nranks, case, |_, _| ()) {
        assert_eq!(told.said, ["done"], "{}", told.all);
        assert!(told.status.success());
    }
}

#[test]
fn calls_of_all_kinds() {
    if case().is_some() {
        calls(&world(Level::O2).expect("a world")).expect("right calls");
        say("done");
        end();
    }
    for nranks in [1, 2, 3, 8] {
        right("kinds::calls_of_all_kinds", nranks, "");
    }
}

#[test]
fn own_algorithms_as_they_were_written() {
    if let Some(level) = case() {
        let world = world(level.parse().expect("a level")).expect("a world");
        // A ring, its twisted variant and a pipeline of pushes take turns at shared signals.
        let world = world
            .using_up_to(100, TwistedRingAllReduce::new())
            .using_up_to(10_000, NcclRingAllReduce::new())
            .using(RingAllReduce::new())
            .using_rooted(|root| NhrBroadcast::new().root(i64::from(root)));
        calls(&world).expect("right calls");
        say("done");
        end();
    }
    for (nranks, level) in [(4, "O0"), (3, "O1"), (4, "O2")] {
        right("kinds::own_algorithms_as_they_were_written", nranks, level);
    }
}

#[test]
fn many_ranks_on_few_cores() {
    if case().is_some() {
        let world = world(Level::O2).expect("a world").using(RingAllReduce::new());
        let mut rank = world.rank();
        for turn in 0..3 {
            let mut buffer = [rank.id() + turn; 300];
            rank.all_reduce(&mut buffer, ReduceOp::Max).expect("a right call");
            assert_eq!(buffer, [23 + turn; 300]);
        }
        say("done");
        end();
    }
    right("kinds::many_ranks_on_few_cores", 24, "");
}
