//! `cargo xtask capi --prefix DIR`: the C libraries with their headers and pkg-config files, as a distribution installs
//! them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::command::{library, root};

/// The version of all packages.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A library as it is installed: its package, and its name, which is the name of its header and of the package that
/// pkg-config knows, with hyphens there.
const LIBRARIES: [(&str, &str); 2] =
    [("roundelay-capi", "roundelay"), ("roundelay-command", "roundelay_command")];

pub(crate) fn install(args: &[&str]) -> Result<(), String> {
    let prefix = match args {
        ["--prefix", prefix] => Path::new(prefix),
        _ => return Err("usage: cargo xtask capi --prefix DIR".to_owned()),
    };
    let root = root();
    let (lib, include) = (prefix.join("lib"), prefix.join("include"));
    let packages = lib.join("pkgconfig");
    for folder in [&include, &packages] {
        fs::create_dir_all(folder).map_err(|why| format!("{}: {why}", folder.display()))?;
    }
    let prefix = fs::canonicalize(prefix).map_err(|why| format!("{}: {why}", prefix.display()))?;
    let template = root.join("capi/roundelay.pc.in");
    let template =
        fs::read_to_string(&template).map_err(|why| format!("{}: {why}", template.display()))?;
    let major = VERSION.split('.').next().unwrap_or(VERSION);
    for (package, name) in LIBRARIES {
        let made = library(&root, package, "release")?;
        let installed = lib.join(format!("lib{name}.so.{VERSION}"));
        copy(&made, &installed)?;
        copy(&root.join(format!("capi/include/{name}.h")), &include.join(format!("{name}.h")))?;
        for link in [format!("lib{name}.so"), format!("lib{name}.so.{major}")] {
            let link = lib.join(link);
            // A link of an earlier version.
            let _ = fs::remove_file(&link);
            symlink(format!("lib{name}.so.{VERSION}"), &link)
                .map_err(|why| format!("{}: {why}", link.display()))?;
        }
        let filled = template
            .replace("@prefix@", &prefix.display().to_string())
            .replace("@version@", VERSION)
            .replace("@library@", name);
        let config = packages.join(format!("{}.pc", name.replace('_', "-")));
        fs::write(&config, filled).map_err(|why| format!("{}: {why}", config.display()))?;
        println!("installed {} and its header below {}", installed.display(), prefix.display());
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    // A program that runs keeps the old one.
    let _ = fs::remove_file(to);
    fs::copy(from, to)
        .map(drop)
        .map_err(|why| format!("{} to {}: {why}", from.display(), to.display()))
}
