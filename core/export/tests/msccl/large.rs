//! Programs of many blocks. Where time or memory grows with the square of their operations, these take a minute, or are
//! refused.

use roundelay_core::diagnostics::Code;

use super::generate::{Block, Head, text};
use super::{codes, verdict};

/// With two blocks for each pair, clocks with an entry for every block would be more than are ever filled.
const RANKS: usize = 136;

/// Every rank sends a chunk to every other, from a block for each, and receives in blocks of their own; `channel`
/// returns the channel of one rank's block for another rank.
fn exchange(channel: impl Fn(usize, usize) -> usize) -> String {
    let head = Head::new("alltoall", "Simple", RANKS, RANKS, false);
    let gpu = |rank: usize| {
        let peers = || (0..RANKS).filter(move |peer| *peer != rank);
        let block = |peer: usize, sends: bool| {
            let step = if sends { "s" } else { "r" };
            let steps = vec![(step, ('i', peer), ('o', peer), 1, None, false)];
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
    let all = verdict(&exchange(|rank, peer| (rank + peer) % 2));
    assert_eq!(codes(&all), []);
    assert!(all.modes[0].proved.is_some());
}

/// Each end takes the parity of its own peer for the channel, so half of all receives never meet their sends.
#[test]
fn a_wrong_channel_in_each_of_many_blocks() {
    let all = verdict(&exchange(|_, peer| peer % 2));
    assert_eq!(codes(&all), [Code::UnmatchedWait]);
    let notes = &all.modes[0].errors[0].notes;
    assert!(notes[0].ends_with(&format!("; and {} more", RANKS * RANKS - 8)), "{}", notes[0]);
    assert!(notes.iter().any(|note| note.contains("0 posts, 1 wait at line")), "{notes:?}");
}
