//! Wrong words of another rank: rank 1 writes values that no correct rank writes, word by word, and rank 0 gets an
//! error, or data from a place that rank 1 may name. A missing check shows as a panic, as a fault of the system, or as
//! a call that succeeds.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_core::optimize::Level;

use super::{one_shot, plan};
use crate::reduce::{Stores, copy};
use crate::shared_memory::world::memory::arena::{ArenaLayout, SLOT, TEXT};
use crate::shared_memory::world::memory::shared_state::{
    CallHeader, CallPosition, MOST_TILES, Wait,
};
use crate::shared_memory::{World, WorldPlan};
use crate::{Error, Options};

/// The deadline of rank 0, as the awaited rank never comes.
const DEADLINE: Duration = Duration::from_millis(30);

fn worlds(nranks: u32, level: Level) -> Vec<Arc<World>> {
    let options = Options::new().deadline(DEADLINE).level(level).measure(false);
    let worlds = World::together(nranks, options).expect("worlds");
    worlds.into_iter().map(Arc::new).collect()
}

fn code(done: &Result<(), Error>) -> &'static str {
    done.as_ref().map_or_else(|error| error.code().as_str(), |()| "Ok")
}

/// Numbers that are wrong in almost every word.
const ODD: [u64; 10] = [
    1,
    7,
    0xff_ffff,
    0x1ff_ffff,
    0x0200_0000,
    1 << 32,
    (1 << 40) + 3,
    1 << 63,
    u64::MAX - 7,
    u64::MAX,
];

const COUNT: usize = 1000;
const BYTES: usize = 4 * COUNT;

/// Returns the result of rank 0 of three ranks in a call on buffers in the arena, where rank 1 publishes `places` as
/// the positions of its buffers.
fn told_of_places(places: [usize; 2]) -> (Result<(), Error>, Vec<u32>) {
    let (worlds, proved) = (worlds(3, Level::O2), one_shot(3));
    let plans: Vec<WorldPlan> =
        worlds.iter().map(|world| plan(world, &proved, COUNT as u64)).collect();
    let layout = worlds[0].shared.arena.layout;
    let mut lent: Vec<_> =
        worlds.iter().map(|world| world.alloc::<u32>(COUNT).expect("memory")).collect();
    lent.iter_mut().zip([1, 10, 100]).for_each(|(lent, value)| lent.fill(value));
    for (rank, direct) in [(1, places), (2, [layout.heap_of(2); 2])] {
        let mut header = plans[rank].0.header;
        header.direct = Some(direct.map(|at| at as u64));
        worlds[rank].shared.publish(rank, 1, &header, 0);
    }
    let done = plans[0].run_in_place(&mut lent[0]);
    (done, lent[0].to_vec())
}

#[test]
fn buffers_lie_in_the_heap_of_their_rank() {
    let layout = worlds(3, Level::O2)[0].shared.arena.layout;
    let (heap, end) = (layout.heap_of(1), layout.heap_of(1) + layout.heap);
    for good in [heap, heap + 64, heap + 4, end - BYTES] {
        let (done, sums) = told_of_places([good; 2]);
        assert_eq!(code(&done), "Ok", "{good}");
        // The lent buffer of rank 1 has its values, and the rest of its heap is zero.
        assert!(sums[100..900].iter().all(|sum| [101, 111].contains(sum)), "{sums:?}");
    }
    let bad = [
        // Outside of all heaps, in another rank's heap, and partly in another rank's heap.
        0,
        64,
        layout.slot(1, 0),
        layout.common(0),
        layout.room(1),
        layout.heap_of(0),
        layout.heap_of(2),
        heap - 4,
        heap - BYTES,
        end - BYTES + 4,
        end - 4,
        end,
        // Outside of the arena, and so far that sums overflow.
        layout.bytes - 4,
        layout.bytes,
        1 << 62,
        usize::MAX - BYTES,
        usize::MAX - 3,
        // Positions that are not aligned to elements.
        heap + 1,
        heap + 2,
    ];
    for bad in bad {
        for places in [[bad, heap], [heap, bad]] {
            let (done, _) = told_of_places(places);
            assert_eq!(code(&done), "E0430", "{places:?} of {layout:?}");
        }
    }
}

/// Returns the result of rank 0 of two ranks in a call on its own memory, after `say` has written the words of rank 1,
/// both of whose slots hold sevens.
fn told(
    count: usize,
    level: Level,
    say: impl Fn(&World, CallHeader),
) -> (Result<(), Error>, Vec<u32>) {
    let (worlds, proved) = (worlds(2, level), one_shot(2));
    let [mine, theirs] = [0, 1].map(|rank| plan(&worlds[rank], &proved, count as u64));
    let (arena, sevens) = (&worlds[1].shared.arena, vec![7_u32; SLOT / 4]);
    for slot in 0..2 {
        let at = arena.address(arena.layout.slot(1, slot), SLOT);
        // SAFETY: the slots belong to rank 1, which makes no call.
        unsafe { copy(at, sevens.as_ptr().cast(), SLOT, Stores::Cached) };
    }
    say(&worlds[1], theirs.0.header);
    let mut buffer = vec![1; count];
    let done = mine.run_in_place(&mut buffer);
    (done, buffer)
}

#[test]
fn any_slot_is_one_of_the_rank() {
    // Calls of one tile, and of several tiles.
    for count in [COUNT, 300_000] {
        for slot in ODD.map(|odd| odd >> 1) {
            let (done, sums) = told(count, Level::O2, |world, mut header| {
                header.slot = slot;
                world.shared.publish(1, 1, &header, MOST_TILES);
                world.shared.finish(1, 1, MOST_TILES);
            });
            assert_eq!(code(&done), "Ok", "{slot}");
            assert!(sums.iter().all(|sum| *sum == 8), "{slot}: {sums:?}");
        }
    }
}

#[test]
fn what_is_not_staged_is_waited_for() {
    for (count, staged) in [(COUNT, 0), (300_000, 0), (300_000, 1), (2_000_000, 4)] {
        let (done, _) = told(count, Level::O2, |world, header| {
            world.shared.publish(1, 1, &header, staged);
            world.shared.finish(1, 1, MOST_TILES);
        });
        assert_eq!(code(&done), "E0405", "{staged} tiles");
    }
    // A rank does not reuse a slot whose readers are not done.
    let (done, _) = told(2_000_000, Level::O2, |world, header| {
        world.shared.publish(1, 1, &header, MOST_TILES);
    });
    assert_eq!(code(&done), "E0405");
}

#[test]
fn another_call_is_refused() {
    for word in 1..4 {
        for odd in ODD {
            let (done, _) = told(COUNT, Level::O2, |world, header| {
                world.shared.publish(1, 1, &header, MOST_TILES);
                let arena = &world.shared.arena;
                let word = arena.word(arena.layout.call(1, 1) + 8 * word);
                word.store(word.load(Ordering::Relaxed) ^ odd, Ordering::Relaxed);
            });
            assert_eq!(code(&done), "E0414", "{word} {odd}");
        }
    }
}

#[test]
fn signals_that_nobody_posted_lead_nowhere() {
    for odd in ODD {
        let (done, _) = told(COUNT, Level::O0, |world, header| {
            world.shared.publish(1, 1, &header, 0);
            let arena = &world.shared.arena;
            for which in 0..4 {
                arena.word(arena.layout.signal(1, 0, which)).store(odd, Ordering::Relaxed);
            }
        });
        assert_eq!(code(&done), "Ok", "{odd}");
    }
    let (done, _) = told(COUNT, Level::O0, |world, header| world.shared.publish(1, 1, &header, 0));
    assert_eq!(code(&done), "E0405", "without any");
}

/// Returns the result of rank 0 of three ranks, where ranks 1 and 2 have staged their tiles and `words` gives the two
/// words of the tile.
fn told_of_claims(words: impl Fn(&ArenaLayout) -> [Option<u64>; 2]) -> Result<(), Error> {
    let (worlds, proved) = (worlds(3, Level::O2), one_shot(3));
    let plans: Vec<WorldPlan> = worlds.iter().map(|world| plan(world, &proved, 20_000)).collect();
    let arena = &worlds[0].shared.arena;
    for rank in [1, 2] {
        worlds[rank].shared.publish(rank, 1, &plans[rank].0.header, 1);
    }
    for (at, word) in arena.layout.claims(1).into_iter().zip(words(&arena.layout)) {
        arena.word(at).store(word.unwrap_or(0), Ordering::Relaxed);
    }
    plans[0].run_in_place(&mut vec![1_u32; 20_000])
}

#[test]
fn chunks_that_nobody_took_lead_nowhere() {
    let tile = 1 << 24;
    assert_eq!(code(&told_of_claims(|_| [None, None])), "Ok");
    // All chunks are taken, and no rank makes them.
    for taken in [tile + 1, tile + 3, tile + 0xff_fffe, tile + 0xff_ffff, 2 * tile, u64::MAX] {
        assert_eq!(code(&told_of_claims(|_| [Some(taken), None])), "E0405", "{taken:#x}");
    }
    // Words that count chunks as done that no rank took: no rank can detect this, and nothing breaks.
    for done in [tile + 1, tile + 0xff_ffff, 2 * tile, u64::MAX] {
        let told = told_of_claims(|_| [None, Some(done)]);
        assert!(["Ok", "E0405"].contains(&code(&told)), "{done:#x}: {told:?}");
    }
}

/// Changes every word of a rank's own lines, of the first page, and of the records of refused calls.
#[test]
fn words_that_are_no_places_break_nothing() {
    let layout = worlds(2, Level::O2)[0].shared.arena.layout;
    let own = (0..7).flat_map(|line| (0..8).map(move |word| layout.own(1, line) + 8 * word));
    let first = (8..26).map(|word| 8 * word);
    let voids = (0..3).flat_map(|number| (0..9).map(move |word| layout.void(number) + 8 * word));
    for at in own.chain(first).chain(voids) {
        for odd in [7, 0x1ff_ffff, 1 << 40, u64::MAX] {
            // Rank 1 makes the call, or does not.
            for comes in [true, false] {
                // A case without rank 1 costs a deadline, as rank 0 waits for rank 1.
                if !comes && odd != u64::MAX {
                    continue;
                }
                let (done, sums) = told(COUNT, Level::O2, |world, header| {
                    if comes {
                        world.shared.publish(1, 1, &header, MOST_TILES);
                    }
                    world.shared.arena.word(at).store(odd, Ordering::Relaxed);
                });
                match code(&done) {
                    "Ok" => assert!(comes && sums.iter().all(|sum| *sum == 8), "{at} {odd}"),
                    "E0405" | "E0413" | "E0414" | "E0428" => {}
                    other => panic!("{at} {odd}: {other}"),
                }
            }
        }
    }
}

/// Rank 1 waits for a rank that does not exist.
#[test]
fn nobody_is_behind_a_rank_that_waits_for_none() {
    for rank in [2, 1 << 40, usize::MAX - 1] {
        let (done, _) = told(COUNT, Level::O2, |world, _| {
            let wait = Wait { since: 1, on: Some(rank), number: 1, needs: 1, progress: false };
            world.shared.tell_wait(1, Some(&wait));
            world.shared.stand(1, CallPosition { step: u32::MAX, at: u32::MAX });
        });
        assert_eq!(code(&done), "E0405", "{rank}");
    }
}

/// Rank 1 writes a cause: of any kind, of any length, of bytes that are no text.
#[test]
fn a_cause_is_no_longer_than_its_room() {
    for (kind, told_as) in [(1, "E0428"), (2, "E0413"), (u64::MAX, "E0413")] {
        for len in [0, 1, TEXT as u64, TEXT as u64 + 1, 1 << 40, u64::MAX] {
            let (done, _) = told(COUNT, Level::O2, |world, _| {
                let store = |at, word| world.shared.arena.word(at).store(word, Ordering::Relaxed);
                (0..TEXT / 8).for_each(|at| store((4 << 10) + 8 * at, u64::MAX));
                for (at, word) in [kind, u64::MAX, u64::MAX, u64::MAX, len].into_iter().enumerate()
                {
                    store(72 + 8 * at, word);
                }
                store(64, 2);
            });
            assert_eq!(code(&done), told_as, "{kind} {len}");
            let text = done.expect_err("it failed").text();
            assert!(text.len() < 4 * TEXT, "{} bytes", text.len());
        }
    }
}

/// Rank 1 writes a record of a refused call that names ranks and calls that do not exist.
#[test]
fn a_record_of_no_call_is_told() {
    for state in [1_u64, 2] {
        let (done, _) = told(COUNT, Level::O2, |world, header| {
            world.shared.publish(1, 1, &header, 1);
            let arena = &world.shared.arena;
            for word in 1..9 {
                arena.word(arena.layout.void(1) + 8 * word).store(u64::MAX, Ordering::Relaxed);
            }
            arena.word(arena.layout.void(1)).store(1 << 2 | state, Ordering::Relaxed);
        });
        assert_eq!(code(&done), "E0414");
        assert!(done.expect_err("refused").text().contains("no call that there is"));
    }
}

/// Changes the length in a header to a length that the sender does not send.
#[test]
fn a_message_is_as_long_as_its_receiver_has_room() {
    for len in [0, 4, 12, 1 << 40, 1 << 62, u64::MAX - 3] {
        let worlds = worlds(2, Level::O2);
        worlds[1].send(&[1_u32, 2], 0).expect("there is room");
        let arena = &worlds[0].shared.arena;
        let header = arena.layout.mail(1, 0) + 2 * crate::shared_memory::world::memory::arena::LINE;
        arena.word(header + 8).store(len, Ordering::Relaxed);
        let mut buffer = [5_u32; 4];
        let done = worlds[0].recv(&mut buffer[1..3], 1);
        assert!(["E0402", "E0403", "E0405"].contains(&code(&done)), "{len}: {done:?}");
        assert_eq!(buffer, [5; 4], "{len}");
    }
}

/// Rank 1 writes correct words: so a mistake in this file does not look like one of the engine.
#[test]
fn a_rank_that_says_what_ranks_say_is_heard() {
    let (done, sums) = told(COUNT, Level::O2, |world, header| {
        assert_eq!(header.name(), plan_name(world));
        world.shared.publish(1, 1, &header, 1);
    });
    assert_eq!((code(&done), sums), ("Ok", vec![8; COUNT]));
}

fn plan_name(world: &World) -> Option<String> {
    assert_eq!(world.rank(), 1);
    let kind = (roundelay_core::collective::Collective::AllReduce, roundelay_core::ids::RankId(0));
    CallHeader::new(0, kind, (COUNT as u64, DType::U32, ReduceOp::Sum)).name()
}
