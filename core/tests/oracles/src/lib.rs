//! Two exact oracles that decide whether a schedule is right, by methods that share nothing with the verifier: a search
//! through all interleavings, and the closure of the order of acts. Where the search is too long it says so; the
//! closure always decides.

#![allow(missing_docs)]

mod closure;
pub mod engine;
mod model;
mod orders;
mod search;
mod values;

use roundelay_core::rational::Rat;
use roundelay_core::schedule::{Buffer, Schedule};

pub use model::Model;
pub use orders::unlike;
pub use search::search;

/// States that a search looks at before it gives up.
const STATES: usize = 20_000;
/// Elements a unit beyond which nothing is decided.
const FINEST: u64 = 512;

/// The largest of the counts that are tried where cuts do not fall alike.
const SMALL: u64 = 24;

/// The kinds of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Deadlock,
    LeftOver,
    SharedSignal,
    Race,
    RaceAcrossRuns,
    RaceWithCaller,
    Garbage,
    Result,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Objection {
    pub kind: Kind,
    pub why: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Right,
    Wrong(Objection),
    Undecided,
}

/// The results of both oracles for one schedule.
pub struct Opinion {
    /// All objections of the closure; empty if the schedule is right.
    pub objections: Vec<Objection>,
    /// Whether the search came to an end too. If it did, the oracles agree.
    pub searched: bool,
    /// Right out of place.
    pub in_place_only: bool,
    /// The objection where some ranks run in place and others do not, if there is none where all run alike.
    pub mixed: Option<Objection>,
    /// Slots hold data of several places: the rest of one is meaningless for another.
    pub reshaped: bool,
}

/// Judges `schedule` in the modes that a proof covers, for all counts; `None` if its cuts are too fine.
pub fn judge(schedule: &Schedule) -> Option<Opinion> {
    let in_place = schedule.collective.has_in_place() && !schedule.out_of_place;
    let counts = counts(schedule)?;
    let reshaped = counts.len() > 1;
    let mut opinion = Opinion {
        objections: Vec::new(),
        searched: true,
        in_place_only: false,
        mixed: None,
        reshaped,
    };
    let all = |mode| vec![mode; schedule.nranks as usize];
    for mode in [false, true].into_iter().take(1 + usize::from(in_place)) {
        for count in &counts {
            let model = Model::new(schedule, *count, &all(mode));
            let found = closure::closure(&model);
            match search(&model, true, STATES) {
                Verdict::Undecided => opinion.searched = false,
                Verdict::Right => assert_eq!(found.first(), None, "the closure alone objects"),
                // Among races, values that depend on them, and their consequences, the search meets any one first.
                Verdict::Wrong(o) => assert!(!found.is_empty(), "the search alone objects: {o:?}"),
            }
            opinion.objections.extend(found);
        }
        if !opinion.objections.is_empty() {
            opinion.in_place_only = mode;
            break;
        }
    }
    if in_place && opinion.objections.is_empty() {
        opinion.mixed = mixtures(schedule.nranks)
            .flat_map(|modes| counts.iter().map(move |count| (modes.clone(), *count)))
            .find_map(|(modes, count)| {
                closure::closure(&Model::new(schedule, count, &modes)).pop()
            });
    }
    Some(opinion)
}

/// Returns the ranks that run in place: every choice except all and none for few ranks, and each rank alone for more.
fn mixtures(nranks: u32) -> impl Iterator<Item = Vec<bool>> {
    let all = (1_u32 << nranks) - 1;
    let sets = (1..all).filter(move |set| nranks <= 3 || set.is_power_of_two());
    sets.map(move |set| (0..nranks).map(|rank| set >> rank & 1 == 1).collect())
}

/// Returns the fault that prevents the result for `count` elements a unit, in one mode.
pub fn wrong(schedule: &Schedule, count: u64, in_place: bool) -> Option<Kind> {
    let model = Model::new(schedule, count, &vec![in_place; schedule.nranks as usize]);
    let found = closure::closure(&model).first().map(|o| o.kind);
    let searched = search(&model, true, STATES);
    assert_eq!(found.is_some(), matches!(searched, Verdict::Wrong(_)), "{found:?}, {searched:?}");
    found
}

/// Returns counts that stand for all others. At a count that every cut divides, each piece between cuts has elements,
/// and the events of a piece are those at any count at which it is not empty. Slots that also hold data of other places
/// are cut elsewhere at counts that do not divide, so there all small counts are tried.
fn counts(schedule: &Schedule) -> Option<Vec<u64>> {
    let used = schedule.operands.iter().map(|o| schedule.region(*o));
    let cuts = used.clone().flat_map(|region| [region.lo, region.hi, region.base]);
    let all = cuts.chain(schedule.scratch.iter().map(|s| s.width)).map(Rat::den);
    let mut exact = 1;
    for den in all {
        exact = lcm(exact, den).filter(|count| *count <= FINEST)?;
    }
    let mut bases = vec![None; schedule.scratch.len()];
    let mut moved = false;
    for region in used {
        if let Buffer::Scratch(id) = region.buffer {
            moved |= *bases[id.index()].get_or_insert(region.base) != region.base;
        }
    }
    let small = if moved { (2 * exact).min(SMALL) } else { 0 };
    Some(std::iter::once(exact).chain(1..=small).collect())
}

fn lcm(a: u64, b: u64) -> Option<u64> {
    let (mut gcd, mut rest) = (a, b);
    while rest != 0 {
        (gcd, rest) = (rest, gcd % rest);
    }
    (a / gcd).checked_mul(b)
}

/// A schedule for one count, for tests of the oracles themselves.
pub fn model(schedule: &Schedule, count: u64) -> Model<'_> {
    Model::new(schedule, count, &vec![false; schedule.nranks as usize])
}
