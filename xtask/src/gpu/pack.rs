//! `--pack DIR`: all that `DIR/xtask gpu-test --built DIR` needs, for a machine that has neither Rust nor a clone.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::places::Programs;
use crate::command::{root, run};
use crate::peers;

/// The most bytes that can be carried to a lent machine.
const MOST: u64 = 64 << 20;

pub(super) fn pack(folder: &Path) -> Result<(), String> {
    let root = root();
    let programs = Programs::built("release")?;
    let xtask = peers::build(&root, "xtask", "xtask")?;
    let scripts = folder.join("peers");
    fs::create_dir_all(&scripts).map_err(|why| format!("{}: {why}", scripts.display()))?;
    let mut sizes = Vec::new();
    for program in [&xtask, &programs.check, &programs.bench] {
        let name = program.file_name().unwrap_or_default();
        let packed = folder.join(name);
        run(Command::new("strip").arg("-o").arg(&packed).arg(program))?;
        sizes.push((name.to_string_lossy().into_owned(), size(&packed)?));
    }
    for (_, script) in super::PEERS {
        let packed = scripts.join(script);
        fs::copy(programs.peers.join(script), &packed).map_err(|why| format!("{script}: {why}"))?;
        sizes.push((format!("peers/{script}"), size(&packed)?));
    }
    for (name, size) in &sizes {
        println!("{:>8.2} MiB  {name}", mebibytes(*size));
    }
    let all: u64 = sizes.iter().map(|(_, size)| size).sum();
    println!("{:>8.2} MiB  together, {} may be", mebibytes(all), MOST >> 20);
    println!("needs glibc {}", glibc(&programs.check)?);
    // A kernel is kept by NVRTC's version, its size and the place of its headers, which differ there.
    println!("no compiled kernels: they are compiled there, by as many threads as there are cores");
    if all > MOST { Err("it is too large to be carried".to_owned()) } else { Ok(()) }
}

fn size(path: &Path) -> Result<u64, String> {
    let found = fs::metadata(path).map_err(|why| format!("{}: {why}", path.display()))?;
    Ok(found.len())
}

fn mebibytes(size: u64) -> f64 {
    size as f64 / f64::from(1 << 20)
}

/// Returns the newest version of the C library whose symbols a program needs.
fn glibc(program: &Path) -> Result<String, String> {
    let bytes = fs::read(program).map_err(|why| format!("{}: {why}", program.display()))?;
    Ok(newest(&bytes).map_or("of any version".to_owned(), |(a, b)| format!("{a}.{b}")))
}

fn newest(bytes: &[u8]) -> Option<(u32, u32)> {
    const MARK: &[u8] = b"GLIBC_";
    let marks = bytes.windows(MARK.len()).enumerate().filter(|(_, window)| *window == MARK);
    let versions = marks.filter_map(|(at, _)| {
        let rest = &bytes[at + MARK.len()..];
        let end = rest.iter().position(|b| !b.is_ascii_digit() && *b != b'.')?;
        let mut parts = std::str::from_utf8(&rest[..end]).ok()?.split('.');
        Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    });
    versions.max()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_newest_version_is_not_the_first() {
        let bytes = b"\0GLIBC_2.9\0xGLIBC_2.34\0GLIBC_2.17.1\0GLIBC_PRIVATE\0GLIBC_2.4";
        assert_eq!(super::newest(bytes), Some((2, 34)));
        assert_eq!(super::newest(b"nothing"), None);
    }
}
