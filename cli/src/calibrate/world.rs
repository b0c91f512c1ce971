//! `roundelay calibrate --world`: the ways of data between processes of this host, measured for worlds to come.

use roundelay::library::{
    MeshAllGather, MeshReduceScatter, NhrBroadcast, OneShotMeshAllReduce, RingReduce,
};
use roundelay::{Algorithm, DType, Options, ReduceOp};
use roundelay_core::diagnostics::Code;
use roundelay_core::ids::RankId;
use roundelay_core::prove;
use roundelay_core::schedule::{Buffer, Schedule};
use roundelay_core::verify::Proved;
use roundelay_runner::RunError;
use roundelay_runner::ranks::{self, PlanShape, Ranks};
use serde::Serialize;

use super::CalibrateFlags;
use crate::build_facts;
use crate::progress::Bar;
use crate::report::{Failure, Format};
use crate::self_call;
use crate::streams::{self, print, print_json};

/// The binary logarithms of the bytes that the ranks stage: for fewer bytes there is one way.
const SIZES: std::ops::RangeInclusive<u32> = 11..=24;
/// The rank counts that can be measured: one rank has one way, and the direct exchanges of many take long to prove.
const RANKS: std::ops::RangeInclusive<u32> = 2..=64;
/// Calls of a size: the trials, and those until all ranks know the decision.
const CALLS: u32 = 240;

#[derive(Serialize)]
struct WaysReport {
    build: &'static str,
    nranks: Vec<u32>,
    /// The file with the decisions; `null` where nothing is to be kept.
    file: Option<String>,
    ways: Vec<String>,
}

/// Returns the algorithms that worlds of one host choose.
fn algorithms() -> [Box<dyn Algorithm>; 5] {
    [
        Box::new(OneShotMeshAllReduce::new()),
        Box::new(MeshAllGather::new()),
        Box::new(MeshReduceScatter::new()),
        Box::new(NhrBroadcast::new()),
        Box::new(RingReduce::new().slices(1)),
    ]
}

/// Returns the units of the largest buffer that a rank stages: an input, or a result that all ranks get.
fn staged_units(schedule: &Schedule) -> u64 {
    let inputs = (0..schedule.nranks).map(|rank| schedule.units(Buffer::Input, RankId(rank)));
    inputs.map(roundelay_core::rational::Rat::floor).max().unwrap_or(1)
}

fn proved(which: usize, nranks: u32) -> Result<Proved, RunError> {
    prove(&*algorithms()[which], nranks).map_err(|_| RunError::Unproved)
}

/// Runs the work of a rank.
pub(super) fn answer() -> u8 {
    let options = Options::new().measured_anew();
    ranks::answer(options, false, streams::retype, &mut |nranks, shape| proved(shape.which, nranks))
}

pub(super) fn main(flags: &CalibrateFlags) -> Result<bool, Failure> {
    build_facts::warn("calibrate");
    self_call::alone()?;
    let nranks = flags.nranks.as_ref().map_or(vec![2, 4, 8], |nranks| nranks.counts.clone());
    if let Some(other) = nranks.iter().find(|nranks| !RANKS.contains(nranks)) {
        let title =
            format!("--world is for {} to {} ranks, not for {other}", RANKS.start(), RANKS.end());
        return Err(Failure::usage(Code::BadFlag, title));
    }
    let mut report = WaysReport { build: build_facts::BUILD, nranks, file: None, ways: Vec::new() };
    let all = report.nranks.len() * algorithms().len() * SIZES.count();
    let bar = Bar::new(all);
    for &nranks in &report.nranks {
        bar.message(format!("{nranks} ranks"));
        let mut ranks = Ranks::start(nranks, None)?;
        for which in 0..algorithms().len() {
            let staged = staged_units(proved(which, nranks)?.schedule());
            for size in SIZES {
                let count = (1_u64 << size) / staged / DType::F32.size() as u64;
                ranks.plan(&PlanShape {
                    which,
                    root: None,
                    count: count.max(1),
                    counts: None,
                    dtype: DType::F32.name().to_owned(),
                    op: ReduceOp::Sum.name().to_owned(),
                    seed: 1,
                })?;
                ranks.row(false, CALLS, (false, false))?;
                bar.step();
            }
        }
        let (file, ways) = ranks.keep_ways()?;
        report.ways.extend(ways.into_iter().map(|way| format!("{nranks} ranks, {way}")));
        report.file = file;
    }
    bar.clear();
    match flags.format {
        Format::Json => print_json(&report),
        Format::Human => {
            report.ways.iter().for_each(|way| print(way));
            match &report.file {
                Some(file) => {
                    print(&format!("\nworlds of this host begin with the ways of {file}"));
                }
                None => print("\nnothing was kept, as ROUNDELAY_CACHE is off"),
            }
        }
    }
    Ok(true)
}
