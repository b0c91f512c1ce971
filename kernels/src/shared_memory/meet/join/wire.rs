//! The messages of the processes while they meet.

use std::fmt::{self, Display};
use std::time::Duration;

use super::line::PACKET;
use crate::Error;

/// The first bytes of a process's first packet.
const MAGIC: [u8; 8] = *b"rdlyjoin";

/// The first packet of a process; the process's descriptor comes with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) secret: [u8; 32],
    pub(super) rank: u32,
    pub(super) nranks: u32,
    pub(super) bytes: u64,
    pub(super) pid: u32,
    /// How much longer the process waits, in whole milliseconds.
    pub(super) left: Duration,
    pub(super) version: String,
}

/// The messages after the first packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// The memory comes with this packet.
    Arena,
    /// The process ids of ranks, counted from the given rank; their descriptors come with this packet.
    Peers(u32, Vec<u32>),
    /// The sending rank has received the memory and all processes.
    Ready,
    /// All ranks are ready.
    Go,
    /// There is no world, or the receiver is no rank of it.
    Refused(Error),
}

impl Hello {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend(self.secret);
        for word in [self.rank, self.nranks, self.pid] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(self.bytes.to_le_bytes());
        bytes.extend((self.left.as_millis() as u64).to_le_bytes());
        bytes.extend(self.version.bytes());
        bytes
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = Rest(bytes);
        if rest.take()? != MAGIC {
            return None;
        }
        Some(Self {
            secret: rest.take()?,
            rank: rest.u32()?,
            nranks: rest.u32()?,
            pid: rest.u32()?,
            bytes: rest.u64()?,
            left: Duration::from_millis(rest.u64()?),
            version: rest.text()?,
        })
    }
}

impl Word {
    pub(super) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Arena => vec![b'A'],
            Self::Peers(first, pids) => {
                let words = [&[*first], &pids[..]].concat();
                [vec![b'P'], words.iter().flat_map(|word| word.to_le_bytes()).collect()].concat()
            }
            Self::Ready => vec![b'R'],
            Self::Go => vec![b'G'],
            Self::Refused(error) => {
                let kind = match error {
                    Error::SystemRefused { .. } => b'S',
                    _ => b'N',
                };
                let text = error.text();
                let mut end = text.len().min(PACKET - 1);
                while !text.is_char_boundary(end) {
                    end -= 1;
                }
                [&[kind], &text.as_bytes()[..end]].concat()
            }
        }
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (kind, bytes) = bytes.split_first()?;
        let mut rest = Rest(bytes);
        let word = match kind {
            b'A' => Self::Arena,
            b'P' => {
                let first = rest.u32()?;
                let mut pids = Vec::new();
                while !rest.0.is_empty() {
                    pids.push(rest.u32()?);
                }
                Self::Peers(first, pids)
            }
            b'R' => Self::Ready,
            b'G' => Self::Go,
            b'N' => Self::Refused(Error::NotJoined { what: rest.text()? }),
            b'S' => Self::Refused(Error::SystemRefused { what: rest.text()? }),
            _ => return None,
        };
        rest.0.is_empty().then_some(word)
    }
}

/// The bytes that are not read yet.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }

    /// Reads the rest as text.
    fn text(&mut self) -> Option<String> {
        let text = String::from_utf8(self.0.to_vec()).ok()?;
        self.0 = &[];
        Some(text)
    }
}

/// A process in error messages; 0 is the number of a process outside of this pid namespace.
pub(super) struct Process(pub(super) u32);

impl Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.write_str("a process of another pid namespace"),
            pid => write!(f, "process {pid}"),
        }
    }
}

/// Returns E0427 for a process with a rank that does not exist.
pub(super) fn out_of_range(pid: u32, rank: u32, nranks: u32) -> Error {
    Error::NotJoined {
        what: format!(
            "{} was started as rank {rank} of {nranks}; ranks count from 0, so the last is {}",
            Process(pid),
            nranks.saturating_sub(1)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_understood_and_parts_of_it_are_not() {
        let hello = Hello {
            secret: [7; 32],
            rank: 1,
            nranks: 2,
            bytes: 1 << 40,
            pid: 99,
            left: Duration::from_millis(1500),
            version: "roundelay 1".to_owned(),
        };
        let bytes = hello.encode();
        assert_eq!(Hello::decode(&bytes), Some(hello));
        for len in 0..bytes.len() - "roundelay 1".len() {
            assert_eq!(Hello::decode(&bytes[..len]), None, "{len}");
        }
        let refused = |what: &str| Error::NotJoined { what: what.to_owned() };
        let words = [
            Word::Arena,
            Word::Peers(253, vec![1, 2, 3]),
            Word::Ready,
            Word::Go,
            Word::Refused(refused("é")),
            Word::Refused(Error::SystemRefused { what: "no".to_owned() }),
        ];
        for word in words {
            assert_eq!(Word::decode(&word.encode()), Some(word));
        }
        for bytes in [&b""[..], b"X", b"Ax", b"P", b"P123456", b"N\xff"] {
            assert_eq!(Word::decode(bytes), None, "{bytes:?}");
        }
        let long = Word::Refused(refused(&"é".repeat(PACKET)));
        assert!(long.encode().len() <= PACKET && Word::decode(&long.encode()).is_some());
    }
}
