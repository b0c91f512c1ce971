//! Processes that break the protocol, as rank 0 or as another rank.

use std::os::fd::BorrowedFd;

use rustix::fs::{MemfdFlags, memfd_create};

use super::*;

#[test]
fn rubbish_at_the_socket_does_no_harm() {
    let id = fresh();
    thread::scope(|scope| {
        let rank_0 = scope.spawn(|| meet(offer(&id, 2, 0)));
        let connect = || line::connect(&id.socket(), moment(PATIENCE)).expect("rank 0 listens");
        let whole = hello(offer(&id, 2, 1)).encode();
        for rubbish in [b"x".to_vec(), vec![0; 4096], vec![7; 9000], whole[..40].to_vec()] {
            let line = connect();
            line.send(&rubbish, &[], moment(PATIENCE)).expect("rank 0 listens");
            match answer(&line) {
                Word::Refused(error) => has(&error.to_string(), &["sent what no rank"]),
                other => panic!("{other:?}"),
            }
        }
        // Unrequested descriptors are closed; a process that says nothing, or leaves, does no harm.
        let line = connect();
        line.send(b"x", &[line.as_fd(); 9], moment(PATIENCE)).expect("rank 0 listens");
        drop(connect());
        let silent = connect();
        let rank_1 = meet(offer(&id, 2, 1));
        assert!(matches!(answer(&silent), Word::Refused(_)));
        well(&id, 2, vec![rank_0.join().expect("no panic"), rank_1]);
    });
    thread::scope(|scope| {
        let rank_0 = scope.spawn(|| meet(hasty(&id, 2, 0, 400)));
        let silent = line::connect(&id.socket(), moment(PATIENCE)).expect("rank 0 listens");
        let text = rank_0.join().expect("no panic").expect_err("nobody came").to_string();
        has(&text, &["rank 1 of 2 did not come", "connected and said nothing"]);
        drop(silent);
    });
}

/// Returns the error of the correct ranks 0 and 1 of 4, while rank 2 breaks the protocol. Rank 3 comes only if `three`.
fn misbehaves(three: bool, rank_2: impl FnOnce(Line, &dyn Fn(&Line) -> Word) + Send) -> String {
    let id = fresh();
    thread::scope(|scope| {
        let ranks = if three { &[0, 1, 3][..] } else { &[0, 1] };
        let offers: Vec<_> = ranks.iter().map(|rank| hasty(&id, 4, *rank, 2000)).collect();
        let others = scope.spawn(move || all(&offers));
        rank_2(connected(offer(&id, 4, 2)), &answer);
        let results = others.join().expect("no panic");
        refused(results)
    })
}

#[test]
fn a_rank_that_breaks_off_is_named_to_all() {
    let who = "rank 2 (process 4242)";
    has(&misbehaves(false, |line, _| drop(line)), &[who, "left", "[E0427]"]);
    let text = misbehaves(false, |line, answer| {
        line.send(b"what?", &[], moment(PATIENCE)).expect("rank 0 listens");
        assert!(matches!(answer(&line), Word::Refused(_)));
    });
    has(&text, &[who, "sent what no rank sends"]);
    // Rank 2 leaves after it has received the memory.
    let text = misbehaves(true, |line, answer| {
        assert_eq!(answer(&line), Word::Arena);
    });
    has(&text, &[who, "left", "before all had met"]);
    let text = misbehaves(true, |line, answer| {
        assert_eq!(answer(&line), Word::Arena);
        assert!(matches!(answer(&line), Word::Peers(0, pids) if pids.len() == 4));
        line.send(b"what?", &[], moment(PATIENCE)).expect("rank 0 listens");
        assert!(matches!(answer(&line), Word::Refused(_)));
    });
    has(&text, &[who, "sent what no rank sends"]);
    let text = misbehaves(true, |line, answer| {
        assert_eq!(answer(&line), Word::Arena);
        let error = Error::SystemRefused { what: "no descriptors".to_owned() };
        line.send(&Word::Refused(error).encode(), &[], moment(PATIENCE)).expect("rank 0 listens");
        assert!(matches!(answer(&line), Word::Peers(..)));
        assert!(matches!(answer(&line), Word::Refused(Error::SystemRefused { .. })));
    });
    has(&text, &[who, ": no descriptors", "[E0429]"]);
    // Rank 2 receives everything and sends nothing.
    let text = misbehaves(true, |line, answer| {
        assert_eq!(answer(&line), Word::Arena);
        assert!(matches!(answer(&line), Word::Peers(..)));
        assert!(matches!(answer(&line), Word::Refused(_)));
    });
    has(&text, &[who, "did not take the memory"]);
}

/// Returns the error of rank 1 of 2, while `speaks` answers in place of rank 0.
fn host_that(speaks: impl FnOnce(&Line) + Send) -> String {
    let id = fresh();
    let listener = line::listen(&id.socket()).expect("the name is free");
    thread::scope(|scope| {
        let rank_1 = scope.spawn(|| meet(hasty(&id, 2, 1, 300)));
        line::readable(&[listener.as_fd()], moment(PATIENCE)).expect("rank 1 comes");
        let line = line::accept(&listener).expect("rank 1 comes").expect("rank 1 comes");
        let packet = line.receive(1, moment(PATIENCE)).expect("rank 1 says hello");
        assert_eq!(packet.fds.len(), 1);
        assert!(Hello::decode(&packet.bytes).is_some_and(|hello| hello.rank == 1));
        speaks(&line);
        let error = rank_1.join().expect("no panic").expect_err("there is no rank 0");
        error.to_string()
    })
}

#[test]
fn a_rank_0_that_misbehaves_is_told() {
    let say = |line: &Line, bytes: &[u8], fds: &[BorrowedFd<'_>]| {
        assert_eq!(line.send(bytes, fds, moment(PATIENCE)), Ok(()));
    };
    let memory = memfd_create("other", MemfdFlags::CLOEXEC).expect("memory");
    let arena = arena::make(8192, (0, &[])).expect("memory");
    let me = own_process().expect("this process").pidfd;

    has(&host_that(|_| {}), &["rank 1 waited 300ms for rank 0", "to answer", "[E0427]"]);
    has(&host_that(|line| say(line, b"what?", &[])), &["no rank 0 of this version sends"]);
    has(&host_that(|line| say(line, b"G", &[])), &["no rank 0 of this version sends"]);
    has(&host_that(|line| say(line, b"A", &[])), &["0 of 1 came", "[E0429]"]);
    let text = host_that(|line| say(line, b"A", &[memory.as_fd()]));
    has(&text, &["sent wrong memory", "8192 bytes", "[E0427]"]);
    ftruncate(&memory, 8192).expect("memory");
    has(&host_that(|line| say(line, b"A", &[memory.as_fd()])), &["sent wrong memory", "seals"]);
    for (first, pids, fds, words) in [
        (1, vec![1], 1, "no rank 0"),
        (0, vec![1], 1, "no rank 0"),
        (0, vec![1, 2, 3], 3, "no rank 0"),
        (0, vec![1, 2], 1, "1 of 2 came"),
    ] {
        let text = host_that(|line| {
            say(line, b"A", &[arena.as_fd()]);
            say(line, &Word::Peers(first, pids).encode(), &vec![me.as_fd(); fds]);
        });
        has(&text, &[words]);
    }
    // All packets have come, but the last one is missing, or wrong.
    for (last, words) in [(None, "waited 300ms"), (Some(b"R"), "no rank 0"), (Some(b"G"), "")] {
        let id = fresh();
        let listener = line::listen(&id.socket()).expect("the name is free");
        let result = thread::scope(|scope| {
            let rank_1 = scope.spawn(|| meet(hasty(&id, 2, 1, 300)));
            line::readable(&[listener.as_fd()], moment(PATIENCE)).expect("rank 1 comes");
            let line = line::accept(&listener).expect("rank 1 comes").expect("rank 1 comes");
            line.receive(1, moment(PATIENCE)).expect("rank 1 says hello");
            say(&line, b"A", &[arena.as_fd()]);
            say(&line, &Word::Peers(0, vec![1, 2]).encode(), &[me.as_fd(); 2]);
            assert_eq!(answer(&line), Word::Ready);
            if let Some(last) = last {
                say(&line, last, &[]);
            }
            rank_1.join().expect("no panic")
        });
        match result {
            Ok(joined) => assert!(words.is_empty() && joined.peers.len() == 2),
            Err(error) => has(&error.to_string(), &[words, "rank 1"]),
        }
    }
}

#[test]
fn who_closes_without_reading_may_have_said_why() {
    let id = fresh();
    let listener = line::listen(&id.socket()).expect("the name is free");
    let line = line::connect(&id.socket(), moment(PATIENCE)).expect("it listens");
    let other = line::accept(&listener).expect("it came").expect("it came");
    line.send(b"one", &[], moment(PATIENCE)).expect("it is open");
    other.send(b"why", &[], moment(PATIENCE)).expect("it is open");
    drop(other);
    assert_eq!(line.receive(0, moment(PATIENCE)).expect("it was said").bytes, b"why");
    assert_eq!(line.receive(0, moment(PATIENCE)).expect_err("it is closed"), LineFault::Closed);
}

/// The process that holds the listener stands for a forked process that has not yet run its program.
#[test]
fn a_listener_that_somebody_else_holds_is_in_nobodys_way() {
    let id = fresh();
    let listener = line::listen(&id.socket()).expect("the name is free");
    let held = listener.as_fd().try_clone_to_owned().expect("a descriptor");
    drop(listener);
    let nobody = line::connect(&id.socket(), moment(Duration::from_millis(20)));
    assert_eq!(nobody.expect_err("it is shut"), LineFault::Late);
    let text = meet(hasty(&id, 2, 0, 50)).expect_err("the name is in use").to_string();
    has(&text, &["is in use", "nobody answered there for 50ms", "[E0427]"]);
    thread::scope(|scope| {
        let ranks = scope.spawn(|| all(&[0, 1].map(|rank| offer(&id, 2, rank))));
        thread::sleep(Duration::from_millis(30));
        drop(held);
        well(&id, 2, ranks.join().expect("no panic"));
    });
}
