//! The part of a rank other than 0.

use std::os::fd::{AsFd as _, OwnedFd};
use std::time::{Duration, Instant};

use super::line::{FDS, Line, LineFault, Packet, connect};
use super::wire::{Hello, Process, Word};
use super::{Joined, Offer, arena, own_process};
use crate::Error;
use crate::shared_memory::meet::ending::Peer;
use crate::shared_memory::meet::mapping::can_map;
use crate::shared_memory::meet::system::refused;
use rustix::io::Errno;
use rustix::process::geteuid;

/// How much longer than its own deadline a process waits for rank 0 to report that the deadline is over.
const GRACE: Duration = Duration::from_millis(500);

/// Meets the other ranks at the socket of rank 0.
pub(super) fn meet(offer: Offer<'_>) -> Result<Joined, Error> {
    let line = match connect(&offer.id.socket(), offer.until) {
        Ok(line) => line,
        Err(_) if offer.rank >= offer.nranks => return Err(offer.out_of_range()),
        Err(fault) => return Err(unmet(&offer, fault)),
    };
    on(&line, &offer)
}

/// Returns the error of a connection that did not come about.
fn unmet(offer: &Offer<'_>, fault: LineFault) -> Error {
    let Offer { rank, deadline, .. } = offer;
    let name = offer.id.socket();
    match fault {
        LineFault::Late | LineFault::Closed => Error::NotJoined {
            what: format!(
                "rank {rank} waited {deadline:?} for rank 0 at the abstract socket @{name}, and nobody listens there: rank 0 was not started, ended, gave up, has another id, or is in another network namespace (container); start all ranks with one id, or raise the deadline"
            ),
        },
        LineFault::Crowded => Error::NotJoined {
            what: format!(
                "rank {rank} waited {deadline:?} for rank 0 at the abstract socket @{name}, to which others connect faster than rank 0 can turn them away; end the processes that connect to it, or raise the deadline"
            ),
        },
        LineFault::System(errno) => refused(
            format_args!(
                "to connect rank {rank} to rank 0 at the abstract socket @{name} (socket, connect)"
            ),
            errno,
        ),
    }
}

/// Joins the world with the process that listens at the other end of `line`.
pub(super) fn on(line: &Line, offer: &Offer<'_>) -> Result<Joined, Error> {
    let own = geteuid().as_raw();
    if line.uid != own {
        return Err(Error::NotJoined {
            what: format!(
                "the abstract socket @{} at which the ranks are to meet is of user {} ({}), and rank {} runs as user {own}; all ranks must run as one user",
                offer.id.socket(),
                line.uid,
                Process(line.pid),
                offer.rank
            ),
        });
    }
    let me = own_process()?;
    let hello = Hello {
        secret: offer.id.secret(),
        rank: offer.rank,
        nranks: offer.nranks,
        bytes: offer.bytes,
        pid: me.pid,
        left: offer.until.saturating_duration_since(Instant::now()),
        version: offer.version.to_owned(),
    };
    let talk = Talk { line, offer, until: offer.until + GRACE };
    match line.send(&hello.encode(), &[me.pidfd.as_fd()], talk.until) {
        // A process that closed the connection may have sent the reason before.
        Ok(()) | Err(LineFault::Closed) => {}
        Err(fault) => return Err(talk.failed("to take its hello", fault)),
    }
    let joined = match talk.take_all() {
        Ok(joined) => joined,
        Err(Failed::Told(error)) => return Err(error),
        Err(Failed::Here(error)) => {
            // Rank 0 sends the error to all ranks, and to this rank too if it still can.
            let _ = line.send(&Word::Refused(error.clone()).encode(), &[], talk.until);
            return Err(match talk.word(0) {
                Err(Failed::Told(
                    told @ (Error::NotJoined { .. } | Error::SystemRefused { .. }),
                )) if told.text().contains(&error.text()) => told,
                _ => error,
            });
        }
    };
    match line.send(&Word::Ready.encode(), &[], talk.until) {
        Ok(()) | Err(LineFault::Closed) => {}
        Err(fault) => return Err(talk.failed("to hear that it is ready", fault)),
    }
    match talk.word(0) {
        Ok((Word::Go, _)) => Ok(joined),
        Ok(_) => Err(talk.rubbish()),
        Err(Failed::Told(error) | Failed::Here(error)) => Err(error),
    }
}

/// The reason of a failed join.
enum Failed {
    /// Rank 0 reported the error, or cannot receive it.
    Told(Error),
    /// The error lies in this process, and rank 0 should receive it.
    Here(Error),
}

/// The conversation with rank 0.
struct Talk<'a> {
    line: &'a Line,
    offer: &'a Offer<'a>,
    until: Instant,
}

impl Talk<'_> {
    /// Receives the memory and the processes.
    fn take_all(&self) -> Result<Joined, Failed> {
        let Offer { nranks, bytes, .. } = *self.offer;
        let (word, packet) = self.word(1)?;
        let fault = |what: String| {
            Failed::Here(Error::NotJoined {
                what: format!("rank {} was sent wrong memory: {what}", self.offer.rank),
            })
        };
        if word != Word::Arena {
            return Err(Failed::Told(self.rubbish()));
        }
        let arena = self.whole(packet, 1)?.pop().ok_or_else(|| fault("none".to_owned()))?;
        arena::check(&arena, bytes).map_err(fault)?;
        // The mapping is tried while all ranks can still receive the error.
        can_map(&arena, bytes as usize).map_err(Failed::Here)?;
        let mut peers: Vec<Peer> = Vec::with_capacity(nranks as usize);
        while peers.len() < nranks as usize {
            let (word, packet) = self.word(FDS)?;
            let due = (nranks as usize - peers.len()).min(FDS);
            match word {
                Word::Peers(first, pids) if first as usize == peers.len() && pids.len() == due => {
                    let fds = self.whole(packet, due)?;
                    peers.extend(pids.into_iter().zip(fds).map(|(pid, pidfd)| Peer { pid, pidfd }));
                }
                _ => return Err(Failed::Told(self.rubbish())),
            }
        }
        Ok(Joined { arena: arena.into(), peers })
    }

    /// Returns the descriptors of a packet, of which `due` must have come.
    fn whole(&self, packet: Packet, due: usize) -> Result<Vec<OwnedFd>, Failed> {
        if packet.fds.len() == due {
            return Ok(packet.fds);
        }
        let Offer { rank, nranks, .. } = self.offer;
        let got = packet.fds.len();
        Err(Failed::Here(refused(
            format_args!(
                "descriptors that rank 0 sent to rank {rank}: {got} of {due} came, and with {nranks} ranks each needs {} more than it has else",
                nranks + 3
            ),
            Errno::MFILE,
        )))
    }

    /// Receives the next word of rank 0, with `fds` descriptors at most.
    fn word(&self, fds: usize) -> Result<(Word, Packet), Failed> {
        let packet = self.line.receive(fds, self.until);
        let packet = packet.map_err(|fault| Failed::Told(self.failed("to answer", fault)))?;
        match Word::decode(&packet.bytes) {
            Some(Word::Refused(error)) => Err(Failed::Told(error)),
            Some(word) => Ok((word, packet)),
            None => Err(Failed::Told(self.rubbish())),
        }
    }

    /// Returns the error of a conversation that rank 0 did not go on with.
    fn failed(&self, what: &str, fault: LineFault) -> Error {
        let Offer { rank, deadline, .. } = self.offer;
        let rank_0 = format!("rank 0 ({})", Process(self.line.pid));
        let name = self.offer.id.socket();
        let what = match fault {
            LineFault::Closed => format!(
                "{rank_0} left rank {rank} at the abstract socket @{name} before all had met: it ended, or had met all its ranks without this one"
            ),
            LineFault::Late | LineFault::Crowded => format!(
                "rank {rank} waited {deadline:?} for {rank_0} {what} at the abstract socket @{name}; raise the deadline if it is only slow"
            ),
            LineFault::System(errno) => {
                return refused(
                    format_args!(
                        "to let rank {rank} talk with {rank_0} at @{name} (sendmsg, recvmsg, poll)"
                    ),
                    errno,
                );
            }
        };
        Error::NotJoined { what }
    }

    /// Returns the error of bytes that rank 0 never sends.
    fn rubbish(&self) -> Error {
        Error::NotJoined {
            what: format!(
                "{} at the abstract socket @{} sent to rank {} what no rank 0 of this version sends; start all ranks with one version and a new id",
                Process(self.line.pid),
                self.offer.id.socket(),
                self.offer.rank
            ),
        }
    }
}
