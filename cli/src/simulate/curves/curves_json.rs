//! The runs as one JSON document. Times are seconds, rates bytes a second.

use roundelay::DType;
use serde::Serialize;

use roundelay_pictures::curves::{AlgorithmCurve, Comparison, Missing, RunPoint};

use crate::constants::ConstantsJson;

#[derive(Serialize)]
pub(super) struct CurvesJson<'c> {
    ok: bool,
    collective: &'static str,
    topology: &'c str,
    dtype: &'static str,
    nranks: &'c [u32],
    /// From the ranks up, in the order of the loads.
    levels: &'c [String],
    /// Of the largest rank count.
    constants: Option<ConstantsJson<'c>>,
    algorithms: Vec<Algorithm<'c>>,
}

#[derive(Serialize)]
struct Algorithm<'c> {
    name: &'c str,
    /// The rank counts at which no other algorithm takes less time, but for a thousandth.
    fastest: Vec<u32>,
    runs: Vec<Simulated<'c>>,
    refused: Vec<RefusedRun<'c>>,
}

#[derive(Serialize)]
struct Simulated<'c> {
    nranks: u32,
    bytes: u64,
    seconds: f64,
    algbw: f64,
    busbw: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    bound: Option<RunBound>,
    loads: Vec<Busiest<'c>>,
}

#[derive(Serialize)]
struct RunBound {
    seconds: f64,
    /// The bound over the time; 1 is the best.
    share: f64,
}

/// The bytes that the busiest link of a level carries.
#[derive(Serialize)]
struct Busiest<'c> {
    level: &'c str,
    /// Away from the ranks.
    up: f64,
    /// Towards the ranks.
    down: f64,
}

#[derive(Serialize)]
struct RefusedRun<'c> {
    nranks: u32,
    code: &'static str,
    reason: &'c str,
}

impl<'c> CurvesJson<'c> {
    pub(super) fn new(
        all: &'c Comparison<'_>,
        dtype: DType,
        constants: Option<ConstantsJson<'c>>,
    ) -> Self {
        let fastest = all.fastest();
        let algorithm = |curve: &'c AlgorithmCurve| {
            let of = fastest.iter().find(|(name, _)| *name == curve.name);
            Algorithm {
                name: &curve.name,
                fastest: of.map_or(Vec::new(), |(_, counts)| counts.clone()),
                runs: curve.points.iter().map(|point| simulated(all, point)).collect(),
                refused: refused(curve),
            }
        };
        Self {
            ok: true,
            collective: all.collective.name(),
            topology: all.topology.name(),
            dtype: dtype.name(),
            nranks: &all.nranks,
            levels: &all.levels.names,
            constants,
            algorithms: all.curves.iter().map(algorithm).collect(),
        }
    }
}

fn simulated<'c>(all: &'c Comparison<'_>, point: &RunPoint) -> Simulated<'c> {
    let share = point.share();
    let loads = point.loads.iter().zip(&all.levels.names);
    Simulated {
        nranks: point.nranks,
        bytes: point.bytes,
        seconds: point.seconds,
        algbw: point.algbw,
        busbw: point.busbw,
        bound: point.bound.zip(share).map(|(seconds, share)| RunBound { seconds, share }),
        loads: loads.map(|(load, level)| Busiest { level, up: load.up, down: load.down }).collect(),
    }
}

fn refused(curve: &AlgorithmCurve) -> Vec<RefusedRun<'_>> {
    let one = |m: &'_ Missing| (m.nranks, m.code.as_str());
    let all = curve.missing.iter().map(|m| (one(m), &*m.reason));
    all.map(|((nranks, code), reason)| RefusedRun { nranks, code, reason }).collect()
}
