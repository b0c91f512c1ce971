//! How far a rank is with its messages.

use std::sync::Mutex;

/// What a rank keeps of its messages for itself: of each other rank, and of itself.
pub(super) struct Mail {
    pub(super) sent: Box<[Mutex<QueueEnd>]>,
    pub(super) received: Box<[Mutex<QueueEnd>]>,
}

impl Mail {
    pub(super) fn new(nranks: usize) -> Self {
        let ends = || (0..nranks).map(|_| Mutex::default()).collect();
        Self { sent: ends(), received: ends() }
    }
}

/// What a rank keeps of the messages of its calls for itself, which are made one at a time.
pub(super) struct Parcels {
    pub(super) sent: Box<[QueueEnd]>,
    pub(super) received: Box<[QueueEnd]>,
}

impl Parcels {
    pub(super) fn new(nranks: usize) -> Self {
        let ends = || (0..nranks).map(|_| QueueEnd::default()).collect();
        Self { sent: ends(), received: ends() }
    }
}

/// One end of a ring.
#[derive(Default)]
pub(super) struct QueueEnd {
    /// Bytes that this rank has written or read.
    pub(super) bytes: u64,
    pub(super) messages: u64,
}
