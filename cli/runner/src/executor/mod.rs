//! Executors, run on real data through the framework's loop, and compared with a plain reference.

mod test_sizes;

use std::time::Duration;

use roundelay::executor::{CompiledExecutor, Framework, OpParam, Ran};
use roundelay::{DType, Options, ReduceOp};
use roundelay_core::executor::Executor;
use roundelay_core::ids::RankId;
use roundelay_core::layout::Algorithm as _;
use roundelay_core::units::microseconds;
use roundelay_kernels::reference::Reference;
use serde::Serialize;

use crate::error::RunError;
use crate::memory::{Room, TooMuch};
pub use test_sizes::Tested;
use test_sizes::tested;

/// A size that was run.
#[derive(Serialize)]
pub struct ExecutorRow {
    /// The size in bytes, of whole elements.
    pub bytes: u64,
    /// Elements a unit.
    pub count: u64,
    /// The algorithm of the size's class.
    pub algorithm: String,
    /// The loops of the framework.
    pub loops: u64,
    /// Whether data went through CCL buffers.
    pub staged: bool,
    /// The mean time in microseconds.
    pub time_us: f64,
    /// The size by the time, in GB/s.
    pub algbw_gbps: f64,
    /// The number of wrong elements.
    pub wrong: u64,
}

/// The data of a run, and the engine's options.
#[derive(Clone, Copy, Debug)]
pub struct ExecutorData {
    /// The type of elements.
    pub dtype: DType,
    /// The op of reductions.
    pub op: ReduceOp,
    /// The seed of the inputs.
    pub seed: u64,
    /// The bytes of a CCL buffer, where they are not the executor's.
    pub ccl_buffer: Option<u64>,
    /// The options of the engine.
    pub options: Options,
}

/// The number of runs, and whether they are in place.
#[derive(Clone, Copy)]
pub struct Runs {
    /// Whether input and output share memory.
    pub in_place: bool,
    /// The timed runs, after one to warm up.
    pub iterations: u32,
}

/// An executor and its framework.
pub struct Runner {
    spec: Executor,
    framework: Framework,
    data: ExecutorData,
    room: Room,
}

impl Runner {
    /// Makes a runner, whose runs are bounded by `room`.
    pub fn new(spec: Executor, data: ExecutorData, room: Room) -> Self {
        let framework = Framework::new();
        let framework = data.ccl_buffer.map_or(framework, |bytes| framework.ccl_buffer(bytes));
        Self { spec, framework, data, room }
    }

    /// Returns the bytes of a CCL buffer.
    fn ccl_buffer(&self) -> u64 {
        self.data.ccl_buffer.unwrap_or(self.spec.ccl_buffer)
    }

    /// Returns the elements a unit of a call of `bytes` bytes; a size that holds no whole number of them is rounded
    /// down, as in nccl-tests.
    fn count(&self, bytes: u64) -> u64 {
        bytes / (self.spec.units() * self.data.dtype.size() as u64)
    }

    /// Returns some sizes of each class.
    pub fn test(&self, runs: Runs) -> Tested {
        let admits = |bytes| self.admits(bytes, runs).is_ok();
        tested(&self.spec, self.ccl_buffer(), self.data.dtype, admits)
    }

    /// Returns the bytes that a call of `bytes` bytes needs, at most.
    fn memory(&self, bytes: u64, runs: Runs) -> u128 {
        let ccl = self.ccl_buffer();
        let scratch = u128::from(self.spec.scratch_bytes(ccl.min(bytes)));
        // In loops there are CCL buffers, and a plan of its own for the last loop.
        let loops = if bytes > ccl { 2 * u128::from(ccl) + scratch } else { 0 };
        // Inputs and outputs, and in place the buffers that hold both.
        let buffers = if runs.in_place { 3 } else { 2 };
        (buffers * u128::from(bytes) + loops + scratch) * u128::from(self.spec.nranks())
    }

    /// Whether there is memory for it.
    pub fn admits(&self, bytes: u64, runs: Runs) -> Result<(), TooMuch> {
        self.room.admit(self.memory(bytes, runs))
    }

    /// Runs once on random data and compares, then as often as asked for.
    pub fn run(&self, bytes: u64, runs: Runs) -> Result<ExecutorRow, RunError> {
        let spec = &self.spec;
        // The executor's plans have scratch, which is freed with them.
        let executor = CompiledExecutor::with_options(spec.clone(), self.data.options);
        let (count, dtype) = (self.count(bytes), self.data.dtype);
        let reference = Reference {
            collective: spec.collective,
            nranks: spec.nranks(),
            root: spec.root(),
            count: usize::try_from(count).expect("the machine holds `count` elements"),
            dtype,
            op: self.data.op,
        };
        let inputs = reference.inputs(self.data.seed);
        let param = OpParam::new(count, dtype, self.data.op);
        let (outputs, first, time) = if runs.in_place {
            self.in_place(&executor, &inputs, &param, runs.iterations)?
        } else {
            self.apart(&executor, &inputs, &param, runs.iterations)?
        };
        let bytes = spec.collective.bytes(count, spec.nranks(), dtype.size() as u64);
        let class = spec.class(bytes);
        let views: Vec<&[u8]> = outputs.iter().map(Vec::as_slice).collect();
        let seconds = time.as_secs_f64();
        Ok(ExecutorRow {
            bytes,
            count,
            algorithm: class.algorithm.name().to_owned(),
            loops: first.loops,
            staged: first.staged,
            time_us: microseconds(seconds),
            algbw_gbps: if seconds > 0.0 { bytes as f64 / seconds / 1e9 } else { 0.0 },
            wrong: reference.count_wrong(&inputs, &views, class.proved.proof().reduce_depth),
        })
    }

    fn apart(
        &self,
        executor: &CompiledExecutor,
        inputs: &[Vec<u8>],
        param: &OpParam,
        iterations: u32,
    ) -> Result<(Vec<Vec<u8>>, Ran, Duration), RunError> {
        let unit = param.count as usize * param.dtype.size();
        let mut outputs: Vec<Vec<u8>> =
            self.units().map(|units| vec![0xA5; units.1 * unit]).collect();
        let reads: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
        let mut writes: Vec<&mut [u8]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
        let mut once = || self.framework.run_bytes(executor, param, &reads, &mut writes);
        let first = once()?;
        let mut time = Duration::ZERO;
        for _ in 0..iterations {
            time += once()?.elapsed;
        }
        Ok((outputs, first, time / iterations))
    }

    fn in_place(
        &self,
        executor: &CompiledExecutor,
        inputs: &[Vec<u8>],
        param: &OpParam,
        iterations: u32,
    ) -> Result<(Vec<Vec<u8>>, Ran, Duration), RunError> {
        let unit = param.count as usize * param.dtype.size();
        let spec = &self.spec;
        let starts = |rank: u32| {
            let (input, output) = spec.collective.alias(RankId(rank), spec.root()).starts();
            (input as usize * unit, output as usize * unit)
        };
        let mut buffers: Vec<Vec<u8>> =
            self.units().map(|(input, output)| vec![0xA5; input.max(output) * unit]).collect();
        let (mut first, mut time) = (None, Duration::ZERO);
        for _ in 0..=iterations {
            for ((rank, buffer), input) in (0..).zip(&mut buffers).zip(inputs) {
                buffer[starts(rank).0..][..input.len()].copy_from_slice(input);
            }
            let mut views: Vec<&mut [u8]> = buffers.iter_mut().map(Vec::as_mut_slice).collect();
            let ran = self.framework.run_bytes_in_place(executor, param, &mut views)?;
            // The first is to warm up.
            time += first.map_or(Duration::ZERO, |_| ran.elapsed);
            first.get_or_insert(ran);
        }
        let outputs = (0..).zip(&buffers).zip(self.units());
        let outputs = outputs
            .map(|((rank, buffer), units)| buffer[starts(rank).1..][..units.1 * unit].to_vec());
        Ok((outputs.collect(), first.expect("the first run has a result"), time / iterations))
    }

    /// Units of input and output of each rank.
    fn units(&self) -> impl Iterator<Item = (usize, usize)> {
        let spec = &self.spec;
        let (collective, n, root) = (spec.collective, spec.nranks(), spec.root());
        (0..n).map(RankId).map(move |rank| {
            let input = collective.input_units(rank, n, root);
            (input as usize, collective.output_units(rank, n, root) as usize)
        })
    }
}
