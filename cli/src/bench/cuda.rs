//! `roundelay bench` on GPUs: each kernel beside its schedule driven from the host, and as a share of the floor.

use std::time::Instant;

use roundelay_core::ids::RankId;
use roundelay_kernels::cuda::{CudaPlan, CudaWorld, Driven, Error, Rooms};
use roundelay_kernels::grid::Buffers;
use roundelay_kernels::reference::Reference;
use serde::Serialize;

use super::flags::BenchFlags;
use super::row::{Effort, Measurement, Row};
use super::subject::{Refused, Subject};
use super::timing::Timing;
use super::{Case, Config, Summary, table};
use crate::built;
use crate::report::{Failure, Format};
use crate::streams::{print, print_json};

/// What the floor is, once for all sizes.
const WHAT: &str = "every input read once and every output written once, at the speed of copies within the device; \
                    a size that its caches hold may be faster";

/// What everything is held against.
#[derive(Serialize)]
struct Floor {
    what: &'static str,
    device: String,
    /// GB/s, read and written.
    copy_bandwidth: f64,
}

#[derive(Serialize)]
struct Report<'a> {
    floor: &'a Floor,
    results: &'a [Row],
    refused: &'a [Refused],
    #[serde(flatten)]
    summary: Summary,
    config: &'a Config,
}

pub(super) fn main(
    flags: &BenchFlags,
    devices: &[usize],
    cases: &[Case],
    config: &Config,
    mut refused: Vec<Refused>,
) -> Result<bool, Failure> {
    let world = CudaWorld::on(devices, 1)?;
    let floor = Floor {
        what: WHAT,
        device: world.names().collect::<Vec<_>>().join(", "),
        copy_bandwidth: world.copy_bandwidth()? / 1e9,
    };
    let text = flags.format == Format::Human;
    if text {
        print_lines(head(config, &floor));
        print_lines(refused.iter().map(refusal));
    }
    let mut results = Vec::new();
    for case in cases {
        let world = CudaWorld::on(devices, case.reference.nranks)?;
        let mut bench = Bench::new(&world, case, config, &floor)?;
        for subject in &case.group.subjects {
            match bench.rows(subject, flags) {
                Ok(rows) => {
                    if text {
                        print_lines(rows.iter().map(table::row));
                    }
                    results.extend(rows);
                }
                Err(Error::NoKernel(why)) => {
                    let why = why.into_iter().next();
                    let one = Refused {
                        algo: subject.name.clone(),
                        nranks: case.reference.nranks,
                        code: why.as_ref().map_or("", |why| why.code.as_str()),
                        reason: why.map_or(String::new(), |why| why.title),
                    };
                    if text {
                        print(&refusal(&one));
                    }
                    refused.push(one);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
    let summary = Summary::new(flags, &results);
    let okay = summary.out_of_bounds.okay && !results.is_empty();
    if text {
        print_lines(table::foot(&summary));
    } else {
        let (floor, results, refused) = (&floor, &results[..], &refused[..]);
        print_json(&Report { floor, results, refused, summary, config });
    }
    Ok(okay)
}

fn print_lines(lines: impl IntoIterator<Item = String>) {
    for line in lines {
        print(&line);
    }
}

fn head(config: &Config, floor: &Floor) -> Vec<String> {
    let mut lines = vec![
        format!("# roundelay {}", env!("CARGO_PKG_VERSION")),
        format!("# {}", built::line("bench")),
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
        "#".to_owned(),
    ];
    lines.extend(table::columns("% of floor"));
    lines
}

fn refusal(Refused { algo, nranks, code, reason }: &Refused) -> String {
    format!("# refused {algo} on {nranks} ranks [{code}]: {reason}")
}

/// The buffers of one size.
struct Bench<'a> {
    world: &'a CudaWorld,
    case: &'a Case<'a>,
    effort: Effort,
    inputs: Vec<Vec<u8>>,
    rooms: Rooms,
    /// Microseconds.
    floor: f64,
}

impl<'a> Bench<'a> {
    fn new(
        world: &'a CudaWorld,
        case: &'a Case<'a>,
        config: &Config,
        floor: &Floor,
    ) -> Result<Self, Error> {
        let Reference { nranks, count, dtype, .. } = case.reference;
        let schedule = case.group.subjects[0].proved.schedule();
        let of_rank = |rank| Buffers::new(schedule, RankId(rank), count as u64, dtype.size());
        let buffers: Vec<Buffers> = (0..nranks).map(of_rank).collect();
        let bytes: usize = buffers.iter().map(|rank| rank.input + rank.output).sum();
        let inputs = case.reference.inputs(1);
        let rooms = Rooms::new(world, buffers, &inputs)?;
        let floor = bytes as f64 / floor.copy_bandwidth / 1e3;
        Ok(Self { world, case, effort: config.effort(), inputs, rooms, floor })
    }

    /// The kernel, and beside it the schedule that the host drives, where one device holds it.
    fn rows(&mut self, subject: &Subject, flags: &BenchFlags) -> Result<Vec<Row>, Error> {
        let Reference { count, dtype, op, .. } = self.case.reference;
        let options = flags.device.options(&flags.engine);
        // Programs for MSCCL are refused when they are read.
        let Some(algorithm) = &subject.algorithm else { return Err(Error::NoKernel(Vec::new())) };
        let proved = &subject.proved;
        let kind = (dtype.into(), op);
        let plan = CudaPlan::new(self.world, algorithm, proved, count as u64, kind, options)?;
        let stream = self.world.stream();
        let launch = |rooms: &mut Rooms, in_place| rooms.launch(&plan, &stream, in_place);
        let mut rows = vec![self.row(subject.name.clone(), subject, &plan, launch)?];
        if self.world.names().count() == 1 {
            let driven = Driven::new(self.world, &plan)?;
            let launch = |rooms: &mut Rooms, in_place| driven.launch(rooms, &stream, in_place);
            let name = format!("{}, driven from the host", subject.name);
            rows.push(self.row(name, subject, &plan, launch)?);
        }
        Ok(rows)
    }

    fn row(
        &mut self,
        name: String,
        subject: &Subject,
        plan: &CudaPlan,
        launch: impl Fn(&mut Rooms, bool) -> Result<(), Error>,
    ) -> Result<Row, Error> {
        let out_of_place = self.place(plan, false, &launch)?;
        let in_place =
            subject.has_in_place().then(|| self.place(plan, true, &launch)).transpose()?;
        let mut row = Row::new(name, subject, self.case, (out_of_place, in_place));
        let time = row.out_of_place.time;
        row.percent_of_floor = (time > 0.0 && row.size > 0).then(|| 100.0 * self.floor / time);
        Ok(row)
    }

    /// Times one form, and counts what is wrong in the result of one more launch.
    fn place(
        &mut self,
        plan: &CudaPlan,
        in_place: bool,
        launch: &impl Fn(&mut Rooms, bool) -> Result<(), Error>,
    ) -> Result<Measurement, Error> {
        let Effort { warmup, iters, check } = self.effort;
        let Reference { collective, nranks, .. } = self.case.reference;
        let stream = self.world.stream();
        let rooms = &mut self.rooms;
        let finish = || CudaWorld::finish(&stream).and_then(|()| plan.check());
        rooms.enter()?;
        let timing = Timing::take(warmup, iters, |runs| {
            let begun = Instant::now();
            for _ in 0..runs {
                launch(rooms, in_place)?;
            }
            finish()?;
            Ok::<_, Error>(begun.elapsed().as_secs_f64())
        })?;
        let mut nwrong = None;
        if check {
            if in_place { rooms.enter() } else { rooms.clear() }?;
            launch(rooms, in_place)?;
            finish()?;
            let results = rooms.results(in_place)?;
            let results: Vec<&[u8]> = results.iter().map(Vec::as_slice).collect();
            let depth = plan.kernel().proof.reduce_depth;
            nwrong = Some(self.case.reference.count_wrong(&self.inputs, &results, depth));
        }
        Ok(Measurement::new(&timing, self.case.size, collective.bus_factor(nranks), nwrong))
    }
}
