//! The secret of a job.

use std::env;
use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt as _;

use sha2::{Digest as _, Sha256};

use super::not_joined;
use crate::Error;
use crate::shared_memory::{UniqueId, read_hex};

/// The secret of a job, of 256 bits: a process that has it can be one of its ranks. It serves one job.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(pub(super) [u8; Self::BYTES]);

/// The variable with the path of a file that holds the key, and the variable with the key itself.
const FILE: &str = "ROUNDELAY_KEY_FILE";
const TEXT: &str = "ROUNDELAY_KEY";

impl Key {
    /// The length of a key in bytes.
    pub const BYTES: usize = 32;

    /// Makes a key that no other process has.
    ///
    /// # Errors
    /// E0429 where the system gives no random bytes.
    pub fn new() -> Result<Self, Error> {
        Ok(Self(UniqueId::new()?.secret()))
    }

    /// Returns the key of these bytes.
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        Self(bytes)
    }

    /// Returns the key of some of the ranks of a job, which follows from the key of the job and a salt.
    pub(super) fn of_part(&self, salt: &[u8; Self::BYTES]) -> Self {
        let hash = Sha256::new().chain_update(b"roundelay 1: part").chain_update(self.0);
        Self(hash.chain_update(salt).finalize().into())
    }

    /// Reads a key of 64 hexadecimal digits.
    ///
    /// # Errors
    /// E0427 where the text is no key.
    pub fn from_hex(text: &str) -> Result<Self, Error> {
        let (text, mut key) = (text.trim(), [0; Self::BYTES]);
        if text.len() != 2 * Self::BYTES || read_hex(text, &mut key).is_err() {
            let what = format!(
                "the key of the job is no key: it has {} characters, and a key is 64 hexadecimal digits, such as those of `openssl rand -hex 32`",
                text.len()
            );
            return Err(not_joined(what));
        }
        Ok(Self(key))
    }

    /// Reads the key of the file that `ROUNDELAY_KEY_FILE` names, else of `ROUNDELAY_KEY`.
    ///
    /// # Errors
    /// E0427 where neither is set, the file cannot be read, or other users may read it.
    pub fn from_env() -> Result<Self, Error> {
        if let Some(path) = env::var_os(FILE) {
            let path = std::path::Path::new(&path);
            let unread = |error: std::io::Error| {
                not_joined(format!("{FILE} is `{}`, which cannot be read: {error}", path.display()))
            };
            let facts = fs::metadata(path).map_err(unread)?;
            if facts.mode() & 0o077 != 0 {
                let path = path.display();
                let what = format!(
                    "other users may read or change the key of the job in `{path}`; take that from them: chmod 600 {path}"
                );
                return Err(not_joined(what));
            }
            return Self::from_hex(&fs::read_to_string(path).map_err(unread)?);
        }
        match env::var(TEXT) {
            Ok(text) => Self::from_hex(&text),
            Err(_) => Err(not_joined(format!(
                "ranks that meet by TCP need the key of their job, and neither {FILE} nor {TEXT} is set; write 64 hexadecimal digits into a file that you alone can read (`openssl rand -hex 32`), give it to all hosts, and set {FILE}"
            ))),
        }
    }
}

/// The text does not show the secret.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key").finish_non_exhaustive()
    }
}
