//! `cargo xtask capi --prefix DIR`: the C library, its header and its pkg-config file, as a distribution installs them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::command::{root, run};

/// The version of all packages.
const VERSION: &str = env!("CARGO_PKG_VERSION");

pub(crate) fn install(args: &[&str]) -> Result<(), String> {
    let prefix = match args {
        ["--prefix", prefix] => Path::new(prefix),
        _ => return Err("usage: cargo xtask capi --prefix DIR".to_owned()),
    };
    let root = root();
    let mut cargo = Command::new(env!("CARGO"));
    run(cargo.current_dir(&root).args(["build", "--release", "--package", "roundelay-capi"]))?;
    let (lib, include) = (prefix.join("lib"), prefix.join("include"));
    let packages = lib.join("pkgconfig");
    for folder in [&include, &packages] {
        fs::create_dir_all(folder).map_err(|why| format!("{}: {why}", folder.display()))?;
    }
    let major = VERSION.split('.').next().unwrap_or(VERSION);
    let library = lib.join(format!("libroundelay.so.{VERSION}"));
    copy(&root.join("target/release/libroundelay_capi.so"), &library)?;
    copy(&root.join("capi/include/roundelay.h"), &include.join("roundelay.h"))?;
    for name in ["libroundelay.so".to_owned(), format!("libroundelay.so.{major}")] {
        let link = lib.join(name);
        // What an earlier version left.
        let _ = fs::remove_file(&link);
        symlink(format!("libroundelay.so.{VERSION}"), &link)
            .map_err(|why| format!("{}: {why}", link.display()))?;
    }
    let prefix = fs::canonicalize(prefix).map_err(|why| format!("{}: {why}", prefix.display()))?;
    let template = fs::read_to_string(root.join("capi/roundelay.pc.in"))
        .map_err(|why| format!("roundelay.pc.in: {why}"))?;
    let filled =
        template.replace("@prefix@", &prefix.display().to_string()).replace("@version@", VERSION);
    let config = packages.join("roundelay.pc");
    fs::write(&config, filled).map_err(|why| format!("{}: {why}", config.display()))?;
    println!("installed {} and its header below {}", library.display(), prefix.display());
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    // A program that runs keeps the old one.
    let _ = fs::remove_file(to);
    fs::copy(from, to)
        .map(drop)
        .map_err(|why| format!("{} to {}: {why}", from.display(), to.display()))
}
