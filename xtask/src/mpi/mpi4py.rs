//! mpi4py's own tests of collectives, without the library that takes over calls and with it. A case that fails without
//! it, too, is no failure of ours.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::preload::PreloadReport;
use super::pypi::{Mpi, Variables};
use super::records::Records;
use super::table::MarkdownTable;
use super::{Field, PreloadMode};
use crate::command::{brief, output, within};
use crate::install::{Packages, any_pip, once};

/// The version of the package and of the tests, which only its source has.
const SOURCE: &str = "mpi4py==4.1.2";
const PACKAGES: Packages = Packages {
    folder: "mpi/python",
    into: "--target",
    names: &[SOURCE, "numpy"],
    files: &["mpi4py/__init__.py", "numpy/__init__.py"],
};

/// The seconds that a case may take by default.
const LONGEST: u64 = 60;
/// The time that all cases may take.
const LONGEST_SUITE: Duration = Duration::from_secs(1200);
/// The number of times that the suite is begun again after a case that did not end.
const MOST_LAUNCHES: usize = 20;

pub(super) fn run(field: &Field<'_>) -> Result<(), String> {
    let suite = Suite {
        packages: PACKAGES.install(field.root)?,
        tests: tests(field.root)?,
        script: field.root.join("xtask/mpi/suite.py"),
        seconds: field.options.seconds.unwrap_or(LONGEST),
    };
    let mut table = MarkdownTable::new(&[
        "MPI",
        "ranks",
        "mode",
        "cases",
        "passed",
        "left out",
        "failed without, too",
        "failed",
        "calls taken",
        "passed on",
        "seconds",
    ]);
    let mut failures = 0;
    for mpi in &field.mpis {
        for nranks in field.ranks(mpi, &[1, 2, 3, 4]) {
            failures += compare(field, &suite, mpi, nranks, &mut table)?;
            field.keep(&table)?;
        }
    }
    println!("\n{}", table.text());
    match failures {
        0 => Ok(()),
        some => Err(format!("{some} cases failed that pass without the library")),
    }
}

/// Runs all modes on `nranks` ranks; returns the number of failed cases that pass without the library.
fn compare(
    field: &Field<'_>,
    suite: &Suite,
    mpi: &Mpi,
    nranks: u32,
    table: &mut MarkdownTable,
) -> Result<usize, String> {
    let without = || suite.run(mpi, nranks, field.variables(mpi, PreloadMode::Without));
    let place = |mode| format!("{}, {nranks} ranks, {mode}", mpi.kind.name());
    let alone = without()?;
    let mut known = alone.0.names();
    let mut looked_again = false;
    let mut failures = 0;
    for mode in field.modes() {
        let run = match mode {
            PreloadMode::Without => Ok(alone.clone()),
            _ => suite.run(mpi, nranks, field.variables(mpi, mode)),
        };
        let (records, report, time) = match run {
            Ok(run) => run,
            Err(why) => {
                failures += 1;
                table.note(&format!("{}, FAILED: {why}", place(mode)));
                continue;
            }
        };
        // Some cases fail now and then.
        if !looked_again && !records.names().is_subset(&known) {
            looked_again = true;
            known.extend(without()?.0.names());
        }
        let failed = records.failed();
        let (of_mpi, ours): (Vec<_>, Vec<_>) =
            failed.into_iter().partition(|(case, _)| known.contains(*case));
        failures += ours.len();
        let (passed, left_out) = records.counts();
        table.add(&[
            mpi.kind.name().to_owned(),
            nranks.to_string(),
            mode.to_string(),
            records.cases.len().to_string(),
            passed.to_string(),
            left_out.to_string(),
            of_mpi.len().to_string(),
            ours.len().to_string(),
            report.taken.to_string(),
            report.passed.to_string(),
            format!("{time:.1}"),
        ]);
        println!("{}", table.last());
        for (cases, whose) in [(of_mpi, "fails without it, too"), (ours, "FAILED")] {
            for (case, why) in cases {
                table.note(&format!("{}, {whose}: {case}: {why}", place(mode)));
            }
        }
        for remark in report.told() {
            table.note(&format!("{}, said: {remark}", place(mode)));
        }
    }
    Ok(failures)
}

/// Returns the folder of the tests.
fn tests(root: &Path) -> Result<PathBuf, String> {
    let name = SOURCE.replace("==", "-");
    let file = format!("{name}/test/test_cco_buf.py");
    let folder = once(root, "mpi/mpi4py", SOURCE, &[&file], |folder| {
        println!("fetching the tests of {SOURCE} into target/mpi/mpi4py");
        let mut fetch = any_pip()?;
        fetch.args(["download", "--quiet", "--no-deps", "--no-binary", "mpi4py", SOURCE, "--dest"]);
        output(fetch.arg(folder))?;
        let archive = folder.join(format!("{name}.tar.gz"));
        output(Command::new("tar").arg("xf").arg(archive).arg("-C").arg(folder)).map(drop)
    })?;
    Ok(folder.join(name).join("test"))
}

struct Suite {
    packages: PathBuf,
    tests: PathBuf,
    script: PathBuf,
    seconds: u64,
}

/// The results of the cases, the library's report, and seconds.
type Run = (Records, PreloadReport, f64);

impl Suite {
    /// Runs all cases. After a case that does not end, the suite is begun again with the next ones.
    fn run(&self, mpi: &Mpi, nranks: u32, mut variables: Variables) -> Result<Run, String> {
        variables.push(mpi.path());
        variables.push(("MPI4PY_LIBMPI".to_owned(), mpi.library().display().to_string()));
        variables.push(("PYTHONPATH".to_owned(), self.packages.display().to_string()));
        let begun = Instant::now();
        let (mut all, mut report) = (Records::default(), PreloadReport::default());
        for _ in 0..MOST_LAUNCHES {
            let after = all.unfinished.take();
            let (records, said) = self.launch(mpi, nranks, &variables, after.as_deref())?;
            all.append(records);
            report.add(&said);
            if all.unfinished.is_none() {
                break;
            }
        }
        if all.complete {
            return Ok((all, report, begun.elapsed().as_secs_f64()));
        }
        Err(format!(
            "{} at {nranks} ranks: too many cases do not end, {} the last",
            mpi.kind.name(),
            all.unfinished.unwrap_or_default()
        ))
    }

    fn launch(
        &self,
        mpi: &Mpi,
        nranks: u32,
        variables: &Variables,
        after: Option<&str>,
    ) -> Result<(Records, PreloadReport), String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let record = folder.path().join("record");
        let mut command = mpi.launch(nranks, variables);
        command.arg("python3").arg(&self.script).arg(&self.tests).arg(&record);
        command.arg(self.seconds.to_string()).args(after);
        let ended = within(&mut command, LONGEST_SUITE);
        let texts: Vec<String> = (0..nranks)
            .map(|rank| {
                fs::read_to_string(record.with_extension(rank.to_string())).unwrap_or_default()
            })
            .collect();
        let mut records = Records::read(&texts);
        if records.cases.is_empty() && !records.complete {
            let why = ended.err().unwrap_or_else(|| "it ended well".to_owned());
            return Err(format!("{} at {nranks} ranks ran no case: {why}", mpi.kind.name()));
        }
        let said = match &ended {
            Ok(printed) => format!("{}\n{}", printed.stdout, printed.stderr),
            Err(why) => why.clone(),
        };
        if let (Err(why), true) = (&ended, records.complete) {
            records.fail("the end of the program", &brief(why));
        }
        Ok((records, PreloadReport::read(&said)))
    }
}
