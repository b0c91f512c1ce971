//! The order of events: for every thread, what happened before its next access.
//!
//! The time of a thread is cut into epochs, which end where the thread releases: at a fence, a release or a barrier. A
//! thread knows an event of another thread if the epoch of the event is at most that in the thread's clock.

use std::ops::Range;
use std::rc::Rc;

use crate::program::Scope;

/// Lanes of a warp.
pub(crate) const LANES: u32 = 32;

/// A thread: the number of its warp among all warps of all ranks, times 32, plus its lane.
pub(crate) type Thread = u32;

/// The thread of stores before the launch.
pub(crate) const NOBODY: Thread = u32::MAX;

/// For every thread, the last epoch of it that is known.
type Clock = Rc<[u32]>;

/// An access in the order of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// The thread.
    pub(crate) thread: Thread,
    /// The thread's epoch.
    pub(crate) epoch: u32,
    /// The instruction.
    pub(crate) place: u32,
}

impl Stamp {
    /// The stamp of a store before the launch.
    pub(crate) const BEFORE: Self = Self { thread: NOBODY, epoch: 0, place: 0 };
}

/// The knowledge of a thread at a release, and the threads that may have it.
#[derive(Clone, Debug)]
pub(crate) struct Release {
    clock: Clock,
    thread: Thread,
    epoch: u32,
    scope: Scope,
}

impl Release {
    /// Whether `thread` released.
    pub(crate) fn is_of(&self, thread: Thread) -> bool {
        self.thread == thread
    }

    /// Whether `other` tells at least as much, and to at least as many threads if both are of one block.
    fn is_within(&self, other: &Self) -> bool {
        self.scope <= other.scope
            && (self.thread == other.thread && self.epoch <= other.epoch
                || other.clock[self.thread as usize] >= self.epoch)
    }
}

/// The order of one thread's events.
#[derive(Clone, Debug)]
struct Events {
    clock: Clock,
    epoch: u32,
    /// Releases by fences of the thread, which its later strong stores publish.
    fences: Vec<Release>,
    /// Releases whose stores the thread's strong loads have read, which its later fences acquire.
    pending: Vec<Release>,
}

/// The block, the launch and the device of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Home {
    /// The number of the block among all blocks of all ranks.
    pub(crate) block: u32,
    /// The launch.
    pub(crate) rank: u32,
    /// The device that runs the launch.
    pub(crate) device: u32,
}

/// The order of all threads' events.
#[derive(Debug)]
pub(crate) struct Clocks {
    homes: Vec<Home>,
    events: Vec<Events>,
    /// Releases by sequentially consistent fences.
    sequential: Vec<Release>,
    /// The last joins: both clocks, and the clock that has them.
    joins: [Option<(Clock, Release, Clock)>; 4],
    next_join: usize,
}

impl Clocks {
    /// The start of a launch with warps of these homes.
    pub(crate) fn new(homes: Vec<Home>) -> Self {
        let threads = homes.len() * LANES as usize;
        let clock: Clock = vec![0; threads].into();
        let first = Events { clock, epoch: 1, fences: Vec::new(), pending: Vec::new() };
        Self {
            homes,
            events: vec![first; threads],
            sequential: Vec::new(),
            joins: [const { None }; 4],
            next_join: 0,
        }
    }

    /// The block, the launch and the device of a thread.
    pub(crate) fn home(&self, thread: Thread) -> Home {
        self.homes[(thread / LANES) as usize]
    }

    /// The stamp of an access that `thread` makes now.
    pub(crate) fn stamp(&self, thread: Thread, place: u32) -> Stamp {
        Stamp { thread, epoch: self.events[thread as usize].epoch, place }
    }

    /// Whether the event of `thread` in `epoch` happened before the next access of `me`.
    pub(crate) fn knows(&self, me: Thread, thread: Thread, epoch: u32) -> bool {
        thread == me || thread == NOBODY || self.events[me as usize].clock[thread as usize] >= epoch
    }

    /// Returns the first lane of a warp whose event in its epoch is not known to `me`; an epoch of 0 stands for no event.
    pub(crate) fn unknown_lane(&self, me: Thread, warp: u32, epochs: &[u32; 32]) -> Option<u32> {
        let first = (warp * LANES) as usize;
        let clock = &self.events[me as usize].clock[first..first + LANES as usize];
        let behind = clock.iter().zip(epochs).any(|(known, epoch)| known < epoch);
        if !behind {
            return None;
        }
        (0..LANES)
            .find(|&lane| epochs[lane as usize] > clock[lane as usize] && warp * LANES + lane != me)
    }

    /// Whether `scope` of an operation of `from` has `to` in it.
    pub(crate) fn reaches(&self, scope: Scope, from: Thread, to: Thread) -> bool {
        let (from, to) = (self.home(from), self.home(to));
        match scope {
            Scope::Cta => from.block == to.block,
            Scope::Gpu => from.device == to.device,
            Scope::Sys => true,
        }
    }

    fn same_block(&self, one: Thread, other: Thread) -> bool {
        self.home(one).block == self.home(other).block
    }

    /// Adds a release to a list, without those that tell nothing more than another one.
    pub(crate) fn add_release(&self, releases: &mut Vec<Release>, new: &Release) {
        let near = |old: &Release| self.same_block(old.thread, new.thread);
        if releases.iter().any(|old| near(old) && new.is_within(old)) {
            return;
        }
        releases.retain(|old| !(near(old) && old.is_within(new)));
        releases.push(new.clone());
    }

    /// Ends the epoch of a thread, and returns its knowledge until now.
    pub(crate) fn release(&mut self, thread: Thread, scope: Scope) -> Release {
        let events = &mut self.events[thread as usize];
        let release =
            Release { clock: Rc::clone(&events.clock), thread, epoch: events.epoch, scope };
        events.epoch += 1;
        release
    }

    /// The releases by fences of a thread.
    pub(crate) fn fences(&self, thread: Thread) -> &[Release] {
        &self.events[thread as usize].fences
    }

    /// Gives a thread the knowledge of releases, by an acquire of `scope`.
    pub(crate) fn acquire(&mut self, me: Thread, scope: Scope, releases: &[Release]) {
        for release in releases {
            if self.is_told(me, scope, release) {
                self.learn(me, release);
            }
        }
    }

    /// Remembers releases whose stores a strong load has read, for a later fence.
    pub(crate) fn read(&mut self, me: Thread, releases: &[Release]) {
        for release in releases {
            if !self.knows(me, release.thread, release.epoch) {
                let mut pending = std::mem::take(&mut self.events[me as usize].pending);
                self.add_release(&mut pending, release);
                self.events[me as usize].pending = pending;
            }
        }
    }

    /// A fence that acquires and releases.
    pub(crate) fn fence(&mut self, me: Thread, scope: Scope, sequential: bool) {
        let pending = std::mem::take(&mut self.events[me as usize].pending);
        self.acquire(me, scope, &pending);
        let left = pending.into_iter().filter(|r| !self.knows(me, r.thread, r.epoch)).collect();
        self.events[me as usize].pending = left;
        let mut before = std::mem::take(&mut self.sequential);
        if sequential {
            self.acquire(me, scope, &before);
        }
        let release = self.release(me, scope);
        if sequential {
            self.add_release(&mut before, &release);
        }
        self.sequential = before;
        let mut fences = std::mem::take(&mut self.events[me as usize].fences);
        self.add_release(&mut fences, &release);
        self.events[me as usize].fences = fences;
    }

    /// Gives each of these threads the knowledge of all of them.
    pub(crate) fn meet(&mut self, threads: &[Thread]) {
        let Some(&first) = threads.first() else { return };
        let mut all = self.events[first as usize].clock.to_vec();
        let mut last = Rc::clone(&self.events[first as usize].clock);
        for &thread in threads {
            let clock = &self.events[thread as usize].clock;
            if !Rc::ptr_eq(clock, &last) {
                raise(&mut all, clock);
                last = Rc::clone(clock);
            }
        }
        for &thread in threads {
            all[thread as usize] = self.events[thread as usize].epoch;
        }
        let all: Clock = all.into();
        for &thread in threads {
            let events = &mut self.events[thread as usize];
            events.clock = Rc::clone(&all);
            events.epoch += 1;
        }
    }

    /// Gives threads that have done nothing yet the knowledge of threads that have ended.
    pub(crate) fn start(&mut self, threads: Range<Thread>, ended: impl Iterator<Item = Thread>) {
        let mut all = vec![0; self.events.len()];
        let mut last: Option<&Clock> = None;
        for thread in ended {
            let Events { clock, epoch, .. } = &self.events[thread as usize];
            if last.is_none_or(|last| !Rc::ptr_eq(clock, last)) {
                raise(&mut all, clock);
                last = Some(clock);
            }
            all[thread as usize] = *epoch;
        }
        let all: Clock = all.into();
        for thread in threads {
            self.events[thread as usize].clock = Rc::clone(&all);
        }
    }

    /// Whether an acquire of `scope` by `me` and a release reach each other.
    fn is_told(&self, me: Thread, scope: Scope, release: &Release) -> bool {
        !self.knows(me, release.thread, release.epoch)
            && self.reaches(release.scope, release.thread, me)
            && self.reaches(scope, me, release.thread)
    }

    fn learn(&mut self, me: Thread, release: &Release) {
        let mine = &self.events[me as usize].clock;
        let same = |(clock, told, _): &&(Clock, Release, Clock)| {
            Rc::ptr_eq(clock, mine)
                && Rc::ptr_eq(&told.clock, &release.clock)
                && (told.thread, told.epoch) == (release.thread, release.epoch)
        };
        if let Some((_, _, joined)) = self.joins.iter().flatten().find(same) {
            self.events[me as usize].clock = Rc::clone(joined);
            return;
        }
        let mut joined = mine.to_vec();
        if !Rc::ptr_eq(mine, &release.clock) {
            raise(&mut joined, &release.clock);
        }
        let known = &mut joined[release.thread as usize];
        *known = release.epoch.max(*known);
        let joined: Clock = joined.into();
        self.joins[self.next_join] = Some((Rc::clone(mine), release.clone(), Rc::clone(&joined)));
        self.next_join = (self.next_join + 1) % self.joins.len();
        self.events[me as usize].clock = joined;
    }
}

/// Raises each number of a clock to that of another clock.
fn raise(clock: &mut [u32], other: &[u32]) {
    for (known, &more) in clock.iter_mut().zip(other) {
        *known = more.max(*known);
    }
}
