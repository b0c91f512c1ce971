//! What brings messages from host to host.

use crate::Error;

/// Brings messages between ranks of different hosts, as MPI does; whoever has such a thing implements this.
///
/// Ranks are those of all hosts together. Sends and receives are begun, and go on by themselves or where
/// [`Self::ended`] is asked. Those from one rank to another that have the same tag meet in the order in which they were
/// begun at each end: the first send meets the first receive. A send may end before its receive has begun, or only with
/// it. Messages of different tags never meet.
///
/// Threads of a rank may call it at once: one in a collective and others that send or receive beside it.
pub trait Carrier: Send + Sync {
    /// The most bytes of one message: longer ones are cut. It is the same at both ends.
    fn most(&self) -> usize {
        MOST
    }

    /// The most bytes of the parts that a message of a call is cut into, of which a few are under way at a time: at least
    /// 1 and at most [`Self::most`], and the same at both ends.
    fn piece(&self) -> usize {
        self.most()
    }

    /// Begins to send `bytes` bytes, at least 1 and at most [`Self::most`], to rank `to`, and returns what
    /// [`Self::ended`] asks about. `tag` is below [`TAGS`].
    ///
    /// # Safety
    /// The memory at `from` is good for so many bytes, and nobody writes there, until the request has ended or was
    /// cancelled.
    ///
    /// # Errors
    /// Whatever the transport has to say: the call fails with it, and the world ends.
    unsafe fn send(&self, to: u32, tag: u32, from: *const u8, bytes: usize)
    -> Result<usize, Error>;

    /// Begins to receive `bytes` bytes, at least 1 and at most [`Self::most`], from rank `from`, and returns what
    /// [`Self::ended`] asks about. `tag` is below [`TAGS`]. A message of another length is an error, here or of
    /// [`Self::ended`].
    ///
    /// # Safety
    /// The memory at `to` is good for so many bytes, and nobody else touches it, until the request has ended or was
    /// cancelled.
    ///
    /// # Errors
    /// Those of [`Self::send`].
    unsafe fn receive(
        &self,
        from: u32,
        tag: u32,
        to: *mut u8,
        bytes: usize,
    ) -> Result<usize, Error>;

    /// Whether a request has ended, and its memory is the caller's again; lets the transport go on with all others. It
    /// does not wait. It may change what stands for the request, and is not asked again about one that has ended or
    /// failed.
    ///
    /// # Errors
    /// Those of [`Self::send`]; the request's memory is the caller's again then, too.
    fn ended(&self, request: &mut usize) -> Result<bool, Error>;

    /// Takes back a request that has not ended, in a call that failed. When it returns, the transport touches the
    /// request's memory no more; what becomes of the message does not matter.
    fn cancel(&self, request: usize);
}

/// The most bytes of one message, where a carrier says nothing else: an `int` counts them.
pub const MOST: usize = 1 << 30;

/// Tags are below this number, which every MPI has.
pub const TAGS: u32 = 1 << 15;
