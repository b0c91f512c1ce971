//! The part of rank 0.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::geteuid;

use super::line::{FDS, Fault, Line, accept, connect, listen, readable};
use super::wire::{Hello, Process, Word};
use super::{Joined, Offer, arena, guest, own_process, wire};
use crate::Error;
use crate::process::ending::Peer;
use crate::process::system::refused;

/// How long a socket's name may be in use by one who is about to leave it.
const LEAVING: Duration = Duration::from_millis(100);
/// How long rank 0 stays to tell those who come late that there will be no world.
const STAY: Duration = Duration::from_secs(1);
/// How long a process may take to read that it is turned away.
const TELL: Duration = Duration::from_millis(20);

/// Meets the others at a socket of its own.
pub(super) fn meet(offer: Offer<'_>) -> Result<Joined, Error> {
    let name = offer.id.socket();
    let patience = offer.until.min(Instant::now() + LEAVING);
    let listener = loop {
        match listen(&name) {
            Ok(listener) => break listener,
            Err(Errno::ADDRINUSE) if Instant::now() < patience => {
                thread::sleep(Duration::from_millis(5));
            }
            Err(Errno::ADDRINUSE) => return Err(second(&offer)),
            Err(errno) => {
                return Err(refused(
                    format_args!(
                        "the abstract socket @{name} to rank 0, at which the ranks are to meet"
                    ),
                    errno,
                ));
            }
        }
    };
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

/// The name is in use: whoever uses it, if it is rank 0 of this world, tells all that there are two.
fn second(offer: &Offer<'_>) -> Error {
    let name = offer.id.socket();
    let in_use = |why: String| Error::NotJoined {
        what: format!(
            "the abstract socket @{name} of rank 0 is in use: two processes are rank 0, or the id is of another world that is being joined ({why}); give each rank its own number and each world a new id"
        ),
    };
    match connect(&name, offer.until) {
        Ok(line) => match guest::on(&line, offer) {
            Err(error @ Error::SystemRefused { .. }) => error,
            Err(error) => in_use(error.text()),
            Ok(_) => in_use(format!("{} took this one for another rank", Process(line.pid))),
        },
        Err(Fault::System(errno)) => in_use(errno.to_string()),
        Err(Fault::Late | Fault::Closed) => in_use("nobody answers there".to_owned()),
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
    listener: Option<OwnedFd>,
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

    /// Waits for something to happen, and takes in who said what it is.
    fn arrivals(&mut self, until: Instant) -> Result<Vec<Arrival>, Error> {
        let listener = self.listener.iter().map(AsFd::as_fd);
        let guests = self.guests.values().map(|guest| guest.line.as_fd());
        let strangers = self.strangers.iter().map(AsFd::as_fd);
        let fds: Vec<_> = listener.chain(guests).chain(strangers).collect();
        let events = readable(&fds, until)
            .map_err(|errno| refused("to let rank 0 wait for the others (poll)", errno))?;
        let (listens, events) = events.split_at(usize::from(self.listener.is_some()));
        let (guests, strangers) = events.split_at(self.guests.len());
        let mut spoke = strangers.iter();
        let said = self.strangers.extract_if(.., |_| spoke.next() == Some(&true));
        let said: Vec<_> = said.collect();
        let left = self.guests.keys().zip(guests).find(|(_, event)| **event).map(|(rank, _)| *rank);
        let (mut arrivals, mut failed) = (Vec::new(), None);
        for line in said {
            match self.arrival(line) {
                Ok(arrival) => arrivals.extend(arrival),
                Err(error) => failed = Some(error),
            }
        }
        if listens == [true] {
            failed = self.accept().err().or(failed);
        }
        match left.map(|rank| self.spoke_early(rank)).or(failed) {
            Some(error) => {
                self.turned_away.extend(arrivals.into_iter().map(|arrival| arrival.line));
                Err(error)
            }
            None => Ok(arrivals),
        }
    }

    /// Takes in all who have connected.
    fn accept(&mut self) -> Result<(), Error> {
        let own = geteuid().as_raw();
        let Some(listener) = &self.listener else { return Ok(()) };
        while let Some(line) =
            accept(listener).map_err(|errno| refused("rank 0 a connection (accept)", errno))?
        {
            if line.uid == own {
                self.strangers.push(line);
            } else {
                let who = Process(line.pid);
                self.notes.push(format!("{who} of user {} was turned away", line.uid));
                dismiss(
                    &line,
                    format!(
                        "rank 0 runs as user {own} and {who} as user {}; all ranks must run as one user",
                        line.uid
                    ),
                );
            }
        }
        Ok(())
    }

    /// What one who connected says of itself; it is none of this world if that is not understood.
    fn arrival(&mut self, line: Line) -> Result<Option<Arrival>, Error> {
        let who = Process(line.pid).to_string();
        let mut packet = match line.receive(1, Instant::now()) {
            Ok(packet) => packet,
            Err(Fault::Closed) => {
                self.notes.push(format!("{who} connected and left without a word"));
                return Ok(None);
            }
            Err(Fault::Late) => {
                self.strangers.push(line);
                return Ok(None);
            }
            Err(Fault::System(errno)) => {
                self.notes.push(format!("{who} connected and cannot be heard ({errno})"));
                return Ok(None);
            }
        };
        let Some(hello) = Hello::decode(&packet.bytes) else {
            self.notes.push(format!("{who} sent what no rank sends"));
            dismiss(&line, format!("{who} sent what no rank of this version sends"));
            return Ok(None);
        };
        if !same(&hello.secret, &self.offer.id.secret()) {
            self.notes.push(format!("{who} (as rank {}) came with a wrong secret", hello.rank));
            dismiss(
                &line,
                format!(
                    "{who} came as rank {} with a wrong secret, so its id is not that of rank 0; give all ranks the id that one process made",
                    hello.rank
                ),
            );
            return Ok(None);
        }
        let Some(pidfd) = packet.fds.pop() else {
            self.turned_away.push(line);
            return Err(refused(
                format_args!("rank 0 the descriptor that rank {} ({who}) sent", hello.rank),
                Errno::MFILE,
            ));
        };
        self.most = self.most.max(hello.nranks);
        Ok(Some(Arrival { line, hello, pidfd }))
    }

    /// Finds whether one who knows the secret fits, and keeps it.
    fn seat(&mut self, Arrival { line, hello, pidfd }: Arrival) -> Result<(), Error> {
        if let Err(error) = self.fits(&hello) {
            self.turned_away.push(line);
            return Err(error);
        }
        let ends = super::moment(hello.left);
        if ends < self.until {
            self.until = ends;
            self.deadline = self.deadline.min(hello.left);
        }
        let process = Peer { pid: hello.pid, pidfd };
        self.guests.insert(hello.rank, Guest { line, process });
        Ok(())
    }

    fn fits(&self, hello: &Hello) -> Result<(), Error> {
        let Offer { nranks, bytes, version, .. } = self.offer;
        let rank_0 = format!("rank 0 (process {})", std::process::id());
        let who = format!("rank {} (process {})", hello.rank, hello.pid);
        if hello.version != version {
            let theirs = hello.version.escape_debug();
            return not_joined(format!(
                "{who} runs {theirs} and {rank_0} runs {version}; all ranks must run one version"
            ));
        }
        if hello.nranks != nranks {
            return not_joined(format!(
                "{who} is one of {} ranks and {rank_0} one of {nranks}; all must be told the same number",
                hello.nranks
            ));
        }
        if hello.rank >= nranks {
            return Err(wire::out_of_range(hello.pid, hello.rank, nranks));
        }
        if hello.bytes != bytes {
            return not_joined(format!(
                "{who} asks for {} bytes of shared memory and {rank_0} for {bytes}; all ranks must ask for the same",
                hello.bytes
            ));
        }
        let taken = match hello.rank {
            0 => Some(std::process::id()),
            rank => self.guests.get(&rank).map(|guest| guest.process.pid),
        };
        match taken {
            Some(first) => not_joined(format!(
                "processes {first} and {} both are rank {} of {nranks}; each rank must be one process",
                hello.pid, hello.rank
            )),
            None => Ok(()),
        }
    }

    /// A rank said something before it was asked.
    fn spoke_early(&self, rank: u32) -> Error {
        let guest = &self.guests[&rank];
        let why = match guest.line.receive(0, Instant::now()) {
            Ok(_) => "sent what no rank sends".to_owned(),
            Err(Fault::Closed | Fault::Late) => "left: it ended, or gave up".to_owned(),
            Err(Fault::System(errno)) => format!("cannot be heard ({errno})"),
        };
        let pid = guest.process.pid;
        Error::NotJoined { what: format!("rank {rank} (process {pid}) {why}, before all had met") }
    }

    /// The time is over.
    fn missing(&self) -> Error {
        let Offer { nranks, .. } = self.offer;
        let missing: Vec<_> = (1..nranks).filter(|rank| !self.guests.contains_key(rank)).collect();
        let shown: Vec<_> = missing.iter().take(16).map(u32::to_string).collect();
        let mut list = shown.join(", ");
        if missing.len() > shown.len() {
            list += &format!(" and {} more", missing.len() - shown.len());
        }
        let ranks = if missing.len() == 1 { "rank" } else { "ranks" };
        let mut notes: Vec<_> = self.notes.iter().take(4).cloned().collect();
        let silent = self.strangers.iter().take(4);
        notes
            .extend(silent.map(|line| format!("{} connected and said nothing", Process(line.pid))));
        let notes = match notes[..] {
            [] => String::new(),
            _ => format!(" ({})", notes.join("; ")),
        };
        Error::NotJoined {
            what: format!(
                "{ranks} {list} of {nranks} did not come in {:?} to the abstract socket @{} of rank 0 (process {}){notes}; start all ranks with one id, or raise the deadline",
                self.deadline,
                self.offer.id.socket(),
                std::process::id()
            ),
        }
    }

    /// Gives the socket's name free, as all have come.
    fn close(&mut self) {
        // Who waits there and cannot be taken in is told by the end of the connection.
        let _ = self.accept();
        for line in self.strangers.drain(..) {
            let who = Process(line.pid);
            dismiss(
                &line,
                format!(
                    "{who} came to a world whose {} ranks have all come; either two processes are one rank, or its id is that of another world",
                    self.offer.nranks
                ),
            );
        }
        self.listener = None;
    }

    /// Gives each the memory and the processes, one after the other: a user may not have many descriptors on their way.
    fn hand_out(&self, arena: &OwnedFd, me: &Peer) -> Result<(), Error> {
        let others = self.guests.values().map(|guest| &guest.process);
        let all: Vec<_> = [me].into_iter().chain(others).collect();
        for (rank, guest) in &self.guests {
            let who = format!("rank {rank} (process {})", guest.process.pid);
            let fault = |fault| match fault {
                Fault::Closed => Error::NotJoined {
                    what: format!("{who} left: it ended, or gave up, before all had met"),
                },
                Fault::Late => Error::NotJoined {
                    what: format!(
                        "{who} came, and did not take the memory and the processes of the others in {:?}; raise the deadline if it is only slow",
                        self.deadline
                    ),
                },
                Fault::System(errno) => {
                    refused(format_args!("what rank 0 sends to {who} (sendmsg)"), errno)
                }
            };
            guest.line.send(&Word::Arena.encode(), &[arena.as_fd()], self.until).map_err(fault)?;
            for (part, peers) in all.chunks(FDS).enumerate() {
                let pids = peers.iter().map(|peer| peer.pid).collect();
                let word = Word::Peers((part * FDS) as u32, pids);
                let fds: Vec<BorrowedFd<'_>> =
                    peers.iter().map(|peer| peer.pidfd.as_fd()).collect();
                guest.line.send(&word.encode(), &fds, self.until).map_err(fault)?;
            }
            let answer = guest.line.receive(0, self.until).map_err(fault)?;
            match Word::decode(&answer.bytes) {
                Some(Word::Ready) => {}
                Some(Word::Refused(Error::SystemRefused { what })) => {
                    return Err(Error::SystemRefused { what: format!("{who}: {what}") });
                }
                Some(Word::Refused(error)) => {
                    return not_joined(format!("{who}: {}", error.text()));
                }
                _ => {
                    return not_joined(format!(
                        "{who} sent what no rank sends, before all had met"
                    ));
                }
            }
        }
        // Nobody may have left since it answered.
        let lines: Vec<_> = self.guests.values().map(|guest| guest.line.as_fd()).collect();
        let events = readable(&lines, Instant::now())
            .map_err(|errno| refused("to let rank 0 look after the others (poll)", errno))?;
        match self.guests.keys().zip(events).find(|(_, event)| *event) {
            Some((rank, _)) => Err(self.spoke_early(*rank)),
            None => Ok(()),
        }
    }

    /// Tells all who have come, and for a while those who come late, that there will be no world, and why.
    fn tell(&mut self, error: &Error) {
        let word = Word::Refused(error.clone()).encode();
        // Who does not listen cannot be told.
        let told = |line: &Line| line.send(&word, &[], Instant::now() + TELL).is_ok();
        let until = self.until.min(Instant::now() + STAY);
        // Their descriptors go first: there may be too many for those who are to come.
        let guests = std::mem::take(&mut self.guests).into_values();
        let mut due: Vec<_> = guests.map(|guest| guest.line).collect();
        let mut count = 0;
        loop {
            let last = Instant::now() >= until || self.listener.is_none();
            due.append(&mut self.turned_away);
            count += due.len();
            for line in due.drain(..) {
                told(&line);
            }
            if last || count + 1 >= self.most as usize {
                break;
            }
            match self.arrivals(until) {
                Ok(arrivals) => due.extend(arrivals.into_iter().map(|arrival| arrival.line)),
                // Some may be in the list of those to be told all the same.
                Err(_) if !self.turned_away.is_empty() => {}
                Err(_) => break,
            }
        }
        for line in &self.strangers {
            told(line);
        }
    }
}

/// Tells one who is none of this world so.
fn dismiss(line: &Line, what: String) {
    let word = Word::Refused(Error::NotJoined { what });
    // Who does not listen needs no answer.
    let _ = line.send(&word.encode(), &[], Instant::now() + TELL);
}

/// Whether two secrets are the same, in a time that does not tell where they differ.
fn same(a: &[u8; 32], b: &[u8; 32]) -> bool {
    a.iter().zip(b).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
}
