//! What names a world to the processes that are to be its ranks.

use std::fmt;

/// The name of a world: 128 opaque bytes with a random secret, which one process makes and all of them are given.
///
/// Whoever has the bytes, and runs as the same user, can join the world. They are of use once.
#[derive(Clone, PartialEq, Eq)]
pub struct UniqueId([u8; Self::BYTES]);

impl UniqueId {
    /// The length of an id in bytes.
    pub const BYTES: usize = 128;

    /// The id with these bytes, which [`Self::as_bytes`] gave elsewhere.
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        Self(bytes)
    }

    /// The bytes, to be handed to the other ranks.
    pub fn as_bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }
}

/// Without the secret.
impl fmt::Debug for UniqueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UniqueId").finish_non_exhaustive()
    }
}
