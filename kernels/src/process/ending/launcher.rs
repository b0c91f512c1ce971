//! What `roundelay launch` tells of ranks that have ended: a word for each, in memory that it shares.

use std::env;
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};

use rustix::fs::{FileType, fcntl_get_seals, fstat};
use rustix::io::{fcntl_dupfd_cloexec, pread};

use super::Ending;

/// The words of the launcher, one a rank.
#[derive(Debug)]
pub(in crate::process) struct Endings {
    file: OwnedFd,
    nranks: usize,
}

/// The variable with the number of the descriptor.
const VARIABLE: &str = "ROUNDELAY_ENDINGS";
/// The upper half of the word of a rank that exited; the lower half is its code.
const EXITED: u32 = 1;
/// The upper half of the word of a rank that was killed; the lower half is the signal.
const KILLED: u32 = 2;

impl Endings {
    /// What the launcher shares, if there is one.
    ///
    /// A program between the launcher and this process may have closed the descriptor, as Python's `subprocess` does, and
    /// something else may have its number now: so what is not memory of the right size counts as nothing.
    pub(in crate::process) fn from_env(nranks: u32) -> Option<Self> {
        let number = env::var(VARIABLE).ok()?.parse().ok()?;
        Self::at(number, nranks as usize)
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
        (regular && memory && large).then_some(Self { file, nranks })
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
