//! The order of events: for every thread, what happened before its next access.
//!
//! The time of a thread is cut into epochs, which end where the thread releases: at a fence, a release or a barrier. A
//! thread knows an event of another thread if the epoch of the event is at most that in the thread's clock.

use super::epochs::Clock;
use crate::program::{Ordering, Scope};

/// Lanes of a warp.
pub(crate) const LANES: u32 = 32;

/// A thread: the number of its warp, times 32, plus its lane. A launch that begins after the end of another one takes the
/// numbers over: to the order of events, its threads are those threads, which go on.
pub(crate) type Thread = u32;

/// The thread of stores before the launch.
pub(crate) const NOBODY: Thread = u32::MAX;

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
    /// The same for loads, where they are known before other accesses.
    loads: Option<Clock>,
    /// The same for accesses with a fence between aliases behind them, where memory has multicast addresses.
    fenced: Option<Clock>,
    thread: Thread,
    epoch: u32,
    scope: Scope,
}

impl Release {
    /// Whether `me` released, and not the thread of another launch that had its number.
    pub(crate) fn is_own(&self, clocks: &Clocks, me: Thread) -> bool {
        clocks.is_own(me, self.thread, self.epoch)
    }

    /// Whether `other` tells at least as much, and to at least as many threads if both are of one block.
    fn is_within(&self, other: &Self) -> bool {
        self.scope <= other.scope
            && (self.thread == other.thread && self.epoch <= other.epoch
                || other.clock.of(self.thread) >= self.epoch)
    }
}

/// The order of one thread's events.
#[derive(Clone, Debug)]
struct Events {
    clock: Clock,
    /// The epochs of which the loads are known, where they may be known before other accesses.
    loads: Option<Clock>,
    /// The epochs that are known by way of a fence between aliases, where memory has multicast addresses.
    fenced: Option<Clock>,
    epoch: u32,
    /// The knowledge of the thread when it began.
    start: Clock,
    /// The epoch in which the thread began: those before it are of threads of other launches.
    begun: u32,
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
    /// The number of the first block of the block's cluster.
    pub(crate) cluster: u32,
    /// The number of blocks of the cluster.
    pub(crate) in_cluster: u32,
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
    /// The clock of a thread that knows nothing.
    nothing: Clock,
    /// Releases by sequentially consistent fences.
    sequential: Vec<Release>,
    /// The last joins: both clocks, and the clock that has them.
    joins: [Option<(Clock, Release, Clock)>; 4],
    next_join: usize,
}

impl Clocks {
    /// The order of events before any thread has begun, of that many warps at most. Loads may be known before other
    /// accesses where they are told of by themselves, and memory may have multicast addresses.
    pub(crate) fn new(warps: usize, tells_loads: bool, has_multicast: bool) -> Self {
        let threads = warps * LANES as usize;
        let clock = Clock::new(threads);
        let loads = tells_loads.then(|| clock.clone());
        let fenced = has_multicast.then(|| clock.clone());
        let first = Events {
            clock: clock.clone(),
            loads,
            fenced,
            epoch: 0,
            start: clock.clone(),
            begun: 0,
            fences: Vec::new(),
            pending: Vec::new(),
        };
        let nowhere = Home { block: 0, cluster: 0, in_cluster: 1, rank: 0, device: 0 };
        Self {
            homes: vec![nowhere; warps],
            events: vec![first; threads],
            nothing: clock,
            sequential: Vec::new(),
            joins: [const { None }; 4],
            next_join: 0,
        }
    }

    /// No knowledge.
    pub(crate) fn nothing(&self) -> Clock {
        self.nothing.clone()
    }

    /// Begins the threads of a warp, with the knowledge that their launch has. They may release it, at the system's scope.
    /// Returns their first epoch.
    pub(crate) fn begin(&mut self, warp: u32, home: Home, start: &Clock, releases: bool) -> u32 {
        self.homes[warp as usize] = home;
        let threads = warp * LANES..(warp + 1) * LANES;
        let of_warp = &mut self.events[threads.start as usize..threads.end as usize];
        let epoch = of_warp.iter().map(|events| events.epoch).max().unwrap_or(0) + 1;
        for events in of_warp {
            let loads = events.loads.is_some().then(|| start.clone());
            let fenced = events.fenced.is_some().then(|| start.clone());
            let (fences, pending) = (Vec::new(), Vec::new());
            let (clock, start) = (start.clone(), start.clone());
            *events = Events { clock, loads, fenced, epoch, start, begun: epoch, fences, pending };
        }
        for thread in threads.filter(|_| releases) {
            let release = self.release(thread, Scope::Sys);
            self.events[thread as usize].fences.push(release);
        }
        epoch
    }

    /// All that is known by the threads of warps and by others, with the events of these threads.
    pub(crate) fn known_by(&self, warps: &[u32], others: impl Iterator<Item = Clock>) -> Clock {
        let mut all = self.nothing();
        let threads = || warps.iter().flat_map(|warp| warp * LANES..(warp + 1) * LANES);
        let mut last = self.nothing();
        let clocks = threads().map(|thread| self.events[thread as usize].clock.clone());
        for clock in clocks.chain(others) {
            if !clock.is(&last) {
                all.join(&clock);
                last = clock;
            }
        }
        threads().for_each(|thread| all.set(thread, self.events[thread as usize].epoch));
        all
    }

    /// All that releases tell.
    pub(crate) fn told(&self, releases: &[Release]) -> Clock {
        let mut all = self.nothing();
        for release in releases {
            all.join(&release.clock);
            all.raise(release.thread, release.epoch);
        }
        all
    }

    /// Gives a thread knowledge, of the ends of launches or of a cluster's barrier. Both stand for fences between aliases.
    pub(crate) fn know(&mut self, me: Thread, clock: &Clock) {
        let Events { clock: known, loads, fenced, .. } = &mut self.events[me as usize];
        for known in [Some(known), loads.as_mut(), fenced.as_mut()].into_iter().flatten() {
            known.join(clock);
        }
    }

    /// A fence between aliases: all that the thread knows and has done is before it.
    pub(crate) fn fence_aliases(&mut self, me: Thread) {
        let Events { clock, fenced, epoch, .. } = &mut self.events[me as usize];
        if let Some(fenced) = fenced {
            *fenced = clock.clone();
            fenced.set(me, *epoch);
            *epoch += 1;
        }
    }

    /// Whether a fence between aliases is between an event and the next access of `me`.
    pub(crate) fn is_fenced(&self, me: Thread, thread: Thread, epoch: u32) -> bool {
        let fenced = self.events[me as usize].fenced.as_ref();
        thread == NOBODY || fenced.is_none_or(|fenced| fenced.of(thread) >= epoch)
    }

    /// Whether an event is one of `me`, and not of the thread of another launch that had its number.
    pub(crate) fn is_own(&self, me: Thread, thread: Thread, epoch: u32) -> bool {
        thread == me && epoch >= self.events[me as usize].begun
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
        thread == me || thread == NOBODY || self.events[me as usize].clock.of(thread) >= epoch
    }

    /// Whether an event happened before the launch of `me` began.
    pub(crate) fn knew(&self, me: Thread, Stamp { thread, epoch, .. }: Stamp) -> bool {
        thread == NOBODY || self.events[me as usize].start.of(thread) >= epoch
    }

    /// Whether a load of `thread` in `epoch` happened before the next store of `me`.
    pub(crate) fn knows_load(&self, me: Thread, thread: Thread, epoch: u32) -> bool {
        thread == me || self.load_clock(me).of(thread) >= epoch
    }

    fn load_clock(&self, me: Thread) -> &Clock {
        let events = &self.events[me as usize];
        events.loads.as_ref().unwrap_or(&events.clock)
    }

    /// Returns the first lane of a warp whose load in its epoch is not known to `me`; an epoch of 0 stands for no event.
    pub(crate) fn unknown_lane(&self, me: Thread, warp: u32, epochs: &[u32; 32]) -> Option<u32> {
        let clock = self.load_clock(me).slice(warp * LANES, LANES);
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
            Scope::Cluster => from.cluster == to.cluster,
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
        let (clock, loads) = (events.clock.clone(), events.loads.clone());
        let fenced = events.fenced.clone();
        let release = Release { clock, loads, fenced, thread, epoch: events.epoch, scope };
        events.epoch += 1;
        release
    }

    /// The loads that a thread knows and has done, for a store that tells of them alone; none where no store does.
    pub(crate) fn release_loads(&mut self, thread: Thread, scope: Scope) -> Option<Release> {
        self.events[thread as usize].loads.is_some().then(|| self.release(thread, scope))
    }

    /// Gives a thread the knowledge of the loads that a store told of.
    pub(crate) fn learn_loads(&mut self, me: Thread, scope: Scope, release: &Release) {
        let reaches = self.reaches(release.scope, release.thread, me)
            && self.reaches(scope, me, release.thread);
        let Some(known) = self.events[me as usize].loads.as_ref().filter(|_| reaches) else {
            return;
        };
        self.events[me as usize].loads = Some(with_loads(known, release));
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

    /// A fence: one that acquires, one that releases, one that does both, or that is sequentially consistent, too.
    pub(crate) fn fence(&mut self, me: Thread, scope: Scope, ordering: Ordering) {
        let sequential = ordering == Ordering::SeqCst;
        let mut before = std::mem::take(&mut self.sequential);
        if ordering != Ordering::Release {
            let pending = std::mem::take(&mut self.events[me as usize].pending);
            self.acquire(me, scope, &pending);
            let left = pending.into_iter().filter(|r| !self.knows(me, r.thread, r.epoch)).collect();
            self.events[me as usize].pending = left;
            if sequential {
                self.acquire(me, scope, &before);
            }
        }
        if ordering != Ordering::Acquire {
            let release = self.release(me, scope);
            if sequential {
                self.add_release(&mut before, &release);
            }
            let mut fences = std::mem::take(&mut self.events[me as usize].fences);
            self.add_release(&mut fences, &release);
            self.events[me as usize].fences = fences;
        }
        self.sequential = before;
    }

    /// Gives each of these threads the knowledge of all of them.
    pub(crate) fn meet(&mut self, threads: &[Thread]) {
        let Some(&first) = threads.first() else { return };
        let mut all = self.events[first as usize].clock.clone();
        let mut last = all.clone();
        for &thread in threads {
            let clock = &self.events[thread as usize].clock;
            if !clock.is(&last) {
                all.join(clock);
                last = clock.clone();
            }
        }
        for &thread in threads {
            all.set(thread, self.events[thread as usize].epoch);
        }
        let joined = |of: fn(&Events) -> &Option<Clock>, mut known: Clock| {
            for &thread in threads {
                if let Some(more) = of(&self.events[thread as usize]) {
                    known.join(more);
                }
            }
            known
        };
        let Events { loads, fenced, .. } = &self.events[first as usize];
        let loads = loads.as_ref().map(|_| joined(|events| &events.loads, all.clone()));
        let fenced = fenced.clone().map(|own| joined(|events| &events.fenced, own));
        for &thread in threads {
            let events = &mut self.events[thread as usize];
            events.clock = all.clone();
            events.loads.clone_from(&loads);
            events.fenced.clone_from(&fenced);
            events.epoch += 1;
        }
    }

    /// Whether an acquire of `scope` by `me` and a release reach each other.
    fn is_told(&self, me: Thread, scope: Scope, release: &Release) -> bool {
        !self.knows(me, release.thread, release.epoch)
            && self.reaches(release.scope, release.thread, me)
            && self.reaches(scope, me, release.thread)
    }

    fn learn(&mut self, me: Thread, release: &Release) {
        if let Some(known) = &self.events[me as usize].loads {
            self.events[me as usize].loads = Some(with_loads(known, release));
        }
        if let (Some(known), Some(more)) = (&mut self.events[me as usize].fenced, &release.fenced) {
            known.join(more);
        }
        let mine = &self.events[me as usize].clock;
        let same = |(clock, told, _): &&(Clock, Release, Clock)| {
            clock.is(mine)
                && told.clock.is(&release.clock)
                && (told.thread, told.epoch) == (release.thread, release.epoch)
        };
        if let Some((_, _, joined)) = self.joins.iter().flatten().find(same) {
            self.events[me as usize].clock = joined.clone();
            return;
        }
        let mut joined = mine.clone();
        joined.join(&release.clock);
        joined.raise(release.thread, release.epoch);
        self.joins[self.next_join] = Some((mine.clone(), release.clone(), joined.clone()));
        self.next_join = (self.next_join + 1) % self.joins.len();
        self.events[me as usize].clock = joined;
    }
}

/// Adds the loads that a release tells of to known ones.
fn with_loads(known: &Clock, release: &Release) -> Clock {
    let mut more = known.clone();
    more.join(release.loads.as_ref().unwrap_or(&release.clock));
    more.raise(release.thread, release.epoch);
    more
}
