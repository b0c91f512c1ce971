//! `roundelay bench` on GPUs: each kernel beside its schedule driven from the host, and as a share of the floor.

use std::time::Instant;

use roundelay_core::diagnostics::Diagnostic;
use roundelay_core::ids::RankId;
use roundelay_export::cuda::Form;
use roundelay_kernels::cuda::{CudaPlan, CudaWorld, Driven, Error, Rooms};
use roundelay_kernels::grid::{Buffers, Gpu};
use roundelay_kernels::reference::Reference;
use roundelay_runner::measurement::{Effort, Measurement};
use roundelay_runner::timing::Timing;
use serde::Serialize;

use super::columns::{comment, common};
use super::flags::BenchFlags;
use super::row::BenchRow;
use super::subject::{RefusedSubject, Subject};
use super::table::{self, refusal};
use super::{Case, Config, Summary};
use crate::build_facts;
use crate::report::{Failure, Format};
use crate::streams::{print, print_json, remark};

/// The description of the floor, given once for all sizes.
pub(super) const WHAT: &str = "every input read once and every output written once, at the speed of copies within the device; \
                    a size that its caches hold may be faster";

/// The floor that all times are compared with.
#[derive(Serialize)]
struct Floor {
    what: &'static str,
    device: String,
    /// GB/s, read and written.
    copy_bandwidth: f64,
    /// The assumptions of the predicted times.
    model: Vec<String>,
}

#[derive(Serialize)]
struct CudaReport<'a> {
    floor: &'a Floor,
    results: &'a [BenchRow],
    refused: &'a [RefusedSubject],
    #[serde(flatten)]
    summary: Summary,
    config: &'a Config,
}

pub(super) fn main(
    flags: &BenchFlags,
    devices: &[usize],
    cases: &[Case],
    config: &Config,
    mut refused: Vec<RefusedSubject>,
) -> Result<bool, Failure> {
    let world = CudaWorld::on_devices(devices, 1)?;
    let gpu = world.gpu(world.copy_bandwidth()?)?;
    let floor = Floor {
        what: WHAT,
        device: world.names().collect::<Vec<_>>().join(", "),
        copy_bandwidth: gpu.bandwidth / 1e9,
        model: gpu.assumptions(),
    };
    let text = flags.format == Format::Human;
    let table = table::on_gpus(cases);
    if text {
        for line in head(config, &floor, cases) {
            remark(&comment(&line));
        }
        print_lines(refused.iter().map(refusal));
        print_lines(table.head("algo"));
    }
    let mut results = Vec::new();
    for case in cases {
        let world = CudaWorld::on_devices(devices, case.reference.nranks)?;
        let mut bench = Bench::new(&world, case, config, &gpu)?;
        for subject in &case.subjects {
            match bench.rows(subject, flags) {
                Ok(rows) => {
                    if text {
                        print_lines(rows.iter().map(|row| table.line(row, &row.algo)));
                    }
                    results.extend(rows);
                }
                Err(Error::NoKernel(why)) => {
                    let one = no_kernel(subject, case, why);
                    if text {
                        print(&refusal(&one));
                    }
                    refused.push(one);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
    let summary = Summary::new(flags, &results, Vec::new());
    let okay = summary.out_of_bounds.okay && !results.is_empty();
    if text {
        print_lines(table::foot(&summary));
    } else {
        let (floor, results, refused) = (&floor, &results[..], &refused[..]);
        print_json(&CudaReport { floor, results, refused, summary, config });
    }
    Ok(okay)
}

/// Returns why a subject has no kernel.
pub(super) fn no_kernel(subject: &Subject, case: &Case, why: Vec<Diagnostic>) -> RefusedSubject {
    let why = why.into_iter().next();
    RefusedSubject {
        algo: subject.name.clone(),
        nranks: case.reference.nranks,
        code: why.as_ref().map_or("", |why| why.code.as_str()),
        reason: why.map_or(String::new(), |why| why.title),
    }
}

pub(super) fn print_lines(lines: impl IntoIterator<Item = String>) {
    for line in lines {
        print(&comment(&line));
    }
}

fn head(config: &Config, floor: &Floor, cases: &[Case]) -> Vec<String> {
    let mut lines = vec![
        format!("# roundelay {}", env!("CARGO_PKG_VERSION")),
        format!("# {}", build_facts::line("bench")),
        format!(
            "# nranks {} warmup iters: {} iters: {} validation: {}",
            config.nranks.iter().map(u32::to_string).collect::<Vec<_>>().join(","),
            config.warmup_iters,
            config.iters,
            u32::from(config.check),
        ),
        format!("# device: {}", floor.device),
        "# virtual ranks on one GPU share its memory: busbw is not the speed of a link".to_owned(),
        "# time: mean of the middle half of the iterations, each a row of launches that lasts 1 ms or more"
            .to_owned(),
        format!("# copies within the device: {:.1} GB/s, read and written", floor.copy_bandwidth),
        format!("# floor: {}", floor.what),
        "# predicted: by a model, out of place".to_owned(),
    ];
    lines.extend(floor.model.iter().map(|line| format!("# model: {line}")));
    lines.extend(common(cases));
    lines.push("#".to_owned());
    lines
}

/// The buffers of one size.
struct Bench<'a> {
    world: &'a CudaWorld,
    case: &'a Case<'a>,
    effort: Effort,
    inputs: Vec<Vec<u8>>,
    rooms: Rooms,
    gpu: &'a Gpu,
    /// Microseconds.
    floor: f64,
}

impl<'a> Bench<'a> {
    fn new(
        world: &'a CudaWorld,
        case: &'a Case<'a>,
        config: &Config,
        gpu: &'a Gpu,
    ) -> Result<Self, Error> {
        let inputs = case.reference.inputs(1);
        let rooms = Rooms::new(world, buffers(case), &inputs)?;
        Ok(Self {
            world,
            case,
            effort: config.effort(),
            inputs,
            rooms,
            gpu,
            floor: floor(case, gpu),
        })
    }

    /// Times the kernel, launched by a graph too where that is asked for, and beside it the schedule that the host
    /// drives, where one device holds it.
    fn rows(&mut self, subject: &Subject, flags: &BenchFlags) -> Result<Vec<BenchRow>, Error> {
        let Reference { count, dtype, op, .. } = self.case.reference;
        let options = flags.device.options(&flags.engine);
        // Programs for MSCCL are refused when they are read.
        let Some(algorithm) = &subject.algorithm else { return Err(Error::NoKernel(Vec::new())) };
        let proved = &subject.proved;
        let kind = (dtype, op);
        let mut plan = CudaPlan::new(self.world, algorithm, proved, count as u64, kind, options)?;
        let stream = self.world.stream();
        let predicted = |graph| Some(1e6 * plan.estimate(self.gpu, graph).time);
        let (by_launch, by_graph) = (predicted(false), predicted(true));
        let often = |plan: &mut CudaPlan, rooms: &mut Rooms, in_place, runs| {
            let begun = Instant::now();
            for _ in 0..runs {
                rooms.launch(plan, &stream, in_place)?;
            }
            CudaWorld::finish(&stream)?;
            Ok(begun.elapsed().as_secs_f64())
        };
        let name = match (plan.kernel().form, plan.kernel().spec.protocol) {
            (form @ (Form::Table | Form::Switch), _) => format!("{}, {form}", subject.name),
            (_, lines) if lines.has_lines() => format!("{}, {}", subject.name, lines.name()),
            _ => subject.name.clone(),
        };
        let mut rows = vec![self.row(name.clone(), subject, &mut plan, by_launch, often)?];
        if flags.graph {
            // The graph is made before the clock starts.
            let often = |plan: &mut CudaPlan, rooms: &mut Rooms, in_place, runs| {
                let mut graph = rooms.graph(plan, in_place)?;
                let begun = Instant::now();
                for _ in 0..runs {
                    graph.launch()?;
                }
                graph.wait()?;
                Ok(begun.elapsed().as_secs_f64())
            };
            let name = format!("{name}, by a graph");
            rows.push(self.row(name, subject, &mut plan, by_graph, often)?);
        }
        if self.world.names().count() == 1 {
            let driven = Driven::new(self.world, &plan)?;
            let often = |_: &mut CudaPlan, rooms: &mut Rooms, in_place, runs| {
                let begun = Instant::now();
                for _ in 0..runs {
                    driven.launch(rooms, &stream, in_place)?;
                }
                CudaWorld::finish(&stream)?;
                Ok(begun.elapsed().as_secs_f64())
            };
            let name = format!("{name}, driven from the host");
            rows.push(self.row(name, subject, &mut plan, None, often)?);
        }
        Ok(rows)
    }

    fn row(
        &mut self,
        name: String,
        subject: &Subject,
        plan: &mut CudaPlan,
        predicted: Option<f64>,
        often: impl Fn(&mut CudaPlan, &mut Rooms, bool, u32) -> Result<f64, Error>,
    ) -> Result<BenchRow, Error> {
        let out_of_place = self.place(plan, false, &often)?;
        let in_place =
            subject.has_in_place().then(|| self.place(plan, true, &often)).transpose()?;
        let mut row = BenchRow::new(name, subject, self.case, (out_of_place, in_place));
        let time = row.out_of_place.time;
        row.percent_of_floor = (time > 0.0 && row.size > 0).then(|| 100.0 * self.floor / time);
        row.predicted = predicted;
        Ok(row)
    }

    /// Times one form, and counts the wrong elements in the result of one more launch.
    fn place(
        &mut self,
        plan: &mut CudaPlan,
        in_place: bool,
        often: &impl Fn(&mut CudaPlan, &mut Rooms, bool, u32) -> Result<f64, Error>,
    ) -> Result<Measurement, Error> {
        let Effort { warmup, iters, check } = self.effort;
        let Reference { collective, nranks, .. } = self.case.reference;
        let rooms = &mut self.rooms;
        rooms.enter()?;
        let mut row = |runs| {
            let seconds = often(plan, rooms, in_place, runs)?;
            plan.check().map(|()| seconds)
        };
        let timing = Timing::take(warmup, iters, &mut row)?;
        let mut nwrong = None;
        if check {
            if in_place { rooms.enter() } else { rooms.clear() }?;
            often(plan, rooms, in_place, 1)?;
            plan.check()?;
            let results = rooms.results(in_place)?;
            let results: Vec<&[u8]> = results.iter().map(Vec::as_slice).collect();
            let depth = plan.kernel().proof.reduce_depth;
            nwrong = Some(self.case.reference.count_wrong(&self.inputs, &results, depth));
        }
        Ok(Measurement::new(&timing, self.case.size, collective.bus_factor(nranks), nwrong))
    }
}

/// Returns the buffers of each rank.
fn buffers(case: &Case) -> Vec<Buffers> {
    let Reference { nranks, count, dtype, .. } = case.reference;
    let schedule = case.subjects[0].proved.schedule();
    let of_rank = |rank| Buffers::new(schedule, RankId(rank), count as u64, dtype.size());
    (0..nranks).map(of_rank).collect()
}

/// Returns the time of the floor in microseconds.
pub(super) fn floor(case: &Case, gpu: &Gpu) -> f64 {
    let bytes: usize = buffers(case).iter().map(|rank| rank.input + rank.output).sum();
    bytes as f64 / gpu.bandwidth * 1e6
}
