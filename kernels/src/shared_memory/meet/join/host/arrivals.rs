//! The processes that connect to rank 0, until rank 0 knows their ranks.

use std::collections::btree_map::Entry;
use std::os::fd::AsFd;
use std::time::Instant;

use rustix::io::Errno;
use rustix::process::geteuid;

use super::super::line::{Line, LineFault, accept, readable};
use super::super::wire::{Hello, Process, Word};
use super::{ACCEPTED, Arrival, Host, STAY, Stray, TELL, TOLD};
use crate::Error;
use crate::shared_memory::meet::system::refused;
use crate::shared_memory::meet::unique::same_secret;

impl Host<'_> {
    /// Waits for an event, and returns the processes that have sent their first packet.
    pub(super) fn arrivals(&mut self, until: Instant) -> Result<Vec<Arrival>, Error> {
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

    /// Accepts new connections, [`ACCEPTED`] at most.
    fn accept(&mut self) -> Result<(), Error> {
        let own = geteuid().as_raw();
        for _ in 0..ACCEPTED {
            let Some(listener) = &self.listener else { break };
            let line =
                accept(listener).map_err(|errno| refused("rank 0 a connection (accept)", errno))?;
            let Some(line) = line else { break };
            if line.uid == own {
                self.strangers.push(line);
            } else {
                let who = Process(line.pid);
                let count = self.note(Stray::OtherUser, || {
                    format!("{who} of user {} was turned away", line.uid)
                });
                if count > TOLD {
                    continue;
                }
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

    /// Keeps the text about the first process of a kind, and counts the others, whose number it returns.
    fn note(&mut self, kind: Stray, text: impl FnOnce() -> String) -> u64 {
        match self.notes.entry(kind) {
            Entry::Vacant(entry) => entry.insert((text(), 0)).1,
            Entry::Occupied(entry) => {
                let (_, count) = entry.into_mut();
                *count += 1;
                *count
            }
        }
    }

    /// Reads the first packet of a connection; dismisses a process whose packet is not understood.
    fn arrival(&mut self, line: Line) -> Result<Option<Arrival>, Error> {
        let who = Process(line.pid).to_string();
        let mut packet = match line.receive(1, Instant::now()) {
            Ok(packet) => packet,
            Err(LineFault::Closed) => {
                self.note(Stray::Silent, || format!("{who} connected and left without a word"));
                return Ok(None);
            }
            Err(LineFault::Late | LineFault::Crowded) => {
                self.strangers.push(line);
                return Ok(None);
            }
            Err(LineFault::System(errno)) => {
                // No stranger can cause this error, so rank 0 could not receive from any process.
                self.turned_away.push(line);
                return Err(refused(
                    format_args!("rank 0 what {who} sends to it (recvmsg)"),
                    errno,
                ));
            }
        };
        let Some(hello) = Hello::decode(&packet.bytes) else {
            self.note(Stray::Rubbish, || format!("{who} sent what no rank sends"));
            dismiss(&line, format!("{who} sent what no rank of this version sends"));
            return Ok(None);
        };
        if !same_secret(&hello.secret, &self.offer.id.secret()) {
            self.note(Stray::WrongSecret, || {
                format!("{who} (as rank {}) came with a wrong secret", hello.rank)
            });
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

    /// Frees the socket's name, as all ranks have come.
    pub(super) fn close(&mut self) {
        // A waiting process that cannot be accepted learns it by the end of its connection.
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

    /// Sends the error to all processes that have come, and for a while to processes that come late: there will be no
    /// world.
    pub(super) fn tell(&mut self, error: &Error) {
        let word = Word::Refused(error.clone()).encode();
        // A process that does not read its packets gets no error.
        let told = |line: &Line| line.send(&word, &[], Instant::now() + TELL).is_ok();
        let until = self.until.min(Instant::now() + STAY);
        // The guests' descriptors are closed first, as otherwise too many might be open for the processes still to
        // come.
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
                // This round may still have put processes into the list `turned_away`.
                Err(_) if !self.turned_away.is_empty() => {}
                Err(_) => break,
            }
        }
        for line in &self.strangers {
            told(line);
        }
    }
}

/// Sends a process of another world the reason why it is turned away.
fn dismiss(line: &Line, what: String) {
    let word = Word::Refused(Error::NotJoined { what });
    // A process that does not read its packets needs no answer.
    let _ = line.send(&word.encode(), &[], Instant::now() + TELL);
}
