//! The ways by which a program finds NCCL, against the ways by which the library is put before it.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::made::{compile, library, run, source};
use crate::stand_in::stand_in;

/// A program that asks for NCCL, with its arguments.
struct Caller {
    name: &'static str,
    program: PathBuf,
    place: Option<PathBuf>,
}

/// A way to put the library before NCCL: its variables, and the library that each caller gets.
type Way<'a> = (&'a str, Vec<(&'a str, &'a Path)>, [&'a str; 4]);

/// A wheel with a stand-in, and the programs.
struct Place {
    _folder: TempDir,
    real: PathBuf,
    callers: Vec<Caller>,
}

fn place() -> Place {
    let (folder, real) = stand_in(&[]);
    let wheel = real.parent().expect("a folder").to_owned();
    let mut callers = Vec::new();
    for (name, tags) in
        [("linked by RPATH", "--disable-new-dtags"), ("linked by RUNPATH", "--enable-new-dtags")]
    {
        let program = folder.path().join(name);
        let path = format!("-Wl,{tags},-rpath,{}", wheel.display());
        let flags =
            ["-DLINKED", &path, "-L", &wheel.display().to_string(), "-l:libnccl.so.2", "-ldl"];
        compile(&source("programs/caller.c"), &program, &flags);
        callers.push(Caller { name, program, place: None });
    }
    let program = folder.path().join("dlopen");
    compile(&source("programs/caller.c"), &program, &["-ldl"]);
    let bare = PathBuf::from("libnccl.so.2");
    callers.push(Caller { name: "by its name", program: program.clone(), place: Some(bare) });
    callers.push(Caller { name: "by its path", program, place: Some(real.clone()) });
    Place { _folder: folder, real, callers }
}

/// Returns the library that a caller gets: `ours`, `real`, or none; each works.
fn got(place: &Place, caller: &Caller, variables: &[(&str, &Path)]) -> &'static str {
    let how = Path::new("at");
    let args: Vec<_> = match &caller.place {
        Some(path) => vec![how.as_os_str(), path.as_os_str()],
        None => Vec::new(),
    };
    let said = run(&caller.program, &args, variables).out;
    let (file, rest) = said.split_once(' ').expect("words");
    if file == "none:" {
        return "none";
    }
    assert_eq!(rest, "0 23004\n", "{}", caller.name);
    let is = |path: &Path| Path::new(file).canonicalize().ok() == path.canonicalize().ok();
    match (is(&place.real), is(&library())) {
        (true, false) => "real",
        (false, true) => "ours",
        other => panic!("{file}: {other:?}"),
    }
}

#[test]
fn each_way_catches_the_callers_that_it_says() {
    let place = place();
    let (ours, named) = (library(), ("ROUNDELAY_NCCL", &*place.real));
    // A folder in which the library has NCCL's name.
    let listed = crate::made::folder();
    fs::hard_link(&ours, listed.path().join("libnccl.so.2"))
        .or_else(|_| fs::copy(&ours, listed.path().join("libnccl.so.2")).map(drop))
        .expect("a file of the tests");
    let ways: [Way<'_>; 4] = [
        ("nothing", vec![], ["real", "real", "none", "real"]),
        ("LD_PRELOAD", vec![("LD_PRELOAD", &ours), named], ["ours", "ours", "ours", "real"]),
        ("LD_AUDIT", vec![("LD_AUDIT", &ours), named], ["ours", "ours", "ours", "ours"]),
        (
            "both",
            vec![("LD_AUDIT", &ours), ("LD_PRELOAD", &ours), named],
            ["ours", "ours", "ours", "ours"],
        ),
    ];
    for (way, variables, expected) in ways {
        for (caller, expected) in place.callers.iter().zip(expected) {
            assert_eq!(got(&place, caller, &variables), expected, "{}, {way}", caller.name);
        }
    }
    // The list of folders comes after RPATH, and before RUNPATH.
    let variables = [("LD_LIBRARY_PATH", listed.path()), named];
    let expected = ["real", "other", "other", "real"];
    for (caller, expected) in place.callers.iter().zip(expected) {
        let args: Vec<_> =
            caller.place.iter().flat_map(|path| ["at".as_ref(), path.as_os_str()]).collect();
        let said = run(&caller.program, &args, &variables).out;
        let is_listed = said.starts_with(&*listed.path().to_string_lossy());
        assert_eq!(is_listed, expected == "other", "{}: {said}", caller.name);
        assert!(said.ends_with(" 0 23004\n"), "{said}");
    }
    // vLLM and SGLang open the library that a variable names.
    let by_path = Caller {
        name: "by a variable",
        program: place.callers[3].program.clone(),
        place: Some(ours.clone()),
    };
    assert_eq!(got(&place, &by_path, &[named]), "ours");
}

/// The library in the wheel's folder, under NCCL's name, finds the real one beside it.
#[test]
fn the_library_in_the_wheel_finds_the_real_one_beside_it() {
    let place = place();
    let beside = place.real.with_file_name("libnccl.so.2.30.4");
    fs::rename(&place.real, beside).expect("a file of the tests");
    fs::copy(library(), &place.real).expect("a file of the tests");
    for caller in [0, 1, 3].map(|at| &place.callers[at]) {
        let args: Vec<_> =
            caller.place.iter().flat_map(|path| ["at".as_ref(), path.as_os_str()]).collect();
        let said = run::<&str>(&caller.program, &args, &[]).out;
        assert!(said.ends_with(" 0 23004\n"), "{}: {said}", caller.name);
        assert!(said.starts_with(&*place.real.to_string_lossy()), "{}: {said}", caller.name);
    }
}

/// A program that passes the library by is told so, and one that has nothing to do with NCCL is not.
#[test]
fn a_program_that_opens_the_wheels_path_is_reported() {
    let place = place();
    let ours = library();
    let variables = [
        ("LD_PRELOAD", &*ours),
        ("ROUNDELAY_NCCL", &place.real),
        ("ROUNDELAY_REPORT", "1".as_ref()),
    ];
    let by_path = &place.callers[3];
    let said = run(&by_path.program, &["at".as_ref(), place.real.as_os_str()], &variables);
    let words = format!(
        "roundelay: no call of NCCL came through the library: the program opened {} itself; `roundelay ncclrun --audit` catches that\n",
        place.real.display()
    );
    assert_eq!(said.err, words);
    let said = run(Path::new("true"), &[], &variables);
    assert_eq!(said.err, "");
    // Another name of the library is not NCCL.
    let itself = [("ROUNDELAY_NCCL", &*ours), ("LD_PRELOAD", &*ours)];
    let said = run(&place.callers[0].program, &[], &itself);
    assert!(said.out.ends_with(" 5 0\n"), "{}{}", said.out, said.err);
}

/// A copy of the library under NCCL's name, which another part of the process has opened, is not NCCL.
#[test]
fn a_copy_of_the_library_is_not_the_one_behind_it() {
    let place = place();
    let wheel = place.real.parent().expect("a folder");
    fs::rename(&place.real, wheel.join("libnccl.so.2.30.4")).expect("a file of the tests");
    fs::copy(library(), &place.real).expect("a file of the tests");
    // The linked program has the copy, and opens the library beside it.
    let by_path = &place.callers[3].program;
    let variables = [("LD_PRELOAD", &*place.real), ("LD_LIBRARY_PATH", wheel)];
    let said = run(by_path, &["at".as_ref(), library().as_os_str()], &variables).out;
    assert!(said.ends_with(" 0 23004\n"), "{said}");
}

/// A program goes on where nobody reads its standard error.
#[test]
fn a_closed_standard_error_does_not_end_the_program() {
    let place = place();
    let script = "import ctypes, os, signal, sys\n\
        read, write = os.pipe(); os.close(read); os.dup2(write, 2)\n\
        library = ctypes.CDLL(sys.argv[1]); library.ncclGroupStart(); library.ncclGroupEnd()\n\
        print('all is well')\n";
    for (real, report) in [(&*place.real, "1"), (Path::new("/nowhere"), "0")] {
        let variables = [("ROUNDELAY_NCCL", real), ("ROUNDELAY_REPORT", report.as_ref())];
        let ours = library();
        let args = ["-c".as_ref(), script.as_ref(), ours.as_os_str()];
        let said = run(Path::new("python3"), &args, &variables);
        assert_eq!(said.out, "all is well\n");
    }
}
