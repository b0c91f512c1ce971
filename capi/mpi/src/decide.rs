//! Whether a call is ours. All ranks must decide alike without communication, so the decision depends only on values
//! that MPI demands to be equal on all ranks: the communicator, the root, the op, and the bytes, which are the count
//! times the size of the type. For data that is only moved ranks may give different types for equally many bytes; for
//! an op that MPI defines they may only give MPI's types.

use roundelay::{Call, Collective, DType, ReduceOp};
use roundelay_kernels::mpi::Mpi;

use crate::blocks::{self, OursBlocks};
use crate::call::{MpiCall, MpiCollective, Values};
use crate::choice::{CallShape, Maker};
use crate::contests::{Shape, is_same_from_both};
use crate::seats::Seat;
use crate::settings::{Settings, Take, TakeoverMode};
use crate::types::{TypeLayout, kind};
use crate::why::Why;

/// A call that is ours: where its data lies.
#[derive(Clone, Debug)]
pub(crate) struct Ours {
    pub(crate) call: Call,
    /// The values that this rank gives; `None` where the output buffer holds them.
    pub(crate) input: Option<(Values, TypeLayout)>,
    /// The values that this rank gets; `None` where it gets none.
    pub(crate) output: Option<(Values, TypeLayout)>,
    /// Whether the output holds the input before.
    pub(crate) in_place: bool,
    /// The blocks of a call with a count for each block, which has neither of the sides above.
    pub(crate) blocks: Option<OursBlocks>,
}

/// The maker of a call that can be ours.
#[derive(Clone, Debug)]
pub(crate) enum Chosen {
    Ours(Ours),
    /// A contest decides; `by_table` is the choice of the table.
    Contest {
        ours: Ours,
        shape: Shape,
        by_table: bool,
    },
}

/// Returns the call as ours, or why it is not ours.
pub(crate) fn decide(
    mpi: &Mpi,
    settings: &Settings,
    seat: &Seat,
    asked: &MpiCall,
) -> Result<Chosen, Why> {
    if let Some(why) = &seat.all {
        return Err(Why::All(why.clone()));
    }
    if asked.has_blocks() {
        return decide_blocks(mpi, settings, seat, asked).map(Chosen::Ours);
    }
    let ours = Asking { mpi, seat, asked }.ours()?;
    let Call { collective, count, dtype, .. } = ours.call;
    let block = count * dtype.size() as u64;
    if asked.what != MpiCollective::Barrier && block == 0 {
        return Err(Why::NoData);
    }
    let bytes = collective.bytes(count, seat.size, dtype.size() as u64);
    let own = asked.what != MpiCollective::Barrier && settings.own(collective, bytes).is_some();
    let Seat { crowded, size: nranks, .. } = *seat;
    let shape = CallShape { what: asked.what, block, nranks, hosts: seat.hosts(), crowded };
    let all = settings.takes(collective, asked.what == MpiCollective::Barrier);
    let by_table = shape.is_faster(seat.maker);
    // Where MPI's ranks keep their cores while they wait, each of its calls may take seconds.
    let endless = seat.maker == Maker::Mpich && crowded;
    let contests = settings.take == Take::Faster
        && settings.mode == TakeoverMode::On
        && seat.hosts() == 1
        && asked.what != MpiCollective::Barrier
        && !endless
        && is_same_from_both(&ours.call, nranks);
    match (own || all, contests) {
        (false, true) => {
            Ok(Chosen::Contest { ours, shape: Shape::new(asked.what, block), by_table })
        }
        (false, false) if !by_table => Err(Why::Size),
        _ => Ok(Chosen::Ours(ours)),
    }
}

/// Returns a call with a count for each block as ours, or why it is not ours.
fn decide_blocks(
    mpi: &Mpi,
    settings: &Settings,
    seat: &Seat,
    asked: &MpiCall,
) -> Result<Ours, Why> {
    let (call, of_ranks, all) = blocks::decide(mpi, seat, asked)?;
    if all == Some(0) {
        return Err(Why::NoData);
    }
    let Seat { crowded, size: nranks, .. } = *seat;
    let is_faster = |all: u64| {
        let (what, block) = (asked.what.even(), all / u64::from(nranks));
        CallShape { what, block, nranks, hosts: seat.hosts(), crowded }.is_faster(seat.maker)
    };
    let own = settings.own(call.collective, u64::MAX).is_some();
    if own || settings.takes(call.collective, false) || all.is_some_and(is_faster) {
        let (input, output, in_place) = (None, None, false);
        return Ok(Ours { call, input, output, in_place, blocks: Some(of_ranks) });
    }
    Err(match all {
        Some(_) => Why::Size,
        None => Why::Unknown,
    })
}

/// A call that is looked at.
struct Asking<'a> {
    mpi: &'a Mpi,
    seat: &'a Seat,
    asked: &'a MpiCall,
}

impl Asking<'_> {
    fn ours(&self) -> Result<Ours, Why> {
        let Self { asked: &MpiCall { what, send, recv, .. }, seat, .. } = *self;
        let (n, root) = (i64::from(seat.size), self.root()?);
        let at_root = root == seat.rank;
        let in_place = |values: Values| values.at.addr() == self.mpi.abi().in_place();
        match what {
            MpiCollective::Barrier => Ok(Ours {
                call: call(Collective::AllReduce, 0, 1, DType::U8, ReduceOp::Max),
                input: None,
                output: None,
                in_place: true,
                blocks: None,
            }),
            MpiCollective::Bcast => {
                let call = self.moves(Collective::Broadcast, root, recv)?;
                self.made(call, None, Some(recv), true)
            }
            MpiCollective::Allreduce => {
                let call = self.reduces(Collective::AllReduce, 0, recv)?;
                self.made(call, Some(send), Some(recv), in_place(send))
            }
            MpiCollective::Reduce => {
                let call = self.reduces(Collective::Reduce, root, send)?;
                match (at_root, in_place(send)) {
                    (true, in_place) => self.made(call, Some(send), Some(recv), in_place),
                    (false, false) => self.made(call, Some(send), None, false),
                    (false, true) => Err(Why::Argument),
                }
            }
            MpiCollective::ReduceScatterBlock => {
                let call = self.reduces(Collective::ReduceScatter, 0, recv)?;
                // In place, MPI's result lies at the start of the input, and not at the rank's block.
                let from = if in_place(send) { recv.at } else { send.at };
                let input = each(Values { at: from, ..recv }, n)?;
                self.made(call, Some(input), Some(recv), false)
            }
            MpiCollective::Allgather => {
                let at = in_place(send);
                let call = self.moves(Collective::AllGather, 0, if at { recv } else { send })?;
                self.made(call, Some(send), Some(each(recv, n)?), at)
            }
            MpiCollective::Alltoall => {
                let at = in_place(send);
                let input = if at { recv } else { send };
                let call = self.moves(Collective::AllToAll, 0, input)?;
                self.made(call, Some(each(input, n)?), Some(each(recv, n)?), false)
            }
            MpiCollective::Gather => {
                let at = at_root && in_place(send);
                let call = self.moves(Collective::Gather, root, if at { recv } else { send })?;
                let output = if at_root { Some(each(recv, n)?) } else { None };
                self.made(call, Some(send), output, at)
            }
            MpiCollective::Scatter => {
                let call =
                    self.moves(Collective::Scatter, root, if at_root { send } else { recv })?;
                let input = if at_root { Some(each(send, n)?) } else { None };
                // In place the root's own block is not moved.
                let output = (!(at_root && in_place(recv))).then_some(recv);
                self.made(call, input, output, false)
            }
            _ => unreachable!("collectives with a count for each block are looked at elsewhere"),
        }
    }

    /// Returns the root, of collectives that have one.
    fn root(&self) -> Result<u32, Why> {
        if !self.asked.what.collective().is_rooted() {
            return Ok(0);
        }
        let root = u32::try_from(self.asked.root).map_err(|_| Why::Argument)?;
        if root < self.seat.size { Ok(root) } else { Err(Why::Argument) }
    }

    /// Returns a call that combines the values of all ranks.
    fn reduces(&self, collective: Collective, root: u32, values: Values) -> Result<Call, Why> {
        let op = self.mpi.op(self.asked.op).ok_or(Why::Op)?;
        let known = self.mpi.elements(values.of).ok_or(Why::Type)?;
        let dtype = known.elements.combined_by(op).ok_or(Why::Type)?;
        let count = u64::try_from(values.count).map_err(|_| Why::Argument)?;
        Ok(call(collective, root, count, dtype, op))
    }

    /// Returns a call that moves the bytes of a block, in the widest elements that they are a multiple of.
    fn moves(&self, collective: Collective, root: u32, block: Values) -> Result<Call, Why> {
        let kind = kind(self.mpi, block.of).ok_or(Why::Argument)?;
        let count = u64::try_from(block.count).map_err(|_| Why::Argument)?;
        let bytes = count.checked_mul(kind.size).ok_or(Why::Argument)?;
        let dtype = match bytes % 8 {
            0 => DType::U64,
            4 => DType::U32,
            _ => DType::U8,
        };
        Ok(call(collective, root, bytes / dtype.size() as u64, dtype, ReduceOp::Sum))
    }

    /// Returns the call with its buffers, if they are as long as it needs.
    fn made(
        &self,
        call: Call,
        input: Option<Values>,
        output: Option<Values>,
        in_place: bool,
    ) -> Result<Ours, Why> {
        let side = |values: Option<Values>| match values {
            None => Ok(None),
            Some(values) => {
                let kind = kind(self.mpi, values.of).ok_or(Why::Argument)?;
                // Only types with absolute addresses may begin at a null address.
                let nowhere = kind.dense && values.at.is_null() && values.count != 0;
                if nowhere { Err(Why::Argument) } else { Ok(Some((values, kind))) }
            }
        };
        let input = if in_place { None } else { side(input)? };
        let output = side(output)?;
        let (rank, root) = (roundelay::RankId(self.seat.rank), roundelay::RankId(call.root));
        let unit = call.count * call.dtype.size() as u64;
        let wanted = |units: u32| u64::from(units) * unit;
        let has = |side: Option<(Values, TypeLayout)>| {
            side.map(|(values, kind)| (values.count as u64).checked_mul(kind.size))
        };
        let units_in = call.collective.input_units(rank, self.seat.size, root);
        let units_out = call.collective.output_units(rank, self.seat.size, root);
        // A sender's block that is not as long as a receiver's is wrong, and MPI has a word for it.
        let fits = |side, units| has(side).is_none_or(|bytes| bytes == Some(wanted(units)));
        if !fits(input, units_in) || !fits(output, units_out) {
            return Err(Why::Argument);
        }
        Ok(Ours { call, input, output, in_place, blocks: None })
    }
}

fn call(collective: Collective, root: u32, count: u64, dtype: DType, op: ReduceOp) -> Call {
    Call { collective, root, count, dtype, op }
}

/// Returns as many blocks as there are ranks.
fn each(block: Values, n: i64) -> Result<Values, Why> {
    let count = block.count.checked_mul(n).ok_or(Why::Argument)?;
    Ok(Values { count, ..block })
}
