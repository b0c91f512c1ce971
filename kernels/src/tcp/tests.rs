//! Ranks that are threads meet by TCP, and send each other messages; strangers do not come in.

use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::*;
use crate::network::Carrier;
use crate::shared_memory::UniqueId;
use crate::ucx::UcxCarrier;
use crate::{Error, Options};

const DEADLINE: Duration = Duration::from_secs(60);

fn options(deadline: Duration) -> Options {
    Options::new().deadline(deadline)
}

/// A root, its address on the loopback interface, and its key.
fn root(nranks: Option<u32>, deadline: Duration) -> (SocketAddr, Key) {
    let key = Key::new().expect("random bytes");
    let root = Root::open(0, &key, nranks, deadline).expect("a port");
    let port = root.addresses().first().expect("an address").port();
    (SocketAddr::from(([127, 0, 0, 1], port)), key)
}

/// Returns the jobs of all ranks.
fn jobs(nranks: u32) -> Vec<TcpJob> {
    let (at, key) = root(Some(nranks), DEADLINE);
    let join = |rank| TcpJob::join(&[at], key.clone(), rank, nranks, options(DEADLINE));
    (0..nranks).map(|rank| join(rank).expect("it joins")).collect()
}

/// Runs each rank in a thread of its own.
fn each<T: Send>(jobs: &[TcpJob], run: impl Fn(&TcpJob) -> T + Sync) -> Vec<T> {
    thread::scope(|scope| {
        let threads: Vec<_> = jobs.iter().map(|job| scope.spawn(|| run(job))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

/// A way to make the carrier of a rank.
type Kind = fn(&TcpJob) -> Result<Arc<dyn Carrier>, Error>;

/// The carriers of ranks that meet by TCP.
fn kinds() -> Vec<Kind> {
    let by_ucx: Kind = |job| Ok(Arc::new(UcxCarrier::of_job(job)?));
    match UcxCarrier::find_library() {
        Ok(()) => vec![TcpJob::carrier, by_ucx],
        Err(error) => {
            println!("UCX is not tried: {error}");
            vec![TcpJob::carrier]
        }
    }
}

fn carriers(kind: Kind, jobs: &[TcpJob]) -> Vec<Arc<dyn Carrier>> {
    each(jobs, |job| kind(job).expect("a carrier"))
}

fn refused(result: Result<impl Sized, Error>, words: &[&str]) {
    let text = result.err().expect("it is refused").to_string();
    assert!(words.iter().all(|word| text.contains(word)), "{text}");
}

#[test]
fn ranks_bring_their_bytes_together() {
    let jobs = jobs(9);
    for len in [0, 1, 100_000] {
        let all: Vec<u8> = (0..9).flat_map(|rank| vec![rank; len]).collect();
        assert!(
            each(&jobs, |job| job.allgather(&vec![job.rank as u8; len]).expect("all"))
                .iter()
                .all(|got| *got == all)
        );
    }
}

/// As many ranks as some large jobs have, each of which also tells the others its addresses.
#[test]
fn a_thousand_ranks_meet() {
    let (at, key) = root(Some(1024), DEADLINE);
    let begun = Instant::now();
    let join = &|rank: u32| {
        let job =
            TcpJob::join(&[at], key.clone(), rank, 1024, options(DEADLINE)).expect("it joins");
        let all = job.allgather(&rank.to_le_bytes()).expect("all");
        assert!(all.chunks(4).zip(0_u32..).all(|(bytes, rank)| bytes == rank.to_le_bytes()));
        job
    };
    thread::scope(|scope| {
        let all: Vec<_> = (0..1024)
            .map(|rank| {
                thread::Builder::new().stack_size(256 << 10).spawn_scoped(scope, move || join(rank))
            })
            .collect();
        let met = begun.elapsed();
        for rank in all {
            rank.expect("a thread").join().expect("no panic");
        }
        println!("started after {met:?}, met after {:?}", begun.elapsed());
    });
}

/// A connection that says nothing, one that says something else, one with another key, and one that goes away.
#[test]
fn strangers_hold_nobody_up() {
    let (at, key) = root(Some(2), DEADLINE);
    let mut silent = Vec::new();
    for nth in 0..40 {
        let mut stranger = TcpStream::connect(at).expect("the port is open");
        match nth % 4 {
            0 => silent.push(stranger),
            1 => stranger
                .write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\nand more than a first message has")
                .expect("it is sent"),
            2 => stranger.write_all(&[0; 48]).expect("it is sent"),
            _ => drop(stranger),
        }
    }
    let other = Key::new().expect("random bytes");
    let short = options(Duration::from_secs(10));
    refused(TcpJob::join(&[at], other, 0, 2, short), &["reaches no root", "another key", "E0427"]);
    let begun = Instant::now();
    let jobs: Vec<_> = (0..2)
        .map(|rank| TcpJob::join(&[at], key.clone(), rank, 2, options(DEADLINE)).expect("it joins"))
        .collect();
    assert_eq!(
        each(&jobs, |job| job.allgather(&[job.rank as u8]).expect("both")),
        [[0, 1], [0, 1]]
    );
    assert!(begun.elapsed() < DEADLINE / 2, "{:?}", begun.elapsed());
}

/// What a rank says wrongly is its own error: the first that claims a rank stays, and the others meet.
#[test]
fn a_wrong_claim_ends_nobody_elses() {
    let (at, key) = root(Some(2), DEADLINE);
    let join = |rank, nranks| TcpJob::join(&[at], key.clone(), rank, nranks, options(DEADLINE));
    let first = join(0, 2).expect("it joins");
    for (rank, nranks, words) in [
        (0, 2, ["rank 0 has come already", "from host"]),
        (1, 3, ["started as one of 3", "the job has 2"]),
        (5, 2, ["no rank 5", "among 2"]),
    ] {
        refused(join(rank, nranks), &words);
    }
    let both = [first, join(1, 2).expect("it joins")];
    assert_eq!(each(&both, |job| job.allgather(&[7]).expect("both")), [[7, 7], [7, 7]]);
    // After all have come, one more is too late.
    refused(join(1, 2), &["one more"]);
}

#[test]
fn a_missing_rank_is_named() {
    let (at, key) = root(None, Duration::from_secs(4));
    let short = options(Duration::from_secs(4));
    let join = |rank| TcpJob::join(&[at], key.clone(), rank, 3, short).expect("it joins");
    let jobs = [join(2), join(0)];
    for result in each(&jobs, |job| job.allgather(&[0])) {
        refused(result, &["rank 1 of 3 did not come", "2 came, from", "E0427"]);
    }
    // Where nobody listens, the address is told.
    let nowhere = SocketAddr::from(([127, 0, 0, 1], 9));
    let alone = TcpJob::join(&[nowhere], key.clone(), 1, 2, options(Duration::from_millis(300)));
    refused(alone, &["reaches no root at 127.0.0.1:9", "start rank 0 there"]);
}

/// Sends of both directions, with tags that meet in another order than they were sent, and lengths of all kinds.
#[test]
fn messages_meet_by_tag_in_order() {
    for kind in kinds() {
        let carriers = carriers(kind, &jobs(3));
        let lens = [1, 15, 16, 17, 4000, 128 << 10, 1_000_003];
        let data = |from: u32, to: u32, tag: u32, nth: usize, len: usize| -> Vec<u8> {
            let seed = from * 7 + to * 11 + tag * 13 + nth as u32 * 17;
            (0..len).map(|at| (at as u32 * 31 + seed) as u8).collect()
        };
        thread::scope(|scope| {
            for (rank, carrier) in (0_u32..).zip(&carriers) {
                scope.spawn(move || {
                    let peers: Vec<u32> = (0..3).filter(|peer| *peer != rank).collect();
                    let mut sent = Vec::new();
                    let mut open = Vec::new();
                    for (nth, len) in lens.into_iter().enumerate() {
                        for peer in &peers {
                            for tag in 0..3 {
                                let message = data(rank, *peer, tag, nth, len);
                                // SAFETY: the message is kept until all requests have ended.
                                let sends =
                                    unsafe { carrier.send(*peer, tag, message.as_ptr(), len) };
                                open.push(sends.expect("it begins"));
                                sent.push(message);
                            }
                        }
                    }
                    for tag in [2, 0, 1] {
                        for (nth, len) in lens.into_iter().enumerate() {
                            for peer in &peers {
                                let mut got = vec![0; len];
                                // SAFETY: the memory is kept until the request has ended.
                                let receives =
                                    unsafe { carrier.receive(*peer, tag, got.as_mut_ptr(), len) };
                                let mut request = receives.expect("it begins");
                                while !carrier.ended(&mut request).expect("it ends") {
                                    thread::yield_now();
                                }
                                assert!(
                                    got == data(*peer, rank, tag, nth, len),
                                    "{rank} {peer} {tag} {nth}"
                                );
                            }
                        }
                    }
                    for mut request in open {
                        while !carrier.ended(&mut request).expect("it ends") {
                            thread::yield_now();
                        }
                    }
                });
            }
        });
    }
}

/// Receives until an error.
fn fails(carrier: &dyn Carrier, from: u32) -> Error {
    let mut byte = [0];
    // SAFETY: the memory is kept until the request has failed.
    let begun = unsafe { carrier.receive(from, 1, byte.as_mut_ptr(), 1) };
    let mut request = match begun {
        Ok(request) => request,
        Err(error) => return error,
    };
    loop {
        match carrier.ended(&mut request) {
            Ok(false) => thread::yield_now(),
            Ok(true) => panic!("nobody sent that"),
            Err(error) => return error,
        }
    }
}

#[test]
fn a_rank_that_is_gone_is_known_to_all() {
    for kind in kinds() {
        let jobs = jobs(4);
        let carriers = carriers(kind, &jobs);
        let begun = Instant::now();
        jobs[2].vanish();
        // Rank 3 waits for rank 1, which lives.
        for (carrier, from) in [(&carriers[0], 2), (&carriers[1], 2), (&carriers[3], 1)] {
            let error = fails(&**carrier, from).to_string();
            assert!(error.contains("rank 2 is gone") && error.contains("[E0428]"), "{error}");
        }
        assert!(begun.elapsed() < DEADLINE / 2, "{:?}", begun.elapsed());
    }
}

/// A send may end before its receive has begun: its message comes also where the sender leaves at once.
#[test]
fn a_message_arrives_whose_sender_has_left() {
    for (kind, len) in
        kinds().into_iter().flat_map(|kind| [1, 5000, 300_000].map(|len| (kind, len)))
    {
        for pause in [0, 1, 30] {
            let jobs = jobs(2);
            let carriers = carriers(kind, &jobs);
            let [receives, sends] = <[_; 2]>::try_from(carriers).ok().expect("two ranks");
            let (sent, mut got) = (vec![9_u8; len], vec![0_u8; len]);
            thread::scope(|scope| {
                scope.spawn(|| {
                    // SAFETY: the memory is kept until the request has ended.
                    let begun = unsafe { sends.send(0, 1, sent.as_ptr(), len) };
                    let mut request = begun.expect("it begins");
                    while !sends.ended(&mut request).expect("it ends") {
                        thread::yield_now();
                    }
                    drop(sends);
                });
                thread::sleep(Duration::from_millis(pause));
                // SAFETY: the memory is kept until the request has ended.
                let begun = unsafe { receives.receive(1, 1, got.as_mut_ptr(), len) };
                let mut request = begun.expect("it begins");
                while !receives.ended(&mut request).expect("it comes") {
                    thread::yield_now();
                }
            });
            assert!(got == sent);
        }
    }
}

/// The carrier itself sees a connection that is lost, where the root has said nothing.
#[test]
fn a_lost_connection_is_seen_without_the_root() {
    for kind in kinds() {
        let jobs = jobs(2);
        let mut carriers = carriers(kind, &jobs);
        let mut byte = [0];
        // SAFETY: both are kept until the requests have ended.
        let mut both = unsafe {
            [
                (0, carriers[0].receive(1, 1, byte.as_mut_ptr(), 1).expect("it begins")),
                (1, carriers[1].send(0, 1, [7].as_ptr(), 1).expect("it begins")),
            ]
        };
        for (at, request) in &mut both {
            while !carriers[*at].ended(request).expect("nobody is gone") {
                thread::yield_now();
            }
        }
        assert_eq!(byte, [7]);
        drop(carriers.remove(1));
        let begun = Instant::now();
        let error = fails(&*carriers[0], 1).to_string();
        println!("{}: {:?}: {error}", carriers[0].name(), begun.elapsed());
        assert!(error.contains("rank 1 is gone") && error.contains("[E0428]"), "{error}");
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    }
}

#[test]
fn an_abort_is_told_to_all() {
    for kind in kinds() {
        let jobs = jobs(3);
        let carriers = carriers(kind, &jobs);
        let begun = Instant::now();
        carriers[1].abort("the input is \u{1F980} wrong");
        for (at, from) in [(0, 2), (2, 0)] {
            let error = fails(&*carriers[at], from).to_string();
            let words = [&format!("rank {at}"), "rank 1", "it aborted: the input is", "[E0413]"];
            assert!(words.iter().all(|word| error.contains(*word)), "{error}");
        }
        // A reason that is too long is cut.
        carriers[0].abort(&"\u{1F980}".repeat(1 << 20));
        assert!(begun.elapsed() < DEADLINE / 2, "{:?}", begun.elapsed());
    }
}

/// A rank that leaves is not gone: those that do not need it go on, also where it was the root's.
#[test]
fn ranks_may_leave_one_after_the_other() {
    for kind in kinds() {
        let mut jobs = jobs(3);
        let mut carriers = carriers(kind, &jobs);
        drop((jobs.remove(0), carriers.remove(0)));
        thread::sleep(Duration::from_millis(100));
        let (mut one, other) = (vec![0_u8; 9], vec![5_u8; 9]);
        // SAFETY: both are kept until the requests have ended.
        let mut requests = unsafe {
            [
                (&carriers[0], carriers[0].receive(2, 0, one.as_mut_ptr(), 9).expect("it begins")),
                (&carriers[1], carriers[1].send(1, 0, other.as_ptr(), 9).expect("it begins")),
            ]
        };
        for (carrier, request) in &mut requests {
            while !carrier.ended(request).expect("nobody is gone") {
                thread::yield_now();
            }
        }
        assert_eq!(one, other);
    }
}

/// The carriers of ranks that have ended are gone, that of rank 0 too.
#[test]
fn those_who_are_left_agree() {
    for kind in kinds() {
        let mut carriers = carriers(kind, &jobs(5));
        drop((carriers.remove(3), carriers.remove(0)));
        let agreed: Vec<_> = thread::scope(|scope| {
            let agree = |carrier: &Arc<dyn Carrier>| carrier.survivors(options(DEADLINE));
            let threads: Vec<_> =
                carriers.iter().map(|one| scope.spawn(move || agree(one))).collect();
            threads.into_iter().map(|one| one.join().expect("no panic").expect("a world")).collect()
        });
        for (rank, left) in (0..).zip(&agreed) {
            assert_eq!((left.nranks, left.rank), (3, rank));
            assert!(left.id == agreed[0].id);
        }
        // The first that is left is there, and calls nothing.
        let alone = carriers[1].survivors(options(Duration::from_secs(1)));
        refused(alone, &["rank 2 waited", "for rank 1, which is there", "E0427"]);
    }
}

/// Messages are not encrypted, so what ranks tell each other of a place is not enough to come in.
#[test]
fn a_place_for_some_ranks_has_a_key_of_its_own() {
    for kind in kinds() {
        let [ours, theirs] = [carriers(kind, &jobs(2)), carriers(kind, &jobs(1))];
        let shown = ours[0].open_place(options(DEADLINE)).expect("a place");
        let at = shown.addresses().expect("its addresses");
        let join = |key: [u8; Key::BYTES], rank, deadline| {
            TcpJob::join(&at, Key::from_bytes(key), rank, 2, options(deadline))
        };
        let other = theirs[0].with_key(&shown).expect("an id").secret();
        for key in [shown.secret(), other] {
            refused(join(key, 0, Duration::from_secs(10)), &["another key", "E0427"]);
        }
        let both: Vec<_> = (0..)
            .zip(&ours)
            .map(|(rank, one)| join(one.with_key(&shown).expect("an id").secret(), rank, DEADLINE))
            .collect::<Result<_, _>>()
            .expect("both join");
        assert_eq!(each(&both, |job| job.allgather(&[7]).expect("both")), [[7, 7], [7, 7]]);
    }
}

#[test]
fn a_message_of_another_length_is_an_error() {
    for kind in kinds() {
        let carriers = carriers(kind, &jobs(2));
        let (sent, mut got) = ([1_u8; 8], [0_u8; 4]);
        // SAFETY: both are kept until the requests have ended or were cancelled.
        unsafe {
            let mut send = carriers[0].send(1, 3, sent.as_ptr(), 8).expect("it begins");
            let mut sending = true;
            // The message may have come, or may not.
            let error = match carriers[1].receive(0, 3, got.as_mut_ptr(), 4) {
                Err(error) => error,
                Ok(mut receive) => loop {
                    // A send may go on only here.
                    sending = sending && !carriers[0].ended(&mut send).expect("nobody is gone");
                    match carriers[1].ended(&mut receive) {
                        Ok(ended) => assert!(!ended),
                        Err(error) => break error,
                    }
                },
            };
            assert!(error.to_string().contains("has 8 bytes, and its receive 4"), "{error}");
            if sending {
                carriers[0].cancel(send);
            }
            // After a cancelled message there is no other.
            assert!(carriers[1].send(0, 3, sent.as_ptr(), 8).is_err());
        }
    }
}

/// A long send without a receive, and a receive of which a part has come: both memories are the caller's at once.
#[test]
fn what_is_taken_back_is_touched_no_more() {
    const LONG: usize = 32 << 20;
    for kind in kinds() {
        for polls in [0, 1, 3, 10] {
            let carriers = carriers(kind, &jobs(2));
            let (mut sent, mut got) = (vec![1_u8; LONG], vec![0_u8; LONG]);
            // SAFETY: both are kept until the requests have ended or were cancelled.
            unsafe {
                let send = carriers[0].send(1, 3, sent.as_ptr(), LONG).expect("it begins");
                let mut open = vec![(0, send)];
                if polls > 0 {
                    let receive = carriers[1].receive(0, 3, got.as_mut_ptr(), LONG);
                    open.push((1, receive.expect("it begins")));
                }
                for _ in 0..polls {
                    open.retain_mut(|(at, one)| !carriers[*at].ended(one).expect("nobody is gone"));
                }
                let begun = Instant::now();
                open.into_iter().rev().for_each(|(at, one)| carriers[at].cancel(one));
                assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
            }
            sent.fill(2);
            got.fill(0);
            thread::sleep(Duration::from_millis(20));
            assert!(got.iter().all(|byte| *byte == 0));
        }
    }
}

#[test]
fn an_id_holds_addresses_and_a_key() {
    let addresses: Vec<SocketAddr> =
        ["10.0.0.1:81", "[fd00::2]:81"].iter().map(|text| text.parse().expect("one")).collect();
    let id = UniqueId::of_addresses(&addresses, &[9; 32]).expect("an id");
    let again = UniqueId::from_hex(&id.to_hex()).expect("an id");
    assert_eq!((again.addresses(), again.secret()), (Some(addresses), [9; 32]));
    assert_eq!(UniqueId::new().expect("random").addresses(), None);
    refused(UniqueId::of_addresses(&[], &[0; 32]), &["no address"]);
    refused(Key::from_hex("12"), &["2 characters", "64 hexadecimal digits"]);
    assert_eq!(Key::from_hex(&"0f".repeat(32)).expect("a key"), Key::from_bytes([15; 32]));
}
