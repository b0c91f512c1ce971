//! Connections between two processes of the host. A packet arrives whole, with its descriptors, or not at all.

use std::ffi::{c_int, c_void};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{
    self, AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, Shutdown, SocketAddrUnix, SocketFlags,
    SocketType,
};

/// The most descriptors that the kernel takes in one packet.
pub(crate) const FDS: usize = 253;
/// The most connections that wait to be accepted: a rank that comes in a flood of strangers waits behind
/// them.
const WAITING: i32 = 256;
/// How long a process tries for a place among them without a pause, and how long the pauses are.
const SPIN: Duration = Duration::from_millis(1);
/// The most bytes of a packet.
pub(crate) const PACKET: usize = 4096;

/// A connection to a process.
#[derive(Debug)]
pub(crate) struct Line {
    socket: OwnedFd,
    /// The process that connected or listens at the other end; 0 where it has no number in this pid namespace.
    pub(crate) pid: u32,
    /// The user of that process.
    pub(crate) uid: u32,
}

/// Why a packet did not arrive or could not be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineFault {
    /// The other end is closed.
    Closed,
    /// The time is over.
    Late,
    /// The time is over, and other processes have connected all the while.
    Crowded,
    /// The system refuses the operation.
    System(Errno),
}

impl From<Errno> for LineFault {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN => Self::Closed,
            errno => Self::System(errno),
        }
    }
}

/// A received packet.
#[derive(Debug)]
pub(crate) struct Packet {
    /// The bytes; empty if the packet was too long.
    pub(crate) bytes: Vec<u8>,
    pub(crate) fds: Vec<OwnedFd>,
}

fn socket() -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
}

/// A socket to which other processes connect.
#[derive(Debug)]
pub(crate) struct Listener(OwnedFd);

/// Listens at an abstract name, which is free again when the listener is dropped.
pub(crate) fn listen(name: &str) -> Result<Listener, Errno> {
    let listener = socket()?;
    net::bind(&listener, &SocketAddrUnix::new_abstract_name(name.as_bytes())?)?;
    net::listen(&listener, WAITING)?;
    Ok(Listener(listener))
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A process that this one is just forking has the socket too, until it runs another program; the shutdown keeps others
/// from connecting to that copy.
impl Drop for Listener {
    fn drop(&mut self) {
        // A listening socket can be shut down; an error here has no remedy.
        let _ = net::shutdown(&self.0, Shutdown::Both);
    }
}

/// Connects to the process that listens at an abstract name; tries again as long as none listens. Where others connect
/// faster than it accepts them, each freed place is taken at once, so this process tries for it as often as they do.
pub(crate) fn connect(name: &str, until: Instant) -> Result<Line, LineFault> {
    let address = SocketAddrUnix::new_abstract_name(name.as_bytes())?;
    let socket = socket()?;
    let mut pause = Duration::from_micros(200);
    loop {
        let spin = Instant::now() + SPIN;
        let late = loop {
            match net::connect(&socket, &address) {
                Ok(()) => return Ok(Line::new(socket)?),
                Err(Errno::CONNREFUSED) => break LineFault::Late,
                Err(Errno::AGAIN | Errno::INTR) if Instant::now() < spin => {}
                Err(Errno::AGAIN | Errno::INTR) => break LineFault::Crowded,
                Err(errno) => return Err(LineFault::System(errno)),
            }
        };
        if Instant::now() >= until {
            return Err(late);
        }
        match late {
            LineFault::Crowded => thread::sleep(SPIN),
            _ => {
                thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(5));
            }
        }
    }
}

/// Returns the next connection, if there is one.
pub(crate) fn accept(listener: &Listener) -> Result<Option<Line>, Errno> {
    loop {
        match net::accept_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
            Ok(socket) => return Ok(Some(Line::new(socket)?)),
            Err(Errno::AGAIN) => return Ok(None),
            Err(Errno::INTR | Errno::CONNABORTED) => {}
            Err(errno) => return Err(errno),
        }
    }
}

/// Returns which of these descriptors are readable or closed; waits until one is, or until the time is over.
pub(crate) fn readable(fds: &[BorrowedFd<'_>], until: Instant) -> Result<Vec<bool>, Errno> {
    let mut fds: Vec<_> =
        fds.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    wait(&mut fds, until)?;
    Ok(fds.iter().map(|fd| !fd.revents().is_empty()).collect())
}

/// Waits for an event; returns whether one came before the time was over.
fn wait(fds: &mut [PollFd<'_>], until: Instant) -> Result<bool, Errno> {
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        match poll(fds, Some(&left)) {
            Ok(0) if until > Instant::now() => {}
            Ok(events) => return Ok(events > 0),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}

impl Line {
    fn new(socket: OwnedFd) -> Result<Self, Errno> {
        let (pid, uid) = credentials(&socket)?;
        Ok(Self { socket, pid, uid })
    }

    /// Sends a packet with descriptors, [`FDS`] at most.
    pub(crate) fn send(
        &self,
        bytes: &[u8],
        fds: &[BorrowedFd<'_>],
        until: Instant,
    ) -> Result<(), LineFault> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS))];
        loop {
            let mut control = SendAncillaryBuffer::new(&mut space);
            if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
                return Err(LineFault::System(Errno::INVAL));
            }
            let sent = net::sendmsg(
                &self.socket,
                &[IoSlice::new(bytes)],
                &mut control,
                SendFlags::NOSIGNAL,
            );
            match sent {
                Ok(_) => return Ok(()),
                Err(Errno::AGAIN) => {
                    if !wait(&mut [PollFd::new(&self.socket, PollFlags::OUT)], until)? {
                        return Err(LineFault::Late);
                    }
                }
                // The user has too many descriptors on their way: this ends when other processes have received theirs.
                Err(Errno::TOOMANYREFS) if Instant::now() < until => {
                    thread::sleep(Duration::from_millis(1));
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// Receives the next packet, with `fds` descriptors at most.
    pub(crate) fn receive(&self, fds: usize, until: Instant) -> Result<Packet, LineFault> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS))];
        let len = SendAncillaryMessage::ScmRights(&vec![self.socket.as_fd(); fds]).size();
        let space = &mut space[..len];
        let mut bytes = vec![0; PACKET];
        let mut reset = false;
        loop {
            let mut control = RecvAncillaryBuffer::new(space);
            let flags = RecvFlags::CMSG_CLOEXEC;
            let mut place = [IoSliceMut::new(&mut bytes)];
            let got = match net::recvmsg(&self.socket, &mut place, &mut control, flags) {
                Ok(got) => got,
                Err(Errno::AGAIN) => {
                    if !wait(&mut [PollFd::new(&self.socket, PollFlags::IN)], until)? {
                        return Err(LineFault::Late);
                    }
                    continue;
                }
                Err(Errno::INTR) => continue,
                // A process that closed the connection before it read all packets may have sent the reason before: that
                // packet comes next.
                Err(Errno::CONNRESET) if !reset => {
                    reset = true;
                    continue;
                }
                Err(errno) => return Err(errno.into()),
            };
            let fds = control.drain().filter_map(|message| match message {
                RecvAncillaryMessage::ScmRights(fds) => Some(fds),
                _ => None,
            });
            let fds = fds.flatten().collect();
            if got.bytes == 0 {
                return Err(LineFault::Closed);
            }
            bytes.truncate(got.bytes);
            if got.flags.contains(ReturnFlags::TRUNC) {
                bytes.clear();
            }
            return Ok(Packet { bytes, fds });
        }
    }
}

impl AsFd for Line {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

unsafe extern "C" {
    /// A function of the C library, with which the standard library is linked.
    fn getsockopt(fd: c_int, level: c_int, name: c_int, value: *mut c_void, len: *mut u32)
    -> c_int;
}

/// Returns the process and the user at the other end. `rustix` has such a function too, but its process numbers cannot
/// be 0, which is the kernel's number for a process outside of this pid namespace.
fn credentials(socket: &OwnedFd) -> Result<(u32, u32), Errno> {
    #[repr(C)]
    #[derive(Default)]
    struct Credentials {
        pid: i32,
        uid: u32,
        gid: u32,
    }
    const SOL_SOCKET: c_int = 1;
    const SO_PEERCRED: c_int =
        if cfg!(any(target_arch = "powerpc", target_arch = "powerpc64")) { 21 } else { 17 };

    let mut found = Credentials::default();
    let mut len = size_of::<Credentials>() as u32;
    // SAFETY: The kernel writes no more than `len` bytes at the pointer, and any bytes make integers.
    let answer = unsafe {
        getsockopt(
            socket.as_raw_fd(),
            SOL_SOCKET,
            SO_PEERCRED,
            (&raw mut found).cast(),
            &raw mut len,
        )
    };
    if answer != 0 || len as usize != size_of::<Credentials>() {
        let error = std::io::Error::last_os_error();
        return Err(Errno::from_io_error(&error).unwrap_or(Errno::INVAL));
    }
    Ok((found.pid as u32, found.uid))
}
