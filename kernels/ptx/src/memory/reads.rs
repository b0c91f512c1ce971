//! The threads that have read a location.

use super::clock::{Clocks, LANES, Stamp, Thread};

/// Reads of a location, at most one for each thread.
#[derive(Clone, Debug, Default)]
pub(crate) enum Reads {
    /// None.
    #[default]
    None,
    /// One.
    One(Stamp),
    /// At most [`FEW`].
    Few(Vec<Stamp>),
    /// Several.
    Many(Vec<WarpReads>),
}

/// Reads that take less room as a list than by their warps: those of a location that one thread of each rank reads.
const FEW: usize = 16;

/// Reads of the lanes of a warp.
#[derive(Clone, Debug)]
pub(crate) struct WarpReads {
    warp: u32,
    /// The instruction of the last read.
    place: u32,
    /// The epoch of each lane's read; 0 for none.
    epochs: [u32; LANES as usize],
}

impl Reads {
    /// Adds a read, in place of the thread's read before.
    pub(crate) fn add_last(&mut self, clocks: &Clocks, read: Stamp) {
        match self {
            Self::One(before) if !clocks.knows(read.thread, before.thread, before.epoch) => {
                let before = *before;
                self.set(before);
                self.set(read);
            }
            Self::None | Self::One(_) => *self = Self::One(read),
            Self::Few(_) | Self::Many(_) => self.set(read),
        }
    }

    /// Adds a read, unless the thread knows of one before.
    pub(crate) fn add_first(&mut self, clocks: &Clocks, read: Stamp) {
        match self {
            Self::None => *self = Self::One(read),
            Self::One(before) => {
                let before = *before;
                if !clocks.knows(read.thread, before.thread, before.epoch) {
                    self.set(before);
                    self.set(read);
                }
            }
            Self::Few(_) | Self::Many(_) => {
                if !self.has(clocks, read.thread) {
                    self.set(read);
                }
            }
        }
    }

    fn set(&mut self, read: Stamp) {
        match self {
            Self::None | Self::One(_) => *self = Self::Few(vec![read]),
            Self::Few(few) => match few.iter().position(|before| before.thread == read.thread) {
                Some(at) => few[at] = read,
                None if few.len() < FEW => few.push(read),
                None => {
                    let few = std::mem::take(few);
                    *self = Self::Many(Vec::new());
                    for read in few.into_iter().chain([read]) {
                        self.set(read);
                    }
                }
            },
            Self::Many(warps) => {
                let (warp, lane) = (read.thread / LANES, (read.thread % LANES) as usize);
                let at = warps.iter().position(|reads| reads.warp == warp).unwrap_or_else(|| {
                    warps.push(WarpReads { warp, place: read.place, epochs: [0; LANES as usize] });
                    warps.len() - 1
                });
                warps[at].place = read.place;
                warps[at].epochs[lane] = read.epoch;
            }
        }
    }

    /// Whether a thread has read.
    pub(crate) fn has(&self, clocks: &Clocks, thread: Thread) -> bool {
        match self {
            Self::None => false,
            Self::One(read) => clocks.is_own(thread, read.thread, read.epoch),
            Self::Few(few) => few.iter().any(|read| clocks.is_own(thread, read.thread, read.epoch)),
            Self::Many(warps) => warps.iter().any(|reads| {
                let epoch = reads.epochs[(thread % LANES) as usize];
                reads.warp == thread / LANES && clocks.is_own(thread, thread, epoch)
            }),
        }
    }

    /// All reads.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Stamp> {
        let (few, many) = match self {
            Self::None => ([].as_slice(), [].as_slice()),
            Self::One(read) => (std::slice::from_ref(read), [].as_slice()),
            Self::Few(few) => (few.as_slice(), [].as_slice()),
            Self::Many(warps) => ([].as_slice(), warps.as_slice()),
        };
        let lanes = |reads: &WarpReads| {
            let WarpReads { warp, place, epochs } = reads.clone();
            (0..LANES).filter_map(move |lane| {
                let epoch = epochs[lane as usize];
                (epoch != 0).then_some(Stamp { thread: warp * LANES + lane, epoch, place })
            })
        };
        few.iter().copied().chain(many.iter().flat_map(lanes))
    }

    /// Returns a read that is not known to `me`.
    pub(crate) fn unknown(&self, clocks: &Clocks, me: Thread) -> Option<Stamp> {
        match self {
            Self::None => None,
            Self::One(read) => (!clocks.knows_load(me, read.thread, read.epoch)).then_some(*read),
            Self::Few(few) => {
                few.iter().find(|read| !clocks.knows_load(me, read.thread, read.epoch)).copied()
            }
            Self::Many(warps) => warps.iter().find_map(|reads| {
                let lane = clocks.unknown_lane(me, reads.warp, &reads.epochs)?;
                let (thread, epoch) = (reads.warp * LANES + lane, reads.epochs[lane as usize]);
                Some(Stamp { thread, epoch, place: reads.place })
            }),
        }
    }

    /// Whether `me` knows of a read.
    pub(crate) fn is_any_known(&self, clocks: &Clocks, me: Thread) -> bool {
        self.iter().any(|read| clocks.knows(me, read.thread, read.epoch))
    }
}
