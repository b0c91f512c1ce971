//! The endings of ranks, in memory that all ranks can read.

use std::fs::File;
use std::io::Result;
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};
use std::os::unix::fs::FileExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use rustix::fs::{MemfdFlags, Mode, OFlags, SealFlags, fcntl_add_seals, memfd_create, open};

/// The ending of a process.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It exited with this code.
    Exit(i32),
    /// It was killed by this signal.
    Signal(i32),
}

impl From<ExitStatus> for Ending {
    fn from(status: ExitStatus) -> Self {
        match status.signal() {
            Some(signal) => Self::Signal(signal),
            None => Self::Exit(status.code().unwrap_or_default()),
        }
    }
}

impl Ending {
    /// Returns the exit code that a shell would report.
    pub fn code(self) -> u8 {
        match self {
            Self::Exit(code) => code as u8,
            Self::Signal(signal) => 128 + signal as u8,
        }
    }

    fn word(self) -> u32 {
        match self {
            Self::Exit(code) => 0x1_00_00 | code as u32,
            Self::Signal(signal) => 0x2_00_00 | signal as u32,
        }
    }
}

/// A word for each rank, little endian: 0 while it runs.
pub(super) struct Endings {
    words: File,
    /// A descriptor of the same memory, which the ranks inherit and can only read.
    inherited: OwnedFd,
}

impl Endings {
    pub(super) fn new(nranks: u32) -> Result<Self> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let words = File::from(memfd_create("roundelay-endings", flags)?);
        words.set_len(4 * u64::from(nranks))?;
        // A process that maps the memory can rely on its size.
        fcntl_add_seals(&words, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let path = format!("/proc/self/fd/{}", words.as_raw_fd());
        let inherited = open(path, OFlags::RDONLY, Mode::empty())?;
        Ok(Self { words, inherited })
    }

    /// Returns the number of the descriptor that the ranks inherit.
    pub(super) fn descriptor(&self) -> RawFd {
        self.inherited.as_raw_fd()
    }

    pub(super) fn write(&self, rank: usize, ending: Ending) -> Result<()> {
        self.words.write_all_at(&ending.word().to_le_bytes(), 4 * rank as u64)
    }
}
