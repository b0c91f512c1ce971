//! Runs to draw: the library's algorithms on a full mesh.

use std::sync::Arc;

use roundelay_core::dtype::DType;
use roundelay_core::ids::RankId;
use roundelay_core::layout::Algorithm as _;
use roundelay_core::schedule::Schedule;
use roundelay_core::syntax::Source;
use roundelay_simulate::{Machine, SignalCost, Timeline, simulate};

use roundelay_library::SOURCES as LIBRARY;

use crate::sources::named;

/// An algorithm of the library.
pub(crate) fn schedule(name: &str, nranks: u32) -> Schedule {
    named(name).schedule(nranks).expect("it admits that many ranks")
}

/// An algorithm of the library on the ring through these ranks, which are all.
pub(crate) fn ordered(name: &str, ring: &[u32]) -> Schedule {
    let ring = ring.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let mut algorithm = named(name);
    algorithm.set_text("ring", &ring).expect("it has a ring");
    algorithm.schedule(ring.split(',').count() as u32).expect("it admits that many ranks")
}

/// Returns the source that holds the algorithm.
pub(crate) fn source(name: &str) -> Source {
    let here = |(_, text): &&(&str, &str)| text.contains(&format!("algorithm {name}("));
    let (file, text) = LIBRARY.iter().find(here).expect("an algorithm of the library");
    Source::from_text(*file, text)
}

/// A run of `bytes` bytes a unit, in which the rank `late` is slower by `times`.
pub(crate) fn run(schedule: &Schedule, bytes: u64, late: RankId, times: f64) -> Timeline {
    let mesh = format!("full_mesh({}, 25GB/s, 2us)", schedule.nranks);
    let machine = Machine {
        copy: Some(200e9),
        signals: SignalCost::Messages,
        stragglers: vec![(late, times)],
        ..Machine::new(Arc::new(mesh.parse().expect("a topology")))
    };
    let ran = simulate(schedule, &machine, bytes, DType::U8, true).expect("it ends");
    ran.timeline.expect("it was recorded")
}
