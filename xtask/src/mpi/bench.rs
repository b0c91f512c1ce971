//! Times of one program without the library that takes over calls and with it, by turns: Intel's benchmarks where they
//! run, and this project's driver for Open MPI, for which they do not exist.

use std::time::{Duration, Instant};

use super::cells::Cells;
use super::driver::{Driver, Share};
use super::imb::{Benchmarks, LISTED, Lengths, read, write};
use super::options::OPS;
use super::pypi::{Mpi, MpiKind};
use super::{Field, PreloadMode, cores};
use crate::command::within;
use crate::sizes::told;

const SIZES: [u64; 9] = [4, 64, 1 << 10, 32 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20];
/// The default operations where ranks wait without leaving the core and there are fewer cores.
const SPINNING: [&str; 2] = ["Allreduce", "Reduce_scatter_block"];
/// Their sizes.
const SPINNING_SIZES: [u64; 2] = [32 << 10, 1 << 20];
/// The arguments of Intel's benchmarks in that case: ten calls of a size, and at most this many megabytes.
const SPINNING_CALLS: [&str; 2] = ["-iter", "10,64"];
/// Their arguments otherwise, first of short calls and then of long ones.
const CALLS: [[&str; 2]; 2] = [["-iter", "10000,200"], ["-iter", "20,320"]];
/// The most bytes of a rank's larger buffer.
const MOST: u64 = 256 << 20;
/// The time that a launch of Intel's benchmarks may take.
const LONGEST: Duration = Duration::from_secs(300);

/// The program that times the calls of an MPI.
enum Timer {
    Benchmarks(Benchmarks),
    Driver(Driver),
}

impl Timer {
    /// Returns the timer of an operation. Intel's benchmarks have equal counts in operations with a count for each block.
    fn find(field: &Field<'_>, mpi: &Mpi, op: &str) -> Result<Self, String> {
        Ok(match mpi.kind {
            _ if !OPS.contains(&op) => Self::Driver(Driver::compile(field.root, mpi)?),
            MpiKind::OpenMpi | MpiKind::OpenMpi4 => Self::Driver(Driver::compile(field.root, mpi)?),
            MpiKind::Mpich | MpiKind::Intel => Self::Benchmarks(Benchmarks::find(field.root)?),
        })
    }

    /// Returns the microseconds of each size, of which a rank has that part.
    fn times(
        &self,
        field: &Field<'_>,
        mpi: &Mpi,
        (op, nranks): (&str, u32),
        sizes: &[u64],
        mode: PreloadMode,
    ) -> Result<Vec<f64>, String> {
        let variables = field.preload.variables(mode, false);
        match self {
            Self::Driver(driver) => {
                let mut launch = mpi.launch(nranks, &variables);
                let share = if OPS.contains(&op) { Share::Part } else { Share::Whole };
                launch.args(driver.line(share, op, sizes));
                driver.times(&mut launch, sizes)
            }
            Self::Benchmarks(benchmarks) => {
                let calls = if spins(mpi, nranks) { [SPINNING_CALLS; 2] } else { CALLS };
                let launched = |sizes: &Lengths<'_>, calls: &[&str]| {
                    let variables = variables.clone();
                    let mut launch = benchmarks.launch(mpi, nranks, variables, &[op], sizes, calls);
                    within(&mut launch, LONGEST).map(|printed| read(&printed.stdout))
                };
                let (listed, longer): (Vec<u64>, Vec<u64>) =
                    sizes.iter().partition(|bytes| **bytes <= LISTED);
                let mut rows = Vec::new();
                if !listed.is_empty() {
                    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
                    let file = write(&listed, folder.path())?;
                    rows.extend(launched(&Lengths::Listed(&file), &calls[0])?);
                }
                if let (Some(first), Some(last)) = (longer.iter().min(), longer.iter().max()) {
                    let powers = Lengths::Powers(first.ilog2()..=last.ilog2());
                    rows.extend(launched(&powers, &calls[1])?);
                }
                in_order(sizes, &rows)
            }
        }
    }
}

/// Returns the times of the sizes among all that were timed.
fn in_order(sizes: &[u64], rows: &[(Option<u64>, f64)]) -> Result<Vec<f64>, String> {
    let time = |bytes: &u64| {
        let row = rows.iter().find(|(timed, _)| *timed == Some(*bytes));
        let found: Vec<u64> = rows.iter().filter_map(|(bytes, _)| *bytes).collect();
        row.map(|(_, time)| *time)
            .ok_or_else(|| format!("of the sizes {sizes:?} {found:?} were timed"))
    };
    sizes.iter().map(time).collect()
}

pub(super) fn run(field: &Field<'_>) -> Result<(), String> {
    let begun = Instant::now();
    let mut cells = Cells::default();
    for mpi in &field.mpis {
        let asked = field.options.ranks.clone().unwrap_or_else(|| vec![2, 4, 8]);
        for nranks in asked {
            for op in field.options.ops.clone().unwrap_or_else(|| OPS.to_vec()) {
                let Some(sizes) = sizes(field, mpi, op, nranks) else { continue };
                let timer = Timer::find(field, mpi, op)?;
                for _ in 0..field.options.launches {
                    for mode in field.compared() {
                        let times = timer.times(field, mpi, (op, nranks), &sizes, mode);
                        let ranks = nranks.to_string();
                        cells.add(mpi.kind.name(), op, &ranks, &sizes, mode, times);
                    }
                }
                let seconds = begun.elapsed().as_secs();
                println!("{}, {op}, {nranks} ranks: timed, {seconds} s", mpi.kind.name());
                field.keep(&cells.table())?;
            }
        }
    }
    println!("{}", cells.table().text());
    match cells.failures() {
        0 => Ok(()),
        some => Err(format!("{some} launches failed")),
    }
}

/// Whether ranks wait without leaving cores that other ranks need.
fn spins(mpi: &Mpi, nranks: u32) -> bool {
    !mpi.kind.yields() && nranks > cores()
}

/// Returns the sizes of an operation. Sizes that are left out are printed.
fn sizes(field: &Field<'_>, mpi: &Mpi, op: &str, nranks: u32) -> Option<Vec<u64>> {
    let name = mpi.kind.name();
    let spins = spins(mpi, nranks);
    // Operations that are asked for by name are run all the same.
    if spins && field.options.ops.is_none() && !SPINNING.contains(&op) {
        println!(
            "{name}, {op}, {nranks} ranks is left out: they do not leave the core; --ops {op} asks for it"
        );
        return None;
    }
    let sizes = match &field.options.sizes {
        Some(sizes) => sizes.clone(),
        None if spins => SPINNING_SIZES.to_vec(),
        None => SIZES.to_vec(),
    };
    let whole = |bytes: u64| match op {
        "Allgather" | "Reduce_scatter_block" => bytes * u64::from(nranks),
        _ => bytes,
    };
    let (able, too_large): (Vec<u64>, Vec<u64>) =
        sizes.into_iter().partition(|bytes| whole(*bytes) <= MOST);
    for bytes in too_large {
        println!("{name}, {op}, {nranks} ranks, {} for each is left out: too large", told(bytes));
    }
    // Intel's benchmarks have no other sizes of this length.
    let (able, odd): (Vec<u64>, Vec<u64>) = able
        .into_iter()
        .partition(|bytes| mpi.kind.is_open_mpi() || *bytes <= LISTED || bytes.is_power_of_two());
    for bytes in odd {
        println!("{name}, {op}, {nranks} ranks, {} is left out: no power of two", told(bytes));
    }
    (!able.is_empty()).then_some(able)
}

#[cfg(test)]
mod tests {
    use super::in_order;

    #[test]
    fn every_size_has_its_own_time() {
        let rows = [(Some(4), 0.5), (Some(0), 0.1), (Some(1 << 24), 9.0), (Some(1 << 25), 18.0)];
        assert_eq!(in_order(&[4, 1 << 24], &rows), Ok(vec![0.5, 9.0]));
        let why = in_order(&[4, 64], &rows).unwrap_err();
        assert!(why.contains("[4, 64]"), "{why}");
    }
}
