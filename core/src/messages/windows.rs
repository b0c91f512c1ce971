//! The windows of messages: when each send and each receive begins and ends.
//!
//! A send begins as soon as its source holds the data, and ends before the source is next written. A receive begins
//! as soon as its target is free, and ends before the target is next touched. Each begins no later than its message's
//! place among the acts and ends no earlier, and an action waits only for earlier places. So some rank can always go
//! on, even where a send ends only when it is received.

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::Message;
use super::acts::{Act, Acts};
use super::memory::{FollowedForm, FormMemory};
use crate::ids::{LaneId, RankId};
use crate::schedule::{Operand, Schedule};
use crate::verify::memory::{CellMemory, NOBODY, Past};

/// A place in the order of acts, by their levels from 1 on. Between two levels come, in this order: the begins that
/// follow the first level, ends of receives, ends of sends, and the begins that follow those ends.
pub(super) type Place = u32;

/// Places from one act to the next.
const GAP: u32 = 8;

/// The place of an act itself: its message begins here at the latest, and its move is done here.
pub(super) fn at(act: u32) -> Place {
    act * GAP
}

fn after(act: u32) -> Place {
    act * GAP + 1
}

fn received_before(act: u32) -> Place {
    act * GAP - 5
}

fn sent_before(act: u32) -> Place {
    act * GAP - 4
}

/// The place behind receives and sends that end before an act.
fn behind(ends: Place) -> Place {
    ends - ends % GAP + 5
}

/// The places at which a message begins and ends at one of its ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) begins: Place,
    pub(super) ends: Place,
}

/// The windows of all messages.
pub(super) struct Windows {
    pub(super) sends: Vec<Window>,
    pub(super) receives: Vec<Window>,
}

impl Windows {
    /// Returns the windows of the messages of `acts`, for each mode of the form.
    ///
    /// # Errors
    /// The number of cells that a unit would have, where cells cannot be numbered.
    pub(super) fn new(of: &FollowedForm<'_>, acts: &Acts) -> Result<Self, u32> {
        let (messages, tables) = (&acts.messages[..], of.tables);
        let end = acts.levels.last().map_or(1, |last| last + 1);
        // The act before which each send, and each receive, has ended.
        let (mut sent, mut received) = (vec![end; messages.len()], vec![end; messages.len()]);
        for mode in of.modes {
            let memory = of.in_mode(*mode)?;
            Touched { tables, memory, messages }.backwards(acts, &mut sent, &mut received);
        }
        let pair = |message: &Message| of.ranks.pair(message.from, message.to);
        in_order(messages, &pair, &mut sent);
        // A rank that waits for the end of a send waits for its receive, so the receive ends no later.
        received.iter_mut().zip(&sent).for_each(|(by, sent)| *by = (*by).min(*sent));
        in_order(messages, &pair, &mut received);

        let window = |ends| Window { begins: after(0), ends };
        let mut windows = Self {
            sends: sent.iter().map(|by| window(sent_before(*by))).collect(),
            receives: received.iter().map(|by| window(received_before(*by))).collect(),
        };
        for mode in of.modes {
            let memory = of.in_mode(*mode)?;
            Touched { tables, memory, messages }.forwards(acts, &mut windows);
        }
        // Messages between two ranks begin in one order at both ends, in any lanes.
        let mut last: FxHashMap<(RankId, RankId), [Place; 2]> = FxHashMap::default();
        for (id, message) in messages.iter().enumerate() {
            let last = last.entry(pair(message)).or_default();
            let these = [&mut windows.sends[id], &mut windows.receives[id]];
            for (window, last) in these.into_iter().zip(last) {
                window.begins = window.begins.max(*last);
                *last = window.begins;
            }
        }
        Ok(windows)
    }
}

/// Orders the ends of each channel as its messages: no message ends later than the next.
fn in_order(messages: &[Message], pair: &impl Fn(&Message) -> (RankId, RankId), ends: &mut [u32]) {
    let mut next: FxHashMap<((RankId, RankId), LaneId), u32> = FxHashMap::default();
    for (message, end) in messages.iter().zip(ends).rev() {
        let next = next.entry((pair(message), message.lane)).or_insert(*end);
        *end = (*end).min(*next);
        *next = *end;
    }
}

/// The memory that acts touch, in one layout.
pub(super) struct Touched<'a> {
    pub(super) tables: &'a Schedule,
    pub(super) memory: FormMemory<'a>,
    pub(super) messages: &'a [Message],
}

/// A past in which no access comes before another, so every mark in memory is returned.
struct Nothing;

impl Past for Nothing {
    fn after(&self, _: u32) -> bool {
        false
    }

    fn after_write(&self, write: u32) -> bool {
        write == NOBODY
    }
}

/// A number for each cell.
pub(super) struct Marks(CellMemory);

impl Marks {
    pub(super) fn new(size: u32) -> Self {
        Self(CellMemory::new(size))
    }

    pub(super) fn of(&mut self, cells: Range<u32>) -> impl Iterator<Item = u32> {
        self.0.unordered(cells, &Nothing).into_iter().map(|(_, (mark, _))| mark)
    }

    pub(super) fn set(&mut self, cells: Range<u32>, mark: u32) {
        self.0.write(cells, mark, &Nothing);
    }

    /// Raises the marks of `cells` that are lower to `mark`.
    pub(super) fn raise(&mut self, cells: Range<u32>, mark: u32) {
        let higher = self.0.write(cells, mark, &Nothing);
        for (cells, (higher, _)) in higher.into_iter().filter(|(_, (old, _))| *old > mark) {
            self.set(cells, higher);
        }
    }
}

impl Touched<'_> {
    /// Returns the cells that an act reads and those that it writes. A copy onto itself does neither.
    pub(super) fn of(&self, act: &Act) -> (Vec<Range<u32>>, Vec<Range<u32>>) {
        let all = |operands: &[Operand]| -> Vec<Range<u32>> {
            operands.iter().flat_map(|operand| self.memory.at_stake(*operand)).collect()
        };
        match act {
            Act::Message(id) => {
                let Message { from, to, source, target, .. } = self.messages[*id as usize];
                let [source, target] = [(from, source), (to, target)]
                    .map(|(rank, region)| all(&[Operand { rank, region }]));
                (source, target)
            }
            Act::Move(_, op) => match (self.tables.srcs(op), self.tables.dsts(op)) {
                ([src], [dst]) if self.memory.of(*src) == self.memory.of(*dst) => {
                    Default::default()
                }
                (srcs, dsts) => (all(srcs), all(dsts)),
            },
        }
    }

    /// Finds the acts before which sends and receives must have ended.
    fn backwards(&self, acts: &Acts, sent: &mut [u32], received: &mut [u32]) {
        let (mut written, mut touched) =
            (Marks::new(self.memory.size), Marks::new(self.memory.size));
        for (&number, act) in acts.levels.iter().zip(&acts.list).rev() {
            let (reads, writes) = self.of(act);
            if let Act::Message(id) = act {
                let id = *id as usize;
                for cells in reads.iter().cloned() {
                    sent[id] = written.of(cells).fold(sent[id], u32::min);
                }
                for cells in writes.iter().cloned() {
                    received[id] = touched.of(cells).fold(received[id], u32::min);
                }
            }
            reads.iter().chain(&writes).for_each(|cells| touched.set(cells.clone(), number));
            for cells in writes {
                written.set(cells, number);
            }
        }
    }

    /// Finds the places at which sends and receives may begin, by the places at which earlier ones end.
    fn forwards(&self, acts: &Acts, windows: &mut Windows) {
        let (mut written, mut touched) =
            (Marks::new(self.memory.size), Marks::new(self.memory.size));
        for (&number, act) in acts.levels.iter().zip(&acts.list) {
            let (reads, writes) = self.of(act);
            let (read, wrote) = match act {
                Act::Message(id) => {
                    let id = *id as usize;
                    let (send, receive) = (&mut windows.sends[id], &mut windows.receives[id]);
                    for cells in reads.iter().cloned() {
                        send.begins = written.of(cells).fold(send.begins, Place::max);
                    }
                    for cells in writes.iter().cloned() {
                        receive.begins = touched.of(cells).fold(receive.begins, Place::max);
                    }
                    (behind(send.ends), behind(receive.ends))
                }
                Act::Move(..) => (after(number), after(number)),
            };
            for cells in reads {
                touched.raise(cells, read);
            }
            for cells in writes {
                touched.raise(cells.clone(), wrote);
                written.set(cells, wrote);
            }
        }
    }
}
