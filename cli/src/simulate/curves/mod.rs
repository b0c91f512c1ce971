//! Several algorithms or rank counts on one topology: the time of each run, and the load of the links.

mod json;
mod levels;
mod picture;
mod points;
mod subjects;
mod tables;

use std::collections::BTreeMap;

use roundelay::{Algorithm as _, Collective};
use roundelay_core::diagnostics::Code;
use roundelay_core::simulate::Machine;
use roundelay_core::topology::Topology;

use super::flags::SimulateFlags;
use crate::constants::Constants;
use crate::output;
use crate::report::{Failure, Format};
use crate::streams::{print, print_json};
use crate::topology::Given;
use levels::Levels;
use points::{Missing, Point};

/// Times that differ by no more than this share count as equal: blocks that differ by an element make such differences.
const NEAR: f64 = 1e-3;

/// The counts of a range of which all are simulated; of a longer range, the powers of two and the ends.
const RANGE: usize = 1024;

/// The runs of one algorithm.
struct Curve {
    /// Its name, with its file where another algorithm has an equal name.
    name: String,
    /// By rank count.
    points: Vec<Point>,
    missing: Vec<Missing>,
}

/// All runs, with their common properties.
struct Comparison<'a> {
    collective: Collective,
    /// `32 MiB`, or a count of elements.
    size: String,
    topology: &'a Topology,
    /// By rank count.
    machines: BTreeMap<u32, (Machine, Constants)>,
    levels: Levels,
    nranks: Vec<u32>,
    curves: Vec<Curve>,
}

/// Whether the call asks for more than one run.
pub(super) fn wanted(flags: &SimulateFlags) -> bool {
    subjects::names(flags).len() > 1
        || flags.nranks.as_ref().is_some_and(|nranks| nranks.counts.len() > 1)
}

/// Simulates all algorithms, on a topology that was read already.
pub(super) fn main(flags: &SimulateFlags, given: &Given) -> Result<bool, Failure> {
    let mut nranks = match &flags.nranks {
        Some(nranks) => nranks.counts.clone(),
        None => vec![given.topology.nranks()],
    };
    nranks.sort_unstable();
    nranks.dedup();
    if nranks.len() > RANGE && flags.nranks.as_ref().is_some_and(|nranks| !nranks.named) {
        let ends = [nranks[0], nranks[nranks.len() - 1]];
        nranks.retain(|n| n.is_power_of_two() || ends.contains(n));
    }
    check(flags, nranks.len())?;
    let machine = |n: &u32| Ok((*n, flags.machine(&given.topology, *n)?));
    let machines = nranks.iter().map(machine).collect::<Result<BTreeMap<_, _>, Failure>>()?;
    if let Some((most, (machine, _))) = machines.last_key_value() {
        machine.check(*most)?;
    }
    let subjects = subjects::find(flags, given)?;
    let collective = subjects[0].algorithm.collective();
    let topology = &*given.topology;
    let levels = Levels::new(topology);
    let curves = points::simulate(&subjects, flags, &machines, &levels, &nranks)?;
    let size = size(flags);
    let all = Comparison { collective, size, topology, machines, levels, nranks, curves };
    if let Some(path) = &flags.picture.svg {
        output::write(path, &picture::svg(&all))?;
    }
    match flags.format {
        Format::Json => print_json(&json::CurvesJson::new(&all, flags.dtype)),
        Format::Human => {
            print(tables::print(&all).trim_end());
            if let Some((_, (_, constants))) = all.machines.last_key_value() {
                constants.tell();
            }
        }
    }
    let refused = |missing: &Missing| missing.code.refuses();
    Ok(all.curves.iter().flat_map(|curve| &curve.missing).all(refused))
}

/// Refuses flags that are for one run alone, before the simulation.
fn check(flags: &SimulateFlags, counts: usize) -> Result<(), Failure> {
    let picture = &flags.picture;
    let alone = picture.for_one_run().or(flags.path.then_some("--path"));
    if let Some(flag) = alone {
        let title = format!("{flag} is for one run, and the call asks for several");
        return Err(Failure::usage(Code::BadCall, title)
            .with_help("give one algorithm and one rank count, or leave the flag out"));
    }
    if picture.svg.is_some() && counts < 2 {
        let title = "--svg draws several algorithms over rank counts, and there is one count";
        return Err(Failure::usage(Code::BadCall, title)
            .with_help("give several, such as --nranks 2..=16, or one algorithm"));
    }
    Ok(())
}

/// Returns the size that every run moves.
fn size(flags: &SimulateFlags) -> String {
    match flags.count {
        Some(count) => format!("{count} x {}", flags.dtype.name()),
        None => flags.bytes.text.clone(),
    }
}

impl Comparison<'_> {
    /// Returns `2..=128 ranks`.
    fn ranks(&self) -> String {
        let counts = roundelay_core::expansion::counted(&self.nranks);
        format!("{counts} rank{}", if counts == "1" { "" } else { "s" })
    }

    /// Returns the sources of the constants, each with the rank counts at which it is that of the runs.
    fn constants(&self) -> Vec<(String, Vec<u32>)> {
        let mut all: Vec<(String, Vec<u32>)> = Vec::new();
        for (nranks, (_, constants)) in &self.machines {
            let source = constants.costs.source();
            match all.iter_mut().find(|(known, _)| *known == source) {
                Some((_, counts)) => counts.push(*nranks),
                None => all.push((source, vec![*nranks])),
            }
        }
        all
    }

    /// Returns the algorithms that take the least time, each with the rank counts at which it does; algorithms whose
    /// times are equal, or hardly longer, are all listed.
    fn fastest(&self) -> Vec<(&str, Vec<u32>)> {
        let seconds =
            |curve: &Curve, n: u32| curve.points.iter().find(|p| p.nranks == n).map(|p| p.seconds);
        let best = |n: u32| {
            self.curves.iter().filter_map(|curve| seconds(curve, n)).fold(f64::MAX, f64::min)
        };
        let of = |curve: &Curve| {
            let same = |n: &u32| seconds(curve, *n).is_some_and(|s| s <= best(*n) * (1.0 + NEAR));
            self.nranks.iter().copied().filter(same).collect::<Vec<_>>()
        };
        let all = self.curves.iter().map(|curve| (&*curve.name, of(curve)));
        all.filter(|(_, counts)| !counts.is_empty()).collect()
    }
}
