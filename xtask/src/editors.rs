//! The extension for VS Code: bundled, tested against the command, and packaged; and the tests of the grammar for
//! tree-sitter.

use std::path::Path;
use std::process::Command;

use crate::command::{run, there};

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
    run(Command::new(env!("CARGO")).current_dir(root).args([
        "build",
        "--package",
        "roundelay-cli",
    ]))?;
    let target = root.join("target").canonicalize().map_err(|why| format!("target: {why}"))?;
    let command = target.join(format!("debug/roundelay{}", std::env::consts::EXE_SUFFIX));
    run(&mut npm(&["ci"]))?;
    run(npm(&["test"]).env("COMMAND", &command))?;
    // Most of the grammar's tests need tree-sitter's own command, and say so where it is not there.
    let grammar = root.join("editors/tree-sitter");
    run(npm(&["test"]).current_dir(grammar).env("COMMAND", &command))?;
    run(&mut npm(&["run", "build"]))?;
    let to = target.join("editors");
    std::fs::create_dir_all(&to).map_err(|why| format!("{}: {why}", to.display()))?;
    let file = to.join("roundelay.vsix");
    run(npm(&["run", "package", "--", "--out"]).arg(&file))?;
    // VS Code itself, where its server is on this machine; else the reason is printed.
    run(npm(&["run", "host"]).env("COMMAND", &command))?;
    println!("{} is the extension: code --install-extension FILE", file.display());
    Ok(())
}
