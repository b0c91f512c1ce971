//! The memory that ranks share: a file without a name.

use std::fs::File;
use std::os::fd::AsFd;

use rustix::fs::{
    MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create,
};
use rustix::io::{Errno, pwrite};
use rustix::process::{Resource, getrlimit};

use crate::Error;
use crate::shared_memory::meet::mapping::can_map;
use crate::shared_memory::meet::system::refused;

/// Returns the seals of the memory: a process that maps the memory cannot lose it, and no process can remove the seals.
fn seals() -> SealFlags {
    SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL
}

/// Makes `bytes` bytes of zeroed memory, and writes `known` into it at a position.
pub(crate) fn make(bytes: u64, (at, known): (u64, &[u8])) -> Result<File, Error> {
    let asked = |call: &str| format!("{bytes} bytes of shared memory ({call})");
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    // Some systems demand that memory files are never executed; kernels before 6.3 do not know the flag.
    let file = match memfd_create("roundelay", flags | MemfdFlags::NOEXEC_SEAL) {
        Err(Errno::INVAL) => memfd_create("roundelay", flags),
        other => other,
    };
    let file = file.map_err(|errno| refused(asked("memfd_create"), errno))?;
    // The system ends a process that goes beyond this limit.
    if let Some(most) = getrlimit(Resource::Fsize).current.filter(|most| *most < bytes) {
        let what = format!(
            "shared memory has {bytes} bytes, and this process may make no file of more than {most} (`ulimit -f`): raise that limit"
        );
        return Err(Error::SystemRefused { what });
    }
    ftruncate(&file, bytes).map_err(|errno| refused(asked("ftruncate"), errno))?;
    let written = pwrite(&file, known, at).map_err(|errno| refused(asked("pwrite"), errno))?;
    if written < known.len() {
        return Err(refused(asked("pwrite"), Errno::NOSPC));
    }
    fcntl_add_seals(&file, seals()).map_err(|errno| refused(asked("F_ADD_SEALS"), errno))?;
    can_map(&file, bytes as usize)?;
    Ok(file.into())
}

/// Checks that a received file is memory as [`make`] makes it.
pub(crate) fn check(file: impl AsFd, bytes: u64) -> Result<(), String> {
    let size = fstat(&file).map(|stat| stat.st_size as u64);
    if size != Ok(bytes) {
        return Err(format!("a file of {bytes} bytes was due, and this has {size:?}"));
    }
    match fcntl_get_seals(&file) {
        Ok(found) if found.contains(seals()) => Ok(()),
        found => Err(format!("its seals are {found:?}")),
    }
}
