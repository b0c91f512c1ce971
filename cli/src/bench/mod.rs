//! `roundelay bench`: the times of algorithms on this machine, as nccl-tests measures and shows them, beside the least
//! time that the memory allows.

mod columns;
#[cfg(feature = "cuda")]
mod cuda;
mod flags;
#[cfg(feature = "cuda")]
mod outlook;
mod row;
mod subject;
mod table;

use std::ops::Not;
use std::sync::Arc;

use roundelay::{DType, ReduceOp};
use roundelay_core::counts::Counts;
use roundelay_core::topology::Topology;
use roundelay_core::trace::Data;
use roundelay_core::verify::Proved;
use roundelay_kernels::grid::Gpu;
use roundelay_kernels::recorder::now;
use roundelay_kernels::reference::Reference;
use roundelay_pictures::bandwidths::{self, MeasuredCase, MeasuredRun};
use roundelay_pictures::chart::Chart;
use roundelay_runner::bench_buffers::{self, BenchBuffers, SEED};
use roundelay_runner::calls::{AskedAlgorithm, CalledBy, Calls};
use roundelay_runner::choice::{BenchChoice, Choices};
use roundelay_runner::limit::{Limit, WHAT};
use roundelay_runner::measurement::{Effort, place};
use roundelay_runner::memory::{self, Room};
use serde::Serialize;

use crate::build_facts;
use crate::device::Device;
use crate::memory_bound::room;
use crate::msccl;
use crate::output;
use crate::parallel::cores;
use crate::progress::Bar;
use crate::report::{Failure, Format};
use crate::streams::{self, is_verbose, print, print_json, remark};
use crate::topology;
use crate::trace::predict;
use crate::values::{RankCounts, count_of_size};
use columns::comment;
pub(crate) use flags::BenchFlags;
use row::BenchRow;
pub(crate) use subject::answer;
use subject::{Group, RefusedSubject, Subject};

/// The settings of the measurement.
#[derive(Serialize)]
struct Config {
    nranks: Vec<u32>,
    warmup_iters: u32,
    iters: u32,
    check: bool,
    /// Threads of the engine, and at most of the limit.
    workers: u32,
    /// `one` for all ranks, `each`, or `processes`.
    callers: &'static str,
    /// Whether buffers lie in memory that processes share.
    #[serde(skip_serializing_if = "Not::not")]
    alloc: bool,
    /// Whether ranks write their inputs again before each run.
    #[serde(skip_serializing_if = "Not::not")]
    rewrite: bool,
    optimization: String,
    min_bytes: u64,
    max_bytes: u64,
    version: &'static str,
    /// How this command was built: `release` or `dev`.
    build: &'static str,
}

impl Config {
    fn effort(&self) -> Effort {
        let Self { warmup_iters: warmup, iters, check, .. } = *self;
        Effort { warmup, iters, check }
    }
}

/// The lines below the table.
#[derive(Serialize)]
struct Summary {
    average_bus_bandwidth: f64,
    out_of_bounds: OutOfBounds,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    contest: Vec<Contest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    choice: Option<Choices>,
}

#[derive(Serialize)]
struct OutOfBounds {
    count: u64,
    okay: bool,
}

/// The number by which the contest judges an algorithm.
#[derive(Serialize)]
struct Contest {
    algo: String,
    nranks: u32,
    /// GB/s
    mean_alg_bw: f64,
}

#[derive(Serialize)]
struct BenchReport<'a> {
    limit: Limits<'a>,
    results: &'a [BenchRow],
    refused: &'a [RefusedSubject],
    #[serde(flatten)]
    summary: Summary,
    config: &'a Config,
}

#[derive(Serialize)]
struct Limits<'a> {
    what: &'static str,
    sizes: &'a [Limit],
}

/// All measurements.
#[derive(Default)]
struct Measured {
    results: Vec<BenchRow>,
    limits: Vec<Limit>,
    /// A choice for each case of several algorithms, where choices were asked for.
    choices: Vec<BenchChoice>,
}

/// A size, and the algorithms that are timed on buffers of that size.
struct Case<'a> {
    subjects: Vec<&'a Subject>,
    reference: Reference,
    /// The counts of the blocks, where each has its own.
    counts: Option<Counts>,
    size: u64,
}

pub(crate) fn main(flags: &BenchFlags) -> Result<bool, Failure> {
    let sizes = flags.sizes();
    let sizes = sizes.map_err(|(why, help)| Failure::usage(flags::CODE, why).with_help(help))?;
    flags.device.check(&flags.engine)?;
    flags.check_device()?;
    flags.check_plot()?;
    flags.check_callers()?;
    flags.check_ops()?;
    if flags.counts.is_some() && flags.device.device != Device::Host {
        let title = "--counts is for the host's engines: kernels have one count";
        return Err(Failure::usage(flags::CODE, title).with_help("leave out --device"));
    }
    let mut calls =
        Calls::new(flags.callers.by(), flags.engine.options(), flags.rewrite, streams::typed);
    calls.trace = flags.trace.begin();
    let files = [("--svg", flags.svg.as_deref()), ("--trace", flags.trace.trace.as_deref())];
    output::reserve(&files, flags.format == Format::Json)?;
    let nranks = RankCounts::or(flags.nranks.as_ref(), flags::NRANKS);
    let (groups, mut refused) = subject::find(flags, &nranks)?;
    let (cases, left_out) = cases(flags, &groups, &sizes)?;
    refused.extend(left_out);
    let config = Config {
        nranks: ranks(flags, nranks, &groups),
        warmup_iters: flags.warmup,
        iters: flags.iterations,
        check: flags.check > 0,
        workers: flags.engine.workers.unwrap_or_else(cores),
        callers: flags.callers.callers.name(),
        alloc: flags.callers.alloc,
        rewrite: flags.rewrite,
        optimization: flags.engine.level.to_string(),
        min_bytes: sizes.first().copied().unwrap_or(0),
        max_bytes: sizes.last().copied().unwrap_or(0),
        version: env!("CARGO_PKG_VERSION"),
        build: build_facts::BUILD,
    };
    build_facts::warn("bench");
    if let Device::Cuda(devices) = &flags.device.device {
        if let Some(gpu) = flags.model() {
            return outlook(flags, &gpu, &cases, refused);
        }
        return cuda(flags, devices, &cases, &config, refused);
    }
    let text = flags.format == Format::Human;
    if text {
        for line in table::head(&config, &cases) {
            remark(&comment(&line));
        }
        for group in &groups {
            if let Some(line) = table::rounded(group)? {
                remark(&comment(&line));
            }
        }
        for refused in &refused {
            print(&comment(&table::refusal(refused)));
        }
    }
    let Measured { results, limits, choices } = measure(&cases, &config, &mut calls, flags)?;
    let summary = Summary::new(flags, &results, choices);
    if let Some(path) = &flags.svg {
        output::write(path, &chart(&results, &limits).svg())?;
    }
    flags.trace.write(calls.trace.as_ref())?;
    let okay = summary.out_of_bounds.okay && !results.is_empty();
    if text {
        for line in table::foot(&summary) {
            print(&comment(&line));
        }
        if flags.plot && !results.is_empty() {
            print("");
            chart(&results, &limits).letters().iter().for_each(|line| print(line));
        }
    } else {
        let limit = Limits { what: WHAT, sizes: &limits };
        print_json(&BenchReport {
            limit,
            results: &results,
            refused: &refused,
            summary,
            config: &config,
        });
    }
    Ok(okay)
}

/// Returns the chart of the times out of place.
fn chart(rows: &[BenchRow], limits: &[Limit]) -> Chart {
    let run = |row: &BenchRow| MeasuredRun {
        name: row.algo.clone(),
        redop: row.redop,
        root: row.root,
        case: MeasuredCase {
            collective: row.collective,
            nranks: row.nranks,
            dtype: row.dtype,
            size: row.size,
            bandwidth: row.out_of_place.alg_bw,
        },
    };
    let limit = |limit: &Limit| MeasuredCase {
        collective: limit.collective,
        nranks: limit.nranks,
        dtype: limit.dtype,
        size: limit.size,
        bandwidth: limit.alg_bw,
    };
    let (rows, limits): (Vec<_>, Vec<_>) =
        (rows.iter().map(run).collect(), limits.iter().map(limit).collect());
    bandwidths::chart(&rows, &limits)
}

#[cfg(feature = "cuda")]
fn cuda(
    flags: &BenchFlags,
    devices: &[usize],
    cases: &[Case],
    config: &Config,
    refused: Vec<RefusedSubject>,
) -> Result<bool, Failure> {
    cuda::main(flags, devices, cases, config, refused)
}

#[cfg(feature = "cuda")]
fn outlook(
    flags: &BenchFlags,
    gpu: &Gpu,
    cases: &[Case],
    refused: Vec<RefusedSubject>,
) -> Result<bool, Failure> {
    outlook::main(flags, gpu, cases, refused)
}

#[cfg(not(feature = "cuda"))]
fn outlook(_: &BenchFlags, _: &Gpu, _: &[Case], _: Vec<RefusedSubject>) -> Result<bool, Failure> {
    Err(crate::device::absent())
}

#[cfg(not(feature = "cuda"))]
fn cuda(
    _: &BenchFlags,
    _: &[usize],
    _: &[Case],
    _: &Config,
    _: Vec<RefusedSubject>,
) -> Result<bool, Failure> {
    Err(crate::device::absent())
}

/// Returns the rank counts that were asked for, and the rank counts of programs for MSCCL, which have their own.
fn ranks(flags: &BenchFlags, asked: RankCounts, groups: &[Group]) -> Vec<u32> {
    let programs = !flags.sources.is_empty() && flags.sources.iter().all(|s| msccl::is_program(s));
    let mut all = if programs { Vec::new() } else { asked.counts };
    for group in groups {
        let nranks = group.subjects[0].proved.schedule().nranks;
        if !all.contains(&nranks) {
            all.push(nranks);
        }
    }
    all
}

/// Returns all cases, whose buffers are made one after the other, and the cases that there is no memory for; refused if
/// no case is left.
fn cases<'a>(
    flags: &BenchFlags,
    groups: &'a [Group],
    sizes: &[u64],
) -> Result<(Vec<Case<'a>>, Vec<RefusedSubject>), Failure> {
    let bound = flags.model().map_or_else(room, |gpu| Ok(Room::Gpu(gpu.memory)))?;
    let mut cases: Vec<Case> = Vec::new();
    let (mut left_out, mut first) = (Vec::new(), None);
    for group in groups {
        let schedule = group.subjects[0].proved.schedule();
        let (collective, nranks, root) = (schedule.collective, schedule.nranks, schedule.root);
        // A collective that does not reduce is timed with one op.
        let ops: &[ReduceOp] = if collective.reduces() { &flags.ops.of } else { &[ReduceOp::Sum] };
        let multiple = group.multiple()?;
        for &dtype in &flags.dtypes.of {
            let bytes = dtype.size() as u64;
            for &op in ops.iter().filter(|op| op.takes(dtype)) {
                for &size in sizes {
                    let count = count_of_size(collective, nranks, size, bytes);
                    let count = count - count % multiple;
                    let counts = flags.counts.as_ref();
                    let counts =
                        counts.map(|form| form.counts(collective, nranks, count)).transpose()?;
                    let size = match &counts {
                        Some(counts) => counts.largest_buffer(root) * bytes,
                        None => collective.bytes(count, nranks, bytes),
                    };
                    let mut subjects = Vec::new();
                    for subject in &group.subjects {
                        let refused =
                            counts.as_ref().and_then(|counts| subject.of_blocks(counts).err());
                        if let Some(refused) = refused {
                            left_out.push(refused);
                            continue;
                        }
                        let most = counts.as_ref().map_or(count, Counts::largest);
                        match bound.admit(needed(flags, subject, most, dtype)) {
                            Ok(()) => subjects.push(subject),
                            Err(much) => {
                                left_out.push(subject.left_out(size, &much));
                                first.get_or_insert(much);
                            }
                        }
                    }
                    if subjects.is_empty() {
                        continue;
                    }
                    let count = usize::try_from(count).expect("memory was found for them");
                    let reference = Reference { collective, nranks, root, count, dtype, op };
                    cases.push(Case { subjects, reference, counts, size });
                }
            }
        }
    }
    match first {
        Some(much) if cases.is_empty() => {
            Err(Failure::from(much).with_help("lower -e or --nranks"))
        }
        _ => Ok((cases, left_out)),
    }
}

/// Returns the bytes that a subject takes of the host, or of the GPU of the model.
fn needed(flags: &BenchFlags, subject: &Subject, count: u64, dtype: DType) -> u128 {
    let schedule = subject.proved.schedule();
    let buffers = bench_buffers::needed_bytes(schedule, count, dtype);
    // Processes have buffers of their own, beside the buffers here, which are compared.
    let times = if flags.callers.by() == CalledBy::Processes { 2 } else { 1 };
    memory::scratch(schedule, count, dtype) + times * buffers
}

fn measure(
    cases: &[Case],
    config: &Config,
    calls: &mut Calls,
    flags: &BenchFlags,
) -> Result<Measured, Failure> {
    let text = flags.format == Format::Human;
    let table = table::on_host(cases);
    if text {
        table.head("algo").iter().for_each(|line| print(line));
    }
    let steps: usize = cases.iter().map(|case| 2 + case.subjects.len()).sum();
    let bar = Bar::new(steps);
    let given = topology::given(&flags.topology)?;
    let topology = given.as_ref().map(|given| &given.topology);
    let mut measured = Measured::default();
    for case in cases {
        let mut buffers = BenchBuffers::new(case.reference, case.counts.as_ref());
        // The program of the limit has one count.
        let limit = |buffers: &mut BenchBuffers| {
            bar.message(format!("limit, {} B", case.size));
            let limit = case.counts.is_none();
            let (threads, iters) = (config.workers, config.iters);
            let limit = limit.then(|| Limit::measure(buffers, case.size, threads, iters));
            bar.step();
            limit
        };
        // Measured before the runs and after them: a shared machine is not equally busy all the time.
        let before = limit(&mut buffers);
        let mut rows = Vec::new();
        for subject in &case.subjects {
            bar.message(format!("{}, {} B", subject.name, case.size));
            rows.push(result(subject, &mut buffers, case, config, calls)?);
            traced(subject, &mut buffers, case, calls, topology)?;
            bar.step();
        }
        let limit = before.zip(limit(&mut buffers)).map(|(before, after)| before.or(after));
        if let Some(limit) = &limit {
            for row in &mut rows {
                row.compare(limit);
            }
        }
        if text {
            bar.apart(|| {
                if let Some(limit) = limit.as_ref().filter(|_| is_verbose()) {
                    print(&table::limit(limit));
                }
                for row in &rows {
                    print(&table.line(row, &row.algo));
                }
            });
        }
        if flags.choice {
            let timed = rows.iter().map(|row| (&*row.algo, row.out_of_place.time));
            let timed: Vec<_> = timed.collect();
            let size = rows.first().map_or(0, |row| row.size);
            measured.choices.extend(BenchChoice::among(&case.reference, size, &timed));
        }
        measured.results.append(&mut rows);
        measured.limits.extend(limit);
    }
    bar.clear();
    Ok(measured)
}

fn result(
    subject: &Subject,
    buffers: &mut BenchBuffers,
    case: &Case,
    config: &Config,
    calls: &mut Calls,
) -> Result<BenchRow, Failure> {
    let Case { size, reference: Reference { dtype, op, .. }, .. } = *case;
    let (proved, count) = shaped(subject, case)?;
    let asked = AskedAlgorithm { proved: &proved, which: subject.which, root: subject.root };
    let mut plan = calls.plan(asked, (count, dtype, op), SEED)?;
    let (effort, sized) = (config.effort(), (size, proved.proof().reduce_depth));
    let out_of_place = place(&mut plan, buffers, false, sized, effort)?;
    let in_place = subject
        .has_in_place()
        .then(|| place(&mut plan, buffers, true, sized, effort))
        .transpose()?;
    Ok(BenchRow::new(subject.name.clone(), subject, case, (out_of_place, in_place)))
}

/// Runs a subject twice more, after its times were taken, where a trace is wanted.
fn traced(
    subject: &Subject,
    buffers: &mut BenchBuffers,
    case: &Case,
    calls: &mut Calls,
    topology: Option<&Arc<Topology>>,
) -> Result<(), Failure> {
    let Some(mut text) = calls.trace.take() else { return Ok(()) };
    let Reference { dtype, op, .. } = case.reference;
    let (proved, count) = shaped(subject, case)?;
    let asked = AskedAlgorithm { proved: &proved, which: subject.which, root: subject.root };
    let mut plan = calls.plan(asked, (count, dtype, op), SEED)?;
    plan.record();
    plan.prepare(false)?;
    let (mut inputs, mut outputs) = buffers.apart();
    let mut last = 0;
    // The second run finds its memory in the caches, as far as it fits there.
    for _ in 0..2 {
        last = now();
        plan.apart(&mut inputs, &mut outputs, 1)?;
    }
    plan.trace(&mut text, None)?;
    predict(&mut text, proved.schedule(), Data { count, dtype }, topology, None, last);
    calls.trace = Some(text);
    Ok(())
}

/// Returns the proof of a subject for a case, and the elements of a unit.
fn shaped(subject: &Subject, case: &Case) -> Result<(Proved, u64), Failure> {
    Ok(match &case.counts {
        Some(counts) => (subject.of_blocks(counts).map_err(|_| Failure::Program)?, 1),
        None => (subject.proved.clone(), case.reference.count as u64),
    })
}

impl Summary {
    fn new(flags: &BenchFlags, results: &[BenchRow], choices: Vec<BenchChoice>) -> Self {
        let places =
            || results.iter().flat_map(|row| [Some(&row.out_of_place), row.in_place.as_ref()]);
        let bandwidths: Vec<f64> = places().flatten().map(|place| place.bus_bw).collect();
        let count = places().flatten().filter_map(|place| place.nwrong).sum();
        let mut contest: Vec<Contest> = Vec::new();
        for row in results.iter().filter(|_| flags.contest) {
            let third = row.out_of_place.alg_bw / 3.0;
            let same = |c: &&mut Contest| c.algo == row.algo && c.nranks == row.nranks;
            match contest.iter_mut().find(same) {
                Some(contest) => contest.mean_alg_bw += third,
                None => contest.push(Contest {
                    algo: row.algo.clone(),
                    nranks: row.nranks,
                    mean_alg_bw: third,
                }),
            }
        }
        Self {
            average_bus_bandwidth: bandwidths.iter().sum::<f64>() / bandwidths.len().max(1) as f64,
            out_of_bounds: OutOfBounds { count, okay: count == 0 },
            contest,
            choice: flags.choice.then(|| Choices::new(choices)),
        }
    }
}
