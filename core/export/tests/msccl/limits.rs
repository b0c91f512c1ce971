//! The size up to which calls end: the capacity of connections.

use roundelay_core::diagnostics::Code;
use roundelay_exchange::msccl::{Connections, Runtime};
use roundelay_exchange::{Mode, Safe};

use super::generate::{Block, Head, pairs, ring, text};
use super::{codes, read, verdict, verdict_of};

/// Two ranks that each send `count` chunks before they receive.
fn crossing(count: usize, proto: &'static str, max: &str) -> String {
    let head = Head::new("allgather", proto, 2, 2 * count, true);
    let gpu = |rank: usize| {
        let (mine, theirs) = (('o', rank * count), ('o', (1 - rank) * count));
        let steps =
            vec![("s", mine, mine, count, None, false), ("r", theirs, theirs, count, None, false)];
        let peer = Some(1 - rank);
        ([count, 2 * count, 0], vec![Block { send: peer, receive: peer, channel: 0, steps }])
    };
    text(&head, &[gpu(0), gpu(1)]).replace("maxBytes=\"0\"", &format!("maxBytes=\"{max}\""))
}

#[test]
fn connections_that_fill_up() {
    // Two messages fit: 8 chunks must go 4 at a time.
    let all = verdict(&crossing(8, "Simple", "0"));
    assert_eq!(codes(&all), [Code::FifoTooShallow]);
    let bytes = 16 * ((2 << 20) / 4);
    assert_eq!(all.safe, Some(Safe { chunks: 4, bytes: Some(bytes) }));
    let cycle = &all.errors[0].notes[0];
    assert!(cycle.contains("gpu 0 tb 0 step 0 (line 4) sends to gpu 1"), "{cycle}");
    // The declared range ends exactly there, or one byte beyond.
    let exact = verdict(&crossing(8, "Simple", &bytes.to_string()));
    assert_eq!((codes(&exact), exact.safe), (vec![], all.safe));
    let beyond = verdict(&crossing(8, "Simple", &(bytes + 1).to_string()));
    assert_eq!(codes(&beyond), [Code::FifoTooShallow]);
}

#[test]
fn the_number_of_messages_that_fit_is_the_protocols() {
    for (proto, count, chunks) in [
        ("Simple", 2, 1),
        ("Simple", 3, 2),
        ("LL", 8, 1),
        ("LL", 9, 2),
        ("LL128", 8, 1),
        ("LL128", 17, 3),
    ] {
        let safe = verdict(&crossing(count, proto, "1")).safe.expect("it ends");
        assert_eq!(safe.chunks, chunks, "{proto} {count}");
    }
}

#[test]
fn buffers_of_other_runtimes_and_sizes() {
    let text = read(&crossing(9, "LL", "1"));
    let safe = |runtime, buffer| {
        let (_, verdict) = verdict_of(&text, &Connections { runtime, buffer });
        verdict.safe.and_then(|safe| safe.bytes)
    };
    let chunks = 18;
    assert_eq!(safe(Runtime::Rccl, None), Some(chunks * (16 << 10) / 2));
    assert_eq!(safe(Runtime::Azure, None), Some(chunks * (32 << 10) / 2));
    assert_eq!(safe(Runtime::Rccl, Some(1 << 20)), Some(chunks * (64 << 10) / 2));
    let text = read(&crossing(9, "LL128", "1"));
    let (program, _) = verdict_of(&text, &Connections::default());
    assert_eq!(Connections::default().message(&program.header), 49 << 10);
}

/// Where every rank has sent as many messages as fit, no rank can pass on the next one.
#[test]
fn a_ring_that_is_full() {
    for (proto, fits) in [("Simple", 2), ("LL", 8)] {
        for sent in [fits - 1, fits, fits + 1] {
            let head = Head::new("allgather", proto, 3, 3 * sent, true);
            let gpu = |rank: usize| {
                let at = |of: usize, k: usize| ('o', (of % 3) * sent + k);
                let mut steps = Vec::new();
                for k in 0..sent {
                    steps.push(("s", at(rank, k), at(rank, k), 1, None, false));
                }
                for k in 0..sent {
                    steps.push(("rcs", at(rank + 2, k), at(rank + 2, k), 1, None, false));
                }
                for k in 0..sent {
                    steps.push(("r", at(rank + 1, k), at(rank + 1, k), 1, None, false));
                }
                let (send, receive) = (Some((rank + 1) % 3), Some((rank + 2) % 3));
                ([sent, 3 * sent, 0], vec![Block { send, receive, channel: 0, steps }])
            };
            let verdict = verdict(&text(&head, &[gpu(0), gpu(1), gpu(2)]));
            let expected = if sent < fits { vec![] } else { vec![Code::FifoTooShallow] };
            assert_eq!(codes(&verdict), expected, "{proto}: {sent} sent, {fits} fit");
            assert_eq!(verdict.safe.is_some(), sent < fits);
        }
    }
}

#[test]
fn what_single_chunks_do_not_fill_is_safe_at_every_size() {
    for text in [ring(4, 2, 1, "Simple"), pairs(4, 2, "LL")] {
        let safe = verdict(&text).safe;
        assert_eq!(safe, Some(Safe { chunks: 1, bytes: None }));
    }
}

#[test]
fn both_modes_and_each_of_them() {
    let both = ring(3, 1, 1, "LL").replace("outofplace=\"0\"", "outofplace=\"1\"");
    let verdict = verdict(&both);
    let modes: Vec<_> = verdict.modes.iter().map(|checked| checked.mode).collect();
    assert_eq!(modes, [Mode::Both]);
    assert!(codes(&verdict).contains(&Code::InputWritten), "out of place it writes the input");
}
