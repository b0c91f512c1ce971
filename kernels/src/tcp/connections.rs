//! The messages on a connection between two ranks: one direction each. A message has a head, with its tag and its length,
//! and its bytes.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, IoSlice, Read as _};
use std::net::TcpStream;
use std::os::fd::AsRawFd as _;

use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};

use super::addresses;
use crate::network::ConnectionFacts;

/// The bytes of a head: a tag, zeros, and a length.
const HEAD: usize = 16;
/// The most bytes of messages that are kept before their receives begin.
const EARLY: usize = 64 << 20;

/// A request for a send or a receive.
#[derive(Debug)]
pub(super) struct Request {
    /// The other rank.
    pub(super) peer: u32,
    /// Whether it is done, and the memory is the caller's again.
    pub(super) done: bool,
    pub(super) tag: u32,
    pub(super) at: *mut u8,
    pub(super) bytes: usize,
    pub(super) sends: bool,
}

/// All requests that have not ended, by number.
pub(super) type Requests = BTreeMap<usize, Request>;

/// Places in the words of `tcp_info`, whose layout Linux keeps and lengthens: how many are asked for, the MTU of the path,
/// segments that were sent again, segments that were sent, and those that had come twice, which older systems do not tell.
const INFO: usize = 55;
const PATH_MTU: usize = 15;
const RETRANSMITS: usize = 25;
const SEGMENTS: usize = 34;
const TWICE: usize = 54;

fn head(tag: u32, bytes: usize) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[..4].copy_from_slice(&tag.to_le_bytes());
    head[8..].copy_from_slice(&(bytes as u64).to_le_bytes());
    head
}

/// Whether a connection can go on later.
fn waits(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// The messages to a rank.
pub(super) struct Outgoing {
    pub(super) stream: TcpStream,
    /// The requests in order; of the first, `sent` bytes are sent, its head included.
    pub(super) queue: VecDeque<usize>,
    sent: usize,
}

impl Outgoing {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self { stream, queue: VecDeque::new(), sent: 0 }
    }

    /// Returns what the system tells of the connection.
    pub(super) fn facts(&self) -> Option<ConnectionFacts> {
        let mut info = [0_u32; INFO];
        let mut bytes = size_of_val(&info) as libc::socklen_t;
        let (socket, at) = (self.stream.as_raw_fd(), info.as_mut_ptr().cast());
        // SAFETY: there is room for as many bytes as `bytes` says; a shorter answer leaves the rest as it is.
        let told = unsafe {
            libc::getsockopt(socket, libc::IPPROTO_TCP, libc::TCP_INFO, at, &raw mut bytes)
        };
        if told != 0 || (bytes as usize) <= SEGMENTS * size_of::<u32>() {
            return None;
        }
        Some(ConnectionFacts {
            interface: addresses::interface(self.stream.local_addr().ok()?.ip().to_canonical()),
            path_mtu: info[PATH_MTU],
            segments: info[SEGMENTS],
            retransmits: info[RETRANSMITS].saturating_sub(info[TWICE]),
        })
    }

    /// Writes what the connection takes.
    ///
    /// # Safety
    /// The memory of all requests in the queue is valid, and no thread writes it.
    pub(super) unsafe fn go_on(&mut self, requests: &mut Requests) -> io::Result<()> {
        while let Some(first) = self.queue.front() {
            let Some(request) = requests.get_mut(first) else {
                // It was cancelled: the connection is of no use any more.
                return Err(io::ErrorKind::ConnectionAborted.into());
            };
            let head = head(request.tag, request.bytes);
            // SAFETY: the caller's promise.
            let data = unsafe { std::slice::from_raw_parts(request.at, request.bytes) };
            let (head, data) = match self.sent.checked_sub(HEAD) {
                None => (&head[self.sent..], data),
                Some(sent) => (&[][..], &data[sent..]),
            };
            let parts = [IoSlice::new(head), IoSlice::new(data)];
            // Where the other end was closed, a program in C would get a signal.
            let none = &mut SendAncillaryBuffer::default();
            let written = sendmsg(&self.stream, &parts, none, SendFlags::NOSIGNAL);
            match written.map_err(io::Error::from) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => self.sent += written,
                Err(error) if waits(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
            if self.sent == HEAD + request.bytes {
                request.done = true;
                self.sent = 0;
                self.queue.pop_front();
            }
        }
        Ok(())
    }
}

/// The destination of a message that is being read.
enum Into {
    /// The memory of a request.
    Request(usize),
    /// Memory of this side: the message has no receive yet.
    Early(Vec<u8>),
}

/// The messages from a rank.
pub(super) struct Incoming {
    pub(super) stream: TcpStream,
    head: [u8; HEAD],
    /// The bytes that were read of the head, or of the message behind it.
    read: usize,
    into: Option<(u32, usize, Into)>,
    /// Whether the other end was closed.
    pub(super) closed: bool,
}

/// Queues by tag, none of which is empty: there are as many tags as calls.
type Queues<T> = BTreeMap<u32, VecDeque<T>>;

/// Takes the first of the queue of a tag.
fn take<T>(queues: &mut Queues<T>, tag: u32) -> Option<T> {
    let queue = queues.get_mut(&tag)?;
    let first = queue.pop_front();
    if queue.is_empty() {
        queues.remove(&tag);
    }
    first
}

/// The receives from a rank that were begun, and its messages that came early, by tag.
#[derive(Default)]
pub(super) struct Mailbox {
    posted: Queues<usize>,
    early: Queues<Vec<u8>>,
    kept: usize,
}

/// Returns the error of a message that is not as long as its receive.
pub(crate) fn other_length(tag: u32, sent: usize, wanted: usize) -> io::Error {
    let what = format!("a message of tag {tag} has {sent} bytes, and its receive {wanted}");
    io::Error::new(io::ErrorKind::InvalidData, what)
}

impl Mailbox {
    /// Begins a receive: of a message that has come, or of one that will.
    ///
    /// # Safety
    /// The memory of the request is valid, and no other code touches it.
    pub(super) unsafe fn post(&mut self, id: usize, request: &mut Request) -> io::Result<()> {
        let waits = self.posted.contains_key(&request.tag);
        let early = if waits { None } else { take(&mut self.early, request.tag) };
        let Some(message) = early else {
            self.posted.entry(request.tag).or_default().push_back(id);
            return Ok(());
        };
        self.kept -= message.len();
        // SAFETY: the caller's promise.
        unsafe { deliver(&message, request) }
    }

    /// Takes back a receive.
    pub(super) fn forget(&mut self, request: usize) {
        self.posted.retain(|_, waiting| {
            waiting.retain(|id| *id != request);
            !waiting.is_empty()
        });
    }
}

/// Copies a message to its receive.
///
/// # Safety
/// The memory of the request is valid, and no other code touches it.
unsafe fn deliver(message: &[u8], request: &mut Request) -> io::Result<()> {
    if message.len() != request.bytes {
        return Err(other_length(request.tag, message.len(), request.bytes));
    }
    // SAFETY: the caller's promise; both have the same length.
    unsafe { request.at.copy_from_nonoverlapping(message.as_ptr(), message.len()) };
    request.done = true;
    Ok(())
}

impl Incoming {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self { stream, head: [0; HEAD], read: 0, into: None, closed: false }
    }

    /// Reads what has come.
    ///
    /// # Safety
    /// The memory of all receives that were posted is valid, and no other code touches it.
    pub(super) unsafe fn go_on(
        &mut self,
        mailbox: &mut Mailbox,
        requests: &mut Requests,
        most: usize,
    ) -> io::Result<()> {
        while self.is_awaited(mailbox) && !self.closed {
            let read = match &mut self.into {
                None => self.stream.read(&mut self.head[self.read..]),
                Some((_, bytes, Into::Early(message))) => {
                    debug_assert_eq!(message.len(), *bytes);
                    self.stream.read(&mut message[self.read..])
                }
                Some((_, bytes, Into::Request(id))) => {
                    let Some(request) = requests.get(id) else {
                        return Err(io::ErrorKind::ConnectionAborted.into());
                    };
                    // SAFETY: the caller's promise.
                    let data = unsafe { std::slice::from_raw_parts_mut(request.at, *bytes) };
                    self.stream.read(&mut data[self.read..])
                }
            };
            match read {
                Ok(0) => self.closed = true,
                Ok(read) => self.read += read,
                Err(error) if waits(&error) => return Ok(()),
                Err(error) => return Err(error),
            }
            // SAFETY: the caller's promise.
            unsafe { self.step(mailbox, requests, most)? };
        }
        Ok(())
    }

    /// Goes from a head to its message, or from a message to the next head.
    ///
    /// # Safety
    /// As for [`Self::go_on`].
    unsafe fn step(
        &mut self,
        mailbox: &mut Mailbox,
        requests: &mut Requests,
        most: usize,
    ) -> io::Result<()> {
        let whole = self.into.as_ref().map_or(HEAD, |(_, bytes, _)| *bytes);
        if self.read < whole {
            return Ok(());
        }
        self.read = 0;
        let Some((tag, _, into)) = self.into.take() else {
            let tag = u32::from_le_bytes([self.head[0], self.head[1], self.head[2], self.head[3]]);
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&self.head[8..]);
            let bytes = usize::try_from(u64::from_le_bytes(bytes)).unwrap_or(usize::MAX);
            if bytes == 0 || bytes > most {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "no length of a message"));
            }
            let posted = take(&mut mailbox.posted, tag);
            let into = match posted {
                Some(id) => {
                    let wanted = requests.get(&id).map_or(0, |request| request.bytes);
                    if wanted != bytes {
                        return Err(other_length(tag, bytes, wanted));
                    }
                    Into::Request(id)
                }
                None => {
                    mailbox.kept += bytes;
                    if mailbox.kept > EARLY.max(most) {
                        let what =
                            "more messages have come without a receive than there is room for";
                        return Err(io::Error::new(io::ErrorKind::OutOfMemory, what));
                    }
                    Into::Early(vec![0; bytes])
                }
            };
            self.into = Some((tag, bytes, into));
            return Ok(());
        };
        match into {
            Into::Request(id) => {
                if let Some(request) = requests.get_mut(&id) {
                    request.done = true;
                }
            }
            Into::Early(message) => {
                // Its receive may have begun meanwhile.
                let posted = take(&mut mailbox.posted, tag);
                match posted.and_then(|id| requests.get_mut(&id)) {
                    Some(request) => {
                        mailbox.kept -= message.len();
                        // SAFETY: the caller's promise.
                        unsafe { deliver(&message, request)? };
                    }
                    None => mailbox.early.entry(tag).or_default().push_back(message),
                }
            }
        }
        Ok(())
    }

    /// Whether a receive is under way: one that waits, or one whose message has begun to come.
    pub(super) fn is_awaited(&self, mailbox: &Mailbox) -> bool {
        !mailbox.posted.is_empty() || self.reads_into().is_some()
    }

    /// The request whose memory the next bytes go to.
    pub(super) fn reads_into(&self) -> Option<usize> {
        match self.into {
            Some((_, _, Into::Request(id))) => Some(id),
            _ => None,
        }
    }
}
