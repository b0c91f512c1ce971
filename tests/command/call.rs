//! Builds the binary once and calls it. Apart: every test of the command does this.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// What is built for the tests that call it: like this test and beside it; cargo's own `CARGO_BIN_EXE` serves only the
/// binary's package.
struct Built {
    binary: PathBuf,
    /// The library `roundelay`.
    library: PathBuf,
    /// The folder of the libraries that it needs.
    dependencies: PathBuf,
}

static BUILT: LazyLock<Built> = LazyLock::new(|| {
    let test = std::env::current_exe().expect("a test has a path");
    let profile = test.ancestors().nth(2).expect("target/PROFILE/deps/TEST");
    let target = profile.parent().expect("target/PROFILE");
    let mut cargo = Command::new(env!("CARGO"));
    // For the selection and the profile of these tests, so that nothing is built twice.
    cargo.args(["build", "--quiet", "--workspace", "--exclude", "xtask"]);
    cargo.args(["--bin", "roundelay", "--examples", "--target-dir"]).arg(target);
    cargo.args(["--profile", if profile.ends_with("release") { "release" } else { "test" }]);
    cargo.args(["--message-format", "json-render-diagnostics"]).stderr(Stdio::inherit());
    let built = cargo.current_dir(roundelay_tests::root()).output().expect("cargo starts");
    assert!(built.status.success(), "the command does not build");
    let library = String::from_utf8_lossy(&built.stdout).lines().find_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        let library = &message["target"];
        let is_it = library["name"] == "roundelay" && library["kind"][0] == "lib";
        let files = message["filenames"].as_array().filter(|_| is_it)?.iter();
        let mut files = files.filter_map(|file| file.as_str().map(PathBuf::from));
        files.find(|file| file.extension().is_some_and(|extension| extension == "rlib"))
    });
    Built {
        binary: profile.join(format!("roundelay{}", std::env::consts::EXE_SUFFIX)),
        library: library.expect("cargo names the library"),
        dependencies: profile.join("deps"),
    }
});

/// The results of one call.
pub(super) struct Call {
    pub(super) code: i32,
    pub(super) out: String,
    pub(super) err: String,
    pub(super) took: Duration,
}

pub(crate) fn binary() -> Command {
    let mut command = Command::new(&BUILT.binary);
    command.current_dir(roundelay_tests::root());
    // As cargo may run in colors, and the command with it.
    command.env_remove("CARGO_TERM_COLOR");
    command
}

/// An example, which is built with the command.
pub(crate) fn example(name: &str) -> Command {
    let name = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    Command::new(BUILT.binary.with_file_name("examples").join(name))
}

/// The library `roundelay`, for a compiler that is called by a test, and the folder of the libraries that it needs.
pub(crate) fn library() -> (&'static Path, &'static Path) {
    (&BUILT.library, &BUILT.dependencies)
}

/// `roundelay ARGS`, at the repository's root; a panic always fails the test.
pub(super) fn roundelay(args: &[&str]) -> Call {
    with_input(args, b"")
}

/// Calls `roundelay ARGS` with a limit of its memory.
pub(super) fn with_memory(args: &[&str], memory: &str) -> Call {
    let mut command = binary();
    command.env("ROUNDELAY_MEMORY", memory);
    ended(command, args, b"")
}

pub(super) fn with_input(args: &[&str], input: &[u8]) -> Call {
    ended(binary(), args, input)
}

pub(super) fn ended(mut command: Command, args: &[&str], input: &[u8]) -> Call {
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let start = Instant::now();
    let mut child = command.spawn().expect("the command starts");
    // A command that does not read its input closes the pipe.
    let _ = child.stdin.take().expect("a pipe").write_all(input);
    let Output { status, stdout, stderr } = child.wait_with_output().expect("the command ends");
    let call = Call {
        code: status.code().unwrap_or_else(|| panic!("{args:?} was killed: {status}")),
        out: String::from_utf8(stdout).expect("output is text"),
        err: String::from_utf8(stderr).expect("errors are text"),
        took: start.elapsed(),
    };
    assert!(!call.err.contains("panicked"), "{args:?} panicked:\n{}", call.err);
    call
}

impl Call {
    pub(super) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("no JSON: {e}\n{}", self.out))
    }

    #[track_caller]
    pub(super) fn ends(self, code: i32) -> Self {
        assert_eq!(self.code, code, "exit code; out:\n{}\nerr:\n{}", self.out, self.err);
        self
    }

    /// Refused with an error of this code, soon, and with nothing on standard output.
    #[track_caller]
    pub(super) fn refused(self, exit: i32, code: &str) -> Self {
        let call = self.ends(exit);
        assert!(call.err.contains(code), "{code} is not in\n{}", call.err);
        assert!(call.is_soon(), "took {:?}", call.took);
        call
    }

    /// Whether it came as soon as an error does, on a machine with other work: what walks too far takes hours.
    pub(super) fn is_soon(&self) -> bool {
        self.took < Duration::from_secs(100)
    }
}

/// A file in a folder of its own, gone when dropped.
pub(super) struct TempFile {
    path: PathBuf,
    folder: tempfile::TempDir,
}

impl TempFile {
    pub(super) fn new(name: &str, bytes: &[u8]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("a temporary file");
        Self { path, folder }
    }

    pub(super) fn path(&self) -> &str {
        self.path.to_str().expect("a temporary path is text")
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }
}
