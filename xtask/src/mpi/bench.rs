//! Times of the same program without the library that takes over calls and with it, by turns: Intel's benchmarks where they
//! run, and the driver of this project for Open MPI, for which they are not to be had.

use std::time::{Duration, Instant};

use super::cells::Cells;
use super::driver::{Driver, Share};
use super::imb::{Benchmarks, read, write};
use super::options::OPS;
use super::pypi::{Kind, Mpi};
use super::{Field, Mode, cores};
use crate::command::within;
use crate::sizes::told;

const SIZES: [u64; 9] = [4, 64, 1 << 10, 32 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20];
/// The largest that Intel's benchmarks time.
const BENCHMARKED: u64 = 4 << 20;
/// The same where ranks wait without leaving the core and there are fewer cores.
const SPINNING: [&str; 2] = ["Allreduce", "Reduce_scatter_block"];
/// Their sizes.
const SPINNING_SIZES: [u64; 2] = [32 << 10, 1 << 20];
/// What Intel's benchmarks are told there: ten calls of a size, and so many megabytes at most.
const SPINNING_CALLS: [&str; 2] = ["-iter", "10,64"];
/// How much memory a rank's larger buffer may have.
const MOST: u64 = 256 << 20;
/// How long a launch of Intel's benchmarks may take.
const LONGEST: Duration = Duration::from_secs(300);

/// What times the calls of an MPI.
enum Timer {
    Benchmarks(Benchmarks),
    Driver(Driver),
}

impl Timer {
    fn find(field: &Field<'_>, mpi: &Mpi) -> Result<Self, String> {
        Ok(match mpi.kind {
            Kind::OpenMpi => Self::Driver(Driver::compile(field.root, mpi)?),
            Kind::Mpich | Kind::Intel => Self::Benchmarks(Benchmarks::find(field.root)?),
        })
    }

    /// Microseconds of each size, of which a rank has that part.
    fn times(
        &self,
        field: &Field<'_>,
        mpi: &Mpi,
        (op, nranks): (&str, u32),
        sizes: &[u64],
        mode: Mode,
    ) -> Result<Vec<f64>, String> {
        let variables = field.preload.variables(mode, false);
        match self {
            Self::Driver(driver) => {
                let mut launch = mpi.launch(nranks, &variables);
                launch.args(driver.line(Share::Part, op, sizes));
                driver.times(&mut launch, sizes)
            }
            Self::Benchmarks(benchmarks) => {
                let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
                let file = write(sizes, folder.path())?;
                let calls = if spins(mpi, nranks) { &SPINNING_CALLS[..] } else { &[] };
                let mut launch = benchmarks.launch(mpi, nranks, variables, &[op], &file, calls);
                let rows = read(&within(&mut launch, LONGEST)?.stdout);
                let found: Vec<u64> = rows.iter().filter_map(|(bytes, _)| *bytes).collect();
                if found != sizes {
                    return Err(format!("of the sizes {sizes:?} {found:?} were timed"));
                }
                Ok(rows.into_iter().map(|(_, time)| time).collect())
            }
        }
    }
}

pub(super) fn run(field: &Field<'_>) -> Result<(), String> {
    let begun = Instant::now();
    let mut cells = Cells::default();
    for mpi in &field.mpis {
        let timer = Timer::find(field, mpi)?;
        let asked = field.options.ranks.clone().unwrap_or_else(|| vec![2, 4, 8]);
        for nranks in asked {
            for op in field.options.ops.clone().unwrap_or_else(|| OPS.to_vec()) {
                let Some(sizes) = sizes(field, mpi, op, nranks) else { continue };
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

/// Whether ranks wait on cores that others of them need.
fn spins(mpi: &Mpi, nranks: u32) -> bool {
    !mpi.kind.yields() && nranks > cores()
}

/// The sizes of an operation. What is left out is told.
fn sizes(field: &Field<'_>, mpi: &Mpi, op: &str, nranks: u32) -> Option<Vec<u64>> {
    let name = mpi.kind.name();
    let spins = spins(mpi, nranks);
    // Whoever asks for it waits for it.
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
    let largest = if mpi.kind == Kind::OpenMpi { MOST } else { BENCHMARKED };
    let (able, too_large): (Vec<u64>, Vec<u64>) =
        sizes.into_iter().partition(|bytes| whole(*bytes) <= MOST && *bytes <= largest);
    for bytes in too_large {
        println!("{name}, {op}, {nranks} ranks, {} for each is left out: too large", told(bytes));
    }
    (!able.is_empty()).then_some(able)
}
