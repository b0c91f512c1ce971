//! Agreement of the ranks that are left after a failure: the first of them opens a root, and invites the others to it. A rank
//! is left if it takes connections; the root at which the ranks met first may be gone.

use std::io;
use std::ops::Range;
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::door::STACK;
use super::not_joined;
use super::root::Root;
use super::secure::Secure;
use crate::network::Survivors;
use crate::shared_memory::UniqueId;
use crate::{Error, Options};

/// The time between two looks whether the rank that should invite is still there.
const LOOK: Duration = Duration::from_millis(200);

/// The latest invitation of this rank, which may come before the rank knows of the failure.
#[derive(Default)]
pub(super) struct Invitations(Mutex<Option<Survivors>>, Condvar);

impl Invitations {
    /// Takes an invitation that came, if the bytes are one.
    pub(super) fn put(&self, bytes: &[u8]) {
        let Some((id, [nranks, rank])) = bytes.split_first_chunk().and_then(|(id, rest)| {
            let number = |at: usize| Some(u32::from_le_bytes(*rest.get(at..)?.first_chunk()?));
            Some((UniqueId::from_bytes(*id), [number(0)?, number(4)?]))
        }) else {
            return;
        };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(Survivors { id, nranks, rank });
        self.1.notify_all();
    }

    /// Returns the invitation, if one is there or comes within this time.
    fn take_within(&self, time: Duration) -> Option<Survivors> {
        let invited = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waits = |invited: &mut Option<Survivors>| invited.is_none();
        let waited = self.1.wait_timeout_while(invited, time, waits);
        waited.unwrap_or_else(PoisonError::into_inner).0.take()
    }

    /// Agrees, as this rank, with the ranks that are left on a world of theirs. `reach` connects to a rank that is there.
    ///
    /// # Errors
    /// E0427 where the first rank that is left does not call this within the deadline, or opens no root.
    pub(super) fn agree(
        &self,
        [rank, nranks]: [u32; 2],
        options: Options,
        reach: impl Fn(u32) -> io::Result<Secure> + Sync,
    ) -> Result<Survivors, Error> {
        let until = Instant::now() + options.deadline;
        let mut time = Duration::ZERO;
        loop {
            if let Some(invited) = self.take_within(time) {
                return Ok(invited);
            }
            let Some(first) = (0..rank).find(|other| reach(*other).is_ok()) else {
                return invite(rank + 1..nranks, options, reach);
            };
            if Instant::now() > until {
                return Err(not_joined(format!(
                    "rank {rank} waited {:?} for rank {first}, which is there and brings nobody together; all ranks that are left make the smaller world",
                    options.deadline
                )));
            }
            time = LOOK;
        }
    }
}

/// Opens a root, and invites those of the other ranks to it that are left.
fn invite(
    others: Range<u32>,
    options: Options,
    reach: impl Fn(u32) -> io::Result<Secure> + Sync,
) -> Result<Survivors, Error> {
    let mut left: Vec<Secure> = thread::scope(|scope| {
        let reach = &reach;
        let start = |rank: u32| {
            let thread = thread::Builder::new().stack_size(STACK);
            thread.spawn_scoped(scope, move || reach(rank).ok())
        };
        let all: Vec<_> = others.map(start).collect();
        all.into_iter().filter_map(|thread| thread.ok()?.join().ok()?).collect()
    });
    let id = Root::open_with_new_key(options)?;
    let nranks = left.len() as u32 + 1;
    for (rank, other) in (1_u32..).zip(&mut left) {
        let numbers = [nranks.to_le_bytes(), rank.to_le_bytes()].concat();
        // One that has ended meanwhile is missing at the root, which names it.
        _ = other.send(&[&id.as_bytes()[..], &numbers].concat());
    }
    Ok(Survivors { id, nranks, rank: 0 })
}
