//! The part of rank 0.

mod arrivals;
mod fits;
mod hand_out;

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::line::{Line, LineFault, Listener, connect, listen};
use super::wire::{Hello, Process, Word};
use super::{Joined, Offer, arena, guest, own_process};
use crate::Error;
use crate::shared_memory::meet::ending::Peer;
use crate::shared_memory::meet::system::refused;

/// How long rank 0 waits before it tries a name in use again.
const RETRY: Duration = Duration::from_millis(2);
/// How long rank 0 stays to tell late processes that there will be no world.
const STAY: Duration = Duration::from_secs(1);
/// How many connections rank 0 accepts before it looks at the ranks and at the deadline again.
const ACCEPTED: usize = 64;
/// How many processes of other users hear why they are turned away; the connections of the others are closed.
const TOLD: u64 = 16;
/// How long a process may take to read that it is turned away.
const TELL: Duration = Duration::from_millis(20);

/// Meets the other ranks at a socket of rank 0.
pub(super) fn meet(offer: Offer<'_>) -> Result<Joined, Error> {
    let listener = take_name(&offer)?;
    let mut host = Host {
        most: offer.nranks,
        until: offer.until,
        deadline: offer.deadline,
        offer,
        listener: Some(listener),
        strangers: Vec::new(),
        guests: BTreeMap::new(),
        turned_away: Vec::new(),
        notes: BTreeMap::new(),
    };
    host.all().inspect_err(|error| host.tell(error))
}

/// Listens at the name of the world.
///
/// If the name is in use and a process listens there, that process is rank 0 of this world as well, and both are
/// reported to all ranks. If no process listens, the name is about to be free: a process that left has just forked
/// another process, which has the socket until it runs another program.
fn take_name(offer: &Offer<'_>) -> Result<Listener, Error> {
    let name = offer.id.socket();
    let in_use = |why: String| Error::NotJoined {
        what: format!(
            "the abstract socket @{name} of rank 0 is in use: two processes are rank 0, or the id is of another world that is being joined ({why}); give each rank its own number and each world a new id"
        ),
    };
    loop {
        match listen(&name) {
            Ok(listener) => return Ok(listener),
            Err(Errno::ADDRINUSE) => {}
            Err(errno) => {
                let asked = format_args!(
                    "the abstract socket @{name} to rank 0, at which the ranks are to meet (socket, bind, listen)"
                );
                return Err(refused(asked, errno));
            }
        }
        match connect(&name, Instant::now()) {
            Ok(line) => {
                return Err(match guest::on(&line, offer) {
                    Err(error @ Error::SystemRefused { .. }) => error,
                    Err(error) => in_use(error.text()),
                    Ok(_) => {
                        in_use(format!("{} took this one for another rank", Process(line.pid)))
                    }
                });
            }
            Err(LineFault::System(errno)) => return Err(in_use(errno.to_string())),
            Err(_) if Instant::now() < offer.until => thread::sleep(RETRY),
            Err(_) => {
                return Err(in_use(format!("nobody answered there for {:?}", offer.deadline)));
            }
        }
    }
}

/// A rank that has come.
struct Guest {
    line: Line,
    process: Peer,
}

/// The state of rank 0 while ranks come.
struct Host<'a> {
    offer: Offer<'a>,
    /// The earliest moment at which a rank gives up.
    until: Instant,
    /// The shortest known waiting time of a rank.
    deadline: Duration,
    /// The listening socket; `None` once all ranks have come.
    listener: Option<Listener>,
    /// The connections that have not sent their first packet.
    strangers: Vec<Line>,
    /// The ranks that have come, by their numbers.
    guests: BTreeMap<u32, Guest>,
    /// The connections that know the secret but do not fit, and do not know this yet.
    turned_away: Vec<Line>,
    /// For each kind of processes that came and are no ranks of this world: a text about the first one, and the number
    /// of the others.
    notes: BTreeMap<Stray, (String, u64)>,
    /// The largest number of ranks that an arriving process has named.
    most: u32,
}

/// The kinds of processes that are no ranks of this world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stray {
    WrongSecret,
    Rubbish,
    Silent,
    OtherUser,
}

/// A process that knows the secret.
struct Arrival {
    line: Line,
    hello: Hello,
    pidfd: OwnedFd,
}

fn not_joined<T>(what: String) -> Result<T, Error> {
    Err(Error::NotJoined { what })
}

impl Host<'_> {
    fn all(&mut self) -> Result<Joined, Error> {
        let arena = arena::make(self.offer.bytes, self.offer.known)?;
        let me = own_process()?;
        while self.guests.len() + 1 < self.offer.nranks as usize {
            let before = Instant::now();
            let mut fits = Ok(());
            for arrival in self.arrivals(self.until)? {
                match fits {
                    Ok(()) => fits = self.seat(arrival),
                    Err(_) => self.turned_away.push(arrival.line),
                }
            }
            fits?;
            if before >= self.until && self.guests.len() + 1 < self.offer.nranks as usize {
                return Err(self.missing());
            }
        }
        // A process that comes from now on is of another world, which may have an equal id.
        self.close();
        self.hand_out(&arena, &me)?;
        for guest in self.guests.values() {
            // A process that ends at this moment is found by its descriptor.
            let _ = guest.line.send(&Word::Go.encode(), &[], self.until);
        }
        let guests = std::mem::take(&mut self.guests);
        let others = guests.into_values().map(|guest| guest.process);
        Ok(Joined { arena, peers: [me].into_iter().chain(others).collect() })
    }
}
