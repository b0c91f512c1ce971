//! The pulls of each rank, step by step, from its schedule.

use roundelay_core::check::Frontend;
use roundelay_core::check::dependencies::Dependencies;
use roundelay_core::compile_with;
use roundelay_core::layout::{Algorithm as _, Configured};
use roundelay_core::rational::Rat;
use roundelay_core::schedule::{OpKind, Region, Schedule};
use roundelay_core::syntax::Source;
use roundelay_core::verify::{Proof, verify};

use roundelay_library::SOURCES as LIBRARY;

/// One algorithm of a family file, its parameters set.
pub(crate) fn algorithm(text: &str, name: &str, set: &[(&str, &str)]) -> Configured {
    let source = Source::from_text("family.coll", text);
    let program = compile_with(&source, Frontend::File, &Dependencies::library(LIBRARY))
        .unwrap_or_else(|errors| {
            let all: Vec<_> = errors.iter().map(|e| e.report(&source)).collect();
            panic!("{}", all.join("\n"));
        });
    let found = program.algorithms.iter().find(|a| a.name == name);
    let mut algorithm = Configured::new(found.expect("an algorithm of the file").clone(), &source);
    for (parameter, value) in set {
        algorithm.set_text(parameter, value).expect("a value that fits");
    }
    algorithm
}

pub(crate) fn schedule(algorithm: &Configured, nranks: u32) -> Schedule {
    algorithm
        .schedule(nranks)
        .unwrap_or_else(|found| panic!("{} at {nranks}: {found:#?}", algorithm.name()))
}

pub(crate) fn proved(algorithm: &Configured, nranks: u32) -> Proof {
    verify(&schedule(algorithm, nranks))
        .unwrap_or_else(|found| panic!("{} at {nranks}: {found:#?}", algorithm.name()))
}

/// One pull: its source, the intervals of the data in units of the count, and whether it is reduced.
///
/// The intervals are those of the buffer where the data arrives; or of the input, where pieces of it were copied there
/// before, for the data to be reduced into them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pull {
    pub(crate) from: i64,
    pub(crate) data: Vec<[Rat; 2]>,
    pub(crate) reduces: bool,
}

impl Pull {
    /// Returns the pull of pieces `lo..hi` of a region that is cut into `parts` pieces a unit.
    pub(crate) fn pieces(from: i64, pieces: &[[i64; 2]], parts: Rat, reduces: bool) -> Self {
        let at = |i: i64| Rat::new(i as u64 * parts.den(), parts.num()).expect("a small fraction");
        let data = pieces.iter().map(|[lo, hi]| [at(*lo), at(*hi)]).collect();
        Self { from, data, reduces }
    }

    /// Piece `i` alone.
    pub(crate) fn piece(from: i64, i: i64, parts: Rat, reduces: bool) -> Self {
        Self::pieces(from, &[[i, i + 1]], parts, reduces)
    }
}

/// The pulls of each stream of each rank in order: by rank, then by stream.
pub(crate) fn pulls(schedule: &Schedule) -> Vec<Vec<Vec<Pull>>> {
    let mut all = vec![Vec::new(); schedule.nranks as usize];
    for stream in &schedule.streams {
        let mut copied: Vec<(Region, Region)> = Vec::new();
        let mut pulls = Vec::new();
        for op in &schedule.ops[stream.first.index()..][..stream.len as usize] {
            if op.kind != OpKind::Move {
                continue;
            }
            let [dst] = schedule.dsts(op) else { panic!("one destination") };
            assert_eq!(dst.rank, stream.rank, "a pull writes at home");
            let own = *schedule.region(*dst);
            let srcs = schedule.srcs(op);
            let mut far = srcs.iter().filter(|src| src.rank != stream.rank);
            let reduces = srcs.len() > 1;
            let Some(from) = far.next() else {
                copied.retain(|(to, _)| !inside(to, &own));
                copied.push((own, *schedule.region(srcs[0])));
                continue;
            };
            assert_eq!(far.next(), None, "one peer an op");
            let pieces = copied.iter().filter(|(to, _)| reduces && inside(to, &own));
            let mut data: Vec<_> = pieces.map(|(_, of)| [of.lo, of.hi]).collect();
            data.sort();
            if data.is_empty() {
                data.push([own.lo, own.hi]);
            }
            pulls.push(Pull { from: from.rank.0.into(), data, reduces });
        }
        all[stream.rank.index()].push(pulls);
    }
    all
}

fn inside(a: &Region, b: &Region) -> bool {
    (a.buffer, a.slot) == (b.buffer, b.slot) && b.lo <= a.lo && a.hi <= b.hi
}

/// The ranks around a ring as `--set` takes them.
pub(crate) fn text(order: &[i64]) -> String {
    let all: Vec<_> = order.iter().map(i64::to_string).collect();
    all.join(",")
}

/// `i` steps on from `rank` around the ring of `order`, or back where `i` is negative.
pub(crate) fn along(order: &[i64], rank: i64, i: i64) -> i64 {
    let n = order.len() as i64;
    let at = order.iter().position(|r| *r == rank).expect("every rank is in the ring") as i64;
    order[(at + i).rem_euclid(n) as usize]
}
