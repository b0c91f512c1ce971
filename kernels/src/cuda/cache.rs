//! Compiled kernels on disk. An entry is written beside its place and then moved there, so that readers need no lock, and
//! carries a hash of itself: a damaged entry is compiled anew. Of processes that need one entry at once, as the ranks of a
//! job do, one compiles and the others wait.

use std::path::PathBuf;
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use super::nvrtc::Built;
use crate::cache_folder;

/// The first line of an entry; another layout has another first line.
const MAGIC: &[u8] = b"roundelay kernel 2\n";

/// The number of locks that the entries share.
const LOCKS: u8 = 16;
/// The longest wait for the compilation of another process.
const TURN: Duration = Duration::from_secs(60);

/// The key of an entry: a hash of all that the compiled kernel follows from.
pub(super) type Key = [u8; 32];

/// The folder where compiled kernels are kept between processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cache {
    folder: Option<PathBuf>,
}

impl Cache {
    /// The cache that the variable `ROUNDELAY_CACHE` names, or `roundelay` in the user's folder for caches.
    pub fn of_process() -> Self {
        Self { folder: cache_folder::of_process() }
    }

    /// A cache that keeps nothing.
    pub fn off() -> Self {
        Self { folder: None }
    }

    /// A cache in `folder`, which need not exist yet.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        Self { folder: Some(folder.into()) }
    }

    fn path(&self, key: &Key) -> Option<PathBuf> {
        Some(self.folder.as_ref()?.join(format!("{}.kernel", hex(key))))
    }

    /// Returns the entry, if there is one and it is whole.
    pub(super) fn load(&self, key: &Key) -> Option<Built> {
        let bytes = cache_folder::read(&self.path(key)?).ok()?;
        let (hash, body) = bytes.strip_prefix(MAGIC)?.split_at_checked(32)?;
        (Sha256::digest(body).as_slice() == hash).then(|| decode(body))?
    }

    /// Returns the entry, which this process builds and stores where no other one does so already; with it, the reason why
    /// it was not stored.
    pub(super) fn load_or_build<E>(
        &self,
        key: &Key,
        build: impl FnOnce() -> Result<Built, E>,
    ) -> Result<(Built, Option<String>), E> {
        if let Some(built) = self.load(key) {
            return Ok((built, None));
        }
        // Where the lock is not to be had, another compilation costs time alone.
        let lock = self.folder.as_ref().map(|it| it.join(format!("lock-{}", key[0] % LOCKS)));
        let _turn = lock.and_then(|path| cache_folder::lock(&path, TURN).ok());
        if let Some(built) = self.load(key) {
            return Ok((built, None));
        }
        let built = build()?;
        let stored = self.store(key, &built);
        Ok((built, stored.err()))
    }

    /// Writes an entry; the error says why it cannot be written.
    pub(super) fn store(&self, key: &Key, built: &Built) -> Result<(), String> {
        let Some(path) = self.path(key) else { return Ok(()) };
        let body = encode(built);
        let entry = [MAGIC, Sha256::digest(&body).as_slice(), &body].concat();
        cache_folder::replace(&path, &entry)
            .map_err(|error| format!("{} cannot be written: {error}", path.display()))
    }
}

/// Encodes the parts, each with its length before it.
fn encode(built: &Built) -> Vec<u8> {
    let mut body = Vec::new();
    let names = built.names.join("\n");
    for part in [&built.cubin[..], built.ptx.as_bytes(), built.log.as_bytes(), names.as_bytes()] {
        body.extend((part.len() as u64).to_le_bytes());
        body.extend(part);
    }
    body
}

fn decode(mut body: &[u8]) -> Option<Built> {
    let mut part = || {
        let (len, rest) = body.split_at_checked(8)?;
        let len = u64::from_le_bytes(len.try_into().ok()?);
        let (part, rest) = rest.split_at_checked(usize::try_from(len).ok()?)?;
        body = rest;
        Some(part.to_vec())
    };
    let cubin = part()?;
    let mut text = || String::from_utf8(part()?).ok();
    let (ptx, log, names) = (text()?, text()?, text()?);
    Some(Built { cubin, ptx, log, names: names.lines().map(str::to_owned).collect() })
}

/// Returns the hash of parts, each with its length, so that no part can run into the next.
pub(super) fn key<'a>(parts: impl IntoIterator<Item = &'a str>) -> Key {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

fn hex(key: &Key) -> String {
    key.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::{fs, thread};

    use super::*;
    use crate::cuda::compile::tests::folder;

    fn built() -> Built {
        let names = vec!["_Z1kv".to_owned(), "m".to_owned()];
        Built {
            cubin: vec![0, 159, 146, 150],
            ptx: ".version 9.0".to_owned(),
            log: String::new(),
            names,
        }
    }

    #[test]
    fn what_is_stored_is_loaded() {
        let folder = folder();
        let cache = Cache::in_folder(folder.path().join("not/there/yet"));
        let (one, other) = (key(["a", "b"]), key(["ab", ""]));
        assert_ne!(one, other);
        assert_eq!(cache.load(&one), None);
        cache.store(&one, &built()).unwrap();
        assert_eq!(cache.load(&one), Some(built()));
        assert_eq!(cache.load(&other), None);
        // The folder holds no other file.
        assert_eq!(fs::read_dir(folder.path().join("not/there/yet")).unwrap().count(), 1);
    }

    /// Two that want one entry at once: one builds it.
    #[test]
    fn an_entry_is_built_once() {
        let folder = folder();
        let (key, builds) = (key(["k"]), AtomicUsize::new(0));
        let entry = || {
            let cache = Cache::in_folder(folder.path().join("new"));
            let build = || {
                builds.fetch_add(1, Ordering::Relaxed);
                thread::sleep(Duration::from_millis(50));
                Ok::<_, ()>(built())
            };
            assert_eq!(cache.load_or_build(&key, build), Ok((built(), None)));
        };
        thread::scope(|threads| (0..4).for_each(|_| drop(threads.spawn(entry))));
        assert_eq!(builds.into_inner(), 1);
    }

    #[test]
    fn what_is_damaged_is_not_loaded() {
        let folder = folder();
        let cache = Cache::in_folder(folder.path());
        let key = key(["k"]);
        cache.store(&key, &built()).unwrap();
        let path = cache.path(&key).unwrap();
        let whole = fs::read(&path).unwrap();
        for at in 0..whole.len() {
            let mut flipped = whole.clone();
            flipped[at] ^= 4;
            fs::write(&path, &flipped).unwrap();
            assert_eq!(cache.load(&key), None, "byte {at} flipped");
            fs::write(&path, &whole[..at]).unwrap();
            assert_eq!(cache.load(&key), None, "cut at {at}");
        }
        fs::write(&path, [&whole[..], b"more"].concat()).unwrap();
        assert_eq!(cache.load(&key), None);
        fs::write(&path, &whole).unwrap();
        assert_eq!(cache.load(&key), Some(built()));
    }

    #[test]
    fn a_folder_that_cannot_be_is_said() {
        let folder = folder();
        fs::write(folder.path().join("file"), "").unwrap();
        let why = Cache::in_folder(folder.path().join("file/below")).store(&key(["k"]), &built());
        assert!(why.clone().is_err_and(|why| why.contains("cannot be written")), "{why:?}");
    }
}
