//! How far a rank is with its messages.

use std::sync::Mutex;

/// What a rank keeps of its messages for itself: of each other rank, and of itself.
pub(super) struct Mail {
    pub(super) sent: Box<[Mutex<End>]>,
    pub(super) received: Box<[Mutex<End>]>,
}

impl Mail {
    pub(super) fn new(nranks: usize) -> Self {
        let ends = || (0..nranks).map(|_| Mutex::default()).collect();
        Self { sent: ends(), received: ends() }
    }
}

/// What a rank keeps of the messages of its calls for itself, which are made one at a time.
pub(super) struct Parcels {
    pub(super) sent: Box<[End]>,
    pub(super) received: Box<[End]>,
}

impl Parcels {
    pub(super) fn new(nranks: usize) -> Self {
        let ends = || (0..nranks).map(|_| End::default()).collect();
        Self { sent: ends(), received: ends() }
    }
}

/// One end of a ring.
#[derive(Default)]
pub(super) struct End {
    /// Bytes that this rank has written or read.
    pub(super) bytes: u64,
    pub(super) messages: u64,
}
