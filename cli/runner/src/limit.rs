//! The least that memory lets any algorithm take, measured on the buffers that the algorithms use.

use std::time::Duration;

use roundelay_limit::{Traffic, measure};
use serde::Serialize;

use crate::bench_buffers::BenchBuffers;
use crate::timing::{Timing, bandwidth};

/// The time that is spent on a limit for each iteration of an algorithm, besides the search for the fastest program: few
/// iterations are a glance, and the limit is one, too.
const TIME: Duration = Duration::from_millis(15);

/// The iterations beyond which the limit takes no more time.
const MOST: u32 = 20;

/// The description of the limit, given once for all sizes.
pub const WHAT: &str =
    "a hand-blocked program that reads every input once and writes every output once, no schedule";

/// The limit of one size.
#[derive(Serialize)]
pub struct Limit {
    /// The name of the collective.
    pub collective: &'static str,
    /// The number of ranks.
    pub nranks: u32,
    /// The size in bytes, as nccl-tests counts it.
    pub size: u64,
    /// Elements a unit.
    pub count: u64,
    /// The name of the type of elements.
    #[serde(rename = "type")]
    pub dtype: &'static str,
    /// `sum` of f32, or the operation that replaces it: as many bytes.
    pub adds: &'static str,
    /// Microseconds.
    pub time: f64,
    /// GB/s
    pub alg_bw: f64,
    /// GB/s
    pub bus_bw: f64,
    /// The shortest sample in microseconds.
    pub min: f64,
    /// The median of the samples in microseconds.
    pub median: f64,
    /// Bytes read and written.
    pub bytes: u64,
    /// The threads of the fastest program.
    pub threads: u32,
    /// The fastest program, in words.
    pub program: String,
}

impl Limit {
    /// Returns the better of two measurements: other work of the machine can only make a measurement longer.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        if other.time < self.time { other } else { self }
    }

    /// Measures the limit on these buffers, with at most that many threads.
    pub fn measure(buffers: &mut BenchBuffers, size: u64, threads: u32, iters: u32) -> Self {
        let reference = buffers.reference;
        let collective = reference.collective;
        let traffic = Traffic {
            collective,
            root: reference.root,
            count: reference.count as u64,
            dtype: reference.dtype,
        };
        let (inputs, mut outputs) = buffers.apart();
        let inputs: Vec<&[u8]> = inputs.into_iter().map(|input| &*input).collect();
        let found = measure(&traffic, &inputs, &mut outputs, threads, TIME * iters.clamp(1, MOST));
        let timing = Timing::from_samples(found.samples);
        let time = timing.time();
        let alg_bw = bandwidth(size, time);
        let float = reference.dtype == roundelay::DType::F32;
        Self {
            collective: collective.name(),
            nranks: reference.nranks,
            size,
            count: traffic.count,
            dtype: reference.dtype.name(),
            adds: match collective.reduces() {
                true if float => "f32",
                true => "32-bit integers",
                false => "nothing",
            },
            time: time * 1e6,
            alg_bw,
            bus_bw: alg_bw * collective.bus_factor(reference.nranks),
            min: timing.least() * 1e6,
            median: timing.median() * 1e6,
            bytes: found.bytes,
            threads: found.threads,
            program: found.program,
        }
    }
}
