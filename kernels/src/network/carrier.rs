//! The transport that brings messages from host to host.

use crate::shared_memory::UniqueId;
use crate::{Error, Options};

/// A transport of messages between ranks of different hosts, as MPI has one; a user with another transport implements
/// this trait.
///
/// Ranks are numbered over all hosts together. A send or receive is begun, and goes on by itself or in calls of
/// [`Self::ended`]. Sends and receives from one rank to another that have the same tag meet in the order in which they
/// were begun at each end: the first send meets the first receive. A send may end before its receive has begun, or only
/// with it. Messages of different tags never meet.
///
/// Several threads of a rank may call a carrier at once: one thread in a collective, and other threads that send or
/// receive beside it.
pub trait Carrier: Send + Sync {
    /// Returns the most bytes of one message, the same at both ends; longer messages are cut.
    fn most(&self) -> usize {
        MOST
    }

    /// Returns the most bytes of a part of a call's message: at least 1 and at most [`Self::most`], and the same at
    /// both ends. A call cuts its messages into parts, of which a few are under way at a time.
    fn piece(&self) -> usize {
        self.most()
    }

    /// Begins to send `bytes` bytes, at least 1 and at most [`Self::most`], to rank `to`, and returns the request for
    /// [`Self::ended`]. `tag` is below [`TAGS`].
    ///
    /// # Safety
    /// `from` is valid for `bytes` bytes, and no thread writes them, until the request has ended or was cancelled.
    ///
    /// # Errors
    /// The errors of the transport: the call fails with the error, and the world ends.
    unsafe fn send(&self, to: u32, tag: u32, from: *const u8, bytes: usize)
    -> Result<usize, Error>;

    /// Begins to receive `bytes` bytes, at least 1 and at most [`Self::most`], from rank `from`, and returns the
    /// request for [`Self::ended`]. `tag` is below [`TAGS`]. A message of another length is an error, of this call or
    /// of [`Self::ended`].
    ///
    /// # Safety
    /// `to` is valid for `bytes` bytes, and no other code touches them, until the request has ended or was cancelled.
    ///
    /// # Errors
    /// The errors of [`Self::send`].
    unsafe fn receive(
        &self,
        from: u32,
        tag: u32,
        to: *mut u8,
        bytes: usize,
    ) -> Result<usize, Error>;

    /// Whether a request has ended, and its memory is the caller's again; lets the transport go on with all other
    /// requests. It does not wait. It may change the value of `request`, and is not called again for a request that has
    /// ended or failed.
    ///
    /// # Errors
    /// The errors of [`Self::send`]; the request's memory is the caller's again then, too.
    fn ended(&self, request: &mut usize) -> Result<bool, Error>;

    /// Takes back a request that has not ended, in a call that failed. When it returns, the transport touches the
    /// request's memory no more; the message may still arrive or be lost.
    fn cancel(&self, request: usize);

    /// Tells the ranks of all hosts that this one ends all calls for a reason: their requests that have not ended fail, if
    /// the transport can tell them (E0413).
    fn abort(&self, _why: &str) {}

    /// Returns the name of the transport and what it goes over, for reports, such as `TCP over eth0, 10.0.0.1`.
    fn name(&self) -> String {
        "a transport of the program".to_owned()
    }

    /// Opens a place where some of the ranks can meet as the ranks of a world of their own, in this process, and returns its
    /// id without its key, which other processes may read.
    ///
    /// # Errors
    /// E0427 where the transport has no such places, or none can be opened.
    fn open_place(&self, _options: Options) -> Result<UniqueId, Error> {
        Err(no_places())
    }

    /// Returns the id of such a place with its key, which the ranks of this transport alone can tell. They join it as
    /// [`World::join`](crate::shared_memory::World::join) does, on whatever hosts they are.
    ///
    /// # Errors
    /// E0427 where the id is none of such a place.
    fn with_key(&self, _id: &UniqueId) -> Result<UniqueId, Error> {
        Err(no_places())
    }

    /// Agrees with the ranks that are left after a failure, each of which calls it, on a world of theirs.
    ///
    /// # Errors
    /// E0427 where the transport cannot tell who is left, or a rank that is left does not call it within the deadline.
    fn survivors(&self, _options: Options) -> Result<Survivors, Error> {
        Err(no_places())
    }

    /// Returns the facts of the connection by which messages go to rank `to`; `None` before the first message, and where
    /// the transport tells none.
    fn connection(&self, _to: u32) -> Option<ConnectionFacts> {
        None
    }
}

/// The world of the ranks that are left after a failure, before they join it.
#[derive(Clone, Debug)]
pub struct Survivors {
    /// The id of the world.
    pub id: UniqueId,
    /// The number of its ranks.
    pub nranks: u32,
    /// This process's rank there.
    pub rank: u32,
}

/// Returns the error of a transport whose ranks are those with which it began.
fn no_places() -> Error {
    let what = "the transport between hosts makes no world of some of its ranks, as TCP does; make the other world as this one was made";
    Error::NotJoined { what: what.to_owned() }
}

/// The facts that a transport tells of the connection by which messages go to a rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionFacts {
    /// The interface of this side, if one has the address of the connection.
    pub interface: Option<String>,
    /// The most bytes of a packet on the path, as far as the system knows.
    pub path_mtu: u32,
    /// Segments that were sent, those that were sent again among them.
    pub segments: u32,
    /// Segments that were sent again, without those that had only been late.
    pub retransmits: u32,
}

/// The default for the most bytes of one message: an `int` counts them.
pub const MOST: usize = 1 << 30;

/// The bound of tags: tags are below this number, and every MPI has them.
pub const TAGS: u32 = 1 << 15;
