//! The steps of one rank for one count: groups of transfers, and folds, on places in its buffers.

use std::collections::HashSet;

use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_core::ids::{OpId, RankId, RegionId};
use roundelay_core::messages::{Group, GroupStep, Groups, MessageId, TwoSided};
use roundelay_core::schedule::{Buffer, Schedule};

use crate::error::Error;

/// The alignment of each scratch buffer: any element type and any load may begin there.
const ALIGNMENT: u64 = 256;
/// The bytes that no buffer reaches.
const MOST: u64 = 1 << 62;

/// The addresses of a rank's input, output and scratch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bases {
    pub(super) input: u64,
    pub(super) output: u64,
    pub(super) scratch: u64,
}

/// Bytes from the beginning of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NcclPlace {
    Input(u64),
    Output(u64),
    Scratch(u64),
}

/// One side of a message; messages of no elements have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Transfer {
    pub(super) peer: u32,
    pub(super) place: NcclPlace,
    /// Elements.
    pub(super) len: u64,
}

/// A step of a rank; steps are issued one after another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NcclStep {
    Group {
        sends: Vec<Transfer>,
        receives: Vec<Transfer>,
    },
    /// The first source, with each other source folded into it in turn, to all targets.
    Fold {
        from: Vec<NcclPlace>,
        to: Vec<NcclPlace>,
        len: u64,
        divisor: i64,
    },
}

/// All steps of a rank.
#[derive(Clone, Debug)]
pub(super) struct Steps {
    pub(super) list: Vec<NcclStep>,
    pub(super) dtype: DType,
    /// Bytes of scratch.
    pub(super) scratch: u64,
}

impl Bases {
    pub(super) fn address(&self, place: NcclPlace) -> u64 {
        match place {
            NcclPlace::Input(at) => self.input + at,
            NcclPlace::Output(at) => self.output + at,
            NcclPlace::Scratch(at) => self.scratch + at,
        }
    }
}

impl Steps {
    /// The steps of `rank` for `count` elements a unit.
    ///
    /// # Errors
    /// E0407 for a buffer with more bytes than addresses.
    pub(super) fn new(
        form: &TwoSided,
        groups: &Groups,
        rank: RankId,
        count: u64,
        (dtype, op): (DType, ReduceOp),
    ) -> Result<Self, Error> {
        let (schedule, proof, size) = (&**form.schedule(), form.proof(), dtype.size() as u64);
        let starts = starts(schedule, rank, count, size)?;
        let average = if op == ReduceOp::Avg { i64::from(schedule.nranks) } else { 0 };
        let writer = NcclWriter { form, schedule, starts: &starts, count, size };
        let finish: HashSet<OpId> = proof.finish.iter().copied().collect();
        let mut list = Vec::new();
        for step in groups.steps(rank) {
            match step {
                GroupStep::Group(group) => list.extend(writer.group(group)),
                GroupStep::Move(id) => {
                    let divisor = if finish.contains(id) { average } else { 0 };
                    list.extend(writer.fold(*id, divisor));
                }
            }
        }
        if proof.scale_outputs && average != 0 {
            let (output, len) =
                (vec![NcclPlace::Output(0)], schedule.elements(Buffer::Output, rank, count));
            list.push(NcclStep::Fold { from: output.clone(), to: output, len, divisor: average });
        }
        Ok(Self { list, dtype, scratch: starts[schedule.scratch.len()] })
    }
}

/// Returns the offset of each scratch buffer, and the end of the last; E0407 where that end, or a buffer of the caller,
/// has more bytes than addresses.
fn starts(schedule: &Schedule, rank: RankId, count: u64, size: u64) -> Result<Vec<u64>, Error> {
    let too_large = |what: &str| Error::TooLarge {
        what: format!("{what} for {count} elements a unit has more bytes than addresses"),
    };
    let bytes = |elements: u64| elements.checked_mul(size).filter(|bytes| *bytes < MOST);
    for (buffer, what) in [(Buffer::Input, "the input"), (Buffer::Output, "the output")] {
        bytes(schedule.elements(buffer, rank, count)).ok_or_else(|| too_large(what))?;
    }
    let mut starts = vec![0];
    let mut end = 0_u64;
    for scratch in &schedule.scratch {
        let next =
            bytes(scratch.elements(count)).map(|bytes| end + bytes.next_multiple_of(ALIGNMENT));
        end = next.filter(|end| *end < MOST).ok_or_else(|| too_large("scratch"))?;
        starts.push(end);
    }
    Ok(starts)
}

/// Turns regions of a schedule into places in bytes.
struct NcclWriter<'a> {
    form: &'a TwoSided,
    schedule: &'a Schedule,
    starts: &'a [u64],
    count: u64,
    size: u64,
}

impl NcclWriter<'_> {
    fn place(&self, region: RegionId) -> (NcclPlace, u64) {
        let region = &self.schedule.regions[region.index()];
        let (first, len) = self.schedule.extent(region, self.count);
        let at = first * self.size;
        let place = match region.buffer {
            Buffer::Input => NcclPlace::Input(at),
            Buffer::Output => NcclPlace::Output(at),
            Buffer::Scratch(id) => NcclPlace::Scratch(self.starts[id.index()] + at),
        };
        (place, len)
    }

    /// Returns the step of a group. A message that is empty for this count is empty at both its ranks, and both leave
    /// it out.
    fn group(&self, group: &Group) -> Option<NcclStep> {
        let transfer = |peer: RankId, region| {
            let (place, len) = self.place(region);
            (len > 0).then_some(Transfer { peer: peer.0, place, len })
        };
        let send = |id: &MessageId| {
            let message = self.form.message(*id);
            transfer(message.to, message.source)
        };
        let receive = |id: &MessageId| {
            let message = self.form.message(*id);
            transfer(message.from, message.target)
        };
        let sends: Vec<Transfer> = group.sends.iter().filter_map(send).collect();
        let receives: Vec<Transfer> = group.receives.iter().filter_map(receive).collect();
        let empty = sends.is_empty() && receives.is_empty();
        (!empty).then_some(NcclStep::Group { sends, receives })
    }

    fn fold(&self, id: OpId, divisor: i64) -> Option<NcclStep> {
        let op = self.schedule.op(id);
        let places = |operands: &[roundelay_core::schedule::Operand]| -> Vec<NcclPlace> {
            operands.iter().map(|operand| self.place(operand.region).0).collect()
        };
        let (from, to) = (places(self.schedule.srcs(op)), places(self.schedule.dsts(op)));
        let (_, len) = self.place(self.schedule.dsts(op)[0].region);
        (len > 0).then_some(NcclStep::Fold { from, to, len, divisor })
    }
}
