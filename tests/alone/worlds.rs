//! Ranks that are processes: here each is a thread, which joins as a process would. Elsewhere than on Linux there are
//! none, and a program is told so.

use std::thread;

use roundelay::{
    Code, Ended, EngineError, Error, Lent, Message, Nonblocking, Pending, ReduceOp, Scope,
    UniqueId, World,
};

#[test]
fn a_world_needs_a_launcher_and_linux() {
    let error = World::from_env().expect_err("nothing launched this test");
    let code = if cfg!(target_os = "linux") { Code::NotJoined } else { Code::SystemRefused };
    assert_eq!(error.code(), code, "{error}");
}

/// Runs both ranks of a world of two.
fn both(rank: impl Fn(World) -> Result<(), Error> + Sync) {
    let id = match UniqueId::new() {
        Ok(id) => id,
        Err(error) => {
            assert!(!cfg!(target_os = "linux") && error.code() == Code::SystemRefused, "{error}");
            return;
        }
    };
    thread::scope(|threads| {
        for me in 0..2 {
            let (id, rank) = (&id, &rank);
            threads.spawn(move || {
                let world = World::join(id, 2, me).expect("both join");
                rank(world).expect("it works");
            });
        }
    });
}

#[test]
fn ranks_of_a_world_call_and_send() {
    both(|world| {
        let mut lent: Lent<f32> = world.alloc(100)?;
        lent.fill(1.0);
        world.rank().all_reduce(&mut lent, ReduceOp::Sum)?;
        assert_eq!(*lent, [2.0; 100]);
        let me = world.rank().id();
        if me == 0 {
            world.send(&[1_u8, 2, 3], 1)?;
        } else {
            match world.recv(&mut [0_u8; 2], 0) {
                Err(Error::Engine(EngineError::WrongMessage { sent, .. })) => {
                    let Message { len, .. } = sent;
                    assert_eq!(len, 3);
                }
                other => panic!("{other:?}"),
            }
        }
        let alone = world.split(Some(me), 0)?.expect("a color");
        assert_eq!(alone.nranks(), 1);
        Ok(())
    });
}

#[test]
fn calls_need_not_block() {
    both(|world| {
        let calls: Nonblocking<'_> = world.nonblocking();
        let sum: Pending<Vec<i32>> = calls.all_reduce(vec![1; 10], ReduceOp::Sum);
        let mut borrowed = [1; 10];
        let sums = |scope: &Scope<'_, '_>| scope.barrier().wait();
        world.scope(|scope| {
            scope.all_reduce(&mut borrowed, ReduceOp::Sum);
            sums(scope)
        })?;
        assert_eq!((sum.wait()?, borrowed), (vec![2; 10], [2; 10]));
        Ok(())
    });
}

#[test]
fn survivors_go_on() {
    both(|world| {
        if world.rank().id() == 1 {
            return Ok(());
        }
        match world.rank().barrier() {
            Err(Error::Engine(EngineError::RankEnded(ended))) => {
                let Ended { rank, .. } = *ended;
                assert_eq!(rank.0, 1);
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(world.shrink()?.nranks(), 1);
        Ok(())
    });
}
