//! `roundelay mpirun`, as far as it goes without an MPI: the tests of `capi/mpi` launch programs.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::call::roundelay;

/// Returns a launcher that names this version, and prints its arguments and its environment.
fn launcher(folder: &Path, version: &str) -> PathBuf {
    let file = folder.join("launch");
    let script = format!(
        "#!/bin/sh\nif [ \"$1\" = --version ]; then echo '{version}'; exit; fi\necho \"$*\"\nexit 7\n"
    );
    fs::write(&file, script).expect("a file of the tests");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("a file of the tests");
    file
}

#[test]
fn ranks_are_given_the_library_and_its_settings() {
    let folder = tempfile::tempdir().expect("a folder of the tests");
    let library = folder.path().join("libroundelay_mpi.so");
    fs::write(&library, "").expect("a file of the tests");
    let library = library.canonicalize().expect("it is there").display().to_string();
    for (version, set) in
        [("mpirun (Open MPI) 5.0.11", "-x NAME=VALUE"), ("HYDRA", "-genv NAME VALUE")]
    {
        let launcher = launcher(folder.path(), version).display().to_string();
        let own = ["mpirun", "--launcher", &launcher, "--library", &library];
        let args = ["--mode", "verify", "--all", "--report", "--algorithm", "Bcast: A", "--"];
        let call = roundelay(&[&own[..], &args, &["-n", "2", "./solver", "--mode", "x"]].concat());
        // The exit code is the launcher's.
        let call = call.ends(7);
        for (name, value) in [
            ("LD_PRELOAD", &*library),
            ("ROUNDELAY_MPI", "verify"),
            ("ROUNDELAY_MPI_TAKE", "all"),
            ("ROUNDELAY_REPORT", "1"),
            ("ROUNDELAY_ALGORITHM", "Bcast: A"),
        ] {
            let given = set.replace("NAME", name).replace("VALUE", value);
            assert!(call.out.contains(&given), "{given}:\n{}", call.out);
            assert!(call.err.contains(&format!("{name}={value}")), "{}", call.err);
        }
        assert!(call.out.ends_with("-n 2 ./solver --mode x\n"), "{}", call.out);
        // The word that lets in is for ranks alone.
        let line = call.err.lines().find(|line| line.contains("ROUNDELAY_RENDEZVOUS="));
        let shown = line.and_then(|line| line.rsplit('=').next()).expect("where hosts meet");
        assert!(call.out.contains(&format!("{shown} ")) && !shown.contains(' '), "{shown}");
    }
}

#[test]
fn what_is_missing_is_told() {
    let folder = tempfile::tempdir().expect("a folder of the tests");
    let some = launcher(folder.path(), "srun 23.02").display().to_string();
    let here = some.clone();
    for (args, words) in [
        (&["mpirun", "--library", "nowhere.so", "--", "x"][..], "nowhere.so cannot be read"),
        (
            &["mpirun", "--library", &here, "--launcher", "./nowhere", "--", "x"],
            "cannot be started",
        ),
        (
            &["mpirun", "--library", &here, "--launcher", &some, "--", "x"],
            "no launcher that is known here: `srun 23.02`",
        ),
        (&["mpirun", "--library", &here], "ARGS"),
    ] {
        let call = roundelay(args).ends(2);
        assert!(call.err.contains(words), "{args:?}:\n{}", call.err);
    }
}
