//! MPICH's own tests of collectives, from Debian's source package: without the library that takes over calls and with
//! it. A test that fails without it, too, is no failure of ours.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::Field;
use super::preload::{PreloadMode, PreloadReport};
use super::pypi::{Mpi, MpiKind};
use super::table::MarkdownTable;
use crate::command::{brief, output, there, within};
use crate::install::once;

/// The seconds that a test may take by default.
const LONGEST: u64 = 60;
/// The most ranks of a test that are run where they leave the core while they wait.
const MOST: u32 = 4;
/// The configuration of the suite: C alone, and no test of starting processes.
const CONFIGURE: [&str; 4] =
    ["--disable-cxx", "--disable-fortran", "--disable-romio", "--disable-spawn"];

pub(super) fn run(field: &Field<'_>) -> Result<(), String> {
    if !there("apt-get") {
        println!("skipped: the tests come as a source package of Debian, and there is no apt-get");
        return Ok(());
    }
    let source = match source(field.root) {
        Ok(source) => source,
        Err(why) => {
            println!("skipped: the source package cannot be had: {why}");
            return Ok(());
        }
    };
    let mut table = MarkdownTable::new(&[
        "MPI",
        "mode",
        "tests",
        "passed",
        "failed without, too",
        "failed",
        "calls taken",
        "passed on",
        "seconds",
    ]);
    let mut failures = 0;
    for mpi in &field.mpis {
        let name = mpi.kind.name();
        // Intel's library runs programs that are compiled for MPICH.
        let built = match mpi.kind {
            MpiKind::OpenMpi | MpiKind::OpenMpi4 | MpiKind::Mpich => {
                build(field.root, &source, mpi)?
            }
            MpiKind::Intel => {
                build(field.root, &source, &Mpi::install(field.root, MpiKind::Mpich)?)?
            }
        };
        let suite = Suite::read(field, mpi, built)?;
        let mut known = BTreeSet::new();
        for mode in field.modes() {
            let begun = Instant::now();
            let mut report = PreloadReport::default();
            let (mut passed, mut of_mpi, mut ours) = (0, 0, 0);
            for test in &suite.tests {
                let (result, said) = suite.run(field, mpi, test, mode);
                report.add(&said);
                let Err(why) = result else {
                    passed += 1;
                    continue;
                };
                if mode == PreloadMode::Without {
                    known.insert(test.line.clone());
                }
                let whose = if known.contains(&test.line) {
                    of_mpi += 1;
                    "without it, too"
                } else {
                    ours += 1;
                    "FAILED"
                };
                table.note(&format!("{name}, {mode}, {whose}: {}: {why}", test.line));
            }
            failures += ours;
            for remark in report.told() {
                table.note(&format!("{name}, {mode}, said: {remark}"));
            }
            table.add(&[
                name.to_owned(),
                mode.to_string(),
                suite.tests.len().to_string(),
                passed.to_string(),
                of_mpi.to_string(),
                ours.to_string(),
                report.taken.to_string(),
                report.passed.to_string(),
                format!("{:.1}", begun.elapsed().as_secs_f64()),
            ]);
            println!("{}", table.last());
            field.keep(&table)?;
        }
    }
    println!("\n{}", table.text());
    match failures {
        0 => Ok(()),
        some => Err(format!("{some} tests failed that pass without the library")),
    }
}

/// Fetches MPICH's source by this machine's package manager, and returns its folder.
fn source(root: &Path) -> Result<PathBuf, String> {
    let folder =
        once(root, "mpi/mpich-source", "mpich", &["mpich/test/mpi/configure"], |folder| {
            println!("fetching the source of mpich into target/mpi/mpich-source");
            let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
            for part in ["sources", "lists/partial", "cache/archives/partial", "mpich"] {
                fs::create_dir_all(folder.join(part)).map_err(failed)?;
            }
            sources(Path::new("/etc/apt"), &folder.join("sources")).map_err(failed)?;
            let apt = || {
                let mut apt = Command::new("apt-get");
                apt.current_dir(folder).args(["--quiet", "-o", "Dir::Etc::sourcelist=/dev/null"]);
                for (name, part) in
                    [("Etc::sourceparts", "sources"), ("State::lists", "lists"), ("Cache", "cache")]
                {
                    apt.arg("-o").arg(format!("Dir::{name}={}", folder.join(part).display()));
                }
                apt
            };
            output(apt().arg("update"))?;
            output(apt().args(["source", "--download-only", "mpich"]))?;
            let archive = "tar xf mpich_*.orig.tar.* --directory mpich --strip-components 1";
            output(Command::new("sh").current_dir(folder).args(["-c", archive])).map(drop)
        })?;
    Ok(folder.join("mpich/test/mpi"))
}

/// Writes the package sources of this machine, changed to source packages.
fn sources(from: &Path, to: &Path) -> std::io::Result<()> {
    let mut files = vec![from.join("sources.list")];
    if let Ok(folder) = fs::read_dir(from.join("sources.list.d")) {
        files.extend(folder.filter_map(|file| Some(file.ok()?.path())));
    }
    for file in files.iter().filter(|file| file.is_file()) {
        let text: String = fs::read_to_string(file)?.lines().map(of_sources).collect();
        if let Some(name) = file.file_name() {
            fs::write(to.join(name), text)?;
        }
    }
    Ok(())
}

/// Turns a line of apt's sources, in either of their two forms, into a line for source packages.
fn of_sources(line: &str) -> String {
    match (line.strip_prefix("deb "), line.strip_prefix("Types:")) {
        (Some(rest), _) => format!("deb-src {rest}\n"),
        (_, Some(_)) => "Types: deb-src\n".to_owned(),
        _ => format!("{line}\n"),
    }
}

/// Configures and builds the tests of collectives for an MPI; their folder.
fn build(root: &Path, source: &Path, mpi: &Mpi) -> Result<PathBuf, String> {
    let name = format!("mpi/coll-{}", mpi.kind.name());
    // The suite's list of tests lies among its built files.
    let folder = once(root, &name, "mpich", &["coll/testlist"], |folder| {
        println!("building MPICH's tests of collectives in target/{name}; it takes minutes");
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let mut configure = Command::new(source.join("configure"));
        configure.current_dir(folder).args(CONFIGURE);
        configure.arg(format!("--with-mpi={}", mpi.prefix.display()));
        output(configure.arg(format!("CC={}", mpi.program("mpicc").display())))?;
        for part in ["util", "dtpools", "coll"] {
            let mut make = Command::new("make");
            // A test that an MPI cannot compile is missing, and fails without us, too.
            make.current_dir(folder).args(["--keep-going", "--directory", part, "CFLAGS=-O0 -w"]);
            if let (Err(why), false) = (output(&mut make), part == "coll") {
                return Err(why);
            }
        }
        Ok(())
    })?;
    Ok(folder.join("coll"))
}

/// A line of the suite's list.
#[derive(Debug, PartialEq, Eq)]
struct Test {
    line: String,
    program: String,
    nranks: u32,
    args: Vec<String>,
    variables: Vec<(String, String)>,
}

impl Test {
    /// Reads a test; `None` for a comment, and for a test that needs more than this machine may have.
    fn read(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let program = words.next().filter(|word| !word.starts_with('#'))?.to_owned();
        let nranks = words.next()?.parse().ok()?;
        let mut test = Self {
            line: line.trim().to_owned(),
            program,
            nranks,
            args: Vec::new(),
            variables: Vec::new(),
        };
        for word in words {
            match word.split_once('=')? {
                ("arg", value) => test.args.push(value.to_owned()),
                ("env", value) => {
                    let (name, value) = value.split_once('=')?;
                    test.variables.push((name.to_owned(), value.to_owned()));
                }
                // A number of gigabytes of memory.
                ("mem", _) => return None,
                _ => {}
            }
        }
        Some(test)
    }
}

struct Suite {
    folder: PathBuf,
    tests: Vec<Test>,
    seconds: u64,
}

impl Suite {
    fn read(field: &Field<'_>, mpi: &Mpi, folder: PathBuf) -> Result<Self, String> {
        let file = folder.join("testlist");
        let text =
            fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        let able = field.ranks(mpi, &(1..=MOST).collect::<Vec<_>>());
        let tests = text.lines().filter_map(Test::read);
        let tests = tests.filter(|test| able.contains(&test.nranks)).collect();
        Ok(Self { folder, tests, seconds: field.options.seconds.unwrap_or(LONGEST) })
    }

    /// Launches a test, and returns whether it reports that all was right, and the library's report.
    fn run(
        &self,
        field: &Field<'_>,
        mpi: &Mpi,
        test: &Test,
        mode: PreloadMode,
    ) -> (Result<(), String>, PreloadReport) {
        let mut variables = field.variables(mpi, mode);
        variables.push(mpi.path());
        variables.extend(test.variables.iter().cloned());
        let mut command = mpi.launch(test.nranks, &variables);
        command.current_dir(&self.folder).arg(self.folder.join(&test.program)).args(&test.args);
        match within(&mut command, Duration::from_secs(self.seconds)) {
            Ok(printed) => {
                let said = format!("{}\n{}", printed.stdout, printed.stderr);
                let well = said.lines().any(|line| line.trim() == "No Errors");
                let result = if well { Ok(()) } else { Err(brief(&said)) };
                (result, PreloadReport::read(&said))
            }
            Err(why) => (Err(brief(&why)), PreloadReport::read(&why)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_list_are_read() {
        let test = Test::read("allred 4 arg=-count=10 env=A=B timeLimit=300").expect("a test");
        assert_eq!((test.program.as_str(), test.nranks), ("allred", 4));
        assert_eq!(test.args, ["-count=10"]);
        assert_eq!(test.variables, [("A".to_owned(), "B".to_owned())]);
        for line in ["# allred 4", "", "uoplong 16 mem=1.4"] {
            assert_eq!(Test::read(line), None, "{line}");
        }
    }

    #[test]
    fn places_of_packages_are_asked_for_sources() {
        assert_eq!(
            of_sources("deb http://place stable main"),
            "deb-src http://place stable main\n"
        );
        assert_eq!(of_sources("Types: deb"), "Types: deb-src\n");
        assert_eq!(of_sources("URIs: http://place"), "URIs: http://place\n");
    }
}
