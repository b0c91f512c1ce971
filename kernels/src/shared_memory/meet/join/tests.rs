use std::os::fd::AsFd;
use std::thread;

use rustix::fs::ftruncate;
use rustix::io::{FdFlags, fcntl_getfd, pread, pwrite};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::line::{FDS, Line, LineFault};
use super::wire::{Hello, Word};
use super::*;
use crate::shared_memory::meet::ending::ended;

mod flood;
mod misbehave;
mod users;

const PATIENCE: Duration = Duration::from_secs(30);

fn fresh() -> UniqueId {
    UniqueId::new().expect("an id")
}

fn offer(id: &UniqueId, nranks: u32, rank: u32) -> Offer<'_> {
    let until = moment(PATIENCE);
    Offer {
        id,
        nranks,
        rank,
        bytes: 8192,
        known: (0, &[]),
        version: VERSION,
        deadline: PATIENCE,
        until,
    }
}

fn hasty(id: &UniqueId, nranks: u32, rank: u32, millis: u64) -> Offer<'_> {
    let deadline = Duration::from_millis(millis);
    Offer { deadline, until: moment(deadline), ..offer(id, nranks, rank) }
}

/// Joins with all offers, each on a thread, and returns the results.
fn all(offers: &[Offer<'_>]) -> Vec<Result<Joined, Error>> {
    thread::scope(|scope| {
        let threads: Vec<_> =
            offers.iter().map(|offer| scope.spawn(move || meet(*offer))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

/// Returns the error text, which must be equal for all ranks.
fn refused(results: Vec<Result<Joined, Error>>) -> String {
    let texts: Vec<_> = results
        .into_iter()
        .map(|result| result.expect_err("it cannot go well").to_string())
        .collect();
    assert!(texts.iter().all(|text| *text == texts[0]), "{texts:#?}");
    texts[0].clone()
}

fn has(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "`{word}` in: {text}");
    }
}

/// Returns the first packet of a rank of this world.
fn hello(offer: Offer<'_>) -> Hello {
    Hello {
        secret: offer.id.secret(),
        rank: offer.rank,
        nranks: offer.nranks,
        bytes: offer.bytes,
        pid: 4242,
        left: PATIENCE,
        version: offer.version.to_owned(),
    }
}

/// Returns a connection that has sent this first packet.
fn connected(offer: Offer<'_>) -> Line {
    let line = line::connect(&offer.id.socket(), offer.until).expect("rank 0 listens");
    let me = own_process().expect("this process");
    line.send(&hello(offer).encode(), &[me.pidfd.as_fd()], offer.until).expect("rank 0 listens");
    line
}

/// Receives the answer of rank 0 on a connection.
fn answer(line: &Line) -> Word {
    let packet = line.receive(FDS, moment(PATIENCE)).expect("an answer");
    Word::decode(&packet.bytes).expect("a word")
}

/// Checks that all ranks share one memory and have the descriptors of all processes.
fn well(id: &UniqueId, nranks: usize, results: Vec<Result<Joined, Error>>) {
    let all: Vec<_> = results.into_iter().map(|result| result.expect("all have met")).collect();
    assert_eq!(all.len(), nranks);
    for (rank, joined) in all.iter().enumerate() {
        arena::check(&joined.arena, 8192).expect("as it was made");
        assert!(ftruncate(&joined.arena, 0).is_err(), "sealed");
        assert!(ftruncate(&joined.arena, 1 << 20).is_err(), "sealed");
        let mut word = [7; 8];
        assert_eq!(pread(&joined.arena, &mut word, rank as u64 * 8), Ok(8));
        assert_eq!(word, [0; 8]);
        pwrite(&joined.arena, &(rank as u64 + 1).to_le_bytes(), rank as u64 * 8).expect("memory");
        assert_eq!(joined.peers.len(), nranks);
        assert!(joined.peers.iter().all(|peer| peer.pid == std::process::id()));
        assert_eq!(ended(&joined.peers, rank).expect("it can be asked"), vec![false; nranks]);
        let fds = joined.peers.iter().map(|peer| peer.pidfd.as_fd()).chain([joined.arena.as_fd()]);
        for fd in fds {
            assert!(fcntl_getfd(fd).expect("it is open").contains(FdFlags::CLOEXEC));
        }
    }
    for joined in &all {
        for rank in 0..nranks as u64 {
            let mut word = [0; 8];
            assert_eq!(pread(&joined.arena, &mut word, rank * 8), Ok(8));
            assert_eq!(u64::from_le_bytes(word), rank + 1, "the memory is shared");
        }
    }
    drop(line::listen(&id.socket()).expect("the name is free again"));
}

#[test]
fn ranks_meet() {
    for nranks in [1, 2, 8] {
        let id = fresh();
        let offers: Vec<_> = (0..nranks).map(|rank| offer(&id, nranks, rank)).collect();
        well(&id, nranks as usize, all(&offers));
    }
}

/// All ranks are in one process, which needs 64 times 65 descriptors.
#[test]
fn many_ranks_meet_soon() {
    let limit = getrlimit(Resource::Nofile);
    if limit.maximum.is_some_and(|most| most < 6000) {
        eprintln!("skipped: this process may hold only {:?} descriptors", limit.maximum);
        return;
    }
    if limit.current.is_some_and(|current| current < 6000) {
        let more = Rlimit { current: Some(6000), ..limit };
        setrlimit(Resource::Nofile, more).expect("up to the hard limit");
    }
    let id = fresh();
    let offers: Vec<_> = (0..64).map(|rank| offer(&id, 64, rank)).collect();
    let start = Instant::now();
    let results = all(&offers);
    let took = start.elapsed();
    eprintln!("64 ranks met in {took:?}");
    well(&id, 64, results);
    assert!(took < PATIENCE, "{took:?}");
}

#[test]
fn a_job_meets_again_and_again() {
    let id = UniqueId::of_job(&fresh().to_hex());
    let offers: Vec<_> = (0..4).map(|rank| offer(&id, 4, rank)).collect();
    thread::scope(|scope| {
        let ranks: Vec<_> = offers
            .iter()
            .map(|offer| {
                scope.spawn(move || (0..50).map(|_| meet(*offer)).collect::<Result<Vec<_>, _>>())
            })
            .collect();
        for rank in ranks {
            rank.join().expect("no panic").expect("each world is joined");
        }
    });
}

#[test]
fn two_processes_with_one_rank_are_told_to_all() {
    let id = fresh();
    let offers = [0, 1, 2, 2].map(|rank| offer(&id, 4, rank));
    let text = refused(all(&offers));
    let pid = std::process::id();
    has(&text, &[&format!("processes {pid} and {pid} both are rank 2 of 4"), "[E0427]"]);
}

#[test]
fn two_processes_that_are_rank_0_are_told_to_all() {
    let id = fresh();
    let results = all(&[0, 1, 0].map(|rank| offer(&id, 3, rank)));
    for result in results {
        let text = result.expect_err("there are two").to_string();
        has(&text, &["both are rank 0 of 3", "[E0427]"]);
    }
}

#[test]
fn a_name_in_use_is_told() {
    let id = fresh();
    let listener = line::listen(&id.socket()).expect("the name is free");
    let text = meet(hasty(&id, 2, 0, 300)).expect_err("the name is in use").to_string();
    has(&text, &[&id.socket(), "is in use", "a new id", "[E0427]"]);
    drop(listener);
}

#[test]
fn what_ranks_were_told_differently_is_told_to_all() {
    let id = fresh();
    let differ = |other: &dyn Fn(&mut Offer<'_>), words: &[&str]| {
        let mut offers = [0, 1, 2].map(|rank| offer(&id, 3, rank));
        other(&mut offers[1]);
        let text = refused(all(&offers));
        has(&text, words);
        has(&text, &["rank 1", "[E0427]"]);
    };
    differ(&|offer| offer.nranks = 4, &["is one of 4 ranks", "rank 0", "one of 3"]);
    differ(&|offer| offer.bytes = 4096, &["4096 bytes", "8192"]);
    differ(&|offer| offer.version = "roundelay 9", &["runs roundelay 9", VERSION]);

    let results = all(&[0, 1, 7].map(|rank| offer(&id, 3, rank)));
    has(&refused(results), &["as rank 7 of 3", "the last is 2", "[E0427]"]);
}

#[test]
fn places_that_cannot_be_are_refused_at_once() {
    let id = fresh();
    has(&meet(offer(&id, 1, 1)).expect_err("no such rank").to_string(), &["rank 1 of 1"]);
    has(&meet(hasty(&id, 2, 5, 50)).expect_err("no such rank").to_string(), &["rank 5 of 2"]);
    for nranks in [0, RANK_LIMIT + 1] {
        let error = meet(offer(&id, nranks, 0)).expect_err("no such number");
        assert!(matches!(error, Error::NoRanks { .. }), "{error}");
    }
    let wrong = UniqueId::from_bytes([3; UniqueId::BYTES]);
    has(&meet(offer(&wrong, 2, 1)).expect_err("no id").to_string(), &["the id", "[E0427]"]);
    let large = Offer { bytes: u64::MAX, ..offer(&id, 1, 0) };
    has(&meet(large).expect_err("no such memory").to_string(), &["shared memory", "[E0429]"]);
    // If rank 0 gets no memory, all ranks fail.
    let large = [0, 1, 2].map(|rank| Offer { bytes: u64::MAX, ..offer(&id, 3, rank) });
    has(&refused(all(&large)), &["ftruncate", "[E0429]"]);
}

#[test]
fn a_wrong_secret_is_turned_away_and_the_others_meet() {
    let id = fresh();
    let wrong = id.with_another_secret();
    thread::scope(|scope| {
        let rank_0 = scope.spawn(|| meet(offer(&id, 2, 0)));
        let text = meet(offer(&wrong, 2, 1)).expect_err("it does not belong there").to_string();
        has(&text, &["came as rank 1 with a wrong secret", "[E0427]"]);
        let rank_1 = meet(offer(&id, 2, 1));
        well(&id, 2, vec![rank_0.join().expect("no panic"), rank_1]);
    });
    let results = all(&[hasty(&id, 2, 0, 300), offer(&wrong, 2, 1)]);
    let text = results[0].as_ref().expect_err("nobody else came").to_string();
    has(&text, &["rank 1 of 2 did not come in 300ms", "(as rank 1) came with a wrong secret"]);
}

#[test]
fn ranks_that_do_not_come_are_named_to_all() {
    let id = fresh();
    // The shortest deadline holds for all ranks.
    let mut offers = [0, 1, 3].map(|rank| offer(&id, 6, rank));
    offers[1] = hasty(&id, 6, 1, 400);
    let start = Instant::now();
    let text = refused(all(&offers));
    assert!(start.elapsed() < PATIENCE);
    has(&text, &["ranks 2, 4, 5 of 6 did not come in", &id.socket(), "[E0427]"]);

    let text = meet(hasty(&id, 100, 0, 50)).expect_err("alone").to_string();
    has(&text, &["ranks 1, 2,", " 16 and 83 more of 100"]);

    let text = meet(hasty(&id, 2, 1, 50)).expect_err("rank 0 is missing").to_string();
    has(&text, &["rank 1 waited 50ms for rank 0", &id.socket(), "nobody listens", "[E0427]"]);
}
