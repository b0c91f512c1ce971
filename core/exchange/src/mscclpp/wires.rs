//! Signals on channels. Each end of a channel counts the signals that arrived, over all calls; so signals are harmless
//! at an end where no step ever waits.

use std::collections::BTreeMap;

use super::program::{Act, Wire};
use super::steps::{All, StepAt, Word};
use crate::report::span;
use roundelay_core::diagnostics::{Code, Diagnostic};
use roundelay_core::schedule::{OpKind, SignalKind};

/// A direction of a channel: sender, receiver, whether by port, and its number.
type Direction = (u32, u32, bool, u32);

/// Adds the posts and waits of signals. Signals at an end without waits get no post, and a warning.
pub(super) fn connect(all: &mut All) -> Vec<Diagnostic> {
    let mut found: BTreeMap<Direction, (Vec<StepAt>, Vec<StepAt>)> = BTreeMap::new();
    for (rank, blocks) in all.iter().enumerate() {
        for (block, steps) in blocks.iter().enumerate() {
            for (index, step) in steps.iter().enumerate() {
                let at = (rank, block, index);
                let own = rank as u32;
                let key = |(from, to), wire: &Wire| (from, to, wire.port, wire.ordinal);
                match &step.what {
                    Act::Signal(wire) => {
                        found.entry(key((own, wire.peer), wire)).or_default().0.push(at);
                    }
                    Act::Wait(wire) => {
                        found.entry(key((wire.peer, own), wire)).or_default().1.push(at);
                    }
                    _ => {}
                }
            }
        }
    }
    let (mut unheard, mut first) = (0, None);
    for ((from, to, port, ordinal), (posts, waits)) in found {
        if waits.is_empty() {
            unheard += posts.len();
            first = first.or_else(|| posts.first().copied());
            continue;
        }
        let word = |kind| Word {
            kind,
            ends: (from, to),
            signal: SignalKind::Data,
            lane: vec![port.into(), ordinal.into()],
            anew: false,
        };
        for (rank, block, index) in posts {
            all[rank][block][index].after.push(word(OpKind::Post));
        }
        for (rank, block, index) in waits {
            all[rank][block][index].before.push(word(OpKind::Wait));
        }
    }
    let Some((rank, block, index)) = first else { return Vec::new() };
    let at = span(all[rank][block][index].at);
    let warning = Diagnostic::new(Code::PassedOver, at, "a signal that nobody waits for");
    vec![match unheard {
        1 => warning,
        all => warning.note(format!("and {} more such signals", all - 1)),
    }]
}
