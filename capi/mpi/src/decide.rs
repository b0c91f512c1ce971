//! Whether a call is ours. All ranks must decide alike without communication, so the decision depends only on values
//! that MPI demands to be equal on all ranks: the communicator, the root, the op, and the bytes, which are the count
//! times the size of the type. For data that is only moved ranks may give different types for equally many bytes; for
//! an op that MPI defines they may only give MPI's types.

use roundelay::{Call, Collective, DType, ReduceOp};
use roundelay_interposer::Shape;
use roundelay_kernels::mpi::Mpi;

use crate::arguments::{Given, given};
use crate::block_counts::{self, OursBlocks};
use crate::call::{MpiCall, MpiCollective, Values};
use crate::choice::{CallShape, Maker};
use crate::contests::is_same_from_both;
use crate::mpi_job::MpiJob;
use crate::seats::Seat;
use crate::settings::{Settings, Take, TakeoverMode};
use crate::types::TypeLayout;
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
        shape: Shape<MpiCollective>,
        by_table: bool,
    },
}

/// Returns the call as ours, or why it is not ours.
pub(crate) fn decide(
    mpi: &Mpi,
    job: &MpiJob,
    settings: &Settings,
    seat: &Seat,
    asked: &MpiCall,
) -> Result<Chosen, Why> {
    if let Some(why) = &seat.all {
        return Err(Why::All(why.clone()));
    }
    let here = job.here.as_ref().map_err(|why| Why::All(why.to_string()))?;
    let given = given(mpi, seat, here.refusals, asked)?;
    // Values that MPI combines in another way would change a program's results from one call to the next.
    let by_time = if asked.what.combines() {
        here.arithmetic.is_same(mpi, asked.recv.of, asked.op).ok_or(Why::Type)?
    } else {
        true
    };
    if asked.has_blocks() {
        return decide_blocks(settings, seat, asked, given, by_time).map(Chosen::Ours);
    }
    let ours = Asking { seat, asked }.ours(&given)?;
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
    let contests = by_time
        && settings.take == Take::Faster
        && settings.mode == TakeoverMode::On
        && seat.hosts() == 1
        && asked.what != MpiCollective::Barrier
        && !endless
        && is_same_from_both(&ours.call, nranks);
    match (own || all, contests) {
        (false, true) => {
            Ok(Chosen::Contest { ours, shape: Shape::new(asked.what, block), by_table })
        }
        (false, false) if !by_time => Err(Why::Arithmetic),
        (false, false) if !by_table => Err(Why::Size),
        _ => Ok(Chosen::Ours(ours)),
    }
}

/// Returns a call with a count for each block as ours, or why it is not ours.
fn decide_blocks(
    settings: &Settings,
    seat: &Seat,
    asked: &MpiCall,
    given: Given,
    by_time: bool,
) -> Result<Ours, Why> {
    let Seat { crowded, size: nranks, .. } = *seat;
    let (call, of_ranks, all) = block_counts::decide(seat, asked, given)?;
    if all == Some(0) {
        return Err(Why::NoData);
    }
    let is_faster = |all: u64| {
        let (what, block) = (asked.what.even(), all / u64::from(nranks));
        CallShape { what, block, nranks, hosts: seat.hosts(), crowded }.is_faster(seat.maker)
    };
    let own = settings.own(call.collective, u64::MAX).is_some();
    let taken = own || settings.takes(call.collective, false);
    if taken || by_time && all.is_some_and(is_faster) {
        let (input, output, in_place) = (None, None, false);
        return Ok(Ours { call, input, output, in_place, blocks: Some(of_ranks) });
    }
    Err(match all {
        Some(_) if !by_time => Why::Arithmetic,
        Some(_) => Why::Size,
        None => Why::Unknown,
    })
}

/// A call that is looked at.
struct Asking<'a> {
    seat: &'a Seat,
    asked: &'a MpiCall,
}

impl Asking<'_> {
    fn ours(&self, given: &Given) -> Result<Ours, Why> {
        let Self { asked: &MpiCall { what, send: sends, recv: receives, .. }, seat, .. } = *self;
        let n = i64::from(seat.size);
        let Given { root, combined, in_place, send, recv, .. } = *given;
        let reduces = |collective, root, values: Values| {
            let (dtype, op) = combined.ok_or(Why::Argument)?;
            Ok(call(collective, root, values.count as u64, dtype, op))
        };
        // The values that a rank sends: its receive buffer holds them in place.
        let from = send.or(recv);
        match what {
            MpiCollective::Barrier => Ok(Ours {
                call: call(Collective::AllReduce, 0, 1, DType::U8, ReduceOp::Max),
                input: None,
                output: None,
                in_place: true,
                blocks: None,
            }),
            MpiCollective::Bcast => {
                let call = moves(Collective::Broadcast, root, recv)?;
                self.made(call, None, recv, true)
            }
            MpiCollective::Allreduce => {
                let call = reduces(Collective::AllReduce, 0, receives)?;
                self.made(call, send, recv, in_place)
            }
            MpiCollective::Reduce => {
                let call = reduces(Collective::Reduce, root, sends)?;
                self.made(call, send, recv, in_place)
            }
            MpiCollective::ReduceScatterBlock => {
                let call = reduces(Collective::ReduceScatter, 0, receives)?;
                // In place, MPI's result lies at the start of the input, and not at the rank's block.
                self.made(call, each(from, n)?, recv, false)
            }
            MpiCollective::Allgather => {
                let call = moves(Collective::AllGather, 0, from)?;
                self.made(call, send, each(recv, n)?, in_place)
            }
            MpiCollective::Alltoall => {
                let call = moves(Collective::AllToAll, 0, from)?;
                self.made(call, each(from, n)?, each(recv, n)?, false)
            }
            MpiCollective::Gather => {
                let call = moves(Collective::Gather, root, from)?;
                self.made(call, send, each(recv, n)?, in_place)
            }
            MpiCollective::Scatter => {
                let call = moves(Collective::Scatter, root, from)?;
                // In place the root's own block is not moved.
                self.made(call, each(send, n)?, recv, false)
            }
            _ => unreachable!("collectives with a count for each block are looked at elsewhere"),
        }
    }

    /// Returns the call with its buffers, if they are as long as it needs.
    fn made(
        &self,
        call: Call,
        input: Option<(Values, TypeLayout)>,
        output: Option<(Values, TypeLayout)>,
        in_place: bool,
    ) -> Result<Ours, Why> {
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

/// Returns a call that moves the bytes of a block, in the widest elements that they are a multiple of.
fn moves(
    collective: Collective,
    root: u32,
    block: Option<(Values, TypeLayout)>,
) -> Result<Call, Why> {
    let (values, kind) = block.ok_or(Why::Argument)?;
    let bytes = (values.count as u64).checked_mul(kind.size).ok_or(Why::Argument)?;
    let dtype = match bytes % 8 {
        0 => DType::U64,
        4 => DType::U32,
        _ => DType::U8,
    };
    Ok(call(collective, root, bytes / dtype.size() as u64, dtype, ReduceOp::Sum))
}

fn call(collective: Collective, root: u32, count: u64, dtype: DType, op: ReduceOp) -> Call {
    Call { collective, root, count, dtype, op }
}

/// Returns as many blocks as there are ranks, of a side that this rank gives.
fn each(block: Option<(Values, TypeLayout)>, n: i64) -> Result<Option<(Values, TypeLayout)>, Why> {
    let Some((values, kind)) = block else { return Ok(None) };
    let count = values.count.checked_mul(n).ok_or(Why::Argument)?;
    Ok(Some((Values { count, ..values }, kind)))
}
