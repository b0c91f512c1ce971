//! Connections between two processes of the host, on which packets come whole, with descriptors, or not at all.

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

/// How many descriptors the kernel takes in one packet.
pub(super) const FDS: usize = 253;
/// How long a packet may be.
pub(super) const PACKET: usize = 4096;

/// A connection to a process.
#[derive(Debug)]
pub(super) struct Line {
    socket: OwnedFd,
    /// The process at the other end, 0 where it has no number in this pid namespace: who connected, or who listens.
    pub(super) pid: u32,
    /// Its user.
    pub(super) uid: u32,
}

/// Why a packet did not come or go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineFault {
    /// The other end is closed.
    Closed,
    /// The time is over.
    Late,
    /// The system does not do it.
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

/// What came.
#[derive(Debug)]
pub(super) struct Packet {
    /// Empty where it was too long.
    pub(super) bytes: Vec<u8>,
    pub(super) fds: Vec<OwnedFd>,
}

fn socket() -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
}

/// A socket to which others connect.
#[derive(Debug)]
pub(super) struct Listener(OwnedFd);

/// Listens at an abstract name, which is free again when the listener is dropped.
pub(super) fn listen(name: &str) -> Result<Listener, Errno> {
    let listener = socket()?;
    net::bind(&listener, &SocketAddrUnix::new_abstract_name(name.as_bytes())?)?;
    net::listen(&listener, 4096)?;
    Ok(Listener(listener))
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A process that this one just forks has the socket too, until it runs another program: nobody may connect to that.
impl Drop for Listener {
    fn drop(&mut self) {
        // A socket that listens can be shut down, and nothing can be done about one that does not.
        let _ = net::shutdown(&self.0, Shutdown::Both);
    }
}

/// Connects to who listens at an abstract name; as long as nobody does, tries again.
pub(super) fn connect(name: &str, until: Instant) -> Result<Line, LineFault> {
    let address = SocketAddrUnix::new_abstract_name(name.as_bytes())?;
    let socket = socket()?;
    let mut pause = Duration::from_micros(200);
    loop {
        match net::connect(&socket, &address) {
            Ok(()) => return Ok(Line::new(socket)?),
            Err(Errno::CONNREFUSED | Errno::AGAIN | Errno::INTR) => {}
            Err(errno) => return Err(LineFault::System(errno)),
        }
        if Instant::now() >= until {
            return Err(LineFault::Late);
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(5));
    }
}

/// The next one that has connected, if there is one.
pub(super) fn accept(listener: &Listener) -> Result<Option<Line>, Errno> {
    loop {
        match net::accept_with(listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
            Ok(socket) => return Ok(Some(Line::new(socket)?)),
            Err(Errno::AGAIN) => return Ok(None),
            Err(Errno::INTR | Errno::CONNABORTED) => {}
            Err(errno) => return Err(errno),
        }
    }
}

/// Which of these have something to read, or are closed; waits until one has, or until the time is over.
pub(super) fn readable(fds: &[BorrowedFd<'_>], until: Instant) -> Result<Vec<bool>, Errno> {
    let mut fds: Vec<_> =
        fds.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
    wait(&mut fds, until)?;
    Ok(fds.iter().map(|fd| !fd.revents().is_empty()).collect())
}

/// Waits for an event; whether there was one before the time was over.
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
    pub(super) fn send(
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
                // A user may have so many descriptors on their way: it takes a while until others have taken theirs.
                Err(Errno::TOOMANYREFS) if Instant::now() < until => {
                    thread::sleep(Duration::from_millis(1));
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// The next packet, with `fds` descriptors at most.
    pub(super) fn receive(&self, fds: usize, until: Instant) -> Result<Packet, LineFault> {
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
                // Who closed without reading all may have said why before: that comes next.
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
    /// Of the C library, which the standard library is linked with.
    fn getsockopt(fd: c_int, level: c_int, name: c_int, value: *mut c_void, len: *mut u32)
    -> c_int;
}

/// The process and the user at the other end. `rustix` has this too, but its numbers of processes cannot be 0, and that is
/// what the kernel gives for a process that is not in this pid namespace.
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
