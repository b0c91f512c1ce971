//! `executor run` and `executor bench`: real data through the framework's loop.

use std::time::Duration;

use roundelay::executor::{CompiledExecutor, Framework, OpParam, Ran};
use roundelay_core::executor::Executor;
use roundelay_core::ids::RankId;
use roundelay_core::layout::Algorithm as _;
use roundelay_core::units::microseconds;
use roundelay_kernels::reference::Reference;
use serde::Serialize;

use super::flags::{BenchFlags, DataFlags, RunFlags};
use super::size;
use super::sizes::{Tested, tested};
use crate::built;
use crate::memory::{Room, TooMuch};
use crate::report::{Failure, Format};
use crate::streams::{print, print_json};

/// A size that was run.
#[derive(Serialize)]
pub(super) struct ExecutorRow {
    pub(super) bytes: u64,
    count: u64,
    algorithm: String,
    loops: u64,
    staged: bool,
    pub(super) time_us: f64,
    pub(super) algbw_gbps: f64,
    pub(super) wrong: u64,
}

#[derive(Serialize)]
struct ExecutorRunReport {
    ok: bool,
    executor: String,
    /// The build of this command, where it measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    build: Option<&'static str>,
    rows: Vec<ExecutorRow>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<LeftOut>,
    /// Where no sizes were asked for.
    #[serde(flatten)]
    tested: Option<Tested>,
}

/// A size that there is no memory for.
#[derive(Serialize)]
struct LeftOut {
    bytes: u64,
    reason: String,
}

pub(super) fn main(flags: &RunFlags) -> Result<bool, Failure> {
    let executor = flags.asked.load()?;
    let runs = Runs { in_place: flags.in_place, iterations: 1 };
    let sizes = (!flags.sizes.is_empty()).then_some(&flags.sizes[..]);
    table(executor, sizes, runs, &flags.data, flags.asked.format, false)
}

pub(super) fn bench(flags: &BenchFlags) -> Result<bool, Failure> {
    let executor = flags.asked.load()?;
    let runs = Runs { in_place: false, iterations: flags.iterations };
    built::warn("executor bench");
    table(executor, Some(&flags.sizes), runs, &flags.data, flags.asked.format, true)
}

/// The number of runs, and whether they are in place.
#[derive(Clone, Copy)]
pub(super) struct Runs {
    pub(super) in_place: bool,
    pub(super) iterations: u32,
}

/// Runs at these sizes, or at some sizes of each class, and prints the table.
fn table(
    executor: Executor,
    sizes: Option<&[u64]>,
    runs: Runs,
    data: &DataFlags,
    format: Format,
    measured: bool,
) -> Result<bool, Failure> {
    let name = executor.name.clone();
    let collective = executor.collective;
    let text = format == Format::Human;
    let runner = Runner::new(executor, data)?;
    let tested = sizes.is_none().then(|| runner.tested(runs));
    let sizes = tested.as_ref().map_or(sizes.unwrap_or_default(), |tested| &tested.sizes);
    let (mut rows, mut left_out, mut first): (Vec<ExecutorRow>, _, _) =
        (Vec::new(), Vec::new(), None);
    // The head stands above the first row: where no size runs, the error stands alone.
    let mut above = Vec::new();
    if measured {
        above.push(built::line("executor bench"));
    }
    let place = if runs.in_place { "in place" } else { "out of place" };
    above.push(format!(
        "{name} ({collective}), {} {}, {place}, seed {}",
        data.dtype, data.op, data.seed
    ));
    above.push(format!(
        "{:>12} {:>12} {:<24} {:>6} {:>7} {:>12} {:>13} {:>7}",
        "size", "count", "algorithm", "loops", "staged", "time (us)", "algbw (GB/s)", "#wrong"
    ));
    let mut put = |line: String, runs: bool| {
        above.push(line);
        if text && runs {
            above.drain(..).for_each(|line| print(&line));
        }
    };
    for &bytes in sizes {
        match runner.admits(bytes, runs) {
            Ok(()) => {
                let row = runner.run(bytes, runs)?;
                put(row.line(), true);
                rows.push(row);
            }
            Err(much) => {
                let reason = format!("left out: the run {much}");
                put(format!("{:>12} {reason}", size(bytes)), !rows.is_empty());
                left_out.push(LeftOut { bytes, reason });
                first.get_or_insert(much);
            }
        }
    }
    if let Some(much) = first
        && rows.is_empty()
    {
        return Err(much.into());
    }
    let ok = rows.iter().all(|row| row.wrong == 0);
    if !text {
        let build = measured.then_some(built::BUILD);
        print_json(&ExecutorRunReport { ok, executor: name, build, rows, left_out, tested });
        return Ok(ok);
    }
    for line in tested.iter().flat_map(|t| t.untested.iter().chain([&t.testable])) {
        print(line);
    }
    Ok(ok)
}

impl ExecutorRow {
    fn line(&self) -> String {
        let color = if self.wrong == 0 { "92" } else { "91" };
        format!(
            "{:>12} {:>12} {:<24} {:>6} {:>7} {:>12.1} {:>13.3} \x1b[1;{color}m{:>7}\x1b[0m",
            size(self.bytes),
            self.count,
            self.algorithm,
            self.loops,
            if self.staged { "yes" } else { "no" },
            self.time_us,
            self.algbw_gbps,
            self.wrong
        )
    }
}

/// An executor and its framework.
pub(super) struct Runner<'d> {
    spec: Executor,
    framework: Framework,
    data: &'d DataFlags,
    room: Room,
}

impl<'d> Runner<'d> {
    pub(super) fn new(spec: Executor, data: &'d DataFlags) -> Result<Self, Failure> {
        let framework = Framework::new();
        let framework = data.ccl_buffer.map_or(framework, |bytes| framework.ccl_buffer(bytes));
        Ok(Self { spec, framework, data, room: Room::of_host()? })
    }

    /// Returns the elements a unit of a call of `bytes` bytes; a size that holds no whole number of them is rounded
    /// down, as in nccl-tests.
    fn count(&self, bytes: u64) -> u64 {
        bytes / (self.spec.units() * self.data.dtype.size() as u64)
    }

    /// Returns some sizes of each class.
    fn tested(&self, runs: Runs) -> Tested {
        let admits = |bytes| self.admits(bytes, runs).is_ok();
        tested(&self.spec, self.data.of_ccl(&self.spec), self.data.dtype, admits)
    }

    /// Returns the bytes that a call of `bytes` bytes needs, at most.
    fn memory(&self, bytes: u64, runs: Runs) -> u128 {
        let ccl = self.data.of_ccl(&self.spec);
        let scratch = u128::from(self.spec.scratch_bytes(ccl.min(bytes)));
        // In loops there are CCL buffers, and a plan of its own for the last loop.
        let loops = if bytes > ccl { 2 * u128::from(ccl) + scratch } else { 0 };
        // Inputs and outputs, and in place the buffers that hold both.
        let buffers = if runs.in_place { 3 } else { 2 };
        (buffers * u128::from(bytes) + loops + scratch) * u128::from(self.spec.nranks())
    }

    /// Whether there is memory for it.
    pub(super) fn admits(&self, bytes: u64, runs: Runs) -> Result<(), TooMuch> {
        self.room.admit(self.memory(bytes, runs))
    }

    /// Runs once on random data and compares, then as often as asked for.
    pub(super) fn run(&self, bytes: u64, runs: Runs) -> Result<ExecutorRow, Failure> {
        let spec = &self.spec;
        // The executor's plans have scratch, which is freed with them.
        let executor = CompiledExecutor::with(spec.clone(), self.data.engine.options());
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
    ) -> Result<(Vec<Vec<u8>>, Ran, Duration), Failure> {
        let unit = param.count as usize * param.dtype.size();
        let mut outputs: Vec<Vec<u8>> =
            self.units().map(|units| vec![0xA5; units.1 * unit]).collect();
        let reads: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
        let mut writes: Vec<&mut [u8]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
        let mut once = || self.framework.run_bytes(executor, param, &reads, &mut writes);
        let first = once().map_err(failed)?;
        let mut time = Duration::ZERO;
        for _ in 0..iterations {
            time += once().map_err(failed)?.elapsed;
        }
        Ok((outputs, first, time / iterations))
    }

    fn in_place(
        &self,
        executor: &CompiledExecutor,
        inputs: &[Vec<u8>],
        param: &OpParam,
        iterations: u32,
    ) -> Result<(Vec<Vec<u8>>, Ran, Duration), Failure> {
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
            let ran = self.framework.run_bytes_in_place(executor, param, &mut views);
            let ran = ran.map_err(failed)?;
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

fn failed(error: roundelay_kernels::Error) -> Failure {
    Failure::from(error)
}
