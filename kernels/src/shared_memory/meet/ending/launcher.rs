//! The report of `roundelay launch` about ranks that have ended: a word for each rank, in memory that the launcher
//! shares.

use std::env;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};

use rustix::fs::{FileType, fcntl_get_seals, fstat};
use rustix::io::{fcntl_dupfd_cloexec, pread};

use super::Ending;

/// The words of the launcher, one for each rank.
#[derive(Debug)]
pub(crate) struct Endings {
    file: OwnedFd,
    nranks: usize,
    launch: u64,
}

/// The variables with the number of the descriptor, the number of launched ranks, and this process's rank.
const VARIABLES: [&str; 3] = ["ROUNDELAY_ENDINGS", "ROUNDELAY_NRANKS", "ROUNDELAY_RANK"];
/// The upper half of the word of a rank that exited; the lower half is its code.
const EXITED: u32 = 1;
/// The upper half of the word of a rank that was killed; the lower half is the signal.
const KILLED: u32 = 2;

impl Endings {
    /// Opens the launcher's words, if there are any, and returns them with this process's rank in the launch.
    ///
    /// A program between the launcher and this process may have closed the descriptor, as Python's `subprocess` does,
    /// and another file may have its number now: so a descriptor that is not memory of the right size counts as none.
    pub(crate) fn from_env() -> Option<(Self, usize)> {
        let [number, nranks, rank] =
            VARIABLES.map(|name| env::var(name).ok()?.trim().parse::<u32>().ok());
        Some((Self::at(number?, nranks? as usize)?, rank? as usize))
    }

    /// Returns a number that all ranks of the launch find, and no other ranks: the file's number.
    pub(crate) fn launch(&self) -> u64 {
        self.launch
    }

    /// Opens the words in the file with this descriptor number.
    pub(super) fn at(number: u32, nranks: usize) -> Option<Self> {
        let number = RawFd::try_from(number).ok()?;
        // SAFETY: The number is not -1. The descriptor is borrowed for one system call only, which duplicates it or
        // reports that it does not exist.
        let file = fcntl_dupfd_cloexec(unsafe { BorrowedFd::borrow_raw(number) }, 0).ok()?;
        Self::in_file(file, nranks)
    }

    /// Returns the words in this file, if the file is memory and has a word for each rank.
    fn in_file(file: OwnedFd, nranks: usize) -> Option<Self> {
        let stat = fstat(&file).ok()?;
        let regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        let memory = fcntl_get_seals(&file).is_ok();
        let large = stat.st_size as u64 >= nranks as u64 * 4;
        (regular && memory && large).then_some(Self { file, nranks, launch: stat.st_ino })
    }

    /// Returns how a rank ended, if the launcher has reported it yet.
    pub(super) fn of(&self, rank: usize) -> Option<Ending> {
        let mut word = [0; 4];
        let inside = rank < self.nranks;
        let whole = inside && pread(&self.file, &mut word, rank as u64 * 4) == Ok(word.len());
        let word = u32::from_le_bytes(word);
        match word >> 16 {
            EXITED if whole => Some(Ending::Exited(word & 0xffff)),
            KILLED if whole => Some(Ending::Killed(word & 0xffff)),
            _ => None,
        }
    }
}
