//! A connection whose two ends have shown each other the key of the job.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rustix::net::sockopt;
use snow::params::NoiseParams;
use snow::{Builder, HandshakeState, TransportState};

use super::key::Key;

/// The time that each step of a handshake may take: a silent peer takes no longer.
const STEP: Duration = Duration::from_secs(5);
/// The most bytes of a Noise message, and the bytes by which it is longer than its text.
const NOISE: usize = 65_535;
const TAG: usize = 16;
/// The first message of a handshake, and the second: a public key and a tag.
const HANDSHAKE: usize = 32 + TAG;
/// The most bytes of a message: the records of the most ranks fit.
const MOST: usize = 1 << 28;
/// The time after which a peer that acknowledges nothing counts as gone.
const SILENT: u32 = 10_000;

/// Returns the error of a peer that does not speak as it should.
fn wrong(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// A connection whose ends have the key; messages on it are encrypted.
pub(super) struct Secure {
    pub(super) stream: TcpStream,
    noise: TransportState,
}

/// The pattern, the job and the use of a connection: both ends must have the same.
fn builder<'b>(key: &'b Key, used_for: &'b [u8]) -> Result<Builder<'b>, snow::Error> {
    let params: NoiseParams = "Noise_NNpsk0_25519_ChaChaPoly_BLAKE2s".parse()?;
    Builder::new(params).psk(0, &key.0)?.prologue(used_for)
}

impl Secure {
    /// Connects to the first of some addresses that answers and has the key.
    pub(super) fn connect(
        addresses: &[SocketAddr],
        key: &Key,
        used_for: &[u8],
        until: Instant,
    ) -> io::Result<Self> {
        let mut failed = wrong("there is no address");
        for address in addresses {
            let left = until.saturating_duration_since(Instant::now()).min(STEP);
            if left.is_zero() {
                return Err(io::ErrorKind::TimedOut.into());
            }
            let opened = TcpStream::connect_timeout(address, left)
                .and_then(|stream| Self::begin(stream, key, used_for, true));
            match opened {
                Ok(secure) => return Ok(secure),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    /// Takes a connection, if the other end has the key.
    pub(super) fn accept(stream: TcpStream, key: &Key, used_for: &[u8]) -> io::Result<Self> {
        Self::begin(stream, key, used_for, false)
    }

    fn begin(mut stream: TcpStream, key: &Key, used_for: &[u8], first: bool) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(STEP))?;
        stream.set_write_timeout(Some(STEP))?;
        sockopt::set_socket_keepalive(&stream, true)?;
        sockopt::set_tcp_user_timeout(&stream, SILENT)?;
        let no_key = |_| wrong("it has another key, or is of another job or version");
        let builder = builder(key, used_for).map_err(no_key)?;
        let state = if first { builder.build_initiator() } else { builder.build_responder() };
        let mut state: HandshakeState = state.map_err(no_key)?;
        let mut message = [0; HANDSHAKE];
        for writes in [first, !first] {
            if writes {
                let len = state.write_message(&[], &mut message).map_err(no_key)?;
                stream.write_all(&message[..len])?;
            } else {
                stream.read_exact(&mut message)?;
                state.read_message(&message, &mut []).map_err(no_key)?;
            }
        }
        Ok(Self { stream, noise: state.into_transport_mode().map_err(no_key)? })
    }

    /// Sends a message.
    pub(super) fn send(&mut self, text: &[u8]) -> io::Result<()> {
        let len = (text.len() as u64).to_le_bytes();
        let mut sealed = vec![0; NOISE];
        for part in [&len[..]].into_iter().chain(text.chunks(NOISE - TAG)) {
            let written = self.noise.write_message(part, &mut sealed);
            let written = written.map_err(|_| wrong("a message that cannot be sealed"))?;
            self.stream.write_all(&sealed[..written])?;
        }
        Ok(())
    }

    /// Receives a message, within the read timeout of the connection.
    pub(super) fn receive(&mut self) -> io::Result<Vec<u8>> {
        let len = self.part(size_of::<u64>())?;
        let len = u64::from_le_bytes(len.try_into().map_err(|_| wrong("no length"))?);
        let len = usize::try_from(len).ok().filter(|len| *len <= MOST);
        let mut left = len.ok_or_else(|| wrong("a message that is too long"))?;
        let mut text = Vec::with_capacity(left);
        while left > 0 {
            let part = left.min(NOISE - TAG);
            text.extend(self.part(part)?);
            left -= part;
        }
        Ok(text)
    }

    /// Receives a part of a message, of `bytes` bytes of text.
    fn part(&mut self, bytes: usize) -> io::Result<Vec<u8>> {
        let mut sealed = vec![0; bytes + TAG];
        self.stream.read_exact(&mut sealed)?;
        let mut text = vec![0; bytes];
        let read = self.noise.read_message(&sealed, &mut text);
        read.map_err(|_| wrong("a message that was changed on its way"))?;
        Ok(text)
    }

    /// Lets reads and writes take so long.
    pub(super) fn patient_for(&self, time: Duration) -> io::Result<()> {
        // A timeout of zero would mean none.
        let time = time.max(Duration::from_millis(1));
        self.stream.set_read_timeout(Some(time))?;
        self.stream.set_write_timeout(Some(time))
    }
}
