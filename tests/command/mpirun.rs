//! `roundelay mpirun`, as far as it goes without an MPI: the tests of `capi/mpi` launch programs.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::call::roundelay;

/// Returns a launcher that names this version, and prints its arguments and where hosts meet, from its environment.
fn launcher(folder: &Path, version: &str) -> PathBuf {
    let file = folder.join("launch");
    let script = format!(
        "#!/bin/sh\nif [ \"$1\" = --version ]; then echo '{version}'; exit; fi\necho \"$*\"\necho \"$ROUNDELAY_RENDEZVOUS\"\nexit 7\n"
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
        let (args, meeting) = call.out.trim_end().rsplit_once('\n').expect("two lines");
        assert!(args.ends_with("-n 2 ./solver --mode x"), "{args}");
        // The word that lets in is for ranks alone: other users can read arguments.
        let (address, word) = meeting.split_once(' ').expect("an address and a word");
        assert!(word.len() == 64 && !args.contains(word) && !call.err.contains(word), "{args}");
        assert!(call.err.contains(&format!("ROUNDELAY_RENDEZVOUS={address}\n")), "{}", call.err);
        assert_eq!(args.contains("-x ROUNDELAY_RENDEZVOUS "), version.contains("Open MPI"));
        // All ranks are on this host.
        let port = address.strip_prefix("127.0.0.1:").expect("the loopback interface");
        assert!(port.parse::<u16>().is_ok(), "{address}");
    }
}

#[test]
fn hosts_are_listened_for_where_arguments_name_them() {
    let folder = tempfile::tempdir().expect("a folder of the tests");
    let launcher = launcher(folder.path(), "HYDRA").display().to_string();
    let library = launcher.clone();
    for (args, places) in [
        (&["-hosts", "a,b", "./x"][..], 2),
        (&["-hosts", "localhost", "./x"], 1),
        (&["-genvlist", "HOME", "./x"], 1),
    ] {
        let own = ["mpirun", "--launcher", &launcher, "--library", &library, "--"];
        let call = roundelay(&[&own, args].concat()).ends(7);
        let (line, meeting) = call.out.trim_end().rsplit_once('\n').expect("two lines");
        assert!(meeting.split(' ').next().is_some_and(|all| all.split(',').count() >= places));
        assert_eq!(meeting.starts_with("127.0.0.1"), places == 1, "{meeting}");
        // Hydra passes its environment on, but for a list.
        let is_listed = line.contains("HOME,ROUNDELAY_RENDEZVOUS");
        assert_eq!(is_listed, args.contains(&"HOME"), "{line}");
    }
}

/// Another user may have made a folder beside the command.
#[test]
fn a_library_that_others_can_write_is_not_preloaded() {
    let target = super::call::binary();
    let command = Path::new(target.get_program());
    let folder = tempfile::tempdir_in(command.parent().expect("a folder")).expect("a folder");
    let (own, library) =
        (folder.path().join("roundelay"), folder.path().join("libroundelay_mpi.so"));
    fs::hard_link(command, &own).expect("a file of the tests");
    fs::write(&library, "").expect("a file of the tests");
    let launcher = launcher(folder.path(), "HYDRA");
    let code = |mode| {
        fs::set_permissions(&library, fs::Permissions::from_mode(mode)).expect("of the tests");
        let mut command = std::process::Command::new(&own);
        command.args(["mpirun", "--launcher"]).arg(&launcher).args(["--", "./x"]);
        let said = command.output().expect("it starts");
        (said.status.code(), String::from_utf8_lossy(&said.stderr).into_owned())
    };
    assert_eq!(code(0o755).0, Some(7));
    let (refused, why) = code(0o757);
    assert_eq!(refused, Some(2), "{why}");
    assert!(why.contains("is not used") && why.contains("other users can write to"), "{why}");
    assert!(why.contains("--library"), "{why}");
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
