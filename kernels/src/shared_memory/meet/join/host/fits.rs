//! Checks that the arriving processes fit together, and the error about missing ranks.

use super::super::wire::{self, Hello, Process};
use super::super::{Offer, moment};
use super::{Arrival, Guest, Host, not_joined};
use crate::Error;
use crate::shared_memory::meet::ending::Peer;

impl Host<'_> {
    /// Checks that a process that knows the secret fits, and keeps it as a guest.
    pub(super) fn seat(&mut self, Arrival { line, hello, pidfd }: Arrival) -> Result<(), Error> {
        if let Err(error) = self.fits(&hello) {
            self.turned_away.push(line);
            return Err(error);
        }
        let ends = moment(hello.left);
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

    /// Returns the error of a deadline that is over before all ranks have come.
    pub(super) fn missing(&self) -> Error {
        let Offer { nranks, .. } = self.offer;
        let missing: Vec<_> = (1..nranks).filter(|rank| !self.guests.contains_key(rank)).collect();
        let shown: Vec<_> = missing.iter().take(16).map(u32::to_string).collect();
        let more = match missing.len() - shown.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let list = shown.join(", ") + &more;
        let ranks = if missing.len() == 1 { "rank" } else { "ranks" };
        let note = |(text, more): &(String, u64)| match more {
            0 => text.clone(),
            more => format!("{text}, and {more} more like it"),
        };
        let mut notes: Vec<_> = self.notes.values().map(note).collect();
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
}
