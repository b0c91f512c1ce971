//! An open port, at which peers with the key of the job come in.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::key::Key;
use super::secure::Secure;

/// The most connections that have not shown the key at a time, beside those that are expected.
const STRANGERS: usize = 64;
/// The time between two looks whether the door is to be closed.
const LOOK: Duration = Duration::from_millis(20);
/// The bytes of the stack of a thread that hears one connection.
pub(super) const STACK: usize = 256 << 10;

/// The port, open on all interfaces.
pub(super) struct Door {
    listener: TcpListener,
    pub(super) port: u16,
}

impl Door {
    /// Opens this port, or for 0 one that is free, by IPv6 and IPv4, or by IPv4 alone where there is no other.
    pub(super) fn open(port: u16) -> io::Result<Self> {
        let any: [IpAddr; 2] = [Ipv6Addr::UNSPECIFIED.into(), Ipv4Addr::UNSPECIFIED.into()];
        let bind = |ip: &IpAddr| TcpListener::bind((*ip, port));
        let listener = bind(&any[0]).or_else(|_| bind(&any[1]))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        Ok(Self { listener, port })
    }

    /// Takes connections while `stays` is true, each in a thread of its own: none holds up another. Calls `met` with those
    /// that have the key; the others are closed, as are those beyond `expected` and some more at a time.
    pub(super) fn serve<M>(
        &self,
        (key, used_for): (&Key, &'static [u8]),
        expected: usize,
        stays: impl Fn() -> bool,
        met: M,
    ) where
        M: Fn(Secure) + Clone + Send + 'static,
    {
        let open = Arc::new(AtomicUsize::new(0));
        while stays() {
            let mut fds = [PollFd::new(&self.listener, PollFlags::IN)];
            _ = poll(&mut fds, Some(&timespec(LOOK)));
            let stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                // A peer that is gone before it was taken, or too many descriptors for now.
                Err(_) => {
                    thread::sleep(LOOK);
                    continue;
                }
            };
            if open.fetch_add(1, Ordering::Relaxed) >= STRANGERS + expected {
                open.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            let (key, met, opened) = (key.clone(), met.clone(), open.clone());
            let hears = move || {
                if let Ok(secure) = hear(stream, &key, used_for) {
                    met(secure);
                }
                opened.fetch_sub(1, Ordering::Relaxed);
            };
            // Without a thread the peer is closed, and comes again.
            if thread::Builder::new().stack_size(STACK).spawn(hears).is_err() {
                open.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }
}

fn hear(stream: TcpStream, key: &Key, used_for: &[u8]) -> io::Result<Secure> {
    stream.set_nonblocking(false)?;
    Secure::accept(stream, key, used_for)
}

/// Returns a time as the system takes it.
pub(super) fn timespec(time: Duration) -> Timespec {
    Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) }
}
