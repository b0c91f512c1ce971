//! Programs, compiled and launched.

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::installed::{Mpi, all};

/// Returns the library, which was built with this test: beside it.
pub(crate) fn library() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let beside = test.with_file_name("libroundelay_mpi.so");
    assert!(beside.exists(), "{} is not there", beside.display());
    beside
}

/// Returns the folder of the programs.
pub(crate) fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name)
}

/// Returns the MPIs whose ranks may outnumber the cores: there must be one.
pub(crate) fn mpis() -> Vec<Mpi> {
    let found: Vec<_> = all().into_iter().filter(|mpi| mpi.is_able(3)).collect();
    assert!(!found.is_empty(), "no MPI: `cargo xtask test` installs some below target/mpi");
    println!("{}", found.iter().map(|mpi| &mpi.name[..]).collect::<Vec<_>>().join(", "));
    found
}

/// A program that one MPI compiled.
pub(crate) struct Compiled {
    mpi: Mpi,
    program: PathBuf,
    _folder: TempDir,
}

/// Returns the program `name` of each MPI.
pub(crate) fn compiled(name: &str) -> Vec<Compiled> {
    let compile = |mpi: Mpi| {
        let folder = tempfile::tempdir().expect("a folder for the tests");
        let program = folder.path().join(name);
        let source = source(name).with_extension("c");
        mpi.compile(&[source, "-lm".into(), "-lpthread".into()], &program);
        Compiled { mpi, program, _folder: folder }
    };
    mpis().into_iter().map(compile).collect()
}

impl Compiled {
    /// Makes a program that `compile` compiles into a file of a folder.
    ///
    /// # Errors
    /// Why it was not compiled.
    pub(crate) fn by(
        mpi: &Mpi,
        compile: impl FnOnce(&Path) -> Result<(), String>,
    ) -> Result<Self, String> {
        let folder = tempfile::tempdir().expect("a folder for the tests");
        let program = folder.path().join("program");
        compile(&program)?;
        Ok(Self { mpi: mpi.clone(), program, _folder: folder })
    }

    pub(crate) fn name(&self) -> &str {
        &self.mpi.name
    }

    /// Runs the program on `nranks` ranks, which preload the library and have these variables; returns the printed
    /// text.
    pub(crate) fn taken(&self, nranks: u32, variables: &[(&str, &str)]) -> String {
        let (well, text) = self.launched(nranks, variables);
        assert!(well, "{} on {nranks} ranks, {variables:?}:\n{text}", self.mpi.name);
        text
    }

    /// Runs the program on `nranks` ranks without the library; returns the printed text.
    pub(crate) fn plain(&self, nranks: u32) -> String {
        let (well, text) = self.mpi.run(&self.program, nranks, &[]);
        assert!(well, "{} on {nranks} ranks, without the library:\n{text}", self.mpi.name);
        text
    }

    /// Runs the program as [`Self::taken`] does, and returns whether it ends well.
    pub(crate) fn launched(&self, nranks: u32, variables: &[(&str, &str)]) -> (bool, String) {
        // Without this library, too, Intel MPI gives wrong results where ranks describe data in several ways.
        let args: &[&str] = if self.mpi.name.contains("impi") { &["--simple"] } else { &[] };
        self.launched_by(&self.program, args, nranks, variables)
    }

    /// Runs the program as [`Self::launched`] does, by another program that gets it as an argument.
    pub(crate) fn launched_by(
        &self,
        program: &Path,
        args: &[&str],
        nranks: u32,
        variables: &[(&str, &str)],
    ) -> (bool, String) {
        let mut all = vec![
            ("LD_PRELOAD", library().display().to_string()),
            ("ROUNDELAY_REPORT", "1".to_owned()),
        ];
        all.extend(variables.iter().map(|(name, value)| (*name, (*value).to_owned())));
        self.mpi.run_with(&all, program, nranks, args)
    }

    pub(crate) fn program(&self) -> &Path {
        &self.program
    }
}

/// Returns the line of a report about a collective.
pub(crate) fn row<'t>(text: &'t str, what: &str) -> &'t str {
    let begin = format!("roundelay: {what} ");
    let row = text.lines().find(|line| line.starts_with(&begin));
    row.unwrap_or_else(|| panic!("no line of {what} in:\n{text}"))
}

/// Returns the number of taken calls in a row.
pub(crate) fn taken(row: &str) -> u64 {
    let (before, _) = row.split_once(" taken").unwrap_or_else(|| panic!("no `taken` in {row}"));
    let number = before.rsplit(' ').next().and_then(|number| number.parse().ok());
    number.unwrap_or_else(|| panic!("no number before `taken` in {row}"))
}
