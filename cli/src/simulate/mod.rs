//! `roundelay simulate`: the predicted time of a run on a topology, and its parts.

mod curves;
mod flags;
mod json;
mod path;
mod picture;
mod tables;

use std::sync::Arc;

use roundelay::select::size;
use roundelay::{Algorithm as _, DType};
use roundelay_core::diagnostics::{Code, Finding};
use roundelay_core::explanation::explain;
use roundelay_core::ids::SpanId;
use roundelay_core::layout::Configured;
use roundelay_core::optimize::join;
use roundelay_core::schedule::Schedule;
use roundelay_core::symmetry::representative;
use roundelay_core::syntax::Source;
use roundelay_core::verify::{self, Proved};
use roundelay_pictures::spacetime::Units;
use roundelay_simulate::cost;
use roundelay_simulate::{
    Machine, Simulated, Streams, closed_form, on_topology, simulate, symmetric,
};
use roundelay_topology::NodeId;
use roundelay_topology::bounds::{self, Usable};

use crate::constants::Constants;
use crate::msccl;
use crate::output;
use crate::program::{AlgorithmOrProgram, Loaded, load_on, one, read};
use crate::progress;
use crate::report::{Failure, Format, refuse, wrong};
use crate::streams::{print, print_json};
use crate::topology;
use crate::values::count_of_size;

pub(crate) use flags::SimulateFlags;
pub(crate) use picture::{Size, size as sized};

/// A run, with the numbers that it is compared with.
struct Run<'a> {
    source: &'a Source,
    schedule: &'a Schedule,
    machine: &'a Machine,
    simulated: Simulated,
    steps: u32,
    count: u64,
    dtype: DType,
    size: Size,
    /// The least time of any algorithm by bandwidth alone, in seconds, and why.
    bound: Option<(f64, String)>,
    /// The time by the closed form of the algorithm's family, where the form holds.
    closed: Option<f64>,
    constants: &'a Constants,
}

pub(crate) fn main(flags: &SimulateFlags) -> Result<bool, Failure> {
    output::reserve(&flags.picture.files(), flags.format == Format::Json)?;
    let Some(given) = topology::given(&flags.source.topology)? else {
        return Err(Failure::usage(Code::BadFlag, "simulate takes a topology, and none is given")
            .with_help("such as --topology \"full_mesh(8, 25GB/s, 2us)\""));
    };
    let is_program = msccl::is_program(&flags.source.source);
    if curves::wanted(flags) && !is_program {
        return curves::main(flags, &given);
    }
    // A program for MSCCL is simulated as the schedule that it was proved as.
    let (source, program) = if is_program {
        msccl::counts_ranks(flags.nranks.is_some())?;
        let (path, lints) = (&flags.source.source, &flags.source.lints);
        let (source, proved) = msccl::proved(path, lints, false, flags.format)?;
        (source, Some(proved))
    } else {
        (Arc::new(read(&flags.source.source)?), None)
    };
    let asked = flags.nranks.as_ref().and_then(|nranks| nranks.counts.first().copied());
    let asked = program.as_ref().map(|proved| proved.schedule().nranks).or(asked);
    let nranks = asked.unwrap_or(given.topology.nranks());
    let (machine, constants) = flags.machine(&given.topology, nranks)?;
    machine.check(nranks)?;
    flags.picture.check(nranks)?;
    let refused = |errors: &[_]| refuse(flags.format, errors, &source, wrong);
    let subject = match program {
        Some(proved) => AlgorithmOrProgram::Program(proved),
        None => match load_on(&source, &flags.source, Some(&given))? {
            Loaded::Ready(all) => AlgorithmOrProgram::Algorithm(Box::new(one(all, &source)?)),
            Loaded::Wrong(errors) => return Err(refused(&errors)),
        },
    };
    let wrong = |findings: Vec<Finding>| match (&subject, findings.first()) {
        (AlgorithmOrProgram::Algorithm(algorithm), _) => {
            refused(&explain(algorithm, findings, nranks))
        }
        // A proved schedule can only be too large to be simulated.
        (_, Some(finding)) => Failure::usage(finding.code, finding.title.clone()),
        (_, None) => Failure::Program,
    };
    let written = match &subject {
        AlgorithmOrProgram::Algorithm(algorithm) => {
            progress::about(format!("{}, {nranks} ranks", algorithm.name()));
            algorithm.schedule(nranks).map_err(wrong)?
        }
        AlgorithmOrProgram::Program(proved) => Schedule::clone(proved.schedule()),
    };
    let (schedule, count, simulated) =
        timed(&written, flags, &machine, flags.picture.over_time()).map_err(wrong)?;
    let closed = match &subject {
        AlgorithmOrProgram::Algorithm(algorithm) => {
            by_form(algorithm, flags, &machine, nranks, simulated.bytes)
        }
        AlgorithmOrProgram::Program(_) => None,
    };
    let run = Run {
        source: &source,
        bound: bound(&schedule, &machine, simulated.bytes),
        closed,
        constants: &constants,
        steps: verify::steps(&schedule).map_err(wrong)?.into_iter().max().unwrap_or(0),
        schedule: &schedule,
        machine: &machine,
        size: shown(flags, simulated.bytes),
        simulated,
        count,
        dtype: flags.dtype,
    };
    if let Some(timeline) = &run.simulated.timeline {
        flags.picture.write(&run, timeline)?;
    }
    flags.picture.write_links(&run)?;
    match flags.format {
        Format::Json => print_json(&json::SimulationJson::new(&run)),
        Format::Human => {
            print(tables::print(&run, flags.path).trim_end());
            run.constants.tell();
        }
    }
    Ok(true)
}

/// Simulates an algorithm on `nranks` ranks, and returns its schedule, the count that follows from the flags, and the
/// result.
fn simulated(
    algorithm: &Configured,
    flags: &SimulateFlags,
    machine: &Machine,
    nranks: u32,
    record: bool,
) -> Result<(Schedule, u64, Simulated), Vec<Finding>> {
    timed(&algorithm.schedule(nranks)?, flags, machine, record)
}

/// Simulates a schedule, and returns the simulated form of it, the count that follows from the flags, and the result.
fn timed(
    written: &Schedule,
    flags: &SimulateFlags,
    machine: &Machine,
    record: bool,
) -> Result<(Schedule, u64, Simulated), Vec<Finding>> {
    // Where streams go by data, regions that lie side by side are one piece; the tasks of a contest's executor stay as
    // written.
    let written = on_topology(written, &machine.topology, flags.dtype);
    let by_data = machine.streams == Streams::ByData;
    let schedule = if by_data { join(&written) } else { written.into_owned() };
    let Schedule { collective, nranks, .. } = schedule;
    let count = count_of(&schedule, flags);
    if let Some(form) = &flags.counts {
        let counts = form.counts(collective, nranks, count);
        let counts = counts.map_err(|problem| vec![problem.into_finding(SpanId(0))])?;
        let uneven = Proved::new(schedule)?.for_counts(&counts)?;
        // A unit is an element.
        let simulated = simulate(uneven.schedule(), machine, 1, flags.dtype, record)?;
        return Ok((Schedule::clone(uneven.schedule()), 1, simulated));
    }
    if let Some(title) = schedule.refuses(count) {
        return Err(vec![Finding::new(Code::BadOption, SpanId(0), title)]);
    }
    let simulated = simulate(&schedule, machine, count, flags.dtype, record)?;
    Ok((schedule, count, simulated))
}

/// Returns the count of elements a unit that follows from the flags.
fn count_of(schedule: &Schedule, flags: &SimulateFlags) -> u64 {
    let Schedule { collective, nranks, multiple, .. } = *schedule;
    flags.count.unwrap_or_else(|| {
        let element = flags.dtype.size() as u64;
        let count = count_of_size(collective, nranks, flags.bytes.bytes, element);
        if multiple == 1 { count } else { (count / multiple * multiple).max(multiple) }
    })
}

/// Simulates an algorithm by the ops of one rank, where all ranks do the same, turned; and returns the ops of that rank
/// with the result, or the reason why the run is not simulated so.
fn by_one_rank(
    algorithm: &Configured,
    flags: &SimulateFlags,
    machine: &Machine,
    nranks: u32,
) -> Result<(Schedule, Simulated), String> {
    if flags.counts.is_some() {
        return Err("blocks with a count each differ from rank to rank".to_owned());
    }
    let found = representative(algorithm, nranks).map_err(|found| found.why())?;
    let count = count_of(&found.own, flags);
    if let Some(title) = found.own.refuses(count) {
        return Err(title);
    }
    let simulated = symmetric(&found, machine, count, flags.dtype)?;
    Ok((found.own, simulated))
}

/// Returns the bound of the topology, without stragglers and with all links as fast as they should be.
fn bound(schedule: &Schedule, machine: &Machine, bytes: u64) -> Option<(f64, String)> {
    let Schedule { nranks, collective, root, .. } = *schedule;
    // The bound is that of equal counts.
    if schedule.elements.is_some() {
        return None;
    }
    let unit = if machine.topology.is_relative() { machine.bandwidth } else { 1.0 };
    if schedule.has_switch()
        && let Some(bound) = bounds::on_switch(&machine.topology, nranks, collective)
    {
        return Some((bound.seconds(bytes) / unit, format!("{}, on the switch", bound.binding)));
    }
    let Usable { bound, all } = Usable::new(&machine.topology, nranks, collective, root).ok()?;
    let over = if all.is_some() { ", over NVLink" } else { "" };
    Some((bound.seconds(bytes) / unit, format!("{}{over}", bound.binding)))
}

/// Returns the closed form of an algorithm of the library, its parameters at their defaults.
fn by_form(
    algorithm: &Configured,
    flags: &SimulateFlags,
    machine: &Machine,
    nranks: u32,
    bytes: u64,
) -> Option<f64> {
    let of_library = roundelay::library::SOURCES.iter().any(|(name, _)| *name == algorithm.file());
    let form = cost::of_algorithm(algorithm.name(), nranks)?;
    (of_library && flags.source.settings.is_empty() && flags.counts.is_none())
        .then(|| closed_form(form, nranks, bytes, machine))
        .flatten()
}

/// Returns the size as it was given, unless another size was simulated: the size of a count, or of whole elements.
fn shown(flags: &SimulateFlags, bytes: u64) -> Size {
    let given = &flags.bytes;
    if flags.count.is_none() && flags.counts.is_none() && given.bytes == bytes {
        return given.clone();
    }
    let units = if flags.count.is_none() { given.units } else { Units::Binary };
    let text = match units {
        // Exactly, as tables have it.
        Units::Binary => size(bytes),
        Units::Decimal => units.text(bytes),
    };
    Size { bytes, text, units }
}

impl Run<'_> {
    /// Returns the title of a picture of the run.
    fn title(&self) -> String {
        let Schedule { algorithm, nranks, .. } = self.schedule;
        let (size, topology) = (&self.size.text, self.machine.topology.name());
        let constants = self.constants.costs.title();
        format!("{algorithm}, {nranks} ranks, {size} on {topology}; {constants}")
    }

    /// Returns the share of the bound that was reached; 1 for an empty run.
    fn share(&self) -> Option<f64> {
        let (bound, _) = self.bound.as_ref()?;
        let seconds = self.simulated.seconds;
        Some(if seconds > 0.0 { bound / seconds } else { 1.0 })
    }

    fn name(&self, node: NodeId) -> &str {
        &self.machine.topology.nodes()[node.index()].name
    }
}
