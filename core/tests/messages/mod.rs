//! The two-sided form: every algorithm comes to sends and receives that give its results, and nothing can go wrong.

mod broken;
mod forms;
mod groups;
mod library;
mod random;
mod refused;
mod slots;

use fastrand::Rng;
use roundelay_core::diagnostics::unless_refused;
use roundelay_core::layout::Configured;
use roundelay_core::messages::TwoSided;
use roundelay_core::prove;
use roundelay_core::schedule::text;
use roundelay_core::verify::Proved;
use roundelay_oracles::engine::{self, Run, Transport};

use crate::sources::{self, library};

/// Returns the proved schedule for `nranks` ranks, unless the count is refused.
fn admitted(algorithm: &Configured, nranks: u32) -> Option<Proved> {
    unless_refused(prove(algorithm, nranks)).expect("the library is right")
}

/// Runs both, in all modes that the author's schedule has, with every kind of send.
fn same_bits(author: &Proved, form: &TwoSided, random: &mut Rng, what: &str) {
    for in_place in [false, true] {
        if in_place && !author.proof().in_place {
            continue;
        }
        for (synchronous, tags) in [(false, true), (false, false), (true, true), (true, false)] {
            let seed = random.u64(..);
            // Seldom is a unit longer than the ranks are many: then some messages are empty.
            let run = Run { count: seed % 7 + seed % 2 * 17, in_place, averages: seed & 2 == 0 };
            let transport = Transport { synchronous, tags, seed };
            let expected = engine::author(author, run);
            let found = engine::two_sided(form, run, transport);
            assert!(expected == found, "{what}: {run:?}, {transport:?}");
        }
    }
}

/// Returns one algorithm of the library for `nranks` ranks.
fn of_library(name: &str, nranks: u32) -> Proved {
    admitted(&sources::named(name), nranks).expect("it takes so many ranks")
}

/// Returns the form of a text, a schedule as `emit schedule` prints it.
fn of_text(schedule: &str) -> (Proved, TwoSided) {
    let schedule = text::parse(schedule).unwrap_or_else(|error| panic!("{error:?}\n{schedule}"));
    let author = Proved::new(schedule).unwrap_or_else(|found| panic!("{found:#?}"));
    let form = TwoSided::new(&author).unwrap_or_else(|found| panic!("{found:#?}"));
    (author, form)
}
