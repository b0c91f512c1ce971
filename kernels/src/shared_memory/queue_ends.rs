//! The positions of a rank in its message rings.

use std::sync::Mutex;

/// The ends of a rank's rings for messages beside calls, one for each other rank and for itself.
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

/// The ends of a rank's rings for messages of calls. A rank makes one call at a time.
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

/// The position of one end of a ring.
#[derive(Default)]
pub(super) struct QueueEnd {
    /// Bytes that this rank has written or read.
    pub(super) bytes: u64,
    pub(super) messages: u64,
}
