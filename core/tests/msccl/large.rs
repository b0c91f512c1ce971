//! Programs of many blocks: what is found in them takes time that grows with their operations, so these are short.

use roundelay_core::diagnostics::Code;

use super::generate::{Block, Head, text};
use super::{codes, verdict};

const RANKS: usize = 48;

/// Every rank sends a chunk to every other, from a block for each, and receives in blocks of their own; `channel` is
/// that of a block of one rank for another.
fn exchange(channel: impl Fn(usize, usize) -> usize, target: impl Fn(usize) -> usize) -> String {
    let head = Head {
        coll: "alltoall",
        proto: "Simple",
        ranks: RANKS,
        chunks: RANKS,
        in_place: false,
        out_of_place: true,
    };
    let gpu = |rank: usize| {
        let peers = || (0..RANKS).filter(move |peer| *peer != rank);
        let block = |peer: usize, sends: bool| {
            let step = if sends { "s" } else { "r" };
            let steps = vec![(step, ('i', peer), ('o', target(peer)), 1, None, false)];
            let [send, receive] = [sends, !sends].map(|does| does.then_some(peer));
            Block { send, receive, channel: channel(rank, peer), steps }
        };
        let own = ("cpy", ('i', rank), ('o', rank), 1, None, false);
        let own = Block { send: None, receive: None, channel: 0, steps: vec![own] };
        let receives = peers().map(|peer| block(peer, false));
        let blocks = receives.chain(peers().map(|peer| block(peer, true))).chain([own]).collect();
        ([RANKS, RANKS, 0], blocks)
    };
    text(&head, &(0..RANKS).map(gpu).collect::<Vec<_>>())
}

#[test]
fn a_right_program_of_many_blocks() {
    let all = verdict(&exchange(|rank, peer| (rank + peer) % 2, |peer| peer));
    assert_eq!(codes(&all), []);
    assert!(all.modes[0].proved.is_some());
}

/// Each end takes the parity of its own peer for the channel, so half of all receives never meet their sends.
#[test]
fn a_wrong_channel_in_each_of_many_blocks() {
    let all = verdict(&exchange(|_, peer| peer % 2, |peer| peer));
    assert_eq!(codes(&all), [Code::UnmatchedWait]);
    let notes = &all.modes[0].errors[0].notes;
    assert!(notes[0].ends_with(&format!("; and {} more", RANKS * RANKS - 8)), "{}", notes[0]);
    assert!(notes.iter().any(|note| note.contains("0 posts, 1 wait at line")), "{notes:?}");
}
