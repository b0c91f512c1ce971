//! Commands, files, and the workspace that they are in.

use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

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

/// The arguments of the build that all tests share: with the examples, whose packages for tests have features of their
/// own, so that no crate is built twice.
pub(crate) const BUILD: [&str; 9] = [
    "build",
    "--profile",
    "test",
    "--workspace",
    "--exclude",
    "xtask",
    "--lib",
    "--bins",
    "--examples",
];

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
