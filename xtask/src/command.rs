//! Commands, and the workspace that they run in.

use std::io::{Read as _, Seek as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Returns the folder of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Runs a command to its end; any failure is an error that names it.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let shown = format!("{command:?}");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{shown} ended with {status}")),
        Err(error) => Err(format!("{shown} did not start: {error}")),
    }
}

pub(crate) fn there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Whether this is the root user.
pub(crate) fn privileged() -> bool {
    output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}

/// Returns the output of a command, if it ends well.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let shown = format!("{command:?}");
    let done = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{shown} did not start: {error}"))?;
    if !done.status.success() {
        let errors = String::from_utf8_lossy(&done.stderr);
        return Err(format!("{shown} ended with {}:\n{errors}", done.status));
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

/// Whether Rust's libraries for a system are here, or can be installed.
pub(crate) fn has_target(root: &Path, system: &str) -> Result<bool, String> {
    let asked = ["--print", "target-libdir", "--target", system];
    let found = output(Command::new("rustc").current_dir(root).args(asked))?;
    if Path::new(found.trim()).is_dir() {
        return Ok(true);
    }
    println!("installing Rust's libraries for {system}");
    let added = run(Command::new("rustup").current_dir(root).args(["target", "add", system]));
    if let Err(why) = &added {
        println!("{why}");
    }
    Ok(added.is_ok())
}

/// Builds a package's library for C; its file.
pub(crate) fn library(root: &Path, package: &str, profile: &str) -> Result<PathBuf, String> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(root).args(["build", "--package", package, "--lib", "--profile", profile]);
    run(&mut cargo)?;
    let folder = if profile == "dev" { "debug" } else { profile };
    Ok(target(root).join(folder).join(format!("lib{}.so", package.replace('-', "_"))))
}

/// Builds an example of the crate `roundelay`, and returns its path.
pub(crate) fn example(root: &Path, name: &str) -> Result<PathBuf, String> {
    let mut cargo = Command::new(env!("CARGO"));
    run(cargo.current_dir(root).args(["build", "--package", "roundelay", "--example", name]))?;
    Ok(target(root).join("debug/examples").join(name))
}

/// Returns the folder of cargo's build output.
fn target(root: &Path) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR");
    target.map_or_else(|| root.join("target"), |folder| root.join(folder))
}

/// The output of a command.
pub(crate) struct Printed {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Returns the output of a command, if it ends well and in time; else why not, and its output, without the command.
pub(crate) fn within(command: &mut Command, longest: Duration) -> Result<Printed, String> {
    let failed = |error: std::io::Error| error.to_string();
    // Files never fill up, as pipes do.
    let file = || tempfile::tempfile().map_err(failed);
    let (mut out, mut err) = (file()?, file()?);
    command.stdin(Stdio::null());
    command.stdout(out.try_clone().map_err(failed)?).stderr(err.try_clone().map_err(failed)?);
    let mut child = command.spawn().map_err(failed)?;
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            break Some(status);
        }
        if begun.elapsed() > longest {
            end(&mut child).map_err(failed)?;
            break None;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let text = |file: &mut std::fs::File| {
        let mut bytes = Vec::new();
        file.rewind()?;
        file.read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    let (stdout, stderr) = (text(&mut out).map_err(failed)?, text(&mut err).map_err(failed)?);
    let said = format!("{}\n{}", stderr.trim(), stdout.trim());
    match status {
        None => Err(format!("gave up after {} s\n{said}", longest.as_secs())),
        Some(status) if status.success() => Ok(Printed { stdout, stderr }),
        Some(status) => Err(format!("ended with {status}\n{said}")),
    }
}

/// The time that a child may take to end after it was asked to.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Asks a child to end, and makes it: a launcher that is only killed leaves its ranks behind.
fn end(child: &mut Child) -> std::io::Result<()> {
    if cfg!(unix) {
        // A shell has `kill` as a command of its own where there is no such program.
        let asked = format!("kill -TERM {}", child.id());
        Command::new("sh")
            .args(["-c", &asked])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()?;
        let begun = Instant::now();
        while begun.elapsed() < LAST_WORDS {
            if child.try_wait()?.is_some() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    child.kill()?;
    child.wait().map(drop)
}

/// Returns the first two lines with letters: the failure, and the program's own message about it.
pub(crate) fn brief(why: &str) -> String {
    let lines = why.lines().map(str::trim).filter(|line| line.contains(char::is_alphabetic));
    lines.take(2).collect::<Vec<_>>().join(": ")
}
