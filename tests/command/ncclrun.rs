//! `roundelay ncclrun`, as far as it goes without a GPU: what it sets, what it says, and what it refuses. The tests of
//! `capi/nccl` have programs that call NCCL.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::call::{binary, roundelay};

/// Compiles a text of C.
fn compiled(text: &str, to: &Path, flags: &[&str]) -> PathBuf {
    fs::create_dir_all(to.parent().expect("a folder")).expect("a folder of the tests");
    let source = to.with_extension("c");
    fs::write(&source, text).expect("a file of the tests");
    let output = Command::new("cc").args(["-o".as_ref(), to, &source]).args(flags).output();
    let output = output.expect("a C compiler, which Rust links by");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    to.to_owned()
}

/// The files of a test: a library as ours, and an NCCL that lacks a function and has another.
struct Files {
    folder: tempfile::TempDir,
    library: String,
    nccl: String,
}

fn files() -> Files {
    let folder = tempfile::tempdir().expect("a folder of the tests");
    let shared = &["-shared", "-fPIC"];
    let at = |name: &str| folder.path().join(name);
    let ours = "int ncclGetVersion(void) { return 0; } int ncclOld(void) { return 0; }\n\
                unsigned la_version(unsigned version) { return version; }\n\
                const char *la_objsearch(const char *name) { return name; }";
    let theirs = "int ncclGetVersion(void) { return 0; } int ncclNewest(void) { return 0; }";
    let library = compiled(ours, &at("libroundelay_nccl.so"), shared);
    let nccl = at("venv/lib/python3.12/site-packages/nvidia/nccl/lib/libnccl.so.2");
    let nccl = compiled(theirs, &nccl, &["-shared", "-fPIC", "-Wl,-soname,libnccl.so.2"]);
    let text = |path: PathBuf| path.canonicalize().expect("it is there").display().to_string();
    Files { library: text(library), nccl: text(nccl), folder }
}

impl Files {
    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns what a call that is refused says; its own flags come before the program's words.
    fn refused(&self, command: &[&str]) -> String {
        let own = ["ncclrun", "--library", &self.library, "--nccl", &self.nccl, "--"];
        roundelay(&[&own, command].concat()).ends(2).err
    }
}

#[test]
fn programs_are_given_the_library_and_nccl() {
    let files = files();
    let Files { library, nccl, .. } = &files;
    let script = "echo $LD_PRELOAD $VLLM_NCCL_SO_PATH $SGLANG_NCCL_SO_PATH $SGLANG_DIFFUSION_NCCL_SO_PATH; \
                  echo $ROUNDELAY_NCCL; echo $ROUNDELAY_REPORT $LD_AUDIT; exit 7";
    let own = ["ncclrun", "--library", library, "--nccl", nccl];
    let call = roundelay(&[&own[..], &["--report", "--audit", "--", "sh", "-c", script]].concat());
    // The exit code is the program's.
    let call = call.ends(7);
    assert_eq!(call.out, format!("{library} {library} {library} {library}\n{nccl}\n1 {library}\n"));
    for line in [
        format!("roundelay: NCCL is {nccl}"),
        "roundelay: 1 functions that this NCCL lacks, and which answer ncclInvalidUsage: ncclOld".to_owned(),
        "roundelay: 1 functions of this NCCL that the library does not know, and which end a program that calls them: ncclNewest".to_owned(),
        format!("roundelay: processes have LD_PRELOAD={library}"),
        format!("roundelay: processes have LD_AUDIT={library}"),
    ] {
        assert!(call.err.contains(&line), "{line}:\n{}", call.err);
    }
    let call =
        roundelay(&[&own[..], &["--", "sh", "-c", "echo $ROUNDELAY_REPORT$LD_AUDIT"]].concat());
    assert_eq!(call.ends(0).out, "\n");
}

/// The Python of the program has NCCL in its packages.
#[test]
fn nccl_is_found_in_the_environment_of_python() {
    let files = files();
    let python = files.at("venv/bin/python3");
    fs::create_dir_all(python.parent().expect("a folder")).expect("a folder of the tests");
    symlink("/bin/sh", &python).expect("a link of the tests");
    let script = files.at("torchrun");
    fs::write(&script, format!("#!{}\necho $ROUNDELAY_NCCL\n", python.display())).expect("a file");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("of the tests");
    let mut command = binary();
    command.args(["ncclrun", "--library", &files.library, "--"]).arg(&script);
    command.env_remove("ROUNDELAY_NCCL").env_remove("VIRTUAL_ENV").env_remove("CONDA_PREFIX");
    let output = command.output().expect("it starts");
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(out, format!("{}\n", files.nccl), "{err}");
    // A torch that has NCCL in itself passes the library by.
    let torch = files.at("venv/lib/python3.12/site-packages/torch/lib/libtorch_cuda.so");
    let text = "const char inside[] = \"%s:%d NCCL WARN %s\";";
    compiled(text, &torch, &["-shared", "-fPIC"]);
    let output = command.output().expect("it starts");
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{err}");
    assert!(err.contains("libtorch_cuda.so has NCCL in itself"), "{err}");
    // One that is linked to NCCL does not, whatever its texts are.
    let linked = ["-shared", "-fPIC", "-Wl,--no-as-needed", &files.nccl];
    compiled(text, &torch, &linked);
    let output = command.output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn programs_that_cannot_come_through_are_refused_with_the_reason() {
    let files = files();
    let inside = compiled(
        "const char inside[] = \"%s:%d NCCL WARN %s\"; int main(void) { return 0; }",
        &files.at("inside"),
        &[],
    );
    let inside = inside.display().to_string();
    let alone = compiled(
        "void _start(void) { for (;;); }",
        &files.at("alone"),
        &["-static", "-nostdlib", "-ffreestanding"],
    );
    let text = files.at("text");
    fs::write(&text, "no program").expect("a file of the tests");
    fs::set_permissions(&text, fs::Permissions::from_mode(0o755)).expect("of the tests");
    for (command, words) in [
        (vec![&*inside], "has NCCL in itself: it asks for no library of that name"),
        // A launcher's program, too.
        (vec!["sh", "-c", "exit", &*inside], "build the program with NCCL as a shared library"),
        (vec![&*alone.display().to_string()], "is linked statically"),
        (vec![&*text.display().to_string()], "is no program of this machine"),
        (vec!["no-such-program"], "no-such-program is not on the search path"),
        (vec!["/nowhere/program"], "/nowhere/program cannot be started"),
    ] {
        let err = files.refused(&command);
        assert!(err.contains(words) && err.contains("E0507"), "{command:?}:\n{err}");
    }
    // An argument need not be a program that is started.
    let alone = alone.display().to_string();
    let own = ["ncclrun", "--library", &files.library, "--nccl", &files.nccl];
    roundelay(&[&own[..], &["--", "sh", "-c", "exit 3", &alone]].concat()).ends(3);
    let rights = files.at("rights");
    fs::copy("/bin/true", &rights).expect("a file of the tests");
    // Only root can give a file to another user.
    let other = chown(&rights, Some(65534), None).map(|()| rights.clone());
    let program = other.unwrap_or_else(|_| PathBuf::from("/bin/su"));
    if program == rights {
        fs::set_permissions(&rights, fs::Permissions::from_mode(0o4755)).expect("of the tests");
    }
    if program.exists() {
        let err = files.refused(&[&program.display().to_string()]);
        assert!(err.contains("runs with other rights than yours (it is setuid)"), "{err}");
    } else {
        println!("skipped: this user cannot make a setuid program, and there is no /bin/su");
    }
}

#[test]
fn an_nccl_that_is_none_is_refused() {
    let files = files();
    let Files { library, .. } = &files;
    let libc =
        compiled("int other(void) { return 0; }", &files.at("libnccl.so"), &["-shared", "-fPIC"]);
    for (nccl, words) in [
        ("/nowhere", "/nowhere does not exist"),
        (library, "is Roundelay's library itself"),
        (&*libc.display().to_string(), "is not NCCL: it has no ncclGetVersion"),
    ] {
        let own = ["ncclrun", "--library", library, "--nccl", nccl, "--", "true"];
        let err = roundelay(&own).ends(2).err;
        assert!(err.contains(words) && err.contains("--nccl"), "{nccl}:\n{err}");
    }
    let err = roundelay(&["ncclrun", "--library", "nowhere.so", "--", "true"]).ends(2).err;
    assert!(
        err.contains("nowhere.so cannot be read") && err.contains("--package roundelay-nccl"),
        "{err}"
    );
    let spaced = files.at("a folder/lib.so");
    fs::create_dir(files.at("a folder")).expect("a folder of the tests");
    fs::copy(library, &spaced).expect("a file of the tests");
    let spaced = spaced.display().to_string();
    let err = roundelay(&["ncclrun", "--library", &spaced, "--", "true"]).ends(2).err;
    assert!(err.contains("has a space or a colon"), "{err}");
    assert!(roundelay(&["ncclrun", "--library", library]).ends(2).err.contains("ARGS"));
}
