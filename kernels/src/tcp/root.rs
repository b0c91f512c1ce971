//! The process at whose address ranks meet: it brings the bytes of all ranks together, and tells the others when one is
//! gone.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use roundelay_core::schedule::RANK_LIMIT;
use rustix::event::{PollFd, PollFlags, poll};

use super::door::{Door, STACK, timespec};
use super::key::Key;
use super::secure::Secure;
use super::{addresses, not_joined};
use crate::shared_memory::UniqueId;
use crate::{Error, Options};

/// The use of connections to the root.
pub(super) const MEETING: &[u8] = b"roundelay 1: meeting";
/// The time after which the root looks around, when nothing happens.
const ROUND: Duration = Duration::from_millis(100);
/// The time in which a message of a rank comes whole, once it has begun.
const PATIENCE: Duration = Duration::from_secs(5);

/// A message between a rank and the root; the first byte is its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// The first message of a rank: its number, the number of ranks, and the name of its host.
    Hello(u32, u32, String),
    /// The bytes of a rank for all others.
    Gather(Vec<u8>),
    /// The bytes of all ranks, in their order.
    Table(Vec<u8>),
    /// A rank's process ended, and did not say that it leaves.
    Gone(u32, String),
    /// The sender leaves, and needs no other rank.
    Bye,
    /// The reason why a rank cannot be one.
    Refused(String),
    /// The rank is one.
    Welcome,
    /// A rank ended all calls, for this reason.
    Abort(u32, String),
}

impl Word {
    pub(super) fn bytes(&self) -> Vec<u8> {
        let with = |kind: u8, numbers: &[u32], rest: &[u8]| {
            let numbers = numbers.iter().flat_map(|number| number.to_le_bytes());
            std::iter::once(kind).chain(numbers).chain(rest.iter().copied()).collect()
        };
        match self {
            Self::Hello(rank, nranks, host) => with(0, &[*rank, *nranks], host.as_bytes()),
            Self::Gather(bytes) => with(1, &[], bytes),
            Self::Table(bytes) => with(2, &[], bytes),
            Self::Gone(rank, host) => with(3, &[*rank], host.as_bytes()),
            Self::Bye => with(4, &[], &[]),
            Self::Refused(why) => with(5, &[], why.as_bytes()),
            Self::Welcome => with(6, &[], &[]),
            Self::Abort(rank, why) => with(7, &[*rank], why.as_bytes()),
        }
    }

    pub(super) fn read(bytes: &[u8]) -> io::Result<Self> {
        let wrong = || io::Error::new(io::ErrorKind::InvalidData, "a message of no known kind");
        let (kind, rest) = bytes.split_first().ok_or_else(wrong)?;
        let number = |at: usize| {
            let bytes = rest.get(4 * at..4 * at + 4).ok_or_else(wrong)?;
            Ok::<_, io::Error>(u32::from_le_bytes(bytes.try_into().map_err(|_| wrong())?))
        };
        let text = |from: usize| {
            Ok::<_, io::Error>(String::from_utf8_lossy(rest.get(from..).ok_or_else(wrong)?).into())
        };
        Ok(match kind {
            0 => Self::Hello(number(0)?, number(1)?, text(8)?),
            1 => Self::Gather(rest.to_vec()),
            2 => Self::Table(rest.to_vec()),
            3 => Self::Gone(number(0)?, text(4)?),
            4 => Self::Bye,
            5 => Self::Refused(text(0)?),
            6 => Self::Welcome,
            7 => Self::Abort(number(0)?, text(4)?),
            _ => return Err(wrong()),
        })
    }
}

/// A rank that has come.
struct Guest {
    secure: Secure,
    host: String,
    gathers: Option<Vec<u8>>,
}

/// The place where the ranks of a job meet. It serves until all ranks have left, in a thread of its own.
#[derive(Debug)]
pub struct Root {
    addresses: Vec<SocketAddr>,
}

impl Root {
    /// Opens a port for the ranks of a job on all interfaces: on this port, or on one that is free for 0.
    ///
    /// # Errors
    /// E0427 where the port cannot be opened.
    pub fn open(
        port: u16,
        key: &Key,
        nranks: Option<u32>,
        deadline: Duration,
    ) -> Result<Self, Error> {
        let door = Door::open(port).map_err(|error| {
            not_joined(format!(
                "port {port}, at which the ranks should meet, cannot be opened: {error}"
            ))
        })?;
        let addresses = addresses::own(door.port);
        let (came, comes) = channel();
        let (key, until) = (key.clone(), Instant::now() + deadline);
        thread::spawn(move || {
            let stays = || Instant::now() < until;
            door.serve((&key, MEETING), RANK_LIMIT as usize, stays, move |mut secure| {
                if let Ok(word) = secure.receive().and_then(|bytes| Word::read(&bytes)) {
                    _ = came.send((secure, word));
                }
            });
        });
        thread::spawn(move || serve(&comes, nranks, until));
        Ok(Self { addresses })
    }

    /// Opens a free port for a job with a key of its own, and returns the id that holds both.
    ///
    /// # Errors
    /// E0427 where no port can be opened, or this host has no address; E0429 where the system gives no random bytes.
    pub fn open_with_new_key(options: Options) -> Result<UniqueId, Error> {
        let key = Key::new()?;
        UniqueId::of_addresses(Self::open(0, &key, None, options.deadline)?.addresses(), &key.0)
    }

    /// Returns the addresses by which ranks reach this root.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }
}

/// Brings the bytes of the ranks together.
fn serve(comes: &Receiver<(Secure, Word)>, mut nranks: Option<u32>, until: Instant) {
    let mut guests: BTreeMap<u32, Guest> = BTreeMap::new();
    let mut whole = false;
    while !whole {
        match comes.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok((secure, word)) => admit(&mut guests, &mut nranks, secure, word),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                return refuse_all(&mut guests, nranks);
            }
        }
        whole = nranks.is_some_and(|nranks| guests.len() == nranks as usize);
    }
    while !guests.is_empty() {
        attend(&mut guests);
        // A rank that comes again, or twice.
        while let Ok((secure, _)) = comes.try_recv() {
            turn_away(
                secure,
                "all ranks of the job have come, and this one is one more".to_owned(),
            );
        }
        let all = nranks.unwrap_or(0) as usize;
        if guests.len() == all && guests.values().all(|guest| guest.gathers.is_some()) {
            let gathers = guests.values_mut().filter_map(|guest| guest.gathers.take());
            let table = gathers.flatten().collect();
            tell(&mut guests, &Word::Table(table));
        }
    }
}

/// Takes a rank in, or tells it why it cannot be one. The first that claims a rank keeps it.
fn admit(guests: &mut BTreeMap<u32, Guest>, nranks: &mut Option<u32>, secure: Secure, word: Word) {
    let Word::Hello(rank, many, host) = word else { return };
    let known = *nranks.get_or_insert(many);
    let why = if many != known {
        format!("this rank was started as one of {many}, and the job has {known}")
    } else if rank >= known {
        format!("there is no rank {rank} among {known}")
    } else if let Some(first) = guests.get(&rank) {
        format!(
            "rank {rank} has come already, from host {}, and this one is of host {host}",
            first.host
        )
    } else {
        let mut secure = secure;
        let welcome = secure.patient_for(PATIENCE);
        // One that cannot be told is gone, and may come again.
        if welcome.and_then(|()| secure.send(&Word::Welcome.bytes())).is_ok() {
            guests.insert(rank, Guest { secure, host, gathers: None });
        }
        return;
    };
    turn_away(secure, why);
}

/// Tells a rank why it cannot be one, and hears it until it goes: bytes that were not read would take the reason with them.
fn turn_away(mut secure: Secure, why: String) {
    let tells = move || {
        _ = secure.patient_for(PATIENCE);
        if secure.send(&Word::Refused(why).bytes()).is_ok() {
            while secure.receive().is_ok() {}
        }
    };
    _ = thread::Builder::new().stack_size(STACK).spawn(tells);
}

/// Tells the ranks that have come which have not.
fn refuse_all(guests: &mut BTreeMap<u32, Guest>, nranks: Option<u32>) {
    let all = nranks.unwrap_or(0);
    let missing: Vec<u32> = (0..all).filter(|rank| !guests.contains_key(rank)).collect();
    let mut hosts: Vec<&str> = guests.values().map(|guest| guest.host.as_str()).collect();
    hosts.sort_unstable();
    hosts.dedup();
    let shown: Vec<_> = missing.iter().take(8).map(ToString::to_string).collect();
    let (s, more) = (if missing.len() == 1 { "" } else { "s" }, missing.len().saturating_sub(8));
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    let why = format!(
        "rank{s} {}{more} of {all} did not come before the deadline; {} came, from {}",
        shown.join(", "),
        guests.len(),
        hosts.join(", ")
    );
    tell(guests, &Word::Refused(why));
}

/// Hears the ranks that have something to say.
fn attend(guests: &mut BTreeMap<u32, Guest>) {
    let ready: Vec<u32> = {
        let mut fds: Vec<PollFd<'_>> = guests
            .values()
            .map(|guest| PollFd::new(&guest.secure.stream, PollFlags::IN | PollFlags::RDHUP))
            .collect();
        if poll(&mut fds, Some(&timespec(ROUND))).is_err() {
            return;
        }
        let ready = guests.keys().zip(&fds).filter(|(_, fd)| !fd.revents().is_empty());
        ready.map(|(rank, _)| *rank).collect()
    };
    for rank in ready {
        let Some(guest) = guests.get_mut(&rank) else { continue };
        match guest.secure.receive().and_then(|bytes| Word::read(&bytes)) {
            Ok(Word::Gather(bytes)) => guest.gathers = Some(bytes),
            // Whatever rank it says to be.
            Ok(Word::Abort(_, why)) => tell(guests, &Word::Abort(rank, why)),
            Ok(Word::Bye) => {
                let leaves = guests.remove(&rank);
                // The root's process is that of rank 0, and may end when it has left.
                if rank == 0 {
                    tell(guests, &Word::Bye);
                }
                if let Some(mut guest) = leaves {
                    _ = guest.secure.send(&Word::Bye.bytes());
                }
            }
            // It ended, or says what no rank says.
            Ok(_) | Err(_) => {
                if let Some(gone) = guests.remove(&rank) {
                    tell(guests, &Word::Gone(rank, gone.host));
                }
            }
        }
    }
}

/// Tells all ranks; one that does not hear is found gone when it is heard next.
fn tell(guests: &mut BTreeMap<u32, Guest>, word: &Word) {
    let bytes = word.bytes();
    for guest in guests.values_mut() {
        _ = guest.secure.send(&bytes);
    }
}
