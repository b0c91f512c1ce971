//! Our own MPI programs, whose results are known, without the library that takes over calls and with it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::Field;
use super::preload::{PreloadMode, PreloadReport};
use super::pypi::{Mpi, MpiKind, Variables};
use super::table::MarkdownTable;
use crate::command::{brief, output, there, within};

/// Each is a file of C.
const NAMES: [&str; 4] = ["collectives", "blocks", "progress", "threads"];
/// And one of Fortran, for MPIs that have its modules.
const FORTRAN: &str = "fortran";
const FORTRAN_FLAGS: [&str; 6] = ["-cpp", "-DF08", "-O1", "-w", "-fallow-argument-mismatch", "-J"];
/// The strictest flags of users. MPI's own headers may use features that C99 does not have.
const FLAGS: [&str; 8] =
    ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-Wno-long-long", "-O1", "-pthread"];
/// The seconds that a program may take by default.
pub(super) const LONGEST: u64 = 120;
/// The additional time of a launcher, to clear up after its ranks.
pub(super) const GRACE: Duration = Duration::from_secs(10);

pub(super) fn run(field: &Field<'_>) -> Result<(), String> {
    let seconds = field.options.seconds.unwrap_or(LONGEST);
    let mut table = MarkdownTable::new(&[
        "MPI",
        "program",
        "ranks",
        "mode",
        "result",
        "calls taken",
        "passed on",
        "seconds",
    ]);
    let mut failures = 0;
    for mpi in &field.mpis {
        let programs = compile(field.root, mpi)?;
        for nranks in field.ranks(mpi, &[1, 2, 3, 4]) {
            for (name, program) in &programs {
                if *name == "progress" && nranks < 2 {
                    continue;
                }
                for mode in field.modes() {
                    let begun = Instant::now();
                    let variables = variables(field, mpi, mode);
                    let (result, report) = ran(mpi, program, nranks, &variables, seconds);
                    let place = format!("{}, {name}, {nranks} ranks, {mode}", mpi.kind.name());
                    let shown = if let Err(why) = &result {
                        failures += 1;
                        table.note(&format!("{place}: {why}"));
                        "FAILED"
                    } else {
                        "right"
                    };
                    for remark in report.told() {
                        table.note(&format!("{place}, said: {remark}"));
                    }
                    table.add(&[
                        mpi.kind.name().to_owned(),
                        (*name).to_owned(),
                        nranks.to_string(),
                        mode.to_string(),
                        shown.to_owned(),
                        report.taken.to_string(),
                        report.passed.to_string(),
                        format!("{:.1}", begun.elapsed().as_secs_f64()),
                    ]);
                    println!("{}", table.last());
                }
            }
            field.keep(&table)?;
        }
    }
    println!("\n{}", table.text());
    match failures {
        0 => Ok(()),
        some => Err(format!("{some} launches failed")),
    }
}

/// Returns variables that avoid an MPI's own errors in these programs: Open MPI 5.0 crashes between hosts where types
/// have absolute addresses, and the threads of Intel MPI 2021.18 get each other's data.
pub(super) fn variables(field: &Field<'_>, mpi: &Mpi, mode: PreloadMode) -> Variables {
    let mut variables = field.variables(mpi, mode);
    let spared = match mpi.kind {
        MpiKind::OpenMpi => ("OMPI_MCA_coll", "^han"),
        MpiKind::Intel => ("I_MPI_COLL_INTRANODE", "pt2pt"),
        MpiKind::Mpich | MpiKind::OpenMpi4 => return variables,
    };
    variables.push((spared.0.to_owned(), spared.1.to_owned()));
    variables
}

/// Returns the programs with their names. Programs that are left out are printed.
pub(super) fn compile(root: &Path, mpi: &Mpi) -> Result<Vec<(&'static str, PathBuf)>, String> {
    let folder = root.join("target/mpi/programs").join(mpi.kind.name());
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let compiled = NAMES.iter().map(|name| {
        let source = root.join(format!("capi/mpi/tests/programs/{name}.c"));
        let program = folder.join(name);
        mpi.compile(&source, &FLAGS, &program).map(|()| (*name, program))
    });
    let mut programs: Vec<_> = compiled.collect::<Result<_, _>>()?;
    let compiler = mpi.program("mpif90");
    // The MPIs of PyPI have a compiler for Fortran, and no modules for it.
    if mpi.kind == MpiKind::OpenMpi4 && compiler.is_file() && there("gfortran") {
        let program = folder.join(FORTRAN);
        let mut command = Command::new(compiler);
        command.args(FORTRAN_FLAGS).arg(&folder).arg("-o").arg(&program);
        output(command.arg(root.join("capi/mpi/tests/programs/fortran.f90")))?;
        programs.push((FORTRAN, program));
    } else {
        let name = mpi.kind.name();
        println!(
            "{name}: the program of Fortran is left out: it has no modules, or there is no gfortran"
        );
    }
    Ok(programs)
}

/// Launches a program, and returns whether all was right, and the library's report.
fn ran(
    mpi: &Mpi,
    program: &Path,
    nranks: u32,
    variables: &Variables,
    seconds: u64,
) -> (Result<(), String>, PreloadReport) {
    let mut command = mpi.launch(nranks, variables);
    command.arg(program).args(["--seconds", &seconds.to_string()]);
    // Intel MPI's own results are wrong without this.
    command.args((mpi.kind == MpiKind::Intel).then_some("--simple"));
    judged(within(&mut command, Duration::from_secs(seconds) + GRACE))
}

/// Returns the result of a launch of one of the programs.
pub(super) fn judged(
    ended: Result<crate::command::Printed, String>,
) -> (Result<(), String>, PreloadReport) {
    match ended {
        Ok(printed) => {
            let report = PreloadReport::read(&format!("{}\n{}", printed.stdout, printed.stderr));
            let said = ["OK: ", "SKIPPED: "];
            let well =
                printed.stdout.lines().any(|line| said.iter().any(|word| line.contains(word)));
            let why = || format!("it did not say that all was right: {}", brief(&printed.stderr));
            (if well { Ok(()) } else { Err(why()) }, report)
        }
        Err(why) => {
            let report = PreloadReport::read(&why);
            let words = ["WRONG: ", "HANGS: ", "CRASHES: "];
            let told = why.lines().find(|line| words.iter().any(|word| line.contains(word)));
            (Err(told.map_or_else(|| brief(&why), str::to_owned)), report)
        }
    }
}
