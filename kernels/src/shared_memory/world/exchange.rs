//! Exchanges of all ranks beside calls: each gives a few bytes or descriptors, and gets those of all others. All ranks make
//! them in one order.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use super::World;
use crate::Error;
use crate::shared_memory::meet::join::line::{self, LineFault, listen};
use crate::shared_memory::meet::system::{moment, random, refused};

/// The most bytes of a rank, so that all of them fit into the rings before anyone reads.
const MOST: usize = 16 << 10;
/// The most descriptors of a rank.
const MOST_DESCRIPTORS: usize = 2;

impl World {
    /// Sends `mine` to all ranks, and returns the bytes of each rank, this one included. The ranks may send different
    /// lengths.
    ///
    /// # Errors
    /// The errors of [`Self::send`] and [`Self::recv`].
    pub(crate) fn exchange(&self, mine: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
        assert!(mine.len() <= MOST, "an exchange is of a few bytes");
        for other in self.others() {
            self.send(&[mine.len() as u64], other as u32)?;
            self.send(mine, other as u32)?;
        }
        let mut all = vec![Vec::new(); self.nranks() as usize];
        all[self.rank] = mine.to_vec();
        for other in self.others() {
            let mut len = [0];
            self.recv(&mut len, other as u32)?;
            if len[0] > MOST as u64 {
                let rank = self.named(other);
                return Err(self.corrupt(format!("rank {rank} announces {} bytes", len[0])));
            }
            all[other] = vec![0; len[0] as usize];
            self.recv(&mut all[other], other as u32)?;
        }
        Ok(all)
    }

    /// Waits until all ranks have come here.
    ///
    /// # Errors
    /// The errors of [`Self::exchange`].
    pub(crate) fn meet(&self) -> Result<(), Error> {
        self.exchange(&[]).map(drop)
    }

    /// Sends the descriptors `mine` to all other ranks, and returns those of each, in the order in which that rank has
    /// them; none for this rank.
    ///
    /// # Errors
    /// E0429 where the system refuses a socket; E0405 and E0428 where a rank does not come.
    pub(crate) fn exchange_descriptors(
        &self,
        mine: &[BorrowedFd<'_>],
    ) -> Result<Vec<Vec<OwnedFd>>, Error> {
        assert!(mine.len() <= MOST_DESCRIPTORS, "an exchange is of a few descriptors");
        let mut name = [0; 16];
        random(&mut name)?;
        let name = format!("roundelay-{:032x}", u128::from_le_bytes(name));
        let asked = |what: &str| {
            let what = format!("{what} for the descriptors of rank {}", self.named(self.rank));
            move |errno| refused(what, errno)
        };
        let listener = listen(&name).map_err(asked("a socket (bind, listen)"))?;
        let names = self.exchange(name.as_bytes())?;
        let until = moment(self.deadline());
        let mut lines = Vec::new();
        for other in self.others() {
            let there = String::from_utf8_lossy(&names[other]);
            let line = line::connect(&there, until).map_err(|fault| self.unsent(other, fault))?;
            let rank = (self.rank as u32).to_le_bytes();
            line.send(&rank, mine, until).map_err(|fault| self.unsent(other, fault))?;
            lines.push(line);
        }
        let mut all: Vec<Vec<OwnedFd>> = (0..self.nranks()).map(|_| Vec::new()).collect();
        let mut missing: Vec<usize> = self.others().collect();
        while let Some(first) = missing.first().copied() {
            // A rank that ended sends nothing any more.
            if let Some((rank, how)) = self.find_lost() {
                return Err(self.lost_beside(rank, &how, "sent its descriptors"));
            }
            let tick = moment(super::watch::LOOK).min(until);
            line::readable(&[listener.as_fd()], tick).map_err(asked("a wait (poll)"))?;
            let Some(line) = line::accept(&listener).map_err(asked("a connection (accept)"))?
            else {
                if std::time::Instant::now() >= until {
                    return Err(self.unsent(first, LineFault::Late));
                }
                continue;
            };
            // A process that is no rank, or shows the number of another one, is sent away.
            let Ok(packet) = line.receive(MOST_DESCRIPTORS, until) else { continue };
            let rank = <[u8; 4]>::try_from(&packet.bytes[..])
                .map_or(usize::MAX, |bytes| u32::from_le_bytes(bytes) as usize);
            let known = self.peers.get(rank).is_some_and(|peer| peer.pid == line.pid);
            if let Some(at) = missing.iter().position(|missing| known && *missing == rank) {
                missing.swap_remove(at);
                all[rank] = packet.fds;
            }
        }
        // No line is closed before its packet was read.
        self.meet()?;
        Ok(all)
    }

    fn unsent(&self, other: usize, fault: LineFault) -> Error {
        let [rank, other] = [self.rank, other].map(|rank| self.named(rank));
        match fault {
            LineFault::System(errno) => {
                refused(format!("a line from rank {rank} to rank {other}"), errno)
            }
            LineFault::Late | LineFault::Crowded | LineFault::Closed => Error::Late {
                what: format!(
                    "rank {rank} waited {:?} for the descriptors of rank {other}",
                    self.deadline()
                ),
            },
        }
    }
}
