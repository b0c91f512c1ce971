//! AllReduce on two levels: the ranks of each host reduce to their first rank through their memory, the first ranks of
//! all hosts reduce by messages, and each of them broadcasts on its host. The buffer is cut into parts, so that one
//! part is between hosts while the ranks of a host are busy with the parts before and after it.
//!
//! Each of the three is a proved schedule of its own. Together they make an AllReduce: the first leaves the sum of each
//! host, the second the sum of these sums, and the third brings it to all ranks. Every element is summed once, so all
//! ranks of a host have the same bits; ranks of different hosts have the same bits where the second schedule gives its
//! ranks the same bits, as all AllReduce schedules of the library do.

use std::sync::Arc;

use roundelay_core::collective::Collective;
use roundelay_core::diagnostics::Code as ErrorCode;
use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_core::ids::RankId;
use roundelay_core::verify::Proved;

use super::form::HostsPlan;
use super::place::Hosts;
use super::run::{CallInFlight, Progress};
use crate::Error;
use crate::lowering::{
    AnyRankPlan, Memory, PlannedCall, RankCall, RankPart, Runs, UserBuffers, bad,
};
use crate::shared_memory::WorldPlan;

/// About the bytes of a part: longer parts leave the wire idle while ranks of a host reduce, and shorter parts take the
/// ranks of a host as long as the wire.
const PART: usize = 256 << 10;
/// The elements of a part are a multiple of this number, but for the last part: parts begin where cache lines do.
const WHOLE: usize = 64;

/// The algorithms of the two levels.
#[derive(Clone, Debug)]
pub struct Levels {
    /// A Reduce of the ranks of this host, to the first rank.
    pub reduce: Proved,
    /// An AllReduce of as many ranks as there are hosts.
    pub across: Proved,
    /// A Broadcast of the ranks of this host, from the first rank.
    pub broadcast: Proved,
}

/// The plan of a rank for calls of `AllReduce` of one shape on two levels.
pub type LevelsPlan = Runs<LevelsRank>;

/// The part of a rank in calls of AllReduce of one shape on two levels.
pub struct LevelsRank {
    hosts: Arc<Hosts>,
    part: RankPart,
    /// The number of parts.
    number: usize,
    /// The distance from the beginning of a part to the next, in bytes.
    each: usize,
    /// The plans of the last part, and the plans of all other parts, if there are any.
    last: LevelPart,
    others: Option<LevelPart>,
}

/// The plans for a part of the buffer.
struct LevelPart {
    reduce: WorldPlan,
    /// The plan between hosts, if the rank is the first of its host.
    across: Option<HostsPlan>,
    broadcast: WorldPlan,
}

impl LevelsPlan {
    /// Makes the plan of this process in an AllReduce of `count` elements.
    ///
    /// # Errors
    /// E0401 for an algorithm of another number of ranks; E0306 for an algorithm of another collective; E0431 where the
    /// dtype does not have the op, and for an average, which is not the average of averages; E0408 where the AllReduce
    /// between hosts has no in-place form; the errors of [`HostsPlan::new`] and [`WorldPlan::new`].
    pub fn new(
        hosts: &Arc<Hosts>,
        levels: &Levels,
        count: u64,
        dtype: DType,
        op: ReduceOp,
    ) -> Result<Self, Error> {
        let given = [&levels.reduce, &levels.across, &levels.broadcast];
        let wanted = [Collective::Reduce, Collective::AllReduce, Collective::Broadcast];
        for (given, wanted) in given.into_iter().zip(wanted) {
            let schedule = given.schedule();
            if schedule.collective != wanted || schedule.root != RankId(0) {
                let what = format!("{} is no {wanted} of rank 0", schedule.algorithm);
                return Err(bad(ErrorCode::Unproved, what));
            }
        }
        if op == ReduceOp::Avg {
            let what = "an average on two levels".to_owned();
            return Err(bad(ErrorCode::NoSuchOp, what));
        }
        let across = hosts.hosts().len();
        if levels.across.schedule().nranks as usize != across {
            let given = levels.across.schedule().nranks as usize;
            let what = "ranks of the schedule between hosts";
            return Err(Error::WrongBufferCount { what, given, nranks: across as u32 });
        }
        let call = PlannedCall::new(&levels.across, count, dtype, op);
        // The AllReduce between hosts runs in place, in the first rank's output.
        call.check_in_place()?;
        let elements = usize::try_from(count)
            .map_err(|_| Error::TooLarge { what: format!("{count} elements") })?;
        let [number, whole, last] = cut(elements, dtype.size());
        let part = |elements: usize| {
            let inside = |proved| WorldPlan::new(hosts.world(), proved, elements as u64, dtype, op);
            Ok::<_, Error>(LevelPart {
                reduce: inside(&levels.reduce)?.within(&call),
                across: among_leaders(hosts, &levels.across, elements as u64, &call)?,
                broadcast: inside(&levels.broadcast)?.within(&call),
            })
        };
        let size = dtype.size();
        Ok(Runs(LevelsRank {
            hosts: hosts.clone(),
            number,
            each: whole * size,
            last: part(last)?,
            others: (number > 1).then(|| part(whole)).transpose()?,
            // The schedule between hosts has fewer ranks; the buffers of an AllReduce are alike on all ranks.
            part: RankPart {
                rank: RankId(hosts.rank()),
                ..RankPart::new(Arc::new(call), (hosts.nranks(), RankId(0)), &hosts.options())?
            },
        }))
    }
}

impl HostsPlan {
    /// Makes the plan of this process in an AllReduce of one rank of each host, the first, where the rank is one of them.
    ///
    /// # Errors
    /// The errors of [`HostsPlan::new`] and of [`LevelsPlan::new`].
    pub fn between_hosts(
        hosts: &Hosts,
        across: &Proved,
        count: u64,
        dtype: DType,
        op: ReduceOp,
    ) -> Result<Option<Self>, Error> {
        among_leaders(hosts, across, count, &PlannedCall::new(across, count, dtype, op))
    }
}

/// Returns the plan of the first rank of a host between hosts, for `elements` elements of `call`; `None` on other ranks.
fn among_leaders(
    hosts: &Hosts,
    across: &Proved,
    elements: u64,
    call: &PlannedCall,
) -> Result<Option<HostsPlan>, Error> {
    let Some(leaders) = hosts.leaders()? else { return Ok(None) };
    Ok(Some(HostsPlan::new(&leaders, across, elements, call.dtype, call.op)?.within(call)))
}

impl RankCall for LevelsRank {
    fn part(&self) -> &RankPart {
        &self.part
    }

    fn exchange(&self) -> Result<Box<AnyRankPlan>, Error> {
        self.hosts.exchange()
    }

    fn memory(&self, like: *const u8, words: usize) -> Result<Memory<'_>, Error> {
        self.last.reduce.0.memory(like, words)
    }

    unsafe fn make(&self, buffers: UserBuffers) -> Result<(), Error> {
        // A forked child is no rank: its call must not end the world.
        self.hosts.world().here()?;
        let _turn = self.hosts.call()?;
        let mut crossing = None;
        // SAFETY: the caller's promise; the call between hosts has ended when this returns.
        let done = unsafe { self.parts(buffers, &mut crossing) };
        let Err(error) = done else { return Ok(()) };
        if let Some(in_flight) = crossing {
            _ = in_flight.end(Err(error.clone()));
        }
        let world = self.hosts.world();
        // After any error other hosts may have gone on, so this world ends. If it has ended before, this changes
        // nothing.
        _ = world.give_up_for(error.clone());
        // A refusal is the cause: a rank may find that calls differ while other ranks are at later parts.
        Err(world.refusal().unwrap_or(error))
    }
}

impl LevelsRank {
    /// Reduces each part to the first rank, reduces it between hosts, and broadcasts it.
    ///
    /// # Safety
    /// As for [`RankCall::make`], until the call in `crossing` is gone.
    unsafe fn parts<'p>(
        &'p self,
        buffers: UserBuffers,
        crossing: &mut Option<CallInFlight<'p>>,
    ) -> Result<(), Error> {
        for at in 0..=self.number {
            let next = (at < self.number).then(|| self.part(at));
            if let Some((part, from)) = next {
                let buffers = UserBuffers {
                    input: buffers.input.wrapping_add(from),
                    output: buffers.output.wrapping_add(from),
                    ..buffers
                };
                // SAFETY: the caller's promise, for this part of both buffers; only the first rank's output is written.
                unsafe { part.reduce.0.make(buffers)? };
            }
            if crossing.is_some() {
                self.cross(crossing)?;
            }
            // A part of the output, reduced where it lies.
            let reduced = |from| {
                let output = buffers.output.wrapping_add(from);
                UserBuffers { input: output, output, ..buffers }
            };
            if let Some((LevelPart { across: Some(across), .. }, from)) = next {
                // SAFETY: the caller's promise, for this part of the output, which no other code touches until the call
                // between hosts has ended.
                let in_flight = crossing.insert(unsafe { across.0.set_out(reduced(from))? });
                in_flight.go_on()?;
            }
            if let Some(before) = at.checked_sub(1) {
                let (part, from) = self.part(before);
                // SAFETY: the caller's promise, for the part before, whose call between hosts has ended.
                unsafe { part.broadcast.0.make(reduced(from))? };
            }
        }
        Ok(())
    }

    /// Returns the plans of a part, and its offset in bytes.
    fn part(&self, at: usize) -> (&LevelPart, usize) {
        let others = self.others.as_ref().filter(|_| at + 1 < self.number);
        (others.unwrap_or(&self.last), at * self.each)
    }

    /// Waits until the call between hosts has ended.
    fn cross(&self, crossing: &mut Option<CallInFlight<'_>>) -> Result<(), Error> {
        let Some(in_flight) = crossing else { return Ok(()) };
        let mut progress = in_flight.go_on();
        while !matches!(progress, Ok(Progress::Through)) {
            progress.clone()?;
            // After any progress the deadline counts anew.
            let awaited = in_flight.awaited();
            self.hosts.world().await_beside(&awaited, || {
                if progress == Ok(Progress::Nowhere) || progress == Ok(Progress::Further) {
                    progress = in_flight.go_on();
                }
                progress != Ok(Progress::Nowhere)
            })?;
        }
        match crossing.take() {
            Some(in_flight) => in_flight.end(Ok(())),
            None => Ok(()),
        }
    }
}

/// Returns the number of parts of `elements` elements, the elements of each part but the last, and the elements of the
/// last part.
fn cut(elements: usize, size: usize) -> [usize; 3] {
    let number = elements.div_ceil(PART / size).max(1);
    let whole = elements.div_ceil(number).next_multiple_of(WHOLE);
    // Rounding up may have left nothing for the last part.
    let number = elements.div_ceil(whole.max(1)).max(1);
    [number, whole.min(elements), elements - (number - 1) * whole.min(elements)]
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn parts_are_all_of_the_buffer() {
        for size in [1, 2, 4, 8] {
            for elements in (0..3_000).chain((1..60).map(|at| at * 77_777)) {
                let [number, whole, last] = cut(elements, size);
                assert_eq!((number - 1) * whole + last, elements, "{elements} of {size}");
                assert!(last <= whole && (last > 0 || elements == 0), "{elements} of {size}");
            }
        }
        assert_eq!(cut(1 << 20, 4), [16, 1 << 16, 1 << 16]);
        assert_eq!(cut(100, 8), [1, 100, 100]);
    }
}
