//! `roundelay run`: seeded random data, real buffers, and every element compared with a plain reference.

#[cfg(feature = "cuda")]
mod cuda;
#[cfg(feature = "cuda")]
mod faults;
#[cfg(feature = "cuda")]
mod ptx;
mod run_table;

use std::collections::BTreeMap;
use std::sync::Arc;

use clap::Args;
use roundelay::{Algorithm as _, DType, ReduceOp};
use roundelay_core::counts::Counts;
use roundelay_core::diagnostics::{Code, Diagnostic};
use roundelay_core::ids::RankId;
use roundelay_core::layout::Configured;
use roundelay_core::prove_source;
use roundelay_core::syntax::Source;
use roundelay_core::trace::Data;
use roundelay_core::units::microseconds;
use roundelay_core::verify::Proved;
use roundelay_kernels::grid::Buffers;
use roundelay_kernels::reference::Reference;
use roundelay_runner::calls::{AskedAlgorithm, CalledBy, Calls};
use roundelay_runner::memory::{self, Room, TooMuch};
use roundelay_runner::output_check::CheckedRun;
use roundelay_runner::{RunError, ranks};

use crate::device::{Device, DeviceFlags};
use crate::flags::{CallerFlags, EngineFlags, SourceFlags};
use crate::memory_bound::room;
use crate::msccl;
use crate::output;
use crate::program::{Loaded, load, load_with, one, read};
use crate::progress;
use crate::report::{Failure, Format, name_counts, print_all, refuse, wrong};
use crate::streams;
use crate::topology;
use crate::trace::{TraceFlag, predict};
use crate::values::{RankCounts, at_least, count, dtype, rank_counts, reduce_op};
use crate::vector::{VectorForm, vector};
use run_table::{RunReport, RunTable};

#[derive(Args)]
pub(crate) struct RunFlags {
    #[command(flatten)]
    pub(crate) source: SourceFlags,
    /// Rank counts: 8, 2..=33, 2..9, or a list such as 2,4,8 [default: 8]
    #[arg(short, long, value_name = "RANKS", value_parser = rank_counts)]
    pub(crate) nranks: Option<RankCounts>,
    /// Count of elements, as NCCL's calls take it (for an AllReduce, the elements of each rank), such as 1000, 64K, 1M
    /// or 1e6; K, M and G are powers of 1024, as in sizes [default: 1M, and 1000 on ptx]
    #[arg(long, value_parser = count)]
    count: Option<u64>,
    /// A count for each block instead: a list such as 5,0,7, one for each rank (for an AllToAll one for each pair, those of
    /// sender 0 first); skew:ALPHA, counts that fall with the power ALPHA of the block's number; or random:SEED, up to
    /// twice the count
    #[arg(long, value_name = "COUNTS", value_parser = vector)]
    pub(crate) counts: Option<VectorForm>,
    /// Element type: i8 u8 i32 u32 i64 u64 f16 bf16 f32 f64 f8e4m3 f8e5m2
    #[arg(long, default_value = "f32", value_parser = dtype)]
    pub(crate) dtype: DType,
    /// Reduce op: sum prod min max avg band bor bxor land lor lxor; those from band on are for integers
    #[arg(long, default_value = "sum", value_parser = reduce_op)]
    pub(crate) op: ReduceOp,
    /// Input and output share memory, by NCCL's rules
    #[arg(long)]
    pub(crate) in_place: bool,
    /// Seed of the random inputs, and on ptx of the order of threads
    #[arg(long, default_value_t = 1, value_parser = at_least(0_u64))]
    pub(crate) seed: u64,
    /// Timed runs, after one to warm up; on ptx launches in a row [default: 5, and 2 on ptx]
    #[arg(short = 'I', long, value_name = "N", visible_alias = "iters", value_parser = at_least(1_u32))]
    iterations: Option<u32>,
    #[command(flatten)]
    pub(crate) callers: CallerFlags,
    #[command(flatten)]
    pub(crate) engine: EngineFlags,
    #[command(flatten)]
    pub(crate) device: DeviceFlags,
    #[command(flatten)]
    pub(crate) trace: TraceFlag,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Human)]
    pub(crate) format: Format,
}

impl RunFlags {
    fn count(&self) -> u64 {
        self.count.unwrap_or(if self.is_interpreted() { 1000 } else { 1 << 20 })
    }

    fn iterations(&self) -> u32 {
        self.iterations.unwrap_or(if self.is_interpreted() { 2 } else { 5 })
    }

    fn is_interpreted(&self) -> bool {
        matches!(self.device.device, Device::Ptx(_))
    }
}

pub(crate) fn main(flags: &RunFlags) -> Result<bool, Failure> {
    flags.device.check(&flags.engine)?;
    flags.callers.check()?;
    flags.op.check(flags.dtype)?;
    if flags.device.device != Device::Host && flags.callers.by() != CalledBy::One {
        let title = format!("--callers {} is for the host's engine", flags.callers.callers.name());
        return Err(
            Failure::usage(Code::BadFlag, title).with_help("leave it out, or take --device host")
        );
    }
    if flags.counts.is_some() && flags.device.device != Device::Host {
        let title = "--counts is for the host's engines: kernels have one count";
        return Err(Failure::usage(Code::BadFlag, title).with_help("leave out --device"));
    }
    if flags.trace.trace.is_some() && flags.device.device != Device::Host {
        let title = "--trace is for the host's engines: kernels keep no times";
        return Err(Failure::usage(Code::BadFlag, title)
            .with_help("leave out --device, or `roundelay simulate --trace FILE` the algorithm"));
    }
    let document = flags.format == Format::Json;
    output::reserve(&[("--trace", flags.trace.trace.as_deref())], document)?;
    if msccl::is_program(&flags.source.source) {
        return program(flags);
    }
    let source = read(&flags.source.source)?;
    let failed = |errors: &[Diagnostic]| refuse(flags.format, errors, &source, wrong);
    let algorithm = match load(&source, &flags.source)? {
        Loaded::Ready(algorithms) => one(algorithms, &source)?,
        Loaded::Wrong(errors) => return Err(failed(&errors)),
    };
    let room = room()?;
    let mut calls = Calls::new(flags.callers.by(), flags.engine.options(), false, streams::typed);
    calls.trace = flags.trace.begin();
    let mut table = RunTable::new(flags, algorithm.name(), algorithm.collective());
    let (mut refused, mut left_out) = (Vec::new(), None);
    let nranks = RankCounts::or(flags.nranks.as_ref(), DEFAULT);
    for &count in &nranks.counts {
        match run((&algorithm, &source), count, flags, room, &mut calls) {
            Ok(report) => table.add(report),
            Err(Stopped::Wrong(mut errors)) => {
                let all_refused = errors.iter().all(|e| e.code == Code::RankCountRefused);
                if nranks.named || !all_refused {
                    name_counts(&mut errors, &algorithm, flags.nranks.is_none().then_some(DEFAULT));
                    return Err(failed(&errors));
                }
                for error in &errors {
                    table.refused(&error.title);
                }
                refused.extend(errors);
            }
            Err(Stopped::TooMuch(much)) if !nranks.named => {
                table.left_out(count, &much);
                left_out.get_or_insert(much);
            }
            Err(Stopped::TooMuch(much)) => return Err(much.into()),
            Err(Stopped::Failure(failure)) => return Err(failure),
        }
    }
    match left_out {
        Some(much) if table.reports.is_empty() => return Err(much.into()),
        _ if table.reports.is_empty() && flags.format == Format::Human => {
            print_all(&refused, &source);
        }
        _ => {}
    }
    if !table.reports.is_empty() {
        flags.trace.write(calls.trace.as_ref())?;
    }
    Ok(table.end())
}

/// Runs a program for MSCCL, which says itself how many ranks there are.
fn program(flags: &RunFlags) -> Result<bool, Failure> {
    msccl::counts_ranks(flags.nranks.is_some())?;
    if flags.counts.is_some() {
        let title = "--counts does not go with a program for MSCCL";
        return Err(Failure::usage(Code::BadCall, title)
            .with_help("its runtimes have one count for all ranks"));
    }
    let (_, proved) = given(flags)?;
    let shaped = Shaped { proved, count: flags.count(), counts: None };
    let mut calls = Calls::new(flags.callers.by(), flags.engine.options(), false, streams::typed);
    calls.trace = flags.trace.begin();
    let report = match run_proved(&shaped, None, flags, room()?, &mut calls) {
        Ok(report) => report,
        Err(Stopped::Failure(failure)) => return Err(failure),
        Err(Stopped::TooMuch(much)) => return Err(much.into()),
        Err(Stopped::Wrong(_)) => return Err(Failure::Program),
    };
    let schedule = shaped.proved.schedule();
    let mut table = RunTable::new(flags, &schedule.algorithm, schedule.collective);
    table.add(report);
    flags.trace.write(calls.trace.as_ref())?;
    Ok(table.end())
}

/// Returns a proved program for MSCCL, in the mode that is asked for if it has it.
fn given(flags: &RunFlags) -> Result<(Arc<Source>, Proved), Failure> {
    let (source, lints) = (&flags.source.source, &flags.source.lints);
    msccl::proved(source, lints, flags.in_place, flags.format)
}

/// Answers as a rank of a command with these flags.
pub(crate) fn answer(flags: &RunFlags) -> u8 {
    let find = |nranks| -> Result<Proved, Failure> {
        if msccl::is_program(&flags.source.source) {
            return Ok(given(flags)?.1);
        }
        let source = read(&flags.source.source)?;
        let given = topology::given(&flags.source.topology)?;
        // The command has printed the warnings.
        match load_with(&source, &flags.source, given.as_ref(), drop)? {
            Loaded::Ready(algorithms) => {
                let algorithm = one(algorithms, &source)?;
                prove_source(&algorithm, nranks).map_err(|_| Failure::Program)
            }
            Loaded::Wrong(_) => Err(Failure::Program),
        }
    };
    let (options, alloc) = (flags.engine.options(), flags.callers.alloc);
    ranks::answer(options, alloc, streams::retype, &mut |nranks, _| {
        find(nranks).map_err(RunError::from)
    })
}

/// The number of ranks where none is given.
const DEFAULT: u32 = 8;

enum Stopped {
    Wrong(Vec<Diagnostic>),
    TooMuch(TooMuch),
    Failure(Failure),
}

#[cfg(feature = "cuda")]
impl From<roundelay_kernels::cuda::Error> for Stopped {
    fn from(error: roundelay_kernels::cuda::Error) -> Self {
        match error {
            roundelay_kernels::cuda::Error::NoKernel(why) => Self::Wrong(why),
            other => Self::Failure(other.into()),
        }
    }
}

impl From<RunError> for Stopped {
    fn from(error: RunError) -> Self {
        Self::Failure(error.into())
    }
}

impl From<Failure> for Stopped {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

fn run(
    (algorithm, source): (&Configured, &Source),
    nranks: u32,
    flags: &RunFlags,
    room: Room,
    calls: &mut Calls,
) -> Result<RunReport, Stopped> {
    progress::about(format!("{}, {nranks} ranks", algorithm.name()));
    let proved = progress::shown(|| prove_source(algorithm, nranks)).map_err(Stopped::Wrong)?;
    let shaped = Shaped::new(proved, algorithm, flags)?;
    run_proved(&shaped, Some((algorithm, source)), flags, room, calls)
}

/// A proved schedule with the lengths of its blocks.
struct Shaped {
    proved: Proved,
    /// Elements a unit: 1 where blocks have a count each.
    count: u64,
    counts: Option<Counts>,
}

impl Shaped {
    /// Takes the counts of the flags.
    fn new(proved: Proved, algorithm: &Configured, flags: &RunFlags) -> Result<Self, Stopped> {
        let Some(form) = &flags.counts else {
            return Ok(Self { proved, count: flags.count(), counts: None });
        };
        let (collective, nranks) = (proved.schedule().collective, proved.schedule().nranks);
        let counts = form.counts(collective, nranks, flags.count()).map_err(Failure::from)?;
        let place = |finding| algorithm.diagnostic(finding, nranks);
        let unproved = |found: Vec<_>| Stopped::Wrong(found.into_iter().map(place).collect());
        let proved = proved.for_counts(&counts).map_err(unproved)?;
        Ok(Self { proved, count: 1, counts: Some(counts) })
    }
}

/// Returns the bytes of the buffers that a run has at one time.
fn needed(shaped: &Shaped, flags: &RunFlags) -> u128 {
    let (schedule, count) = (shaped.proved.schedule(), shaped.count);
    let (apart, shared) = memory::ends(schedule, count, flags.dtype);
    // In place there are the inputs, the one buffer of each rank, and the outputs that are compared.
    let buffers = if flags.in_place { apart + shared } else { apart };
    let needed = memory::scratch(schedule, count, flags.dtype) + buffers;
    // The interpreter knows the order of the accesses to each byte.
    let needed = if flags.is_interpreted() { 48 * needed } else { needed };
    // Processes have buffers of their own, beside the buffers here, which are compared.
    if flags.callers.by() == CalledBy::Processes { 2 * needed } else { needed }
}

/// Runs a proved schedule; kernels for GPUs are made of its algorithm.
fn run_proved(
    shaped: &Shaped,
    of: Option<(&Configured, &Source)>,
    flags: &RunFlags,
    room: Room,
    calls: &mut Calls,
) -> Result<RunReport, Stopped> {
    let proved = &shaped.proved;
    let (collective, nranks) = (proved.schedule().collective, proved.schedule().nranks);
    room.admit(needed(shaped, flags)).map_err(Stopped::TooMuch)?;
    let reference = Reference {
        collective,
        nranks,
        root: proved.schedule().root,
        count: usize::try_from(flags.count()).expect("the machine holds `count` elements"),
        dtype: flags.dtype,
        op: flags.op,
    };
    let data = reference.with_counts(shaped.counts.as_ref());
    let mut inputs = data.inputs(flags.seed);
    let measured = match (&flags.device.device, of) {
        (Device::Host, _) => {
            let source = of.map(|(_, source)| source);
            host(shaped, source, &mut inputs, flags, calls)?
        }
        (_, Some(of)) => on_device(of, proved, &inputs, flags)?,
        (_, None) => return Err(Stopped::Failure(msccl::on_host())),
    };
    let Measured { outputs, seconds, reduce_depth, device, counters } = measured;
    let views: Vec<&[u8]> = outputs.iter().flatten().map(Vec::as_slice).collect();
    let size = flags.dtype.size();
    let (elements, wrong) = match outputs {
        Some(_) => {
            let elements = views.iter().map(|view| (view.len() / size) as u64).sum();
            (elements, data.count_wrong(&inputs, &views, reduce_depth))
        }
        None => {
            let ranks = (0..nranks).map(RankId);
            let buffers =
                ranks.map(|rank| Buffers::new(proved.schedule(), rank, shaped.count, size));
            (buffers.map(|rank| (rank.output / size) as u64).sum(), 0)
        }
    };
    let seconds = seconds.map(|seconds| seconds / f64::from(flags.iterations()));
    let moved = match &shaped.counts {
        // The larger of a rank's two buffers, as nccl-tests counts; of the rank that has most.
        Some(_) => {
            let all = inputs.iter().chain(outputs.iter().flatten());
            all.map(Vec::len).max().unwrap_or(0) as f64
        }
        None => collective.bytes(flags.count(), nranks, flags.dtype.size() as u64) as f64,
    };
    let algbw = seconds.map(|seconds| if seconds > 0.0 { moved / seconds / 1e9 } else { 0.0 });
    Ok(RunReport {
        ok: wrong == 0,
        algorithm: proved.schedule().algorithm.clone(),
        nranks,
        root: collective.is_rooted().then_some(proved.schedule().root.0),
        count: shaped.counts.as_ref().map_or(flags.count(), |counts| counts.all().iter().sum()),
        counts: shaped.counts.as_ref().map(|counts| counts.all().to_vec()),
        dtype: flags.dtype.name(),
        op: flags.op.name(),
        in_place: flags.in_place,
        seed: flags.seed,
        iterations: flags.iterations(),
        elements,
        wrong,
        time_us: seconds.map(microseconds),
        algbw_gbps: algbw,
        busbw_gbps: algbw.map(|algbw| algbw * collective.bus_factor(nranks)),
        counters,
        device,
    })
}

/// The outputs of a run, which are none where it has compared them itself, and its total time where it has one.
struct Measured {
    outputs: Option<Vec<Vec<u8>>>,
    seconds: Option<f64>,
    reduce_depth: u32,
    /// The GPUs' names, or the name of the machine that is interpreted.
    device: Option<String>,
    /// The counts of warps that were interpreted, by their names.
    counters: Option<BTreeMap<&'static str, u64>>,
}

fn host(
    shaped: &Shaped,
    source: Option<&Source>,
    inputs: &mut [Vec<u8>],
    flags: &RunFlags,
    calls: &mut Calls,
) -> Result<Measured, Stopped> {
    let proved = &shaped.proved;
    let asked = AskedAlgorithm { proved, which: 0, root: None };
    let mut trace = calls.trace.take();
    let mut plan = calls.plan(asked, (shaped.count, flags.dtype, flags.op), flags.seed)?;
    if trace.is_some() {
        plan.record();
    }
    let run = CheckedRun {
        schedule: proved.schedule(),
        count: shaped.count,
        dtype: flags.dtype,
        iterations: flags.iterations(),
    };
    let (outputs, seconds, last) = if flags.in_place {
        run.in_place(&mut plan, inputs)
    } else {
        run.apart(&mut plan, inputs)
    }?;
    if let Some(text) = &mut trace {
        plan.trace(text, source)?;
        let given = topology::given(&flags.source.topology)?;
        let topology = given.as_ref().map(|given| &given.topology);
        let data = Data { count: shaped.count, dtype: flags.dtype };
        predict(text, proved.schedule(), data, topology, source, last);
    }
    calls.trace = trace;
    let (seconds, reduce_depth) = (Some(seconds), proved.proof().reduce_depth);
    let outputs = Some(outputs);
    Ok(Measured { outputs, seconds, reduce_depth, device: None, counters: None })
}

/// Runs a program's kernel on a device.
#[cfg(feature = "cuda")]
fn on_device(
    of: (&Configured, &Source),
    proved: &Proved,
    inputs: &[Vec<u8>],
    flags: &RunFlags,
) -> Result<Measured, Stopped> {
    match &flags.device.device {
        Device::Cuda(devices) => cuda::run(devices, of.0, proved, inputs, flags),
        Device::Ptx(arch) => ptx::run(arch, of, proved, flags),
        Device::Host => unreachable!("the host runs no kernel"),
    }
}

#[cfg(not(feature = "cuda"))]
fn on_device(
    _: (&Configured, &Source),
    _: &Proved,
    _: &[Vec<u8>],
    _: &RunFlags,
) -> Result<Measured, Stopped> {
    Err(Stopped::Failure(crate::device::absent()))
}
