//! The library that takes over calls of MPI programs, in all its modes, and its report on the calls.

use std::fmt;
use std::path::{Path, PathBuf};

use super::pypi::Variables;
use crate::command::library;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PreloadMode {
    /// The library is not loaded.
    Without,
    Off,
    On,
    Verify,
}

impl PreloadMode {
    pub(super) const ALL: [Self; 4] = [Self::Without, Self::Off, Self::On, Self::Verify];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Without => "without",
            Self::Off => "off",
            Self::On => "on",
            Self::Verify => "verify",
        }
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }
}

impl fmt::Display for PreloadMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The library, if any of the modes loads it.
pub(super) struct Preload(Option<PathBuf>);

impl Preload {
    /// Takes the file that is given, or builds one.
    pub(super) fn find(
        root: &Path,
        modes: &[PreloadMode],
        given: Option<&Path>,
    ) -> Result<Self, String> {
        if modes.iter().all(|mode| *mode == PreloadMode::Without) {
            return Ok(Self(None));
        }
        let file = match given {
            Some(file) => file.to_owned(),
            None => library(root, "roundelay-mpi", "release")?,
        };
        let file = file.canonicalize().map_err(|error| format!("{}: {error}", file.display()))?;
        Ok(Self(Some(file)))
    }

    /// Returns the command that brings hosts together and starts a launcher: it lies beside the library.
    ///
    /// # Errors
    /// The command is not there.
    pub(super) fn command(&self, mode: PreloadMode) -> Result<Option<PathBuf>, String> {
        let Some(library) = self.0.as_ref().filter(|_| mode != PreloadMode::Without) else {
            return Ok(None);
        };
        let command = library.with_file_name("roundelay");
        if command.is_file() {
            return Ok(Some(command));
        }
        let package = "--package roundelay-cli";
        Err(format!(
            "{} is not there: `cargo build --release {package}` makes it",
            command.display()
        ))
    }

    /// Returns the variables of ranks. `all` makes the library take calls of every size, and not only faster ones, and
    /// report them at the end, which costs a little.
    pub(super) fn variables(&self, mode: PreloadMode, all: bool) -> Variables {
        let Some(library) = self.0.as_ref().filter(|_| mode != PreloadMode::Without) else {
            return Vec::new();
        };
        let library = library.display().to_string();
        let mut variables =
            vec![("LD_PRELOAD", library), ("ROUNDELAY_MPI", mode.name().to_owned())];
        if all {
            variables.push(("ROUNDELAY_REPORT", "1".to_owned()));
            variables.push(("ROUNDELAY_MPI_TAKE", "all".to_owned()));
        }
        variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

/// The library's report on calls when the ranks end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PreloadReport {
    pub(super) calls: u64,
    pub(super) taken: u64,
    pub(super) passed: u64,
    /// Its other messages, such as a difference between its results and MPI's.
    pub(super) remarks: Vec<String>,
}

/// The beginning of its lines. Launchers may put a prefix before it.
const MARK: &str = "roundelay: ";

impl PreloadReport {
    pub(super) fn read(text: &str) -> Self {
        let mut report = Self::default();
        for line in text.lines() {
            let Some((_, said)) = line.split_once(MARK) else { continue };
            if let Some((calls, taken, passed)) = counts(said) {
                report.add(&Self { calls, taken, passed, remarks: Vec::new() });
            } else {
                report.remarks.push(said.trim().to_owned());
            }
        }
        report
    }

    /// Returns its first other messages: one mistake may be reported by every call.
    pub(super) fn told(&self) -> impl Iterator<Item = &String> {
        self.remarks.iter().take(5)
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.taken += other.taken;
        self.passed += other.passed;
        self.remarks.extend(other.remarks.iter().cloned());
    }
}

/// Reads `Allreduce 12 calls, 10 taken, 2 passed on ...`.
fn counts(said: &str) -> Option<(u64, u64, u64)> {
    let (calls, rest) = said.split_once(" calls, ")?;
    let (taken, rest) = rest.split_once(" taken, ")?;
    let (passed, _) = rest.split_once(" passed on")?;
    let (_, calls) = calls.rsplit_once(' ')?;
    Some((calls.parse().ok()?, taken.parse().ok()?, passed.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_all_collectives_are_added_and_the_rest_is_told() {
        let text = "\
of the program
roundelay: Allreduce 12 calls, 10 taken, 2 passed on (type: 2), algorithm Ring, time 3 us
[1,0]<stderr>: roundelay: Bcast 5 calls, 5 taken, 0 passed on
roundelay: Allreduce on rank 1: element 7 differs
";
        let report = PreloadReport::read(text);
        assert_eq!((report.calls, report.taken, report.passed), (17, 15, 2));
        assert_eq!(report.remarks, ["Allreduce on rank 1: element 7 differs"]);
        assert_eq!(PreloadReport::read("nothing of ours"), PreloadReport::default());
    }

    #[test]
    fn only_a_mode_that_loads_it_has_variables() {
        let preload = Preload(Some("a.so".into()));
        assert!(preload.variables(PreloadMode::Without, true).is_empty());
        let names = |all| preload.variables(PreloadMode::Verify, all).len();
        assert_eq!((names(false), names(true)), (2, 4));
        for mode in PreloadMode::ALL {
            assert_eq!(PreloadMode::named(mode.name()), Some(mode));
        }
    }
}
