//! The callers' buffers that the processes of all ranks map, so that kernels use them where they are and copy none.
//!
//! Each rank has a few tables of addresses: the first has the stages of its buffers, each other one a pair of buffers of
//! its caller. The kernel tells the other ranks which table its rank uses in that launch, so each rank decides for itself,
//! launch by launch. Ranks offer each other pairs in the second launch of a plan, the fourth, the eighth and so on, in
//! which all of them take part; only a pair that all ranks have mapped gets a table.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use roundelay_core::ids::RankId;

use super::super::device::Device;
use super::super::device_plan::DevicePlan;
use super::super::error::Error;
use super::super::options::{Registration, VECTOR};
use super::super::shared_block::{BlockKind, SharedBlock, Ticket};
use super::agreement::agree;
use super::lent_memory::{LentMemory, buffer_id};
use super::rank::CudaRank;
use crate::lowering::plan_call::PlannedCall;

/// The tables of each rank, the first of them that of its stages.
pub(super) const TABLES: usize = 8;
/// The bytes of the largest buffer of a call for which copies take more time than the tables.
const LEAST: usize = 64 << 10;

/// The reason why the last launch of a rank copied its buffers; `None` where it used them in place.
type Reason = Option<String>;

/// The pairs of buffers of a plan.
pub(super) struct Registry {
    registration: Registration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    launches: u64,
    /// This rank's pairs, of the tables after the first.
    pairs: Vec<Pair>,
    /// The memory of other ranks' pairs, by rank and table.
    mapped: BTreeMap<(usize, usize), Vec<SharedBlock>>,
    /// The reason why no pair of this rank was taken in the last exchange.
    refused: Reason,
    reason: Reason,
}

/// Input and output of this rank, at addresses that other allocations may have had before.
struct Pair {
    io: [u64; 2],
    ids: [u64; 2],
    /// The last launch that used it.
    last: u64,
}

/// The last launch of a pair that graphs replay.
const KEPT: u64 = u64::MAX;
/// The number of an allocation that the driver does not know.
const UNKNOWN: u64 = u64::MAX;

/// The fields of a plan that its registry needs.
pub(super) struct PlanParts<'a> {
    pub(super) rank: &'a CudaRank,
    pub(super) call: &'a PlannedCall,
    pub(super) device_plan: &'a DevicePlan,
}

impl PlanParts<'_> {
    fn device(&self) -> &Device {
        &self.rank.device
    }
}

/// Returns the reason why a plan has no registry, the same on all ranks.
pub(super) fn reason_for_none(
    rank: &CudaRank,
    call: &PlannedCall,
    registration: Registration,
) -> Reason {
    if registration == Registration::Never {
        return Some("the options say that buffers are copied".to_owned());
    }
    let most = call.ranks().flat_map(|rank| call.bytes(rank)).max().unwrap_or(0);
    if most < LEAST {
        return Some(format!("no buffer of the call has {} KiB", LEAST >> 10));
    }
    let host = rank.shared().kinds.iter().position(|kind| *kind == BlockKind::Host)?;
    Some(format!("not all ranks reach the device of rank {host}"))
}

impl Registry {
    pub(super) fn new(registration: Registration) -> Self {
        Self { registration, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the reason why the last launch copied its buffers.
    pub(super) fn reason(&self) -> Reason {
        self.state().reason.clone()
    }

    /// Counts launches anew, as all ranks do after one gave up.
    pub(super) fn reset(&self) {
        self.state().launches = 0;
    }

    /// Returns the table of this launch's buffers, which may be a new one. A launch that is captured keeps its table for as
    /// long as the plan lives.
    pub(super) fn table(
        &self,
        parts: &PlanParts<'_>,
        captures: bool,
        io: [u64; 2],
    ) -> Result<u64, Error> {
        let mut state = self.state();
        state.launches += 1;
        let launches = state.launches;
        let bytes = parts.call.bytes(parts.rank.rank());
        let pair = Pair { io, ids: ids(io, bytes), last: launches };
        if launches > 1 && launches.is_power_of_two() {
            state.exchange(parts, captures, &pair, self.registration)?;
        }
        let place = state.position(&pair);
        match place {
            Some(at) if captures => state.pairs[at].last = KEPT,
            Some(at) => state.pairs[at].last = launches.max(state.pairs[at].last),
            None if launches == 1 => state.refused = Some("it was the first launch".to_owned()),
            None => {}
        }
        let unknown = || "no exchange has had these buffers so far".to_owned();
        let refused = place.is_none().then(|| state.refused.clone().unwrap_or_else(unknown));
        state.reason = refused;
        Ok(place.map_or(0, |at| at as u64 + 1))
    }
}

/// Returns the numbers of the allocations of two buffers: 0 for a buffer without bytes, [`UNKNOWN`] for one that the driver
/// did not allocate.
fn ids(io: [u64; 2], bytes: [usize; 2]) -> [u64; 2] {
    [0, 1].map(|at| if bytes[at] == 0 { 0 } else { buffer_id(io[at]).unwrap_or(UNKNOWN) })
}

/// The offer of a rank in an exchange, as the others get it; table 0 is none.
struct Offer {
    table: usize,
    /// Input and output, where the rank has such buffers: the offset in an allocation.
    buffers: [Option<(u64, Ticket)>; 2],
}

/// The first byte of the words of a rank in an exchange.
const CAPTURES: u8 = 0xff;

impl Offer {
    fn encode(table: usize, lent: &[Option<LentMemory>; 2]) -> Vec<u8> {
        let mut told = vec![table as u8];
        for lent in lent {
            let Some(lent) = lent else {
                told.push(0);
                continue;
            };
            told.push(1);
            told.extend(lent.offset.to_le_bytes());
            told.extend(lent.ticket.to_bytes());
        }
        told
    }

    /// Reads the words of another rank.
    fn read(told: &[u8]) -> Option<Self> {
        let (table, mut rest) = told.split_first()?;
        let (table, mut buffers) = (usize::from(*table), [None, None]);
        if table >= TABLES {
            return None;
        }
        for buffer in buffers.iter_mut().filter(|_| table > 0) {
            let (there, behind) = rest.split_first()?;
            rest = behind;
            if *there == 0 {
                continue;
            }
            let (offset, behind) = rest.split_first_chunk()?;
            let (ticket, behind) = behind.split_at_checked(Ticket::BYTES)?;
            rest = behind;
            *buffer = Some((u64::from_le_bytes(*offset), Ticket::read(ticket)?));
        }
        Some(Self { table, buffers })
    }

    /// Maps the buffers of another rank; returns their addresses.
    fn import(
        &self,
        device: &Device,
        bytes: [usize; 2],
        files: Vec<OwnedFd>,
    ) -> Result<(Vec<SharedBlock>, [u64; 2]), Error> {
        let (mut files, mut io, mut blocks) = (files.into_iter(), [0; 2], Vec::new());
        for ((buffer, bytes), at) in self.buffers.iter().zip(bytes).zip(&mut io) {
            let Some((offset, ticket)) = buffer else {
                if bytes == 0 {
                    continue;
                }
                return Err(too_short());
            };
            let end = usize::try_from(*offset).ok().and_then(|at| at.checked_add(bytes));
            if end.is_none_or(|end| end > ticket.bytes) {
                return Err(too_short());
            }
            let file = (ticket.kind == BlockKind::Virtual).then(|| files.next()).flatten();
            let block = SharedBlock::import(device, ticket, file)?;
            *at = block.address() + offset;
            blocks.push(block);
        }
        Ok((blocks, io))
    }
}

fn too_short() -> Error {
    Error::KernelFailed {
        what: "mapping another rank's buffers".to_owned(),
        why: "its words name fewer bytes than the call has".to_owned(),
    }
}

impl State {
    fn position(&self, pair: &Pair) -> Option<usize> {
        self.pairs.iter().position(|it| it.io == pair.io && it.ids == pair.ids)
    }

    /// Offers a pair to the other ranks, unless it is known, and maps what they offer. All ranks come here in the same
    /// launch.
    fn exchange(
        &mut self,
        parts: &PlanParts<'_>,
        captures: bool,
        pair: &Pair,
        registration: Registration,
    ) -> Result<(), Error> {
        let (rank, nranks) = (parts.rank.rank(), parts.rank.nranks() as usize);
        let world = &*parts.rank.shared().world;
        // The table of the pair that was used the longest time ago, where none is free.
        let least = (0..self.pairs.len()).min_by_key(|at| self.pairs[*at].last);
        let place = match least {
            Some(least) if self.pairs.len() + 1 == TABLES => least,
            _ => self.pairs.len(),
        };
        let kept = self.pairs.get(place).is_some_and(|pair| pair.last == KEPT);
        self.refused = None;
        let lent = if self.position(pair).is_some() {
            None
        } else if captures {
            self.refused = Some("the launch was captured".to_owned());
            None
        } else if kept {
            self.refused = Some("captured launches keep all tables of the plan".to_owned());
            None
        } else {
            let lent = lend(parts, pair, registration);
            lent.map_err(|why| self.refused = Some(why)).ok()
        };
        let mine = match &lent {
            Some(lent) => Offer::encode(place + 1, lent),
            None => vec![if captures { CAPTURES } else { 0 }],
        };
        let ((), told) = agree(world, Ok(()), |()| mine)?;
        // Memory cannot be mapped while a stream captures, and a launch that is captured on one rank is on all.
        if told.iter().any(|told| told.first() == Some(&CAPTURES)) {
            return Ok(());
        }
        let offers: Option<Vec<Offer>> = told.iter().map(|told| Offer::read(told)).collect();
        let Some(offers) = offers else {
            return Err(world.corrupt("a rank tells no buffers".to_owned()).into());
        };
        if offers.iter().all(|offer| offer.table == 0) {
            return Ok(());
        }
        let descriptors = lent.iter().flatten().flatten().filter_map(LentMemory::descriptor);
        let files = world.exchange_descriptors(&descriptors.collect::<Vec<_>>())?;
        let imported = self.import(parts, &offers, files, lent.is_some().then_some((place, pair)));
        let (accepted, told) = agree(world, imported, Clone::clone)?;
        debug_assert_eq!(accepted.len(), nranks);
        for (other, offer) in offers.iter().enumerate() {
            if offer.table == 0 {
                continue;
            }
            let barred = told.iter().position(|accepted| accepted.get(other) != Some(&1));
            if other != rank.index() {
                if barred.is_some() {
                    self.mapped.remove(&(other, offer.table));
                }
                continue;
            }
            // Some ranks may have the new addresses already, so those of before are gone in any case.
            let pair = match barred {
                None => Pair { ..*pair },
                Some(by) => {
                    self.refused = Some(format!("rank {by} cannot map the buffers"));
                    Pair { io: [0; 2], ids: [UNKNOWN; 2], last: 0 }
                }
            };
            match self.pairs.get_mut(place) {
                Some(old) => *old = pair,
                None => self.pairs.push(pair),
            }
        }
        Ok(())
    }

    /// Maps the buffers of all offers, and writes them and this rank's own pair into the tables; returns for each rank
    /// whether its offer was taken.
    fn import(
        &mut self,
        parts: &PlanParts<'_>,
        offers: &[Offer],
        files: Vec<Vec<OwnedFd>>,
        mine: Option<(usize, &Pair)>,
    ) -> Result<Vec<u8>, Error> {
        let (device, nranks) = (parts.device(), offers.len());
        let replaces = mine.is_some_and(|(place, _)| place < self.pairs.len())
            || (0..).zip(offers).any(|(rank, it)| self.mapped.contains_key(&(rank, it.table)));
        if replaces {
            // Earlier launches use the tables that change now.
            device.finish("replacing buffers of callers")?;
        }
        let mut accepted = vec![0; nranks];
        for ((other, offer), files) in offers.iter().enumerate().zip(files) {
            if offer.table == 0 {
                continue;
            }
            let at = offer.table * nranks + other;
            if other == parts.rank.rank().index() {
                if let Some((_, pair)) = mine {
                    parts.device_plan.write_buffers(device, at, pair.io)?;
                    accepted[other] = 1;
                }
                continue;
            }
            self.mapped.remove(&(other, offer.table));
            let bytes = parts.call.bytes(RankId(other as u32));
            // A rank that cannot map the buffers copies nothing but what it has now.
            if let Ok((blocks, io)) = offer.import(device, bytes, files) {
                parts.device_plan.write_buffers(device, at, io)?;
                self.mapped.insert((other, offer.table), blocks);
                accepted[other] = 1;
            }
        }
        Ok(accepted)
    }
}

/// Returns a pair as memory that other processes can map, or the reason why it is not.
fn lend(
    parts: &PlanParts<'_>,
    pair: &Pair,
    registration: Registration,
) -> Result<[Option<LentMemory>; 2], String> {
    let rank = parts.rank.rank();
    let bytes = parts.call.bytes(rank);
    let [input, output] = pair.io;
    let ends = [input + bytes[0] as u64, output + bytes[1] as u64];
    if bytes.iter().all(|bytes| *bytes > 0) && input < ends[1] && output < ends[0] {
        let (input_at, output_at) = parts.call.in_place(rank);
        let whole = input.checked_sub(input_at as u64);
        if parts.call.check_in_place().is_err() || whole != output.checked_sub(output_at as u64) {
            return Err("input and output overlap otherwise than in place".to_owned());
        }
    }
    let lend = |at: usize| {
        if bytes[at] == 0 {
            return Ok(None);
        }
        let name = ["input", "output"][at];
        if !pair.io[at].is_multiple_of(VECTOR.into()) {
            return Err(format!("the {name} is not aligned for {VECTOR} bytes"));
        }
        let lent = LentMemory::new(parts.device(), pair.io[at], bytes[at], registration);
        lent.map(Some).map_err(|why| format!("the {name} cannot be mapped by others: {why}"))
    };
    Ok([lend(0)?, lend(1)?])
}
