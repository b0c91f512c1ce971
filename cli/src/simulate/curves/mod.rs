//! Several algorithms or rank counts on one topology: the time of each run, and the load of the links.

mod curve_tables;
mod curves_json;
mod points;
mod subjects;

use std::collections::BTreeMap;

use roundelay::Algorithm as _;
use roundelay_core::diagnostics::Code;
use roundelay_pictures::curves::{Comparison, Levels, Missing};

use super::flags::SimulateFlags;
use crate::constants::Constants;
use crate::output;
use crate::report::{Failure, Format};
use crate::streams::{print, print_json};
use crate::topology::Given;

/// The counts of a range of which all are simulated; of a longer range, the powers of two and the ends.
const RANGE: usize = 1024;

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
    let costs = machines.iter().map(|(n, (_, constants))| (*n, constants.costs.clone())).collect();
    let all = Comparison { collective, size, topology, costs, levels, nranks, curves };
    let constants = machines.last_key_value().map(|(_, (_, constants))| constants);
    if let Some(path) = &flags.picture.svg {
        output::write(path, &all.svg())?;
    }
    match flags.format {
        Format::Json => {
            let constants = constants.map(|constants| constants.json(Some(topology)));
            print_json(&curves_json::CurvesJson::new(&all, flags.dtype, constants));
        }
        Format::Human => {
            print(curve_tables::print(&all).trim_end());
            constants.into_iter().for_each(Constants::tell);
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
