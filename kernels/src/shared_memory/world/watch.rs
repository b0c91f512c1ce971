//! Waits for other ranks, in a call or for a message: the waiting rank spins, yields and sleeps, checks from time to
//! time that the other ranks are alive, and gives up at the deadline.

use std::time::{Duration, Instant};

use super::World;
use super::failure::{self, Cause};
use super::memory::clock::ticks;
use super::memory::shared_state::{Standing, Wait};
use crate::Error;
use crate::shared_memory::meet::ending;
use crate::sync::MODELLED;

/// Looks of a rank with a core of its own before it yields the core to other ranks.
const SPINS: u32 = 4_000;
/// The first looks, without a pause: the rank sees a change that comes soon at once.
const BARE: u32 = 100;
/// Yields to other ranks before a rank looks at the clock.
const TURNS: u32 = if MODELLED { 0 } else { 32 };
/// How long yields are cheaper than sleep.
pub(crate) const AWAKE: Duration = if MODELLED { Duration::ZERO } else { Duration::from_millis(2) };
/// The time after which a waiting rank checks again that other ranks are alive.
pub(crate) const LOOK: Duration = if MODELLED { Duration::MAX } else { Duration::from_millis(10) };
/// Nanoseconds of a sleep.
const SLEEP: i64 = 10_000_000;
/// Nanoseconds of a sleep where a progress function is to run meanwhile.
const NAP: i64 = 100_000;

/// How long a rank waits before it looks whether the wait is one of a circle of waits; later looks come at twice that
/// time, at four times, and so on.
const CIRCLES: Duration = if MODELLED { Duration::MAX } else { Duration::from_secs(1) };

/// Nanoseconds of a sleep between calls of a progress function in a patient wait.
const LONG_NAP: i64 = 1_000_000;

/// A wait for other ranks.
pub(crate) trait Watch {
    fn world(&self) -> &World;

    /// Whether the wait is to end early: checked before each sleep.
    fn ends(&self) -> bool;

    /// Fails with the reason if the wait is to end early.
    fn goes_on(&self) -> Result<(), Error>;

    /// Whether the wait needs `rank`, where it is not for one given rank.
    fn needs(&self, rank: usize) -> bool;

    /// Returns the error of a wait for a rank that ended or left.
    fn lost(&self, rank: usize, how: &str) -> Error;

    /// Returns the nanoseconds of a sleep between looks.
    fn nap(&self) -> i64 {
        SLEEP
    }

    /// Whether the wait is known to be long: then a rank that shares its core sleeps at once.
    fn is_patient(&self) -> bool {
        false
    }

    /// Returns how long the rank yields to other ranks before it sleeps.
    fn awake(&self) -> Duration {
        if self.is_patient() && !self.world().spins { Duration::ZERO } else { AWAKE }
    }

    /// Returns how long this wait may take.
    fn deadline(&self) -> Duration {
        self.world().deadline()
    }

    /// Returns the number of the call in which the rank waits, 0 beside calls, and the number of the call that the
    /// awaited rank must make, without which the wait cannot end: 0 where the wait is for something else.
    fn numbers(&self) -> [u64; 2] {
        [0; 2]
    }

    /// Returns the error of a wait for rank `on` that can never end, after `waited`; `None` unless that is certain.
    fn in_circle(&self, _on: usize, _waited: Duration) -> Option<Error> {
        None
    }

    /// Returns the error of a wait whose deadline is over.
    fn late(&self, on: Option<usize>) -> Error;
}

/// Waits until `ready()`, for an action of rank `on`, or of any rank if `on` is `None`.
pub(crate) fn wait<W: Watch>(
    watch: &W,
    on: Option<usize>,
    mut ready: impl FnMut() -> bool,
) -> Result<(), Error> {
    if ready() {
        return Ok(());
    }
    let world = watch.world();
    if world.spins && world.spinning.is_worth() {
        for spins in 0..SPINS {
            if spins >= BARE {
                std::hint::spin_loop();
            }
            if ready() {
                world.spinning.paid();
                return Ok(());
            }
        }
        world.spinning.was_vain();
    }
    for _ in 0..TURNS {
        std::thread::yield_now();
        if ready() {
            return Ok(());
        }
    }
    wait_long(watch, on, &mut ready)
}

#[cold]
fn wait_long(
    watch: &dyn Watch,
    on: Option<usize>,
    ready: &mut dyn FnMut() -> bool,
) -> Result<(), Error> {
    let (world, shared) = (watch.world(), &watch.world().shared);
    let since = Instant::now();
    let mut looked = since;
    let mut circles = CIRCLES;
    let progress = world.progress();
    let [number, needs] = watch.numbers();
    let told = Wait { since: ticks(), on, number, needs, progress: progress.is_some() };
    let outcome = loop {
        if let Err(ends) = watch.goes_on() {
            break Err(ends);
        }
        if let Some(progress) = &progress {
            progress();
        }
        let waited = since.elapsed();
        if waited < watch.awake() {
            if (0..TURNS).any(|_| {
                std::thread::yield_now();
                ready()
            }) {
                break Ok(());
            }
            continue;
        }
        shared.tell_wait(world.rank, Some(&told));
        let most = if watch.is_patient() { LONG_NAP } else { NAP };
        let nap = if progress.is_some() { watch.nap().min(most) } else { watch.nap() };
        shared.sleep(world.rank, nap, || ready() || watch.ends());
        if ready() {
            break Ok(());
        }
        if looked.elapsed() >= LOOK {
            looked = Instant::now();
            if let Err(lost) = look_after(watch, on) {
                break if ready() { Ok(()) } else { Err(lost) };
            }
        }
        if waited > circles && needs != 0 {
            circles = circles.saturating_mul(2);
            if let Some(never) =
                on.and_then(|on| watch.in_circle(on, Duration::from_secs(waited.as_secs())))
            {
                break if ready() { Ok(()) } else { Err(never) };
            }
        }
        if waited > watch.deadline() {
            break Err(watch.late(on));
        }
    };
    shared.tell_wait(world.rank, None);
    outcome
}

/// Checks that the awaited ranks are alive: rank `on`, or all ranks that the wait needs.
fn look_after(watch: &dyn Watch, on: Option<usize>) -> Result<(), Error> {
    let world = watch.world();
    let suspects: Vec<usize> = match on {
        Some(rank) => vec![rank],
        None => world.others().collect(),
    };
    let dead = ending::ended(&world.peers, world.rank);
    let dead = dead.map_err(|error| world.give_up_for(error))?;
    for rank in suspects {
        if on.is_none() && !watch.needs(rank) {
            continue;
        }
        if let Some(how) = world.gone(rank, dead[rank]) {
            return Err(watch.lost(rank, &how));
        }
    }
    Ok(())
}

impl World {
    /// Returns how a rank went, if it left the world or its process is dead.
    fn gone(&self, rank: usize, dead: bool) -> Option<String> {
        match self.shared.standing(rank) {
            Standing::Here => dead.then(|| {
                let (launch, launched) = self.launched(rank);
                let endings = self.endings.as_ref().filter(|endings| endings.launch() == launch);
                ending::how(launched, &self.peers[rank], endings)
            }),
            Standing::Left => Some("left the world".to_owned()),
            Standing::Panicked => Some("panicked and left the world".to_owned()),
        }
    }

    /// Returns a rank whose process ended before it left the world, or that panicked, and how.
    #[cfg(all(target_os = "linux", feature = "cuda"))]
    pub(crate) fn find_lost(&self) -> Option<(usize, String)> {
        let dead = ending::ended(&self.peers, self.rank).ok()?;
        let lost = |rank: &usize| match self.shared.standing(*rank) {
            Standing::Here => dead[*rank],
            Standing::Left => false,
            Standing::Panicked => true,
        };
        let rank = self.others().find(lost)?;
        Some((rank, self.gone(rank, dead[rank])?))
    }

    /// Ends the world, as `rank` ended before it did what others wait for.
    #[cfg(all(target_os = "linux", feature = "cuda"))]
    pub(crate) fn lost_beside(&self, rank: usize, how: &str, wanted: &str) -> Error {
        let (pid, number) = (self.peers[rank].pid, self.shared.number(rank));
        let rank = self.named(rank);
        let what = format!("rank {rank} (process {pid}) {how} before it {wanted}");
        let ended = crate::error::Ended { rank, pid, number, what };
        self.give_up(&Cause::Ended(ended.clone()), Error::RankEnded(Box::new(ended)))
    }

    /// Returns a text with the ranks that wait for `rank`, this rank among them.
    pub(crate) fn who_waits(&self, rank: usize) -> String {
        let waiting = self.shared.waiting_for(rank);
        let mut waiting: Vec<_> = waiting.iter().map(|rank| self.named(rank.index())).collect();
        let mine = self.named(self.rank);
        if rank != self.rank && !waiting.contains(&mine) {
            waiting.push(mine);
        }
        waiting.sort_unstable();
        let names: Vec<String> = waiting.iter().map(ToString::to_string).collect();
        match &names[..] {
            [one] => format!("rank {one} waited for it"),
            [some @ .., last] => format!("ranks {} and {last} waited for it", some.join(", ")),
            [] => "nobody waited for it yet".to_owned(),
        }
    }

    /// Ends all calls and messages, unless another rank has: then the error is that rank's cause.
    pub(crate) fn give_up(&self, cause: &Cause, error: Error) -> Error {
        let ours = failure::write(&self.shared.arena, cause);
        self.shared.wake_all();
        if ours { error } else { failure::told(&self.shared.arena, self.named(self.rank)) }
    }

    /// Ends all calls and messages for a reason of this rank.
    pub(crate) fn give_up_for(&self, error: Error) -> Error {
        self.give_up(&Cause::Gave { by: self.named(self.rank), why: error.text() }, error)
    }

    /// Ends all calls and messages for a reason of the caller's: current and later ones fail (E0413), unless the world
    /// has failed before.
    ///
    /// # Errors
    /// E0427 in a forked child.
    pub fn abort(&self, why: &str) -> Result<(), Error> {
        self.here()?;
        let why = format!("it aborted: {why}");
        _ = failure::write(&self.shared.arena, &Cause::Gave { by: self.named(self.rank), why });
        self.shared.wake_all();
        Ok(())
    }

    /// Ends the world, as another rank wrote words that no correct rank writes: no shared word can be trusted any more.
    pub(crate) fn corrupt(&self, what: String) -> Error {
        self.give_up_for(Error::Corrupt { what })
    }

    /// Returns the world's failure, if it has failed.
    pub(crate) fn intact(&self) -> Result<(), Error> {
        if failure::has_failed(&self.shared.arena) {
            return Err(failure::told(&self.shared.arena, self.named(self.rank)));
        }
        Ok(())
    }
}
