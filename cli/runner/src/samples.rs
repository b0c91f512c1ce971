//! The runs that constants are fitted to: algorithms with different needs, from sizes where only latency matters to
//! sizes where only bytes do.

use std::time::{Duration, Instant};

use roundelay::select::library;
use roundelay::{Algorithm as _, DType, Level, Options, Plan, ReduceOp};
use roundelay_core::ids::RankId;
use roundelay_core::layout::Configured;
use roundelay_core::{diagnostics::Code, prove};
use roundelay_simulate::cost::{Counts, Sample};

use crate::error::RunError;

/// Many steps and few, many messages and few, reducing and copying, in and out of a port at once or not.
const ALGORITHMS: [&str; 10] = [
    "RingAllReduce",
    "HalvingDoublingAllReduce",
    "MeshAllReduce",
    "OneShotMeshAllReduce",
    "RecursiveDoublingAllReduce",
    "RingReduceScatter",
    "RingAllGather",
    "MeshAllToAll",
    "BruckAllToAll",
    "NhrBroadcast",
];
const NRANKS: [u32; 2] = [4, 8];
/// nccl-tests' sizes. Beyond, the buffers of all ranks leave the caches, where one bandwidth fits no more.
const BYTES: [u64; 6] = [1 << 8, 1 << 12, 1 << 15, 1 << 18, 1 << 20, 1 << 21];

/// Time for each sample, beyond which no further run is begun.
const ENOUGH: Duration = Duration::from_millis(60);
/// Runs of a sample: of the least and most.
const RUNS: std::ops::RangeInclusive<u32> = 3..=200;

/// Measures every algorithm, rank count and size.
pub fn samples(workers: u32) -> Result<Vec<Sample>, RunError> {
    let mut samples = Vec::new();
    for name in ALGORITHMS {
        let algorithm = library().iter().find(|algorithm| algorithm.name() == name);
        let algorithm = algorithm.ok_or_else(|| {
            RunError::usage(Code::UnknownAlgorithm, format!("the library has no {name}"))
        })?;
        for nranks in NRANKS {
            for bytes in BYTES {
                samples.push(sample(algorithm, nranks, bytes, workers)?);
            }
        }
    }
    Ok(samples)
}

/// Returns the shortest of some runs: other work of the machine only adds to them.
fn sample(
    algorithm: &Configured,
    nranks: u32,
    bytes: u64,
    workers: u32,
) -> Result<Sample, RunError> {
    let unproved = |findings: Vec<roundelay_core::diagnostics::Finding>| {
        let first = findings.into_iter().next().expect("a failed proof has a reason");
        RunError::usage(first.code, first.title)
    };
    let (dtype, size) = (DType::F32, DType::F32.size());
    let proved = prove(algorithm, nranks).map_err(unproved)?;
    let counts = Counts::from_schedule(proved.schedule()).map_err(unproved)?;
    let unit = algorithm.collective().bytes(1, nranks, size as u64);
    let count = bytes.div_ceil(unit);
    let engine = |error: roundelay_kernels::Error| RunError::from(error);
    // As written: the counts of a schedule must be the counts of its run.
    let options = Options::new().workers(workers).level(Level::O0);
    let plan = Plan::for_options(&proved, count, dtype, ReduceOp::Sum, options).map_err(engine)?;
    let ranks = (0..nranks).map(RankId);
    let buffer = |elements: usize| vec![1_u8; elements * size];
    let inputs: Vec<Vec<u8>> = ranks.clone().map(|rank| buffer(plan.input_len(rank))).collect();
    let mut outputs: Vec<Vec<u8>> = ranks.map(|rank| buffer(plan.output_len(rank))).collect();
    let inputs: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
    let mut outputs: Vec<&mut [u8]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
    plan.run_bytes(&inputs, &mut outputs).map_err(engine)?;
    let (begun, mut best) = (Instant::now(), Duration::MAX);
    for run in 0..*RUNS.end() {
        if run >= *RUNS.start() && begun.elapsed() > ENOUGH {
            break;
        }
        best = best.min(plan.run_bytes(&inputs, &mut outputs).map_err(engine)?.elapsed);
    }
    Ok(Sample {
        name: format!("{} on {nranks} ranks", algorithm.name()),
        counts,
        bytes: count * unit,
        seconds: best.as_secs_f64(),
    })
}
