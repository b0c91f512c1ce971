//! The ranks of a probe: the first rank of each host measures, and all ranks take part in the exchange of what was measured.

use std::ops::ControlFlow;
use std::thread;
use std::time::{Duration, Instant};

use roundelay::{Error, World};
use roundelay_core::diagnostics::Code;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::facts::HostFacts;
use super::failure;
use super::pairings::Pair;
use crate::report::Failure;

/// Bytes of the first message each way, and the most bytes of one.
const FIRST: usize = 64 << 10;
const LONGEST: usize = 16 << 20;
/// The share of a round that a message takes at least, where it has not the most bytes; and the least number of them.
const SHARE: u32 = 8;
const LEAST: usize = 3;
/// Messages to and fro for the latency, of which the quickest counts.
const PINGS: usize = 10;

/// The next work of all ranks, as rank 0 says.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ProbeOrder {
    /// A short message each way between the hosts of each pair, which makes their connections.
    Greet(Vec<Pair>),
    /// Long messages at once between all pairs: both ways together, or one way after the other, so that a slow way holds
    /// up no acknowledgements of the other.
    Measure { pairs: Vec<Pair>, together: bool },
    /// Each host reads its facts.
    Facts,
    /// The job ends with this exit code.
    End(u8),
}

/// The answer of a host to an order.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Told {
    Nothing,
    Facts(HostFacts),
    Heard(Heard),
}

/// The measurement of a host in a round with another.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Heard {
    /// Bytes a second that came from the other host.
    pub(super) rate: f64,
    /// Seconds of a message of no length, where this host sent first.
    pub(super) latency: f64,
    /// Segments that were sent to the other host since the connection was made, and those that were sent again.
    pub(super) segments: Option<[u32; 2]>,
}

/// This rank's part in the probe.
pub(super) struct Prober<'w> {
    world: &'w World,
    /// The first rank of each host, in ascending order.
    firsts: Vec<u32>,
    time: Duration,
}

impl<'w> Prober<'w> {
    pub(super) fn new(world: &'w World, time: Duration) -> Self {
        let mut firsts: Vec<u32> =
            world.hosts().iter().filter_map(|ranks| ranks.iter().min().copied()).collect();
        firsts.sort_unstable();
        Self { world, firsts, time }
    }

    pub(super) fn hosts(&self) -> usize {
        self.firsts.len()
    }

    pub(super) fn firsts(&self) -> &[u32] {
        &self.firsts
    }

    /// Returns the name of what brings messages between hosts.
    pub(super) fn carrier(&self) -> String {
        self.world.carrier().unwrap_or_default()
    }

    pub(super) fn nranks(&self) -> u32 {
        self.world.nranks()
    }

    /// Does what rank 0 orders until it ends the job, and returns the exit code.
    pub(super) fn follow(&self) -> Result<u8, Failure> {
        loop {
            if let ControlFlow::Break(code) = self.obey(None)? {
                return Ok(code);
            }
        }
    }

    /// Has all ranks do something, and returns what the hosts tell: on rank 0 alone.
    ///
    /// # Errors
    /// E0405 where a rank does not answer within the deadline, E0428 where one is gone.
    pub(super) fn lead(&self, order: &ProbeOrder) -> Result<Vec<Told>, Failure> {
        match self.obey(Some(order))? {
            ControlFlow::Continue(told) => Ok(told),
            ControlFlow::Break(_) => Ok(Vec::new()),
        }
    }

    /// Does what rank 0 orders, and returns what the hosts tell, or the exit code if the job ends.
    fn obey(&self, order: Option<&ProbeOrder>) -> Result<ControlFlow<u8, Vec<Told>>, Failure> {
        let order = self.gather::<Option<ProbeOrder>>(&order)?.swap_remove(0);
        let mine = match &order {
            Some(ProbeOrder::Greet(pairs)) => {
                self.with_partner(pairs, |peer, _| self.swap(peer, 0.0).map(|_| Told::Nothing))
            }
            Some(ProbeOrder::Measure { pairs, together }) => {
                let work = |peer, leads| self.measurement(peer, leads, *together).map(Told::Heard);
                self.with_partner(pairs, work)
            }
            Some(ProbeOrder::Facts) => Ok(Told::Facts(HostFacts::read(self.world, &self.firsts))),
            Some(ProbeOrder::End(code)) => return Ok(ControlFlow::Break(*code)),
            None => Ok(Told::Nothing),
        };
        let mut all = self.gather::<Told>(&mine.map_err(|error| failure(&error))?)?;
        let firsts = self.firsts.iter().rev();
        let mut told: Vec<Told> = firsts.map(|rank| all.swap_remove(*rank as usize)).collect();
        told.reverse();
        Ok(ControlFlow::Continue(told))
    }

    /// Does the work of this rank with the first rank of its partner in a round, if it has one; it leads if it is the first
    /// of its pair.
    fn with_partner(
        &self,
        pairs: &[Pair],
        work: impl FnOnce(u32, bool) -> Result<Told, Error>,
    ) -> Result<Told, Error> {
        let own = self.firsts.iter().position(|first| *first == self.world.rank().id());
        let pair = own.and_then(|own| pairs.iter().find(|(a, b)| *a == own || *b == own));
        match (own, pair) {
            (Some(own), Some((a, b))) if own == *a => work(self.firsts[*b], true),
            (Some(_), Some((a, _))) => work(self.firsts[*a], false),
            _ => Ok(Told::Nothing),
        }
    }

    /// Gathers a value of each rank.
    fn gather<T: DeserializeOwned>(&self, mine: &impl Serialize) -> Result<Vec<T>, Failure> {
        let mut text = serde_json::to_vec(mine).expect("plain data serializes");
        let (mut rank, nranks) = (self.world.rank(), self.nranks() as usize);
        let mut lengths = vec![0_u64; nranks];
        rank.all_gather(&[text.len() as u64], &mut lengths).map_err(|error| failure(&error))?;
        // Blanks behind a value mean nothing, and lengths that are alike have one plan.
        let most = lengths.iter().copied().max().unwrap_or(1).next_power_of_two() as usize;
        text.resize(most, b' ');
        let mut all = vec![0; most * nranks];
        rank.all_gather(&text, &mut all).map_err(|error| failure(&error))?;
        let read = all.chunks_exact(most).map(serde_json::from_slice).collect::<Result<_, _>>();
        read.map_err(|error| {
            let title = format!("a rank answers what this version does not know: {error}");
            Failure::usage(Code::NotJoined, title).with_help("run one version on all hosts")
        })
    }

    /// Sends a number to another rank, and receives its number.
    fn swap(&self, peer: u32, mine: f64) -> Result<f64, Error> {
        let mut theirs = [0.0];
        self.world.send(&[mine], peer)?;
        self.world.recv(&mut theirs, peer)?;
        Ok(theirs[0])
    }

    /// Measures with another rank; it leads if it sends first.
    fn measurement(&self, peer: u32, leads: bool, together: bool) -> Result<Heard, Error> {
        let latency = self.latency(peer, leads)?;
        let rate = if together {
            self.rate(peer, [true, true])?
        } else {
            let first = self.rate(peer, [leads, !leads])?;
            first.max(self.rate(peer, [!leads, leads])?)
        };
        let segments = self.world.connection(peer).map(|told| [told.segments, told.retransmits]);
        Ok(Heard { rate, latency, segments })
    }

    /// Returns the bytes a second from another rank, 0 if this rank only sends. Messages become longer until the quicker way
    /// takes its share of the time, or the slower way all of it; then as many go one after the other as fill the round. Both
    /// ranks know both times of a message, and so decide alike.
    fn rate(&self, peer: u32, ways: [bool; 2]) -> Result<f64, Error> {
        let (time, share) = (self.time.as_secs_f64(), (self.time / SHARE).as_secs_f64());
        let mut length = FIRST;
        let longest = loop {
            let mine = self.transfer(peer, ways, length, 1)?;
            let theirs = self.swap(peer, mine)?;
            let (quick, slow) = match ways {
                [true, true] => (mine.min(theirs), mine.max(theirs)),
                [true, false] => (theirs, theirs),
                _ => (mine, mine),
            };
            if quick >= share || slow >= time || length >= LONGEST {
                break slow;
            }
            length *= 2;
        };
        let messages = ((time / longest) as usize).max(LEAST);
        let took = self.transfer(peer, ways, length, messages)?;
        Ok(if ways[1] { (messages * length) as f64 / took } else { 0.0 })
    }

    /// Returns half of the time of the quickest message to and fro.
    fn latency(&self, peer: u32, leads: bool) -> Result<f64, Error> {
        let mut least = f64::MAX;
        for _ in 0..PINGS {
            let begun = Instant::now();
            if leads {
                self.swap(peer, 0.0)?;
                least = least.min(begun.elapsed().as_secs_f64() / 2.0);
            } else {
                self.world.recv(&mut [0.0], peer)?;
                self.world.send(&[0.0], peer)?;
            }
        }
        Ok(least)
    }

    /// Sends some messages of `length` bytes, receives as many, or both, and returns the seconds until all had come, from
    /// before the other rank could send the first: a rank that the system delays sees no rate that is too high.
    fn transfer(
        &self,
        peer: u32,
        [sends, receives]: [bool; 2],
        length: usize,
        messages: usize,
    ) -> Result<f64, Error> {
        let (out, mut into) = (vec![0_u8; length], vec![0_u8; length]);
        let begun = Instant::now();
        self.swap(peer, 0.0)?;
        thread::scope(|threads| {
            let send = || (0..messages).try_for_each(|_| self.world.send(&out, peer));
            let sending = sends.then(|| threads.spawn(send));
            let mut received = if receives { 0..messages } else { 0..0 };
            received.try_for_each(|_| self.world.recv(&mut into, peer))?;
            let took = begun.elapsed().as_secs_f64();
            sending.map_or(Ok(()), |sent| sent.join().expect("no panic")).map(|()| took)
        })
    }
}
