//! How processes meet on systems other than Linux: they do not. All other parts of ranks as processes are the same
//! there, and nothing makes their values: a program that asks for a world gets an error that names its needs.

pub(crate) mod unique;

use crate::Error;

/// Returns E0429: the missing parts of the system, and the alternative.
fn missing() -> Error {
    let what = "ranks as processes need Linux: memory without a name (memfd), futexes between processes, and descriptors of processes (pidfd); ranks as threads (`Comm`) run here".to_owned();
    Error::SystemRefused { what }
}

pub(crate) mod ending {
    use std::convert::Infallible;

    use crate::Error;

    /// The process of a rank.
    #[derive(Debug)]
    pub(crate) struct Peer {
        pub(crate) pid: u32,
        pub(super) nowhere: Infallible,
    }

    #[derive(Debug)]
    pub(crate) enum Endings {}

    impl Endings {
        pub(crate) fn from_env() -> Option<(Self, usize)> {
            None
        }

        pub(crate) fn launch(&self) -> u64 {
            match *self {}
        }
    }

    pub(crate) fn ended(_: &[Peer], _: usize) -> Result<Vec<bool>, Error> {
        Err(super::missing())
    }

    pub(crate) fn how(_: usize, peer: &Peer, _: Option<&Endings>) -> String {
        match peer.nowhere {}
    }
}

pub(crate) mod env {
    use super::unique::UniqueId;
    use crate::Error;

    /// The world of a process, and its rank there.
    #[derive(Debug)]
    pub(crate) struct Membership {
        pub(crate) id: UniqueId,
        pub(crate) nranks: u32,
        pub(crate) rank: u32,
    }

    pub(crate) fn from_env() -> Result<Membership, Error> {
        Err(super::missing())
    }

    pub(crate) use from_env as from_env_of_host;

    pub(crate) fn spans_hosts() -> Result<bool, Error> {
        Err(super::missing())
    }

    pub(crate) fn rank_anywhere() -> Result<(u32, u32), Error> {
        Err(super::missing())
    }
}

/// Sleep on words that no other process wakes: a wait ends by its time.
pub(crate) mod futex {
    use std::sync::atomic::AtomicU32;

    pub(crate) fn wake(_: &AtomicU32) {}

    pub(crate) fn wait(_: &AtomicU32, _: u32, nanoseconds: i64) {
        std::thread::sleep(std::time::Duration::from_nanos(nanoseconds.unsigned_abs()));
    }

    pub(crate) fn register() -> bool {
        false
    }

    pub(crate) fn barrier() {}
}

pub(crate) mod join {
    use std::fs::File;
    use std::time::Duration;

    use super::ending::Peer;
    use super::unique::UniqueId;
    use crate::Error;

    pub(crate) const VERSION: &str = concat!("roundelay ", env!("CARGO_PKG_VERSION"));

    #[derive(Debug)]
    pub(crate) struct Joined {
        pub(crate) arena: File,
        pub(crate) peers: Vec<Peer>,
    }

    pub(crate) fn join(
        _: &UniqueId,
        _: u32,
        _: u32,
        _: (u64, (u64, &[u8])),
        _: Duration,
    ) -> Result<Joined, Error> {
        Err(super::missing())
    }

    pub(crate) fn make_arena(_: u64, _: (u64, &[u8])) -> Result<File, Error> {
        Err(super::missing())
    }

    pub(crate) fn own_process() -> Result<Peer, Error> {
        Err(super::missing())
    }
}

pub(crate) mod mapping {
    use std::convert::Infallible;
    use std::fs::File;

    use crate::Error;

    pub(crate) const PAGE: usize = 4 << 10;

    /// A mapping of the memory that ranks share.
    pub(crate) struct Mapping(Infallible);

    impl Mapping {
        pub(crate) fn new(_: &File, _: usize) -> Result<Self, Error> {
            Err(super::missing())
        }

        pub(crate) fn read_only(file: &File, bytes: usize) -> Result<Self, Error> {
            Self::new(file, bytes)
        }

        pub(crate) fn base(&self) -> *mut u8 {
            match self.0 {}
        }

        pub(crate) fn is_here(&self) -> bool {
            match self.0 {}
        }

        pub(crate) unsafe fn look_up(_: *mut u8, _: usize) {}
    }
}

pub(crate) mod other_memory {
    use super::system::Errno;

    pub(crate) enum Unread {
        Ended,
        Forbidden(Errno),
        Absent(Errno),
    }

    pub(crate) unsafe fn read(_: u32, _: &[(u64, *mut u8, usize)]) -> Result<(), Unread> {
        Err(Unread::Ended)
    }
}

pub(crate) mod system {
    use std::fmt::Display;
    use std::fs::OpenOptions;

    use crate::Error;

    /// The answer of a system to a request, of which there are none here.
    pub(crate) type Errno = std::convert::Infallible;

    pub(crate) fn refused(_: impl Display, errno: Errno) -> Error {
        match errno {}
    }

    pub(crate) fn random(_: &mut [u8]) -> Result<(), Error> {
        Err(super::missing())
    }

    /// One number for all users, as there is no world to protect.
    pub(crate) fn user() -> u32 {
        0
    }

    pub(crate) fn boot() -> Option<[u8; 16]> {
        None
    }

    pub(crate) fn network() -> Option<u64> {
        None
    }

    pub(crate) fn host() -> [String; 2] {
        Default::default()
    }

    pub(crate) fn memory() -> u64 {
        0
    }

    pub(crate) fn most_descriptors() -> u64 {
        u64::MAX
    }

    pub(crate) fn without_waiting(options: &mut OpenOptions) -> &mut OpenOptions {
        options
    }

    pub(crate) fn kill() {
        std::process::abort()
    }

    pub(crate) fn stop() {
        std::process::abort()
    }

    /// Registers nothing: only worlds that are dropped have traces.
    pub(crate) fn at_exit(_: extern "C" fn()) {}

    pub(crate) fn fail_at_exit() {
        std::process::exit(1)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::unique::UniqueId;
    use super::{env, join};

    #[test]
    fn whoever_wants_a_world_is_told_what_it_needs() {
        let id = UniqueId::from_bytes([7; UniqueId::BYTES]);
        assert_eq!(UniqueId::from_hex(&id.to_hex()), Ok(id.clone()));
        let refusals = [
            UniqueId::new().map(drop),
            env::from_env().map(drop),
            env::from_env_of_host().map(drop),
            join::join(&id, 1, 0, (0, (0, &[])), Duration::MAX).map(drop),
            join::make_arena(0, (0, &[])).map(drop),
            join::own_process().map(drop),
        ];
        for refusal in refusals {
            let text = refusal.expect_err("there are no processes").to_string();
            assert!(text.contains("need Linux") && text.ends_with("[E0429]"), "{text}");
        }
    }
}
