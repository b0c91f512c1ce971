//! Commands, files, and the workspace that they are in.

use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Returns the folder of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("")
}

/// Returns a program with arguments.
pub(crate) fn program(name: &str, args: &[&str]) -> Command {
    let mut command = Command::new(name);
    command.args(args);
    command
}

/// Returns cargo in the workspace, with arguments.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let mut cargo = program(env!("CARGO"), args);
    cargo.current_dir(root());
    cargo
}

/// Names the file of an error.
pub(crate) fn at<E: Display>(path: &Path) -> impl Fn(E) -> String {
    move |error| format!("{}: {error}", path.display())
}

/// Reads a file.
pub(crate) fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(at(path))
}

/// Makes a folder, and those around it.
pub(crate) fn folder(path: &Path) -> Result<(), String> {
    fs::create_dir_all(path).map_err(at(path))
}

/// Writes a file, and makes its folder.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), String> {
    path.parent().map_or(Ok(()), folder)?;
    fs::write(path, text).map_err(at(path))
}

/// Runs a command to its end; any failure is an error that names it.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{command:?} ended with {status}")),
        Err(error) => Err(format!("{command:?} did not start: {error}")),
    }
}

/// Returns the output of a command, if it ends well.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let done = command.stdin(Stdio::null()).output();
    let done = done.map_err(|error| format!("{command:?} did not start: {error}"))?;
    if !done.status.success() {
        let errors = String::from_utf8_lossy(&done.stderr);
        return Err(format!("{command:?} ended with {}:\n{errors}", done.status));
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

pub(crate) fn there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Whether this is the root user.
pub(crate) fn privileged() -> bool {
    output(&mut program("id", &["-u"])).is_ok_and(|id| id.trim() == "0")
}

/// Whether Rust's libraries for a system are here, or can be installed.
pub(crate) fn has_target(root: &Path, system: &str) -> Result<bool, String> {
    let asked = ["--print", "target-libdir", "--target", system];
    let found = output(program("rustc", &asked).current_dir(root))?;
    if Path::new(found.trim()).is_dir() {
        return Ok(true);
    }
    println!("installing Rust's libraries for {system}");
    let added = run(program("rustup", &["target", "add", system]).current_dir(root));
    if let Err(why) = &added {
        println!("{why}");
    }
    Ok(added.is_ok())
}

/// Builds with a profile, and returns the folder of what was built.
pub(crate) fn build(profile: &str, args: &[&str]) -> Result<PathBuf, String> {
    run(cargo(&["build", "--profile", profile]).args(args))?;
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    Ok(root().join(target).join(if profile == "dev" { "debug" } else { profile }))
}

/// Builds a package's library for C; its file.
pub(crate) fn library(package: &str, profile: &str) -> Result<PathBuf, String> {
    let built = build(profile, &["--package", package, "--lib"])?;
    Ok(built.join(format!("lib{}.so", package.replace('-', "_"))))
}

/// Builds the command `roundelay`, as users have it.
pub(crate) fn optimized() -> Result<PathBuf, String> {
    Ok(build("release", &["--package", "roundelay-cli", "--bin", "roundelay"])?.join("roundelay"))
}

/// The end of a command, and its output.
pub(crate) struct Printed {
    /// The exit status; `None` of a command that had to be ended.
    pub(crate) status: Option<ExitStatus>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Printed {
    /// Returns all output.
    pub(crate) fn said(&self) -> String {
        format!("{}\n{}", self.stderr.trim(), self.stdout.trim())
    }
}

/// Runs a command to its end, at most for a time. Its output goes into files, which never fill up as pipes do. Where they
/// have names, which begin with `stem`, all processes that the command has started end with it.
pub(crate) fn ended(
    command: &mut Command,
    longest: Duration,
    stem: Option<&Path>,
) -> io::Result<Printed> {
    let mut named = File::options();
    named.read(true).write(true).create(true).truncate(true);
    let open = |kind: &str| match stem {
        Some(stem) => named.open(format!("{}{kind}", stem.display())),
        None => tempfile::tempfile(),
    };
    let files = [open(".out")?, open(".err")?];
    command.stdin(Stdio::null()).stdout(files[0].try_clone()?).stderr(files[1].try_clone()?);
    if stem.is_some() {
        std::os::unix::process::CommandExt::process_group(command, 0);
    }
    let mut child = command.spawn()?;
    let begun = Instant::now();
    let status = loop {
        match child.try_wait()? {
            None if begun.elapsed() < longest => std::thread::sleep(PAUSE),
            None => {
                end(&mut child, stem.is_some())?;
                break None;
            }
            status => break status,
        }
    };
    let [stdout, stderr] = files.map(|mut file| {
        let mut bytes = Vec::new();
        let read = file.rewind().and_then(|()| file.read_to_end(&mut bytes));
        read.map(|_| String::from_utf8_lossy(&bytes).into_owned())
    });
    Ok(Printed { status, stdout: stdout?, stderr: stderr? })
}

/// The time between two looks at a child.
const PAUSE: Duration = Duration::from_millis(20);
/// The time that a child may take to end after it was asked to.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Asks a child to end, and makes it: a launcher that is only killed leaves its ranks behind.
fn end(child: &mut Child, group: bool) -> io::Result<()> {
    let whom = if group { format!("-{}", child.id()) } else { child.id().to_string() };
    // A shell has `kill` as a command of its own where there is no such program.
    let signal = |name: &str| {
        let mut shell = program("sh", &["-c", &format!("kill -{name} {whom}")]);
        shell.stdout(Stdio::null()).stderr(Stdio::null()).status().map(drop)
    };
    signal("TERM")?;
    let told = Instant::now();
    while told.elapsed() < LAST_WORDS && child.try_wait()?.is_none() {
        std::thread::sleep(PAUSE);
    }
    if group {
        signal("KILL")?;
    }
    child.kill()?;
    child.wait().map(drop)
}

/// Returns the output of a command, if it ends well and in time; else why not, and its output, without the command.
pub(crate) fn within(command: &mut Command, longest: Duration) -> Result<Printed, String> {
    let printed = ended(command, longest, None).map_err(|error| error.to_string())?;
    let why = match printed.status {
        Some(status) if status.success() => return Ok(printed),
        Some(status) => format!("ended with {status}"),
        None => format!("gave up after {} s", longest.as_secs()),
    };
    Err(format!("{why}\n{}", printed.said()))
}

/// Returns the first two lines with letters: the failure, and the program's own message about it.
pub(crate) fn brief(why: &str) -> String {
    let lines = why.lines().map(str::trim).filter(|line| line.contains(char::is_alphabetic));
    lines.take(2).collect::<Vec<_>>().join(": ")
}
