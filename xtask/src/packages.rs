//! The packages to publish: each crate is packed, and the packages are compiled in a folder with no other files.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::command::run;

/// The crates that are published, each before the crates that depend on it.
const PUBLISHED: [&str; 15] = [
    "roundelay-dtype",
    "roundelay-arithmetic",
    "roundelay-ptx",
    "roundelay-core",
    "roundelay-kernel-check",
    "roundelay-exchange",
    "roundelay-export",
    "roundelay-synthesis",
    "roundelay-pictures",
    "roundelay-library",
    "roundelay-macros",
    "roundelay-kernels",
    "roundelay",
    "roundelay-book",
    "roundelay-cli",
];

/// Packs every published crate, unpacks it into a workspace of its own, and checks that one: a file that was left out,
/// or a path that leads out of a package, is an error there.
pub(crate) fn check(root: &Path) -> Result<(), String> {
    let mut pack = Command::new(env!("CARGO"));
    // Packages are compared with the working tree, not with the last commit.
    pack.current_dir(root).args(["package", "--no-verify", "--allow-dirty"]);
    for name in PUBLISHED {
        pack.args(["--package", name]);
    }
    run(&mut pack)?;

    let io = |what: &Path, error: std::io::Error| format!("{}: {error}", what.display());
    let packed = root.join("target/package");
    let apart = packed.join("apart");
    if apart.exists() {
        fs::remove_dir_all(&apart).map_err(|error| io(&apart, error))?;
    }
    fs::create_dir_all(&apart).map_err(|error| io(&apart, error))?;
    let mut members = Vec::new();
    let mut patches = String::new();
    for name in PUBLISHED {
        let folder = format!("{name}-{}", env!("CARGO_PKG_VERSION"));
        let archive = packed.join(format!("{folder}.crate"));
        // The files of an archive are as old as cargo says, so a build would take those of an earlier run for them.
        run(Command::new("tar").current_dir(&apart).arg("-xzmf").arg(&archive))?;
        // A package is a workspace of its own, unless the one around it says that it is a member.
        writeln!(patches, "{name} = {{ path = {folder:?} }}").expect("a string grows");
        members.push(folder);
    }
    // With the profile of the other steps, foreign crates are compiled already.
    let manifest = format!(
        "[workspace]\nresolver = \"3\"\nmembers = {members:?}\n\n[patch.crates-io]\n{patches}\n\
         [profile.dev]\ndebug = false\n"
    );
    let at = apart.join("Cargo.toml");
    fs::write(&at, manifest).map_err(|error| io(&at, error))?;
    let lock = apart.join("Cargo.lock");
    fs::copy(root.join("Cargo.lock"), &lock).map_err(|error| io(&lock, error))?;
    run(Command::new(env!("CARGO"))
        .current_dir(&apart)
        .args(["check", "--package", "roundelay", "--package", "roundelay-cli"])
        .args(["--features", "roundelay/cuda", "--target-dir"])
        .arg(root.join("target")))
}
