//! Messages between two ranks.

use std::thread;

use roundelay::{EngineError, Error, Message, RankId, ReduceOp, World};

use super::{COUNTS, code, each, hasty, me, patient};

/// Returns the data that a rank sends in a message of `len` elements.
fn data(from: u32, len: usize) -> Vec<u32> {
    (0..len as u32).map(|at| at.wrapping_mul(2_654_435_761) ^ from << 24).collect()
}

#[test]
fn messages_go_around() {
    for nranks in COUNTS {
        each(nranks, patient(), |world| {
            let me = me(&world);
            let (next, before) = ((me + 1) % nranks, (me + nranks - 1) % nranks);
            // 0 bytes, odd lengths, about a ring, and 1 MiB; all except the first rank receive first.
            for len in [0, 1, 3, 1000, 16_379, 16_380, 16_381, 16_384, 1 << 18] {
                let (sent, mut got) = (data(me, len), vec![7_u32; len]);
                if nranks == 1 {
                    thread::scope(|threads| {
                        threads.spawn(|| world.send(&sent, next).expect("it is received"));
                        world.recv(&mut got, before).expect("it is sent");
                    });
                } else if me == 0 {
                    world.send(&sent, next).expect("it is received");
                    world.recv(&mut got, before).expect("it is sent");
                } else {
                    world.recv(&mut got, before).expect("it is sent");
                    world.send(&sent, next).expect("it is received");
                }
                assert!(got == data(before, len), "{nranks} ranks, {len} elements");
            }
        });
    }
}

#[test]
fn many_messages_come_in_order_beside_calls() {
    let lens = |turn: usize| (turn * 37) % 900;
    each(3, patient(), |world| {
        let me = me(&world);
        thread::scope(|threads| {
            for other in (0..3).filter(|other| *other != me) {
                let world = &world;
                threads.spawn(move || {
                    for turn in 0..500 {
                        world.send(&data(me + turn as u32, lens(turn)), other).expect("a send");
                    }
                });
                threads.spawn(move || {
                    for turn in 0..500 {
                        let mut got = vec![0; lens(turn)];
                        world.recv(&mut got, other).expect("a message");
                        assert_eq!(got, data(other + turn as u32, lens(turn)));
                    }
                });
            }
            let mut rank = world.rank();
            for _ in 0..200 {
                let mut buffer = [me + 1; 100];
                rank.all_reduce(&mut buffer, ReduceOp::Sum).expect("all call");
                assert_eq!(buffer, [6; 100]);
            }
        });
    });
}

#[test]
fn what_fits_is_kept_aside() {
    // Both send before they receive, and a rank sends to itself.
    each(2, patient(), |world| {
        let me = me(&world);
        for to in 0..2 {
            for _ in 0..4 {
                world.send(&data(me, 4000), to).expect("there is room for four");
            }
        }
        for from in 0..2 {
            for _ in 0..4 {
                let mut got = vec![0; 4000];
                world.recv(&mut got, from).expect("it was sent");
                assert!(got == data(from, 4000));
            }
        }
    });
}

#[test]
fn a_message_that_is_received_as_another_one_is_gone() {
    each(2, patient(), |world| {
        if me(&world) == 0 {
            world.send(&[1.0_f32, 2.0], 1).expect("a send");
            // The message is longer than the ring, and no rank receives it.
            world.send(&vec![1_u8; 300_000], 1).expect("a send");
            world.send(&[1_i32, 2], 1).expect("a send");
            world.send(&[5_i64], 1).expect("a send");
        } else {
            let mut floats = [7.0_f32; 3];
            let refused = world.recv(&mut floats, 0);
            assert_eq!(floats.map(f32::to_bits), [7.0_f32.to_bits(); 3]);
            let text = refused.as_ref().expect_err("too short").to_string();
            assert!(text.starts_with("rank 0 sent rank 1 2 elements of f32, and rank 1 received them as 3 elements of f32; "), "{text}");
            let Err(Error::Engine(EngineError::WrongMessage { ranks, sent, .. })) = refused else {
                panic!("{refused:?}")
            };
            let Message { len, dtype } = sent;
            assert_eq!((ranks, len, dtype.size()), ([RankId(0), RankId(1)], 2, 4));
            assert_eq!(code(world.recv(&mut [0_u8; 10], 0)), "E0402");
            assert_eq!(code(world.recv(&mut [0.0_f32; 2], 0)), "E0403");
            let mut last = [0_i64];
            world.recv(&mut last, 0).expect("the next is as good as ever");
            assert_eq!(last, [5]);
        }
        world.rank().barrier().expect("and so are calls");
    });
}

#[test]
fn ranks_that_there_are_not_are_refused() {
    each(2, patient(), |world| {
        assert_eq!(code(world.send(&[1], 2)), "E0411");
        assert_eq!(code(world.recv(&mut [1], 9)), "E0411");
        world.rank().barrier().expect("it works as before");
    });
}

#[test]
fn a_message_that_does_not_come_ends_with_the_deadline() {
    let told = each(2, hasty(), |world| {
        if me(&world) == 0 {
            let error = world.recv(&mut [0_u8; 4], 1).expect_err("no rank sends");
            return (code(Err::<(), _>(error)), String::new());
        }
        // Longer than the ring, to itself.
        let error = world.send(&vec![0_u8; 100_000], 1).expect_err("no rank receives");
        (error.code().as_str().to_owned(), error.to_string())
    });
    // The first rank to fail tells the other.
    let mut codes: Vec<&str> = told.iter().map(|(code, _)| code.as_str()).collect();
    codes.sort_unstable();
    assert_eq!(codes, ["E0405", "E0413"], "{told:?}");
    assert!(told[1].1.contains("waited 700ms for rank"), "{told:?}");
}

#[test]
fn a_rank_that_left_is_named() {
    let told = each(2, patient(), |world| {
        if me(&world) == 1 {
            world.send(&[1_u8], 0).expect("there is room");
            return String::new();
        }
        // The messages that it sent before are there.
        while world.recv(&mut [0_u8], 1).is_err() {}
        world.recv(&mut [0_u8], 1).expect_err("it left").to_string()
    });
    assert!(
        told[0].contains("left the world before it sent message 2 to rank 0; rank 0 waited for it"),
        "{told:?}"
    );
    assert!(told[0].ends_with("[E0428]"));
}

#[test]
fn who_sends_to_a_rank_that_left_is_told() {
    let told = each(2, patient(), |world: World| {
        (me(&world) == 0).then(|| code(world.send(&vec![0_u8; 1 << 20], 1)))
    });
    assert_eq!(told[0].as_deref(), Some("E0428"));
}
