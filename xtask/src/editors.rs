//! The extension for VS Code: bundled, tested against the command, and packaged; and the tests of the grammar for
//! tree-sitter.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{BUILD, cargo, run, there};

/// Tests the parts that need no editor and no packages: the views and lights of the extension, and the words of the
/// grammar for tree-sitter.
pub(crate) fn part(root: &Path) -> Result<(), String> {
    if !there("node") {
        println!("left out: node is not on this machine");
        return Ok(());
    }
    let command = command(root)?;
    for folder in ["editors/vscode/test", "editors/tree-sitter/test"] {
        let folder = root.join(folder);
        let entries =
            std::fs::read_dir(&folder).map_err(|why| format!("{}: {why}", folder.display()))?;
        let paths = entries.flatten().map(|entry| entry.path());
        let tests = paths.filter(|path| path.to_string_lossy().ends_with(".test.mjs"));
        run(Command::new("node").arg("--test").args(tests).env("COMMAND", &command))?;
    }
    Ok(())
}

/// Builds the command as the tests have it, and returns its path.
fn command(root: &Path) -> Result<PathBuf, String> {
    run(&mut cargo(&BUILD))?;
    let target = root.join("target").canonicalize().map_err(|why| format!("target: {why}"))?;
    Ok(target.join(format!("debug/roundelay{}", std::env::consts::EXE_SUFFIX)))
}

/// Builds, tests and packages the extension; its file is `target/editors/roundelay.vsix`.
pub(crate) fn package(root: &Path) -> Result<(), String> {
    if !there("npm") {
        return Err("npm is not on this machine".to_owned());
    }
    let folder = root.join("editors/vscode");
    let npm = |args: &[&str]| {
        let mut npm = Command::new("npm");
        npm.current_dir(&folder).args(args);
        npm
    };
    let command = command(root)?;
    run(&mut npm(&["ci"]))?;
    run(npm(&["test"]).env("COMMAND", &command))?;
    // Most of the grammar's tests need tree-sitter's own command, and say so where it is not there.
    let grammar = root.join("editors/tree-sitter");
    run(npm(&["test"]).current_dir(grammar).env("COMMAND", &command))?;
    run(&mut npm(&["run", "build"]))?;
    let target = root.join("target").canonicalize().map_err(|why| format!("target: {why}"))?;
    let to = target.join("editors");
    std::fs::create_dir_all(&to).map_err(|why| format!("{}: {why}", to.display()))?;
    let file = to.join("roundelay.vsix");
    run(npm(&["run", "package", "--", "--out"]).arg(&file))?;
    // VS Code itself, where its server is on this machine; else the reason is printed.
    run(npm(&["run", "host"]).env("COMMAND", &command))?;
    println!("{} is the extension: code --install-extension FILE", file.display());
    Ok(())
}
