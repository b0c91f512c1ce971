//! The memory and the processes that all ranks get, once they have come.

use std::fs::File;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::Instant;

use super::super::line::{FDS, LineFault, readable};
use super::super::wire::Word;
use super::{Host, not_joined};
use crate::Error;
use crate::shared_memory::meet::ending::Peer;
use crate::shared_memory::meet::system::refused;

impl Host<'_> {
    /// Sends each rank the memory and the processes, one rank after another: a user may not have many descriptors on
    /// their way.
    pub(super) fn hand_out(&self, arena: &File, me: &Peer) -> Result<(), Error> {
        let others = self.guests.values().map(|guest| &guest.process);
        let all: Vec<_> = [me].into_iter().chain(others).collect();
        for (rank, guest) in &self.guests {
            let who = format!("rank {rank} (process {})", guest.process.pid);
            let fault = |fault| match fault {
                LineFault::Closed => Error::NotJoined {
                    what: format!("{who} left: it ended, or gave up, before all had met"),
                },
                LineFault::Late | LineFault::Crowded => Error::NotJoined {
                    what: format!(
                        "{who} came, and did not take the memory and the processes of the others in {:?}; raise the deadline if it is only slow",
                        self.deadline
                    ),
                },
                LineFault::System(errno) => {
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
        // Checks that no rank has left since it answered.
        let lines: Vec<_> = self.guests.values().map(|guest| guest.line.as_fd()).collect();
        let events = readable(&lines, Instant::now())
            .map_err(|errno| refused("to let rank 0 look after the others (poll)", errno))?;
        match self.guests.keys().zip(events).find(|(_, event)| *event) {
            Some((rank, _)) => Err(self.spoke_early(*rank)),
            None => Ok(()),
        }
    }

    /// Returns the error of a rank that sent a packet before it was asked.
    pub(super) fn spoke_early(&self, rank: u32) -> Error {
        let guest = &self.guests[&rank];
        let why = match guest.line.receive(0, Instant::now()) {
            Ok(_) => "sent what no rank sends".to_owned(),
            Err(LineFault::Closed | LineFault::Late | LineFault::Crowded) => {
                "left: it ended, or gave up".to_owned()
            }
            Err(LineFault::System(errno)) => format!("cannot be heard ({errno})"),
        };
        let pid = guest.process.pid;
        Error::NotJoined { what: format!("rank {rank} (process {pid}) {why}, before all had met") }
    }
}
