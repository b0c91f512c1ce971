//! The worlds of a host, as a process that is no rank sees them: it maps the words of each arena, and cannot write.
//!
//! A rank keeps a descriptor of its arena, which `/proc` shows to processes of the same user. Words of ranks are not
//! trusted: whatever they are, the result is plain data.

mod circle;
pub(crate) mod launches;
mod process;

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::time::Duration;

use super::meet::join::check_arena;
use super::world::failure::{self, Cause};
use super::world::memory::algorithm_names::AlgorithmName;
use super::world::memory::arena::{Arena, CALLS};
use super::world::memory::clock::Now;
#[cfg(feature = "cuda")]
pub(crate) use super::world::memory::clock::ticks;
use super::world::memory::head::{self, HEAD_END};
pub use super::world::memory::shared_state::CallShape;
use super::world::memory::shared_state::{MOST_TILES, SharedState, Standing, Wait};
pub use circle::{Circle, circles};
use launches::Launches;
#[cfg(feature = "cuda")]
pub(crate) use process::GPU;
pub use process::ObservedProcess;

/// The worlds that were seen.
#[derive(Debug, Default)]
pub struct Observed {
    /// The worlds, by their numbers.
    pub worlds: Vec<ObservedWorld>,
    /// The worlds that this program cannot read, and why.
    pub refused: Vec<String>,
}

/// A world of processes.
#[derive(Clone, Debug)]
pub struct ObservedWorld {
    /// The number of the world's memory, which no other world of the host has at the same time.
    pub id: u64,
    /// The ranks in order.
    pub ranks: Vec<ObservedRank>,
    /// Why the world failed, if it has.
    pub failure: Option<String>,
    /// The number of algorithms whose names found no room.
    pub unnamed: u64,
}

/// A rank of a world.
#[derive(Clone, Debug)]
pub struct ObservedRank {
    /// The number of the rank in messages: its number in the world of which this world is a part.
    pub name: u32,
    /// The number of its process, as the process knows it.
    pub pid: u32,
    /// Its process; `None` where no process that can be looked at has this number and the world's memory.
    pub process: Option<ObservedProcess>,
    /// How the rank left the world, if it has.
    pub left: Option<&'static str>,
    /// The number of calls that it has made.
    pub number: u64,
    /// Whether it is in the last of these calls.
    pub in_call: bool,
    /// The step of its last call; `None` at the beginning of the call.
    pub step: Option<u32>,
    /// The lines of its algorithm at which it is in its call, if they are known.
    pub place: Option<String>,
    /// Its wait, if it waits for long.
    pub wait: Option<ObservedWait>,
    /// Its last calls, the last one first.
    pub calls: Vec<ObservedCall>,
    /// Whether its calls are launches on a GPU: then the end of a call is not known, it is in a call only while it waits
    /// there for long, and the launches that graphs make are not counted.
    pub on_gpu: bool,
}

/// A long wait of a rank.
#[derive(Clone, Debug)]
pub struct ObservedWait {
    /// The place of the awaited rank in the world, if the rank waits for one.
    pub on: Option<usize>,
    /// How long it has waited.
    pub since: Duration,
    /// The number of the call in which it waits; 0 for a wait beside calls, as for a message.
    pub number: u64,
    /// The number of the call that the awaited rank must make, and has not made; 0 where the wait is for something
    /// else.
    pub missing: u64,
    /// The words of the wait.
    words: Wait,
}

/// A call of a rank.
#[derive(Clone, Debug)]
pub struct ObservedCall {
    /// The number of the call; each rank counts its calls from 1.
    pub number: u64,
    /// The call in words.
    pub name: String,
    /// The shape of the call, if the words are those of a call.
    pub shape: Option<CallShape>,
    /// The place in the program from which the call comes, if the rank keeps it: a file and a line of Python, or a file
    /// and an address of machine code.
    pub site: Option<String>,
    /// The name of its algorithm, if it is known.
    pub algorithm: Option<String>,
    /// How long ago the rank made it.
    pub since: Duration,
    /// How long ago the rank was done with it, if it is.
    pub ended: Option<Duration>,
    /// Whether it failed.
    pub failed: bool,
}

impl ObservedCall {
    /// Returns the call in words, with the name of the file and the line or the address from which it comes, if that is
    /// known.
    pub fn text(&self) -> String {
        match self.site.as_ref().map(|site| site.rsplit('/').next().unwrap_or_default()) {
            Some(site) => format!("{}, at {site}", self.name),
            None => self.name.clone(),
        }
    }
}

/// Looks at all worlds of this host that this process may look at.
pub fn all() -> Observed {
    of_processes(process::numbers())
}

/// Looks at the worlds of one process; other processes of these worlds are not looked for.
pub(super) fn of_process(pid: u32) -> Observed {
    of_processes(vec![pid])
}

fn of_processes(pids: Vec<u32>) -> Observed {
    let mut files: BTreeMap<u64, (File, Vec<ObservedProcess>)> = BTreeMap::new();
    let mut blocks: BTreeMap<u64, File> = BTreeMap::new();
    for pid in pids {
        let arenas = process::memory(pid, process::ARENA);
        let Some(process) = (!arenas.is_empty()).then(|| process::look_at(pid)).flatten() else {
            continue;
        };
        blocks.extend(process::memory(pid, process::GPU));
        for (id, file) in arenas {
            files.entry(id).or_insert((file, Vec::new())).1.push(process.clone());
        }
    }
    let mut observed = Observed::default();
    if files.is_empty() {
        return observed;
    }
    let now = Now::measured();
    let launches: Vec<Launches> = blocks.values().filter_map(launches::read).collect();
    for (id, (file, processes)) in &files {
        match world(*id, file, processes, now) {
            Ok(world) => observed.worlds.extend(world.map(|mut world| {
                let of = launches.iter().filter(|launches| launches.world == *id);
                launches::add(&mut world.ranks, &of.collect::<Vec<_>>(), now);
                world
            })),
            Err(why) => {
                let pids: Vec<_> =
                    processes.iter().map(|process| process.pid.to_string()).collect();
                let of = pids.join(", ");
                observed.refused.push(format!("world {id} of process {of}: {why}"));
            }
        }
    }
    observed
}

/// Maps the words of an arena, and returns them with the ranks' accessors, of which only those that read may be used.
fn map(file: &File) -> Result<Option<SharedState>, String> {
    let size = file.metadata().map_err(|error| error.to_string())?.len();
    // The memory cannot shrink, so every word stays there.
    check_arena(file, size)?;
    let mut first = [0; HEAD_END];
    file.read_exact_at(&mut first, 0).map_err(|error| error.to_string())?;
    let Some(layout) = head::read(&first, size)? else { return Ok(None) };
    let arena = Arena::read_only(file, layout.of_words()).map_err(|error| error.text())?;
    Ok(Some(SharedState::of_observer(arena)))
}

/// Returns a world; `None` where its ranks have not yet come together.
fn world(
    id: u64,
    file: &File,
    processes: &[ObservedProcess],
    now: Now,
) -> Result<Option<ObservedWorld>, String> {
    let Some(shared) = map(file)? else { return Ok(None) };
    let names = shared.algorithm_names();
    let ranks = (0..shared.nranks()).map(|at| rank(&shared, at, processes, &names, now));
    let failure = failure::has_failed(&shared.arena).then(|| match failure::read(&shared.arena) {
        Cause::Ended(ended) => ended.what,
        Cause::Gave { by, why } => format!("rank {by} gave up: {why}"),
    });
    Ok(Some(ObservedWorld {
        id,
        ranks: ranks.collect(),
        failure: failure.map(|text| printable(&text)),
        unnamed: shared.unnamed(),
    }))
}

fn rank(
    shared: &SharedState,
    at: usize,
    processes: &[ObservedProcess],
    names: &[(u64, AlgorithmName)],
    now: Now,
) -> ObservedRank {
    // The wait is read first: if the awaited call is made later, it does not count as made.
    let wait = shared.told_wait(at);
    let number = shared.number(at);
    let algorithm = |identity: u64| names.iter().find(|(named, _)| *named == identity);
    let recorded = (0..CALLS).map_while(|back| number.checked_sub(back).filter(|n| *n > 0));
    let recorded: Vec<_> =
        recorded.filter_map(|number| Some((number, shared.recorded(at, number)?))).collect();
    let place = shared.place(at);
    let last = recorded.first().filter(|(last, _)| *last == number);
    let named = last.and_then(|(_, record)| algorithm(record.header.identity));
    let in_call = number > 0 && !shared.finished(at, number, MOST_TILES);
    let calls = recorded.iter().map(|(number, record)| ObservedCall {
        number: *number,
        name: record.header.name().unwrap_or_else(|| "no call that there is".to_owned()),
        shape: record.header.call(),
        site: shared.site(at, record.site).map(|site| printable(&site)),
        algorithm: algorithm(record.header.identity)
            .map(|(_, name)| printable(name.name()))
            .filter(|name| !name.is_empty()),
        since: now.since(record.begun),
        ended: (record.ended != 0).then(|| now.since(record.ended)),
        failed: record.failed,
    });
    let (pid, name) = shared.introduced(at);
    ObservedRank {
        name: name.0,
        pid,
        process: processes.iter().find(|process| process.own_number == pid).cloned(),
        left: match shared.standing(at) {
            Standing::Here => None,
            Standing::Left => Some("left the world"),
            Standing::Panicked => Some("panicked and left the world"),
        },
        number,
        in_call,
        step: (place.at > 0).then_some(place.step),
        place: named.and_then(|(_, name)| name.place(place.at)).filter(|_| in_call).map(printable),
        wait: wait.map(|words| ObservedWait {
            on: words.on,
            since: now.since(words.since),
            number: words.number,
            missing: words
                .on
                .filter(|on| shared.number(*on) < words.needs)
                .map_or(0, |_| words.needs),
            words,
        }),
        calls: calls.collect(),
        on_gpu: false,
    }
}

/// Returns a text without characters that steer a terminal.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
