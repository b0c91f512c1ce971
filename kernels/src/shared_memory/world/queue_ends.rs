//! The positions of a rank in its message rings.

use std::sync::Mutex;

/// The ends of a rank's rings for messages beside calls, one for each other rank and for itself.
pub(crate) struct Mail {
    pub(crate) sent: Box<[Mutex<QueueEnd>]>,
    pub(crate) received: Box<[Mutex<QueueEnd>]>,
}

impl Mail {
    pub(crate) fn new(nranks: usize) -> Self {
        let ends = || (0..nranks).map(|_| Mutex::default()).collect();
        Self { sent: ends(), received: ends() }
    }
}

/// The ends of a rank's rings for messages of calls. A rank makes one call at a time.
pub(crate) struct Parcels {
    pub(crate) sent: Box<[QueueEnd]>,
    pub(crate) received: Box<[QueueEnd]>,
}

impl Parcels {
    pub(crate) fn new(nranks: usize) -> Self {
        let ends = || (0..nranks).map(|_| QueueEnd::default()).collect();
        Self { sent: ends(), received: ends() }
    }
}

/// The position of one end of a ring.
#[derive(Default)]
pub(crate) struct QueueEnd {
    /// Bytes that this rank has written or read.
    pub(crate) bytes: u64,
    pub(crate) messages: u64,
}
