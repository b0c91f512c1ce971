//! The libraries to compare with: where they are, and how one of their algorithms is forced.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::Case;
use crate::command::{output, there, within};
use crate::install::debian;

/// Debian's packages of the library that is installed if it is missing.
const PACKAGES: [&str; 2] = ["openmpi-bin", "libopenmpi-dev"];
/// A launch that takes longer is given up: ranks that spin for a core they do not have.
const LONGEST: Duration = Duration::from_secs(60);
/// The slowdown at the probe from which one way of waiting is left out.
const HOPELESS: f64 = 5.0;

#[derive(Clone, Copy, PartialEq, Eq)]
enum LibraryKind {
    OpenMpi,
    Mpich,
}

pub(super) struct Library {
    kind: LibraryKind,
    name: String,
    launcher: &'static str,
    driver: PathBuf,
}

/// The way in which ranks wait.
pub(super) struct Launch {
    pub(super) name: &'static str,
    args: &'static [&'static str],
}

const SPINS: Launch = Launch { name: "spins", args: &["--mca", "mpi_yield_when_idle", "0"] };
const YIELDS: Launch = Launch { name: "yields", args: &["--mca", "mpi_yield_when_idle", "1"] };
const AS_IT_IS: Launch = Launch { name: "as it is", args: &[] };

/// Finds Open MPI, installed if need be, and MPICH if it is there; each with its driver, compiled.
pub(super) fn find(root: &Path) -> Result<Vec<Library>, String> {
    if !there("mpicc.openmpi") && !there("mpicc") {
        install()?;
    }
    let mut found = Vec::new();
    let compiler = if there("mpicc.openmpi") { "mpicc.openmpi" } else { "mpicc" };
    let launcher = if there("mpirun.openmpi") { "mpirun.openmpi" } else { "mpirun" };
    let version = output(Command::new(launcher).arg("--version"))?;
    let version = version.lines().next().unwrap_or_default();
    // Its launcher may call itself by the name of its runtime.
    if !version.contains("Open MPI") && !version.contains("OpenRTE") {
        return Err(format!("`{launcher}` is not Open MPI's: {version}"));
    }
    let name = format!("Open MPI {}", version.rsplit(' ').next().unwrap_or_default());
    let driver = compile(root, compiler, "openmpi")?;
    found.push(Library { kind: LibraryKind::OpenMpi, name, launcher, driver });
    if there("mpicc.mpich") && there("mpiexec.mpich") {
        let version = output(Command::new("mpiexec.mpich").arg("--version"))?;
        let number = version.lines().find_map(|line| line.trim().strip_prefix("Version:"));
        let name = format!("MPICH {}", number.unwrap_or_default().trim());
        let driver = compile(root, "mpicc.mpich", "mpich")?;
        found.push(Library { kind: LibraryKind::Mpich, name, launcher: "mpiexec.mpich", driver });
    }
    Ok(found)
}

fn install() -> Result<(), String> {
    let packages = PACKAGES.join(" ");
    let wanted = format!("apt-get install --no-install-recommends {packages}");
    if !debian(&PACKAGES)? {
        return Err(format!("Open MPI is missing: `{wanted}`, or its like, installs it"));
    }
    Ok(())
}

fn compile(root: &Path, compiler: &str, name: &str) -> Result<PathBuf, String> {
    let folder = root.join("target/peers");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let driver = folder.join(format!("driver-{name}"));
    let mut command = Command::new(compiler);
    command.args(["-O3", "-march=native", "-o"]).arg(&driver);
    output(command.arg(root.join("xtask/peers/driver.c")))?;
    Ok(driver)
}

impl Library {
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Whether the algorithm can be forced.
    pub(super) fn knows(&self, case: &Case) -> bool {
        case.theirs == "default" || self.forced(case).is_some()
    }

    /// Returns the setting that forces the algorithm of a case: parameters of Open MPI's `tuned` component, or MPICH's
    /// variables.
    fn forced(&self, case: &Case) -> Option<(&'static str, &'static str)> {
        Some(match (self.kind, case.op, case.theirs) {
            (LibraryKind::OpenMpi, "AllReduce", "ring") => ("coll_tuned_allreduce_algorithm", "4"),
            (LibraryKind::OpenMpi, "AllReduce", "recursive_doubling") => {
                ("coll_tuned_allreduce_algorithm", "3")
            }
            (LibraryKind::OpenMpi, "ReduceScatter", "ring") => {
                ("coll_tuned_reduce_scatter_algorithm", "3")
            }
            (LibraryKind::OpenMpi, "AllGather", "ring") => ("coll_tuned_allgather_algorithm", "4"),
            (LibraryKind::OpenMpi, "Broadcast", "pipeline") => ("coll_tuned_bcast_algorithm", "3"),
            (LibraryKind::OpenMpi, "Reduce", "pipeline") => ("coll_tuned_reduce_algorithm", "3"),
            (LibraryKind::Mpich, "AllReduce", "ring") => {
                ("MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM", "ring")
            }
            (LibraryKind::Mpich, "AllReduce", "recursive_doubling") => {
                ("MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM", "recursive_doubling")
            }
            (LibraryKind::Mpich, "AllGather", "ring") => {
                ("MPIR_CVAR_ALLGATHER_INTRA_ALGORITHM", "ring")
            }
            _ => return None,
        })
    }

    /// Ways of waiting that are worth a try: both of Open MPI's, unless one is hopeless, as spinning is where ranks
    /// share cores.
    pub(super) fn launches(&self, nranks: u32, cores: u32) -> Result<Vec<Launch>, String> {
        if self.kind == LibraryKind::Mpich {
            return Ok(vec![AS_IT_IS]);
        }
        if nranks <= cores {
            return Ok(vec![SPINS, YIELDS]);
        }
        let probe = Case { op: "AllReduce", theirs: "default", ours: &[] };
        let mut times = Vec::new();
        for launch in [SPINS, YIELDS] {
            let time = match self.time(&probe, nranks, &[32 << 10], &launch) {
                Ok(times) => times[0].0,
                Err(why) if why.contains("gave up") => f64::INFINITY,
                Err(why) => return Err(why),
            };
            times.push((time, launch));
        }
        let best = times.iter().map(|(time, _)| *time).fold(f64::INFINITY, f64::min);
        let told = |(time, launch): &(f64, Launch)| format!("{} {time:.0} us", launch.name);
        let told: Vec<String> = times.iter().map(told).collect();
        println!(
            "{}, {nranks} ranks on {cores} cores, AllReduce of 32 KiB: {}",
            self.name,
            told.join(", ")
        );
        Ok(times.into_iter().filter(|t| t.0 <= HOPELESS * best).map(|t| t.1).collect())
    }

    /// Returns the median in microseconds of each size, and whether results were wrong.
    pub(super) fn time(
        &self,
        case: &Case,
        nranks: u32,
        sizes: &[u64],
        launch: &Launch,
    ) -> Result<Vec<(f64, bool)>, String> {
        let mut command = Command::new(self.launcher);
        if self.kind == LibraryKind::OpenMpi {
            // A run by this program alone, as root in a container, on any number of cores.
            command.args(["--allow-run-as-root", "--oversubscribe"]).args(launch.args);
        }
        match (self.kind, self.forced(case)) {
            (_, None) => {}
            (LibraryKind::OpenMpi, Some((name, value))) => {
                command.args(["--mca", "coll_tuned_use_dynamic_rules", "1", "--mca", name, value]);
            }
            (LibraryKind::Mpich, Some((name, value))) => {
                command.env(name, value);
            }
        }
        command.args(["-np", &nranks.to_string()]).arg(&self.driver).arg(case.op);
        command.args(sizes.iter().map(u64::to_string));
        let printed = within(&mut command, LONGEST);
        let text = printed.map_err(|why| format!("{command:?}: {why}"))?.stdout;
        read(&text, sizes).ok_or_else(|| format!("{command:?}:\n{text}"))
    }
}

/// Reads the median in microseconds of each size and whether results were wrong, as a driver printed them; `None` if it
/// did not print exactly these sizes in this order.
pub(super) fn read(text: &str, sizes: &[u64]) -> Option<Vec<(f64, bool)>> {
    let line = |line: &str| {
        let [size, time, wrong] = line.split_whitespace().collect::<Vec<_>>().try_into().ok()?;
        let (time, wrong): (f64, f64) = (time.parse().ok()?, wrong.parse().ok()?);
        Some((size.parse::<u64>().ok()?, (time, wrong > 0.0)))
    };
    let (found, times): (Vec<_>, Vec<_>) = text.lines().filter_map(line).unzip();
    (found == sizes).then_some(times)
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn a_drivers_lines_are_read_among_what_a_launcher_says() {
        let text = "a launcher warns\n1024 1.5 0\n\n32768 13.25 2\nand says 1 more\n";
        assert_eq!(read(text, &[1024, 32768]), Some(vec![(1.5, false), (13.25, true)]));
    }

    #[test]
    fn a_driver_that_did_not_print_each_size_once_has_no_times() {
        assert_eq!(read("1024 1.5 0\n", &[1024, 32768]), None);
        assert_eq!(read("32768 1.5 0\n", &[1024]), None);
        assert_eq!(read("1024 1.5 0\n1024 1.5 0\n", &[1024]), None);
        assert_eq!(read("1024 nothing 0\n", &[1024]), None);
    }
}
