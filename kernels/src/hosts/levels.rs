//! AllReduce on two levels: the ranks of each host reduce to the first of them through their memory, the first ranks of
//! all hosts reduce by messages, and each broadcasts on its host. The buffer is cut into parts, so that one is between
//! hosts while the ranks of a host are busy with those before it and after it.
//!
//! Each of the three is a proved schedule of its own. That they make an AllReduce together follows from what each of them
//! is: the first leaves the sum of each host, the second the sum of these, and the third brings it to all. Every element
//! is summed once, so all ranks of a host have the same bits; those of different hosts do where the second gives its
//! ranks the same, as all of the library do.

use std::fmt;
use std::sync::Arc;

use roundelay_core::collective::Collective;
use roundelay_core::diagnostics::Code as ErrorCode;
use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_core::ids::RankId;
use roundelay_core::verify::Proved;

use super::form::HostsPlan;
use super::place::Hosts;
use super::run::{Came, Course};
use crate::Error;
use crate::host::{Element, PlannedCall, bad, extent};
use crate::process::{Outside, WorldPlan};

/// Bytes of a part, about: longer ones leave the wire with nothing to do while ranks of a host reduce, and shorter ones take
/// the ranks of a host as long as the wire.
const PART: usize = 256 << 10;
/// Elements that a part is a multiple of, but for the last: parts begin where cache lines do.
const WHOLE: usize = 64;

/// The algorithms of the two levels.
#[derive(Clone, Debug)]
pub struct Levels {
    /// A Reduce of the ranks of this host, to the first.
    pub reduce: Proved,
    /// An AllReduce of as many ranks as there are hosts.
    pub across: Proved,
    /// A Broadcast of the ranks of this host, from the first.
    pub broadcast: Proved,
}

/// What one rank does in an AllReduce of one shape on two levels.
pub struct LevelsPlan {
    hosts: Arc<Hosts>,
    call: PlannedCall,
    /// How many parts there are.
    number: usize,
    /// Where each part but the first begins after the one before, in bytes.
    each: usize,
    /// The last part, and what all others are alike, if there are others.
    last: Part,
    others: Option<Part>,
    size: usize,
}

/// What a rank does with a part of the buffer.
struct Part {
    reduce: WorldPlan,
    /// If it is the first of its host.
    across: Option<HostsPlan>,
    broadcast: WorldPlan,
}

impl fmt::Debug for LevelsPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LevelsPlan")
            .field("reduce", &self.last.reduce)
            .field("across", &self.call.schedule.algorithm)
            .field("broadcast", &self.last.broadcast)
            .field("rank", &self.hosts.rank())
            .field("count", &self.call.count)
            .field("dtype", &self.call.dtype)
            .field("op", &self.call.op)
            .finish_non_exhaustive()
    }
}

impl LevelsPlan {
    /// What the rank of `hosts` does in an AllReduce of `count` elements.
    ///
    /// # Errors
    /// E0401 for an algorithm of another number of ranks, and E0306 for one that is not the collective; E0431 where the dtype does not have the op, and
    /// for an average, which is not the average of averages; those of [`HostsPlan::new`] and [`WorldPlan::new`].
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
        let leaders = hosts.leaders()?;
        let across = hosts.hosts().len();
        if levels.across.schedule().nranks as usize != across {
            let given = levels.across.schedule().nranks as usize;
            let what = "ranks of the schedule between hosts";
            return Err(Error::WrongBufferCount { what, given, nranks: across as u32 });
        }
        let call = PlannedCall::new(&levels.across, count, dtype, op);
        let elements = usize::try_from(count)
            .map_err(|_| Error::TooLarge { what: format!("{count} elements") })?;
        let [number, whole, last] = cut(elements, dtype.size());
        let part = |elements: usize| {
            let inside = |proved| WorldPlan::new(hosts.world(), proved, elements as u64, dtype, op);
            let across = leaders.as_ref().map(|leaders| {
                let plan = HostsPlan::new(leaders, &levels.across, elements as u64, dtype, op)?;
                Ok::<_, Error>(plan.within(&call))
            });
            Ok::<_, Error>(Part {
                reduce: inside(&levels.reduce)?.within(&call),
                across: across.transpose()?,
                broadcast: inside(&levels.broadcast)?.within(&call),
            })
        };
        let size = dtype.size();
        Ok(Self {
            hosts: hosts.clone(),
            number,
            each: whole * size,
            last: part(last)?,
            others: (number > 1).then(|| part(whole)).transpose()?,
            size,
            call,
        })
    }

    /// The reduce op.
    pub fn op(&self) -> ReduceOp {
        self.call.op
    }

    /// Runs this rank, while the other processes run theirs, and returns when this rank is done. Both buffers have the
    /// elements of the call.
    ///
    /// # Errors
    /// Those of [`HostsPlan::run`].
    pub fn run<T: Element>(&self, input: &[T], output: &mut [T]) -> Result<(), Error> {
        self.call.check_dtype(T::DTYPE)?;
        self.apart(input, output, 1)
    }

    /// Runs this rank in place: `buffer` holds the rank's input before and its output after.
    ///
    /// # Errors
    /// Those of [`HostsPlan::run`].
    pub fn run_in_place<T: Element>(&self, buffer: &mut [T]) -> Result<(), Error> {
        self.call.check_dtype(T::DTYPE)?;
        self.aliased(buffer, 1)
    }

    /// Runs this rank on bytes.
    ///
    /// # Errors
    /// Those of [`HostsPlan::run_bytes`].
    pub fn run_bytes(&self, input: &[u8], output: &mut [u8]) -> Result<(), Error> {
        self.apart(input, output, self.size)
    }

    /// Runs this rank in place on bytes.
    ///
    /// # Errors
    /// Those of [`HostsPlan::run_bytes`].
    pub fn run_bytes_in_place(&self, buffer: &mut [u8]) -> Result<(), Error> {
        self.aliased(buffer, self.size)
    }

    fn apart<T>(&self, input: &[T], output: &mut [T], per_element: usize) -> Result<(), Error> {
        self.check("input", extent(input), per_element)?;
        self.check("output", extent(output), per_element)?;
        // SAFETY: checked for length and alignment, and borrowed for the call.
        unsafe { self.make(input.as_ptr().cast(), output.as_mut_ptr().cast()) }
    }

    fn aliased<T>(&self, buffer: &mut [T], per_element: usize) -> Result<(), Error> {
        self.check("buffer", extent(buffer), per_element)?;
        let both = buffer.as_mut_ptr().cast::<u8>();
        // SAFETY: as above.
        unsafe { self.make(both.cast_const(), both) }
    }

    fn check(&self, what: &'static str, is: (usize, u64), per: usize) -> Result<(), Error> {
        let rank = RankId(self.hosts.rank());
        self.call.check_buffer(what, rank, is, per, self.call.count as usize)
    }

    /// Makes the call.
    ///
    /// # Safety
    /// Both addresses are good for the elements of the call, aligned and initialized, the output's writable, and lent
    /// for the call. They may be the same.
    unsafe fn make(&self, input: *const u8, output: *mut u8) -> Result<(), Error> {
        // A forked child is no rank, and ends nothing.
        self.hosts.world().here()?;
        let _turn = self.hosts.call()?;
        let mut crossing = None;
        // SAFETY: the caller's promise; what crosses has ended when this returns.
        let done = unsafe { self.parts(input, output, &mut crossing) };
        let Err(error) = done else { return Ok(()) };
        if let Some(course) = crossing {
            _ = course.end(Err(error.clone()));
        }
        let world = self.hosts.world();
        // Whatever it is, other hosts may have gone on. If the world ended before, this says nothing new.
        _ = world.give_up_for(error.clone());
        // A rank may find that calls differ while others are at later parts.
        Err(world.refusal().unwrap_or(error))
    }

    /// Brings each part to the first rank, across, and back.
    ///
    /// # Safety
    /// As for [`Self::make`], until what `crossing` has is gone.
    unsafe fn parts<'p>(
        &'p self,
        input: *const u8,
        output: *mut u8,
        crossing: &mut Option<Course<'p>>,
    ) -> Result<(), Error> {
        for at in 0..=self.number {
            let next = (at < self.number).then(|| self.part(at));
            if let Some((part, from)) = next {
                let input = input.wrapping_add(from);
                let output = output.wrapping_add(from);
                // SAFETY: this part of both buffers, of which only the first rank's output is written.
                unsafe { part.reduce.make(Outside { input, output })? };
            }
            if crossing.is_some() {
                self.cross(crossing)?;
            }
            if let Some((Part { across: Some(across), .. }, from)) = next {
                let here = output.wrapping_add(from);
                // SAFETY: this part of the output, which nobody touches until it has crossed.
                let course = crossing.insert(unsafe { across.set_out([here, here])? });
                course.go_on()?;
            }
            if let Some(before) = at.checked_sub(1) {
                let (part, from) = self.part(before);
                let output = output.wrapping_add(from);
                // SAFETY: the part before, which has crossed.
                unsafe { part.broadcast.make(Outside { input: output.cast_const(), output })? };
            }
        }
        Ok(())
    }

    /// A part, and where it begins, in bytes.
    fn part(&self, at: usize) -> (&Part, usize) {
        let others = self.others.as_ref().filter(|_| at + 1 < self.number);
        (others.unwrap_or(&self.last), at * self.each)
    }

    /// Waits until what crosses is there.
    fn cross(&self, crossing: &mut Option<Course<'_>>) -> Result<(), Error> {
        let Some(course) = crossing else { return Ok(()) };
        let mut came = course.go_on();
        while !matches!(came, Ok(Came::Through)) {
            came.clone()?;
            // Whatever goes on, the deadline counts anew.
            let awaited = course.awaited();
            self.hosts.world().await_beside(&awaited, || {
                if came == Ok(Came::Nowhere) || came == Ok(Came::Further) {
                    came = course.go_on();
                }
                came != Ok(Came::Nowhere)
            })?;
        }
        match crossing.take() {
            Some(course) => course.end(Ok(())),
            None => Ok(()),
        }
    }
}

/// How many parts there are of so many elements, and the elements of each but the last, and of the last.
fn cut(elements: usize, size: usize) -> [usize; 3] {
    let number = elements.div_ceil(PART / size).max(1);
    let whole = elements.div_ceil(number).next_multiple_of(WHOLE);
    // Rounding up may have left nothing for the last.
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
