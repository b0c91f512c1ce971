//! What names a world to the processes that are to be its ranks.

use std::fmt::{self, Write as _};

use sha2::{Digest as _, Sha256};

use super::system::{boot, network, random, user};
use crate::Error;

/// The name of a world: 128 opaque bytes with a random secret, which one process makes and all of them are given.
///
/// Whoever has the bytes, and runs as the same user, can join the world. They are of use once.
#[derive(Clone, PartialEq, Eq)]
pub struct UniqueId([u8; Self::BYTES]);

/// What an id begins with; its last byte is the version of what follows.
const MAGIC: [u8; 8] = *b"rdlyid\0\x01";
/// Where the kind of an id stands.
pub(super) const KIND: usize = 8;
/// Where the name of the socket stands: 16 bytes.
const NAME: usize = 16;
/// Where the secret stands: 32 bytes.
const SECRET: usize = 32;
/// Where the number of the host's boot stands: 16 bytes, zeros if it is not known.
pub(super) const BOOT: usize = 64;
/// Where the number of the network namespace stands: 8 bytes, zeros if it is not known.
pub(super) const NET: usize = 80;
/// Where the check of all that stands before it begins: 8 bytes, at the very end.
const CHECK: usize = UniqueId::BYTES - 8;

/// The kind of an id with a random name and a secret.
const RANDOM: u8 = 0;
/// The kind of an id that follows from the name of a job.
const OF_JOB: u8 = 1;

impl UniqueId {
    /// The length of an id in bytes.
    pub const BYTES: usize = 128;

    /// An id that nobody else has.
    ///
    /// # Errors
    /// E0429 where the system gives no random bytes, or is not Linux.
    pub fn new() -> Result<Self, Error> {
        let mut bytes = [0; Self::BYTES];
        bytes[KIND] = RANDOM;
        random(&mut bytes[NAME..BOOT])?;
        // Where `/proc` is not there, an id says nothing of where it was made.
        bytes[BOOT..NET].copy_from_slice(&boot().unwrap_or_default());
        bytes[NET..NET + 8].copy_from_slice(&network().unwrap_or_default().to_le_bytes());
        Ok(Self::sealed(bytes))
    }

    /// The id that all processes of one user find who know the job's name, for launchers that carry no id.
    ///
    /// It has no secret: what keeps others out is that all ranks must run as the same user.
    pub fn of_job(text: &str) -> Self {
        let mut hash = Sha256::new();
        hash.update(b"roundelay job\0");
        hash.update(user().to_le_bytes());
        hash.update(text.as_bytes());
        let mut bytes = [0; Self::BYTES];
        bytes[KIND] = OF_JOB;
        bytes[NAME..SECRET].copy_from_slice(&hash.finalize()[..SECRET - NAME]);
        Self::sealed(bytes)
    }

    /// The id with these bytes, which [`Self::as_bytes`] gave elsewhere. Bytes that no id has are found when one joins.
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        Self(bytes)
    }

    /// The bytes, to be handed to the other ranks.
    pub fn as_bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }

    /// The id that [`Self::to_hex`] wrote elsewhere.
    ///
    /// # Errors
    /// E0427 where the text is no id.
    pub fn from_hex(text: &str) -> Result<Self, Error> {
        let wrong = |what: String| Error::NotJoined {
            what: format!(
                "{what}, and the id of a world is {} hexadecimal digits; give all ranks the id that one process made",
                2 * Self::BYTES
            ),
        };
        let text = text.trim().as_bytes();
        if text.len() != 2 * Self::BYTES {
            return Err(wrong(format!("the text of an id has {} characters", text.len())));
        }
        let mut bytes = [0; Self::BYTES];
        for (byte, digits) in bytes.iter_mut().zip(text.chunks_exact(2)) {
            let digit = |digit: u8| char::from(digit).to_digit(16);
            let (Some(high), Some(low)) = (digit(digits[0]), digit(digits[1])) else {
                let found = String::from_utf8_lossy(digits).escape_debug().to_string();
                return Err(wrong(format!("the text of an id has `{found}` in it")));
            };
            *byte = (high * 16 + low) as u8;
        }
        Ok(Self(bytes))
    }

    /// The bytes as hexadecimal digits, for an environment variable. They carry the secret.
    pub fn to_hex(&self) -> String {
        hex(&self.0)
    }

    /// Finds whether these are the bytes of an id, and one of this host.
    pub(super) fn check(&self) -> Result<(), Error> {
        let known = self.0[KIND] == RANDOM || self.0[KIND] == OF_JOB;
        if self.0[..8] != MAGIC || !known || self.0[CHECK..] != digest(&self.0)[..] {
            return Err(Error::NotJoined {
                what: "the id of the world is none that this version of Roundelay makes: its bytes were changed, cut or never set; give all ranks the bytes that `UniqueId::new` made in one process".to_owned(),
            });
        }
        let elsewhere = |what: &str| {
            let what = format!(
                "the id of the world was made {what}, and ranks must be processes of one host; start all of them on one"
            );
            Err(Error::NotJoined { what })
        };
        let (mut made_in, mut net) = ([0; NET - BOOT], [0; 8]);
        made_in.copy_from_slice(&self.0[BOOT..NET]);
        net.copy_from_slice(&self.0[NET..NET + 8]);
        if made_in != [0; NET - BOOT] && boot().is_some_and(|here| here != made_in) {
            return elsewhere("on another host, or before this one was started anew");
        }
        if net != [0; 8] && network().is_some_and(|here| here.to_le_bytes() != net) {
            return elsewhere("in another network namespace (another container)");
        }
        Ok(())
    }

    /// The name of the abstract socket at which the ranks meet.
    pub(super) fn socket(&self) -> String {
        format!("roundelay-{}", hex(&self.0[NAME..SECRET]))
    }

    /// What those who join show each other; zeros for an id of a job.
    pub(super) fn secret(&self) -> [u8; BOOT - SECRET] {
        let mut secret = [0; BOOT - SECRET];
        secret.copy_from_slice(&self.0[SECRET..BOOT]);
        secret
    }

    /// Puts in what all ids have.
    fn sealed(mut bytes: [u8; Self::BYTES]) -> Self {
        bytes[..8].copy_from_slice(&MAGIC);
        let check = digest(&bytes);
        bytes[CHECK..].copy_from_slice(&check);
        Self(bytes)
    }

    /// The id changed at one byte, but whole.
    #[cfg(all(test, not(loom)))]
    pub(super) fn changed(&self, at: usize) -> Self {
        let mut bytes = self.0;
        bytes[at] ^= 1;
        Self::sealed(bytes)
    }

    /// The same with another secret.
    #[cfg(all(test, not(loom)))]
    pub(super) fn with_another_secret(&self) -> Self {
        self.changed(SECRET)
    }
}

/// The check of an id.
fn digest(bytes: &[u8; UniqueId::BYTES]) -> [u8; 8] {
    let mut check = [0; 8];
    check.copy_from_slice(&Sha256::digest(&bytes[..CHECK])[..8]);
    check
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Without the secret.
impl fmt::Debug for UniqueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UniqueId").finish_non_exhaustive()
    }
}
