//! `cargo xtask peers --processes`: ranks as processes, beside `PyPI`'s Intel MPI and Open MPI and, where it is
//! installed, Gloo. Each launch is a fresh set of processes, each on a core of its own while there are cores, and the
//! launches of all competitors take turns.

mod figures;
mod gloo;
mod mpis;
mod options;
mod ours;
mod table;

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::available_parallelism;
use std::time::Duration;

use crate::command::brief;
use figures::{Cell, Column, Figures, Series};
use gloo::Gloo;
use mpis::{Mpi, Setting};
use options::ProcessOptions;
use ours::RankSetup;

/// Ranks that live longer end by themselves.
const LONGEST: Duration = Duration::from_secs(120);
/// The additional time of a launcher, to clear up after its ranks.
const GRACE: Duration = Duration::from_secs(5);
/// Why a launch that ended well has no times.
const NO_TIMES: &str = "it did not print a time for each size";
/// The time of the first launch with an algorithm that an MPI would not choose.
const LONGEST_LOOK: Duration = Duration::from_secs(20);

/// An operation, and our algorithm for it.
pub(super) struct PeerOp {
    name: &'static str,
    /// The algorithm that a communicator chooses.
    algorithm: &'static str,
    parameters: &'static [&'static str],
    /// Whether a rank has one buffer, as in `MPI_Bcast`.
    in_place: bool,
}

const OPS: [PeerOp; 5] = [
    PeerOp {
        name: "AllReduce",
        algorithm: "OneShotMeshAllReduce",
        parameters: &[],
        in_place: false,
    },
    PeerOp { name: "AllGather", algorithm: "MeshAllGather", parameters: &[], in_place: false },
    PeerOp {
        name: "ReduceScatter",
        algorithm: "MeshReduceScatter",
        parameters: &[],
        in_place: false,
    },
    PeerOp { name: "Broadcast", algorithm: "NhrBroadcast", parameters: &[], in_place: true },
    PeerOp { name: "Reduce", algorithm: "RingReduce", parameters: &["slices=1"], in_place: false },
];

/// The measurements of a driver in one launch.
#[derive(Clone, Copy)]
struct Launch<'a> {
    op: &'a str,
    nranks: u32,
    sizes: &'a [u64],
    /// Whether inputs are written before each timed call.
    rewritten: bool,
    longest: Duration,
}

/// Microseconds, and whether results were wrong.
type Time = (f64, bool);

/// The competitors that take turns.
struct Field {
    program: PathBuf,
    modes: Vec<RankSetup>,
    mpis: Vec<Mpi>,
    gloo: Result<Gloo, String>,
}

pub(super) fn run(
    root: &Path,
    args: &[&str],
    build: impl FnOnce() -> Result<PathBuf, String>,
) -> Result<(), String> {
    let options = ProcessOptions::read(args)?;
    let program = match &options.program {
        Some(program) => program.clone(),
        None => build()?,
    };
    // Checks that all of ours run before hours of launches.
    for mode in &options.ours {
        ours::time(&program, (*mode, false), &OPS[0], 2, 1 << 10)
            .map_err(|why| format!("`roundelay bench {}` {why}", mode.flags().join(" ")))?;
    }
    let field = Field {
        program,
        modes: options.ours.clone(),
        mpis: mpis::find(root)?,
        gloo: Gloo::find(root),
    };
    let cores = available_parallelism().map_or(1, std::num::NonZero::get);
    let mut names: Vec<String> = field.mpis.iter().map(|mpi| mpi.name().to_owned()).collect();
    let mut absent = Vec::new();
    match &field.gloo {
        Ok(gloo) => names.push(gloo.name().to_owned()),
        Err(why) => absent.push(format!("Gloo was not measured: {why}")),
    }
    let mut figures = Figures {
        cores,
        launches: options.launches,
        peers: names,
        absent,
        load_before: load(),
        load_after: String::new(),
        cells: Vec::new(),
    };
    println!("{}", table::heading(&figures));
    for op in OPS.iter().filter(|op| options.ops.contains(&op.name)) {
        for nranks in &options.nranks {
            let cells = measure(&field, op, *nranks, &options)?;
            println!("{}", table::render(&cells));
            figures.cells.extend(cells);
            figures.load_after = load();
            // Results are not lost if a later launch does not end.
            keep(&figures, &options)?;
        }
    }
    println!("{}", table::heading(&figures));
    println!("{}", table::render(&figures.cells));
    print!("{}", table::notes(&figures));
    figures.verdict()
}

fn keep(figures: &Figures, options: &ProcessOptions) -> Result<(), String> {
    let texts =
        [(&options.json, table::json(figures)), (&options.markdown, table::markdown(figures))];
    for (file, text) in texts {
        if let Some(file) = file {
            fs::write(file, text).map_err(|error| format!("{}: {error}", file.display()))?;
        }
    }
    Ok(())
}

/// Returns the load of the machine by other work.
fn load() -> String {
    fs::read_to_string("/proc/loadavg").map_or_else(
        |error| format!("unknown: {error}"),
        |text| text.split_whitespace().take(3).collect::<Vec<_>>().join(" "),
    )
}

/// Measures all sizes of an operation at `nranks` ranks, all competitors by turns.
fn measure(
    field: &Field,
    op: &PeerOp,
    nranks: u32,
    options: &ProcessOptions,
) -> Result<Vec<Cell>, String> {
    let sizes = &options.sizes;
    let mut cells: Vec<Cell> =
        sizes.iter().map(|bytes| Cell::new(op.name, nranks, *bytes)).collect();
    let forced = match options.forced.filter(|bytes| sizes.contains(bytes)) {
        Some(bytes) => fastest(field, op, nranks, bytes)?.map(|(mpi, set)| (bytes, mpi, set)),
        None => None,
    };
    for _ in 0..options.launches {
        for rewritten in [false, true] {
            let launch = Launch { op: op.name, nranks, sizes, rewritten, longest: LONGEST };
            for mpi in &field.mpis {
                let series = Series::new(Column::Default, mpi.name(), rewritten);
                add(&mut cells, &series, sizes, &mpi.time(launch, None));
            }
            if let Some((bytes, mpi, setting)) = &forced {
                let name = format!("{} {setting}", mpi.name());
                let series = Series::new(Column::Forced, &name, rewritten);
                let launch = Launch { sizes: &[*bytes], ..launch };
                add(&mut cells, &series, launch.sizes, &mpi.time(launch, Some(setting)));
            }
            if let Ok(gloo) = &field.gloo {
                let series = Series::new(Column::Gloo, gloo.name(), rewritten);
                add(&mut cells, &series, sizes, &gloo.time(launch));
            }
        }
        for (mode, rewritten) in field.modes.iter().flat_map(|mode| [(mode, false), (mode, true)]) {
            for cell in &mut cells {
                let series = Series::new(mode.column(), op.algorithm, rewritten);
                match ours::time(&field.program, (*mode, rewritten), op, nranks, cell.bytes) {
                    Ok((time, limit)) => {
                        cell.add(&series, Ok(time));
                        cell.limits.push(limit);
                    }
                    Err(why) => cell.add(&series, Err(why)),
                }
            }
        }
    }
    Ok(cells)
}

/// Adds the results of a launch to the cells of its sizes.
fn add(cells: &mut [Cell], series: &Series, sizes: &[u64], launched: &Result<Vec<Time>, String>) {
    for cell in cells.iter_mut() {
        let Some(at) = sizes.iter().position(|bytes| *bytes == cell.bytes) else { continue };
        cell.add(series, launched.as_ref().map(|times| times[at]).map_err(Clone::clone));
    }
}

/// Returns the MPI and its algorithm that is fastest in one launch each. It then takes turns as the other competitors
/// do, so that it is not judged by the launch by which it was chosen.
fn fastest<'a>(
    field: &'a Field,
    op: &PeerOp,
    nranks: u32,
    bytes: u64,
) -> Result<Option<(&'a Mpi, Setting)>, String> {
    let mut best: Option<(f64, &Mpi, Setting)> = None;
    let sizes = [bytes];
    let launch =
        Launch { op: op.name, nranks, sizes: &sizes, rewritten: false, longest: LONGEST_LOOK };
    for mpi in &field.mpis {
        let settings = mpi.settings(op.name)?;
        for setting in settings {
            match mpi.time(launch, Some(&setting)) {
                Ok(times) if times[0].1 => println!("{} {setting}: WRONG", mpi.name()),
                Ok(times) => {
                    if best.as_ref().is_none_or(|best| times[0].0 < best.0) {
                        best = Some((times[0].0, mpi, setting));
                    }
                }
                Err(why) => {
                    let why = brief(&why);
                    println!("{} {setting} at {nranks} ranks is left out: {why}", mpi.name());
                }
            }
        }
    }
    Ok(best.map(|(_, mpi, setting)| (mpi, setting)))
}
