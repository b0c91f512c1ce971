//! Programs of C against the library, as its users build them.

use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use roundelay_kernels::shared_memory::observe::{self, ObservedRank, ObservedWorld};

#[path = "../../tests/driver/variables.rs"]
mod driver;

/// Returns the folder of this package.
fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the library, which was built with this test: beside it.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let beside = test.with_file_name("libroundelay_capi.so");
    assert!(beside.exists(), "{} is not there", beside.display());
    beside
}

/// Makes a folder that holds programs, and the library under the name by which the system looks for it.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["libroundelay.so", "libroundelay.so.0"] {
        std::os::unix::fs::symlink(library(), folder.path().join(name)).expect("a link");
    }
    folder
}

/// Compiles a program and returns its path, or the compiler's errors.
fn compiled(folder: &Path, source: &Path, flags: &[&str]) -> Result<PathBuf, String> {
    let program = folder.join(source.file_stem().expect("a file"));
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-g"]).args(flags);
    cc.arg("-I").arg(package().join("include")).arg(source).arg("-o").arg(&program);
    cc.arg("-L").arg(folder).args(["-lroundelay", "-lpthread"]);
    let output = cc.output().expect("a C compiler, which Rust links by");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(program) } else { Err(said) }
}

fn started(program: &Path, folder: &Path, variables: &[(&str, String)]) -> Child {
    let mut command = Command::new(program);
    command.env("LD_LIBRARY_PATH", folder).envs(variables.iter().cloned());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("it starts")
}

fn ended(child: Child) -> (Output, String) {
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, said)
}

#[test]
fn four_processes_call_from_c() {
    let folder = folder();
    let source = package().join("../examples/world.c");
    let program = compiled(folder.path(), &source, &[]).unwrap_or_else(|said| panic!("{said}"));
    let job = format!("a test of C {}", std::process::id());
    let variables = |rank: u32| {
        let (rank, nranks) = (rank.to_string(), 4.to_string());
        [("ROUNDELAY_RANK", rank), ("ROUNDELAY_NRANKS", nranks), ("ROUNDELAY_JOB", job.clone())]
    };
    let ranks: Vec<Child> =
        (0..4).map(|rank| started(&program, folder.path(), &variables(rank))).collect();
    let outputs: Vec<_> = ranks.into_iter().map(ended).collect();
    for (output, said) in &outputs {
        assert!(output.status.success(), "{said}");
    }
    let first = String::from_utf8_lossy(&outputs[0].0.stdout);
    assert_eq!(first, concat!("4 ranks agree, says Roundelay ", env!("CARGO_PKG_VERSION"), "\n"));
}

/// Ranks with a GPU each, of the driver for tests.
#[test]
fn processes_call_on_memory_of_gpus() {
    let folder = folder();
    let source = package().join("tests/device.c");
    let program = compiled(folder.path(), &source, &["-Wno-pedantic"]);
    let program = program.unwrap_or_else(|said| panic!("{said}"));
    let job = format!("a test of C on GPUs {}", std::process::id());
    let below = driver::variables(&package().join(".."));
    let start = |rank: u32| {
        let mut command = Command::new(&program);
        for (name, value) in &below {
            let own = format!("{}:{value}", folder.path().display());
            command.env(name, if name == "LD_LIBRARY_PATH" { &own } else { value });
        }
        // The driver's last device reaches no other.
        command.env("ROUNDELAY_FAKE_DEVICES", "4").env("ROUNDELAY_RANK", rank.to_string());
        command.env("ROUNDELAY_NRANKS", "3").env("ROUNDELAY_JOB", &job);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("it starts")
    };
    for (rank, output) in driver::outputs((0..3).map(start).collect()).iter().enumerate() {
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "rank {rank}: {said}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), format!("rank {rank} is done\n"));
    }
}

/// Returns the line of an address in a file of machine code, as `hangs.c:8`; `None` without the tool for it.
fn line_of(site: &str) -> Option<String> {
    let (file, address) = site.rsplit_once('+').expect("a file and an address");
    let tool = Command::new("addr2line").args(["-s", "-e", file, address]).output().ok()?;
    let line = String::from_utf8_lossy(&tool.stdout);
    // The compiler may add which of several copies of the code it is.
    Some(line.split_whitespace().next().unwrap_or_default().to_owned())
}

/// A process that is no rank sees a C program whose rank 1 does not make its third call, with the places from which
/// calls come.
#[test]
fn a_call_that_is_missing_is_seen_with_its_place_in_c() {
    let folder = folder();
    let source = package().join("tests/hangs.c");
    let program = compiled(folder.path(), &source, &[]).unwrap_or_else(|said| panic!("{said}"));
    let job = format!("a test of C that hangs {}", std::process::id());
    let mut ranks = [0, 1].map(|rank: u32| {
        let variables = [
            ("ROUNDELAY_RANK", rank.to_string()),
            ("ROUNDELAY_NRANKS", 2.to_string()),
            ("ROUNDELAY_JOB", job.clone()),
        ];
        started(&program, folder.path(), &variables)
    });
    let pid = ranks[0].id();
    let start = Instant::now();
    let first = loop {
        let ours = |world: &ObservedWorld| world.ranks[0].pid == pid;
        let world = observe::all().worlds.into_iter().find(ours);
        let first = world.and_then(|world| world.ranks.into_iter().next());
        // It waits for a call of rank 1 that is missing.
        let missing =
            |rank: &ObservedRank| rank.wait.as_ref().is_some_and(|wait| wait.missing == 3);
        if let Some(first) = first.filter(missing) {
            break first;
        }
        assert!(start.elapsed() < Duration::from_secs(50), "no rank waits for call 3");
        std::thread::sleep(Duration::from_millis(20));
    };
    ranks[1].kill().expect("it is there");
    let [first_rank, second_rank] = ranks;
    let (output, said) = ended(first_rank);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "428\n", "{said}");
    ended(second_rank);
    let sites: Vec<_> = first.calls.iter().rev().flat_map(|call| &call.site).collect();
    assert_eq!(sites.len(), 3, "{:?}", first.calls);
    let path = program.display().to_string();
    assert!(sites.iter().all(|site| site.starts_with(&format!("{path}+0x"))), "{sites:?}");
    assert_eq!((sites[0], sites[0] == sites[1]), (sites[2], false), "{sites:?}");
    assert!(first.calls[0].text().starts_with("AllReduce of 10 f32, sum, at hangs+0x"));
    let line = |text: &str| {
        let at = std::fs::read_to_string(&source).expect("the program");
        let line = at.lines().position(|line| line.contains(text)).expect("the call");
        format!("hangs.c:{}", line + 1)
    };
    match line_of(sites[0]).zip(line_of(sites[1])) {
        Some(lines) => {
            assert_eq!(lines, (line("return roundelay_call("), line("if (roundelay_start(")));
        }
        None => println!("without addr2line, which is not there"),
    }
}

/// A program of C that sends to a rank of another host that is gone gets an error, and no signal of a broken pipe, which
/// would end it: the system's action for that signal is the default here, unlike in a program of Rust.
#[test]
fn a_connection_that_is_gone_signals_no_program_of_c() {
    let folder = folder();
    let source = package().join("tests/gone.c");
    let program = compiled(folder.path(), &source, &["-D_POSIX_C_SOURCE=200809L"]);
    let program = program.unwrap_or_else(|said| panic!("{said}"));
    let port = TcpListener::bind("127.0.0.1:0").and_then(|port| port.local_addr());
    let port = port.expect("a port that is free").port();
    let ranks = [0, 1].map(|rank: u32| {
        let variables = [
            ("ROUNDELAY_RANK", rank.to_string()),
            ("ROUNDELAY_NRANKS", 2.to_string()),
            ("ROUNDELAY_ROOT", format!("127.0.0.1:{port}")),
            ("ROUNDELAY_KEY", "5a".repeat(32)),
            ("ROUNDELAY_HOST_ID", rank.to_string()),
        ];
        started(&program, folder.path(), &variables)
    });
    let [first, second] = ranks.map(ended);
    assert_eq!(second.0.status.signal(), Some(9), "{}", second.1);
    assert_eq!(first.0.status.signal(), None, "rank 0 was ended: {}", first.1);
    assert_eq!(String::from_utf8_lossy(&first.0.stdout), "428\n", "{}", first.1);
}

/// Compiles a program with a sanitizer of the C compiler; where the compiler has none, without it, and says so in a
/// line.
fn sanitized(folder: &Path, source: &Path, flag: &str) -> PathBuf {
    let instrumented = compiled(folder, source, &[flag]);
    instrumented.unwrap_or_else(|said| {
        assert!(said.contains("libtsan") || said.contains("libasan"), "{said}");
        println!("without {flag}, for which the C compiler has no library: {said}");
        compiled(folder, source, &[]).unwrap_or_else(|said| panic!("{said}"))
    })
}

/// Checks memory that program and library share: lent memory, which other ranks write. The sanitizer does not see the
/// library's own locks, so accesses under them are left out.
#[test]
fn threads_of_c_race_for_nothing() {
    let folder = folder();
    let program = sanitized(folder.path(), &package().join("tests/threads.c"), "-fsanitize=thread");
    let left_out = folder.path().join("left_out");
    std::fs::write(&left_out, "called_from_lib:libroundelay\n").expect("a file");
    let options = format!("suppressions={} exitcode=66", left_out.display());
    let (output, said) = ended(started(&program, folder.path(), &[("TSAN_OPTIONS", options)]));
    assert!(output.status.success() && !said.contains("WARNING"), "{}: {said}", output.status);
}

/// Checks that the library writes only to memory that the program gave it, and frees all memory that it took.
#[test]
fn memory_of_c_is_left_as_it_was() {
    let folder = folder();
    let flag = "-fsanitize=address,undefined";
    let program = sanitized(folder.path(), &package().join("tests/threads.c"), flag);
    let (output, said) = ended(started(&program, folder.path(), &[]));
    assert!(output.status.success() && said.is_empty(), "{}: {said}", output.status);
}
