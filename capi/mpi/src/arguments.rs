//! The rules of arguments: one table for all collectives. A call that breaks one goes to MPI as it is, which reports
//! the error or does not.
//!
//! Most rules are MPI's in every library. Some libraries take what others refuse: one buffer for both sides, and types
//! that are not committed. A call of one rank that such a library takes must not be left to MPI alone, while the other
//! ranks make it here, so these are found out when MPI begins ([`Refusals`]).

use std::ffi::c_void;

use roundelay::{DType, ReduceOp};
use roundelay_kernels::mpi::{Handle, Mpi};

use crate::call::{BlockArrays, MpiCall, MpiCollective, RankNumbers, Values};
use crate::pass::pass;
use crate::seats::Seat;
use crate::types::{self, TypeLayout};
use crate::why::Why;

/// The ranks that give a buffer, or may give `MPI_IN_PLACE` for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Givers {
    None,
    All,
    Root,
}

/// How the values of a side are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counts {
    /// The side is one block.
    Block,
    /// The side is a block for each rank, all of one count.
    Each,
    /// The side is a block for each rank, with a count for each.
    List,
    /// The side is one block, with this rank's count of the side that is sent.
    OfList,
}

/// The rules of a side.
#[derive(Clone, Copy, Debug)]
struct SideRules {
    givers: Givers,
    in_place: Givers,
    counts: Counts,
}

/// The block of one side that must not lie where the other side lies, where all types and counts are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Apart {
    /// No library looks.
    Never,
    /// Both buffers have one address.
    Buffers,
    /// What a rank sends is its own block of what it receives.
    OfReceived,
    /// What a rank receives is its own block of what it sends.
    OfSent,
}

/// The rules of a collective.
#[derive(Clone, Copy, Debug)]
struct Rules {
    send: SideRules,
    recv: SideRules,
    apart: Apart,
}

const fn side(givers: Givers, in_place: Givers, counts: Counts) -> SideRules {
    SideRules { givers, in_place, counts }
}

/// Returns the rules of a collective.
#[rustfmt::skip]
const fn rules(what: MpiCollective) -> Rules {
    use Apart::{Buffers, Never, OfReceived, OfSent};
    use Counts::{Block, Each, List, OfList};
    use Givers::{All, None, Root};
    use MpiCollective as M;
    let (send, recv, apart) = match what {
        M::Allreduce          => (side(All, All, Block), side(All, None, Block), Buffers),
        M::Reduce             => (side(All, Root, Block), side(Root, None, Block), Buffers),
        M::ReduceScatterBlock => (side(All, All, Each), side(All, None, Block), Buffers),
        M::ReduceScatter      => (side(All, All, List), side(All, None, OfList), Buffers),
        M::Bcast              => (side(None, None, Block), side(All, None, Block), Never),
        M::Allgather          => (side(All, All, Block), side(All, None, Each), OfReceived),
        M::Allgatherv         => (side(All, All, Block), side(All, None, List), OfReceived),
        M::Gather             => (side(All, Root, Block), side(Root, None, Each), OfReceived),
        M::Gatherv            => (side(All, Root, Block), side(Root, None, List), OfReceived),
        M::Scatter            => (side(Root, None, Each), side(All, Root, Block), OfSent),
        M::Scatterv           => (side(Root, None, List), side(All, Root, Block), OfSent),
        M::Alltoall           => (side(All, All, Each), side(All, None, Each), Buffers),
        M::Alltoallv          => (side(All, All, List), side(All, None, List), Buffers),
        M::Barrier            => (side(None, None, Block), side(None, None, Block), Never),
    };
    Rules { send, recv, apart }
}

/// The arguments of a call that breaks no rule.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    pub(crate) root: u32,
    /// The elements and the op of a reduction.
    pub(crate) combined: Option<(DType, ReduceOp)>,
    /// Whether one of the sides is in place.
    pub(crate) in_place: bool,
    /// The sides that this rank gives, and that are not in place.
    pub(crate) send: Option<(Values, TypeLayout)>,
    pub(crate) recv: Option<(Values, TypeLayout)>,
    /// The place of each block in extents of the type, and its count, of sides with a count for each block.
    pub(crate) blocks: [Vec<(i64, i64)>; 2],
}

/// Looks at the arguments of a call, in the order in which MPI names them.
///
/// # Errors
/// MPI is to look at the call itself.
pub(crate) fn given(
    mpi: &Mpi,
    seat: &Seat,
    refusals: Refusals,
    asked: &MpiCall,
) -> Result<Given, Why> {
    let what = asked.what;
    let root = match u32::try_from(asked.root) {
        _ if !what.collective().is_rooted() => 0,
        Ok(root) if root < seat.size => root,
        _ => return Err(Why::Argument),
    };
    let combined = if what.combines() {
        let op = mpi.op(asked.op).ok_or(Why::Op)?;
        let known = mpi.elements(asked.recv.of).ok_or(Why::Type)?;
        Some((known.elements.combined_by(op).ok_or(Why::Type)?, op))
    } else {
        None
    };
    let Rules { send, recv, apart } = rules(what);
    let look = Look { mpi, seat, refusals, asked, at_root: root == seat.rank };
    let send = look.side(Which::Send, send)?;
    let recv = look.side(Which::Recv, recv)?;
    if look.is_one_buffer(apart, &send, &recv) {
        return Err(Why::Argument);
    }
    let in_place = send.in_place || recv.in_place;
    let blocks = [send.blocks, recv.blocks];
    Ok(Given { root, combined, in_place, send: send.given, recv: recv.given, blocks })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    Send,
    Recv,
}

/// A side as it was looked at.
struct Looked {
    in_place: bool,
    given: Option<(Values, TypeLayout)>,
    blocks: Vec<(i64, i64)>,
}

/// A call that is looked at.
struct Look<'a> {
    mpi: &'a Mpi,
    seat: &'a Seat,
    refusals: Refusals,
    asked: &'a MpiCall,
    at_root: bool,
}

impl Look<'_> {
    fn is_of(&self, givers: Givers) -> bool {
        givers == Givers::All || givers == Givers::Root && self.at_root
    }

    /// Looks at a side: its mark, its type, its counts, and its address.
    fn side(&self, which: Which, rules: SideRules) -> Result<Looked, Why> {
        let Self { mpi, asked, refusals, .. } = self;
        let (values, arrays) = match which {
            Which::Send => (asked.send, asked.arrays[0]),
            Which::Recv => (asked.recv, asked.arrays[1]),
        };
        let mut looked = Looked { in_place: false, given: None, blocks: Vec::new() };
        if !self.is_of(rules.givers) {
            return Ok(looked);
        }
        looked.in_place = values.at.addr() == mpi.abi().in_place();
        if looked.in_place && !self.is_of(rules.in_place) {
            return Err(Why::Argument);
        }
        // The counts of a reduction are those of both sides.
        if looked.in_place && !(asked.what.combines() && rules.counts == Counts::List) {
            return Ok(looked);
        }
        let raw = if which == Which::Send { Refusal::Sent } else { Refusal::Received };
        let refuses = refusals.refuses(raw, asked.what);
        let kind = types::kind(mpi, values.of, refuses).ok_or(Why::Argument)?;
        let some = match rules.counts {
            Counts::Block | Counts::Each => fits(values.count, kind)? != 0,
            Counts::List => {
                looked.blocks = self.blocks(arrays, kind)?;
                looked.blocks.iter().any(|(_, count)| *count != 0)
            }
            Counts::OfList => self.blocks(asked.arrays[0], kind)?[self.seat.rank as usize].1 != 0,
        };
        if looked.in_place {
            return Ok(looked);
        }
        // Only types with absolute addresses may begin at a null address.
        if kind.dense && values.at.is_null() && some {
            return Err(Why::Argument);
        }
        looked.given = Some((values, kind));
        Ok(looked)
    }

    /// Returns a block for each rank. Reductions have no places: their blocks lie one behind the other.
    fn blocks(&self, arrays: BlockArrays, kind: TypeLayout) -> Result<Vec<(i64, i64)>, Why> {
        let n = self.seat.size;
        // SAFETY: the program gives an array, where a rank has one, with a number for each rank.
        let (counts, places) = unsafe { (arrays.counts.read(n), arrays.places.read(n)) };
        let counts = counts.ok_or(Why::Argument)?;
        let places = if self.asked.what.combines() {
            let mut next = 0_i64;
            let packed = counts.iter().map(|count| {
                let place = next;
                next = next.saturating_add(*count);
                place
            });
            packed.collect()
        } else {
            places.ok_or(Why::Argument)?
        };
        for (place, count) in places.iter().zip(&counts) {
            fits(*count, kind)?;
            place.checked_mul(kind.extent).ok_or(Why::Argument)?;
        }
        Ok(places.into_iter().zip(counts).collect())
    }

    /// Whether the values of one side lie where those of the other side lie, and MPI refuses that. MPI looks only where
    /// both sides have one type and one count.
    fn is_one_buffer(&self, apart: Apart, send: &Looked, recv: &Looked) -> bool {
        let (Some(from), Some(to)) = (send.given, recv.given) else { return false };
        let Self { seat, refusals, asked, .. } = self;
        let what = asked.what;
        // The address and the count of the block of this rank.
        let own = |side: &Looked, (values, kind): (Values, TypeLayout)| {
            let even = || (values.count.wrapping_mul(seat.rank.into()), values.count);
            let (place, count) = side.blocks.get(seat.rank as usize).copied().unwrap_or_else(even);
            (values.at.wrapping_byte_offset(place.wrapping_mul(kind.extent) as isize), count)
        };
        let whole = |(values, _): (Values, TypeLayout)| (values.at, values.count);
        let (from_at, to_at) = match apart {
            Apart::Never => return false,
            Apart::Buffers if what == MpiCollective::Alltoallv => {
                let [first, second] = asked.arrays.map(|of| (of.counts.at, of.places.at));
                if first != second {
                    return false;
                }
                ((from.0.at, 2), (to.0.at, 2))
            }
            Apart::Buffers if what.combines() => {
                let listed = send.blocks.iter().map(|(_, count)| *count);
                let count = from.0.count + listed.fold(0, i64::saturating_add);
                ((from.0.at, count), (to.0.at, count))
            }
            Apart::Buffers => (whole(from), whole(to)),
            Apart::OfReceived => (whole(from), own(recv, to)),
            Apart::OfSent => (own(send, from), whole(to)),
        };
        let refusal = if from_at.1 == 1 { Refusal::OneValue } else { Refusal::OneBuffer };
        from_at == to_at
            && from_at.1 != 0
            && from.0.of == to.0.of
            && refusals.refuses(refusal, what)
    }
}

/// The bytes of a block that no memory has: sums of such lengths stay far from the ends of 64 bits.
const MOST: u64 = 1 << 46;

/// Returns the bytes of so many values.
fn fits(count: i64, kind: TypeLayout) -> Result<u64, Why> {
    let bytes = u64::try_from(count).ok().and_then(|count| count.checked_mul(kind.size));
    bytes.filter(|bytes| *bytes < MOST).ok_or(Why::Argument)
}

/// A mistake that some MPI libraries take, and others refuse.
#[derive(Clone, Copy, Debug)]
enum Refusal {
    /// One buffer for both sides.
    OneBuffer,
    /// One buffer for both sides, of one value.
    OneValue,
    /// A type that is sent, and is not committed.
    Sent,
    /// A type that is received, and is not committed.
    Received,
}

/// The mistakes that this MPI library refuses in each collective: a bit for each.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Refusals([u16; 4]);

impl Refusals {
    /// Makes each mistake once, on a communicator of this process alone, whose calls return errors. A library that
    /// refuses a mistake does so before it looks at the data, and a library that takes it has data to copy.
    pub(crate) fn of(mpi: &Mpi, own: Handle) -> Self {
        let mut all = Self::default();
        let raw = types::not_committed(mpi).filter(|raw| !types::is_committed(mpi, *raw));
        let byte = mpi.byte();
        for what in MpiCollective::ALL {
            let Rules { send, recv, apart } = rules(what);
            let mut tried = Vec::new();
            if apart != Apart::Never {
                tried.extend([(Refusal::OneBuffer, [byte; 2]), (Refusal::OneValue, [byte; 2])]);
            }
            if let Some(raw) = raw.filter(|_| !what.combines()) {
                let mistakes = [
                    (send.givers, (Refusal::Sent, [raw, byte])),
                    (recv.givers, (Refusal::Received, [byte, raw])),
                ];
                let given = mistakes.into_iter().filter(|(givers, _)| *givers != Givers::None);
                tried.extend(given.map(|(_, mistake)| mistake));
            }
            for (refusal, types) in tried {
                if is_refused(mpi, own, what, refusal, types) {
                    all.0[refusal as usize] |= 1 << what as u16;
                }
            }
        }
        if let Some(raw) = raw {
            types::free(mpi, raw);
        }
        all
    }

    fn refuses(self, refusal: Refusal, what: MpiCollective) -> bool {
        self.0[refusal as usize] >> what as u16 & 1 != 0
    }
}

/// Whether MPI refuses a call of this process alone that has a mistake, with values of these types.
fn is_refused(
    mpi: &Mpi,
    own: Handle,
    what: MpiCollective,
    refusal: Refusal,
    types: [Handle; 2],
) -> bool {
    let one_buffer = matches!(refusal, Refusal::OneBuffer | Refusal::OneValue);
    let (count, place) = (if matches!(refusal, Refusal::OneBuffer) { 2 } else { 1 }, 0);
    let numbers = |at: &i32| RankNumbers { at: std::ptr::from_ref(at).cast(), wide: false };
    let arrays = BlockArrays { counts: numbers(&count), places: numbers(&place) };
    let mut data = [0_u8; 4];
    let first: *mut c_void = data.as_mut_ptr().cast();
    let second = first.wrapping_byte_add(if one_buffer { 0 } else { 2 });
    let values = |at, of| Values { at, count: count.into(), of };
    let (send, recv) = (values(first, types[0]), values(second, types[1]));
    let op = mpi.bitwise_and();
    let call = MpiCall { what, send, recv, op, root: 0, comm: own, arrays: [arrays; 2] };
    pass(mpi.functions(), &call, false) != 0
}
