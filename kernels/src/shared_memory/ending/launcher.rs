//! What `roundelay launch` tells of ranks that have ended: a word for each, in memory that it shares.

use std::env;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};

use rustix::fs::{FileType, fcntl_get_seals, fstat};
use rustix::io::{fcntl_dupfd_cloexec, pread};

use super::Ending;

/// The words of the launcher, one a rank.
#[derive(Debug)]
pub(in crate::shared_memory) struct Endings {
    file: OwnedFd,
    nranks: usize,
    launch: u64,
}

/// The variables with the number of the descriptor, the number of ranks that were launched, and this one's.
const VARIABLES: [&str; 3] = ["ROUNDELAY_ENDINGS", "ROUNDELAY_NRANKS", "ROUNDELAY_RANK"];
/// The upper half of the word of a rank that exited; the lower half is its code.
const EXITED: u32 = 1;
/// The upper half of the word of a rank that was killed; the lower half is the signal.
const KILLED: u32 = 2;

impl Endings {
    /// What the launcher shares, if there is one, and this process's rank there.
    ///
    /// A program between the launcher and this process may have closed the descriptor, as Python's `subprocess` does, and
    /// something else may have its number now: so what is not memory of the right size counts as nothing.
    pub(in crate::shared_memory) fn from_env() -> Option<(Self, usize)> {
        let [number, nranks, rank] =
            VARIABLES.map(|name| env::var(name).ok()?.trim().parse::<u32>().ok());
        Some((Self::at(number?, nranks? as usize)?, rank? as usize))
    }

    /// A number that all ranks of the launch find, and no others: that of the file.
    pub(in crate::shared_memory) fn launch(&self) -> u64 {
        self.launch
    }

    /// Those in the file with this number.
    pub(super) fn at(number: u32, nranks: usize) -> Option<Self> {
        let number = RawFd::try_from(number).ok()?;
        // SAFETY: The number is not -1. The descriptor is lent to one call of the system only, which duplicates it or says
        // that there is none.
        let file = fcntl_dupfd_cloexec(unsafe { BorrowedFd::borrow_raw(number) }, 0).ok()?;
        Self::in_file(file, nranks)
    }

    /// Those in this file, if it is one of memory and has a word for each rank.
    fn in_file(file: OwnedFd, nranks: usize) -> Option<Self> {
        let stat = fstat(&file).ok()?;
        let regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        let memory = fcntl_get_seals(&file).is_ok();
        let large = stat.st_size as u64 >= nranks as u64 * 4;
        (regular && memory && large).then_some(Self { file, nranks, launch: stat.st_ino })
    }

    /// How a rank ended, if the launcher has told it yet.
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
