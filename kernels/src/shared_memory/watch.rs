//! Whoever waits for another rank, in a call or for a message: it spins, yields and sleeps, looks from time to time
//! whether the others are alive, and gives up at the deadline.

use std::time::{Duration, Instant};

use super::ending;
use super::failure::{self, Cause};
use super::shared_state::Standing;
use super::world::World;
use crate::Error;

/// Looks before a rank that has a core for itself lets others have it.
const SPINS: u32 = 4_000;
/// The first of them without a pause: what is nearly there is seen at once.
const BARE: u32 = 100;
/// Turns that others are given before a rank looks at the clock.
const TURNS: u32 = if cfg!(all(test, loom)) { 0 } else { 32 };
/// For so long turns are cheaper than sleep.
pub(super) const AWAKE: Duration =
    if cfg!(all(test, loom)) { Duration::ZERO } else { Duration::from_millis(2) };
/// How often a rank that waits looks whether the others are alive.
pub(super) const LOOK: Duration =
    if cfg!(all(test, loom)) { Duration::MAX } else { Duration::from_millis(10) };
/// Nanoseconds of a sleep.
const SLEEP: i64 = 10_000_000;
/// Nanoseconds of it where something else is to go on meanwhile.
const NAP: i64 = 100_000;

/// The same for ranks that are known to wait long.
const LONG_NAP: i64 = 1_000_000;

/// What waits for other ranks.
pub(super) trait Watch {
    fn world(&self) -> &World;

    /// Whether it is to end early: looked at before it sleeps.
    fn ends(&self) -> bool;

    /// Why it ends early, if it does.
    fn goes_on(&self) -> Result<(), Error>;

    /// Whether it needs this rank, where it waits for no one rank.
    fn needs(&self, rank: usize) -> bool;

    /// A rank that it waits for ended or left.
    fn lost(&self, rank: usize, how: &str) -> Error;

    /// For how many nanoseconds it may sleep between looks.
    fn nap(&self) -> i64 {
        SLEEP
    }

    /// Whether it is known that the wait is long: then a rank that shares its core sleeps at once.
    fn is_patient(&self) -> bool {
        false
    }

    /// For how long it gives others turns before it sleeps.
    fn awake(&self) -> Duration {
        if self.is_patient() && !self.world().spins { Duration::ZERO } else { AWAKE }
    }

    /// How long this wait may take.
    fn deadline(&self) -> Duration {
        self.world().deadline()
    }

    /// The deadline came.
    fn late(&self, on: Option<usize>) -> Error;
}

/// Waits for what ranks bring about: `on` if it is one of them, or any.
pub(super) fn wait<W: Watch>(
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
    let progress = world.progress();
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
        shared.waits_for(world.rank, on);
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
        if waited > watch.deadline() {
            break Err(watch.late(on));
        }
    };
    shared.waits_for(world.rank, None);
    outcome
}

/// Looks whether those are alive that it waits for: the one, or whoever could have taken work that all wait for.
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
    /// How a rank went, if it left the world, or its process is dead.
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

    /// Which ranks wait for that one, this one among them, in words.
    pub(super) fn who_waits(&self, rank: usize) -> String {
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

    /// Ends all calls and messages, unless another rank has: then that one's cause is told.
    pub(super) fn give_up(&self, cause: &Cause, error: Error) -> Error {
        let ours = failure::write(&self.shared.arena, cause);
        self.shared.wake_all();
        if ours { error } else { failure::told(&self.shared.arena, self.named(self.rank)) }
    }

    /// Ends all calls and messages for a reason that is this rank's own.
    pub(crate) fn give_up_for(&self, error: Error) -> Error {
        self.give_up(&Cause::Gave { by: self.named(self.rank), why: error.text() }, error)
    }

    /// Ends all calls and messages for a reason of the caller's: those under way and all later ones fail (E0413), unless
    /// the world has failed before.
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

    /// Another rank wrote what none of ours writes: nothing can be trusted any more.
    pub(super) fn corrupt(&self, what: String) -> Error {
        self.give_up_for(Error::Corrupt { what })
    }

    /// The world's failure, if it has failed.
    pub(crate) fn intact(&self) -> Result<(), Error> {
        if failure::has_failed(&self.shared.arena) {
            return Err(failure::told(&self.shared.arena, self.named(self.rank)));
        }
        Ok(())
    }
}
