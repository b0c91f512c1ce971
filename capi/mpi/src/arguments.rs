//! The rules of arguments: one table for all collectives ([`rules`]). A call that breaks one goes to MPI as it is,
//! which reports the error or does not.
//!
//! Most rules are MPI's in every library. Some libraries take what others refuse: one buffer for both sides, and types
//! that are not committed. A call of one rank that such a library takes must not be left to MPI alone, while the other
//! ranks make it here, so these are found out when MPI begins ([`Refusals`]).

use roundelay::{DType, ReduceOp};
use roundelay_kernels::mpi::Mpi;

use crate::call::{BlockArrays, MpiCall, MpiCollective, Values};
use crate::refusals::{Refusal, Refusals};
use crate::rules::{Apart, Counts, Givers, Rules, SideRules, rules};
use crate::seats::Seat;
use crate::types::{self, TypeLayout};
use crate::why::Why;

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

/// Returns the bytes of a number of values.
fn fits(count: i64, kind: TypeLayout) -> Result<u64, Why> {
    let bytes = u64::try_from(count).ok().and_then(|count| count.checked_mul(kind.size));
    bytes.filter(|bytes| *bytes < MOST).ok_or(Why::Argument)
}
