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
use crate::shared_memory::ending::Peer;
use crate::shared_memory::system::refused;

/// How long until a name that is in use is tried again.
const RETRY: Duration = Duration::from_millis(2);
/// How long rank 0 stays to tell those who come late that there will be no world.
const STAY: Duration = Duration::from_secs(1);
/// How long a process may take to read that it is turned away.
const TELL: Duration = Duration::from_millis(20);

/// Meets the others at a socket of its own.
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
        notes: Vec::new(),
    };
    host.all().inspect_err(|error| host.tell(error))
}

/// Listens at the name of the world.
///
/// Where the name is in use and somebody listens there, that is rank 0 of this world as well, and tells all that there are
/// two. Where nobody listens, it is about to be free: somebody who left has just forked a process, which has the socket until
/// it runs another program.
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
            Err(LineFault::Late | LineFault::Closed) if Instant::now() < offer.until => {
                thread::sleep(RETRY);
            }
            Err(LineFault::Late | LineFault::Closed) => {
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

/// What rank 0 knows.
struct Host<'a> {
    offer: Offer<'a>,
    /// When the first of all gives up.
    until: Instant,
    /// How long that one waited, as far as is known.
    deadline: Duration,
    /// Until all have come.
    listener: Option<Listener>,
    /// Those who have not said what they are.
    strangers: Vec<Line>,
    /// By rank.
    guests: BTreeMap<u32, Guest>,
    /// Those who know the secret and fit nowhere, not told yet.
    turned_away: Vec<Line>,
    /// Who came and was none of this world.
    notes: Vec<String>,
    /// The largest number of ranks that anyone who came speaks of.
    most: u32,
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
        let arena = arena::make(self.offer.bytes)?;
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
        // Whoever comes from now on is of another world, which may have the same id.
        self.close();
        self.hand_out(&arena, &me)?;
        for guest in self.guests.values() {
            // Who ended in this moment is found by its descriptor.
            let _ = guest.line.send(&Word::Go.encode(), &[], self.until);
        }
        let guests = std::mem::take(&mut self.guests);
        let others = guests.into_values().map(|guest| guest.process);
        Ok(Joined { arena, peers: [me].into_iter().chain(others).collect() })
    }
}
