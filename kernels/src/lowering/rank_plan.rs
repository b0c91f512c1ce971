//! The interface of all plans of a rank: the calls that a rank makes by itself, whether it is a thread, a process of a
//! host or a process among processes of several hosts. This interface checks a caller's buffers; an engine takes their
//! addresses.

use std::fmt;
use std::sync::atomic::Ordering;

use roundelay_core::dtype::ReduceOp;

use super::first_call::{FirstCall, Memory};
use super::plan_call::extent;
use super::rank_part::RankPart;
use super::user_buffers::UserBuffers;
use crate::element::Element;
use crate::error::Error;

/// The part of one rank in a planned call, as an engine makes it.
pub trait RankCall: Send + Sync {
    /// Returns the rank's part in the call that the plan was made for.
    fn part(&self) -> &RankPart;

    /// Returns this rank's plan of the exchange by which ranks tell each other what a check found.
    ///
    /// # Errors
    /// Those of making the plan.
    fn exchange(&self) -> Result<Box<AnyRankPlan>, Error>;

    /// Returns the check that comes before the first call, until it is done.
    ///
    /// # Errors
    /// Those of [`Self::exchange`].
    fn first_call(&self) -> Result<Option<FirstCall<'_>>, Error> {
        let part = self.part();
        if part.checked.load(Ordering::Acquire) {
            return Ok(None);
        }
        let plan = self.exchange()?;
        Ok(Some(FirstCall::new(part, Box::new(move |mine, all| plan.exchange(mine, all)))))
    }

    /// Returns memory for the buffer of a check in place of the buffer at `like`.
    ///
    /// # Errors
    /// E0407 where there is no room.
    fn memory(&self, _like: *const u8, words: usize) -> Result<Memory<'_>, Error> {
        Memory::own(words)
    }

    /// Makes the call, and returns when this rank is done. A call that is a check meets no other call.
    ///
    /// # Safety
    /// Both addresses are valid for the rank's buffers, aligned and initialized, the output's writable, and lent for
    /// the call. In place both lie in one buffer, as the collective has them there.
    unsafe fn make(&self, buffers: UserBuffers) -> Result<(), Error>;
}

/// A plan of one rank: [`RankPlan`](crate::RankPlan) for a thread of this process,
/// [`WorldPlan`](crate::shared_memory::WorldPlan) for a process of one host, [`HostsPlan`](crate::network::HostsPlan)
/// and [`LevelsPlan`](crate::network::LevelsPlan) for a process among processes of several hosts. Every rank runs its
/// own plan of the same call, and returns when it is done.
///
/// # Errors of calls
///
/// Buffers are checked before the rank makes its call. A refused call is not made, and the other ranks wait for a right
/// call: E0402 (wrong length), E0403 (another element type), E0404 (byte slices that are not aligned), E0408 (no
/// in-place form), E0412 (a second thread calls for the same rank).
///
/// A call that was made fails with E0405 where another rank does not come, or nothing happens, for as long as the
/// deadline; the other ranks get E0413, and so do all later calls. E0428 is for a process that ended, and all later
/// calls fail with it or with E0413. E0414 is for ranks that made different calls, where their engine compares calls:
/// the call is void for all ranks, and ranks of one host can go on. From host to host nothing is compared in advance. A
/// message has a tag that follows from the number of the call, its schedule, count, dtype, op and root, so messages of
/// calls that differ do not meet, and ranks wait for them until the deadline; ranks of one host whose calls differ end
/// a world of several hosts, because other ranks may have sent already. Errors of a
/// [`Carrier`](crate::network::Carrier) end a world of several hosts, too. After any of these errors the output is
/// undefined.
///
/// Where the options ask for it ([`Check`](crate::Check)), the first call of a plan comes after a check, which is a call
/// of its own and an exchange. E0433 is for wrong data on any rank. All ranks get it, the call is not made, and the next
/// call of the plan is checked again.
#[derive(Clone, Copy)]
pub struct Runs<P: ?Sized>(pub(crate) P);

/// A plan of one rank, on any engine.
pub type AnyRankPlan = Runs<dyn RankCall>;

impl<P: RankCall + ?Sized> fmt::Debug for Runs<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.part().fmt(f)
    }
}

impl<P: RankCall + ?Sized> Runs<P> {
    /// Returns the number of this rank, counted from 0.
    pub fn id(&self) -> u32 {
        self.0.part().rank.0
    }

    /// Returns the reduce op, which has no meaning for collectives that only copy.
    pub fn op(&self) -> ReduceOp {
        self.0.part().call.op
    }

    /// Runs this rank, while the other ranks run their plans, and returns when this rank is done. Lengths are those of
    /// [`Plan::run`](crate::Plan::run) for this rank; a slice is empty where the rank has no buffer for it.
    ///
    /// # Errors
    /// The errors of [calls](Runs#errors-of-calls).
    pub fn run<T: Element>(&self, input: &[T], output: &mut [T]) -> Result<(), Error> {
        self.0.part().call.check_dtype(T::DTYPE)?;
        self.apart(input, output, 1)
    }

    /// Runs this rank in place: `buffer` holds the rank's input before and its output after, and is as long as the
    /// larger of the two.
    ///
    /// # Errors
    /// The errors of [calls](Runs#errors-of-calls).
    pub fn run_in_place<T: Element>(&self, buffer: &mut [T]) -> Result<(), Error> {
        self.0.part().call.check_dtype(T::DTYPE)?;
        self.aliased(buffer, 1)
    }

    /// Runs this rank on bytes. Lengths are those of [`Self::run`] times the size of an element.
    ///
    /// # Errors
    /// The errors of [calls](Runs#errors-of-calls).
    pub fn run_bytes(&self, input: &[u8], output: &mut [u8]) -> Result<(), Error> {
        self.apart(input, output, self.0.part().call.dtype.size())
    }

    /// Runs this rank in place on bytes. Lengths are those of [`Self::run_in_place`] times the size of an element.
    ///
    /// # Errors
    /// The errors of [calls](Runs#errors-of-calls).
    pub fn run_bytes_in_place(&self, buffer: &mut [u8]) -> Result<(), Error> {
        self.aliased(buffer, self.0.part().call.dtype.size())
    }

    fn apart<T>(&self, input: &[T], output: &mut [T], per_element: usize) -> Result<(), Error> {
        let RankPart { call, rank, lens: [inputs, outputs], .. } = self.0.part();
        call.check_buffer("input", *rank, extent(input), per_element, *inputs)?;
        call.check_buffer("output", *rank, extent(output), per_element, *outputs)?;
        let (input, output) = (input.as_ptr().cast(), output.as_mut_ptr().cast());
        // SAFETY: checked for length and alignment, and borrowed for the call.
        unsafe { self.checked(UserBuffers::new(input, output)) }
    }

    fn aliased<T>(&self, buffer: &mut [T], per_element: usize) -> Result<(), Error> {
        let RankPart { call, rank, lens: [inputs, outputs], within, .. } = self.0.part();
        call.check_in_place()?;
        let expected = *inputs.max(outputs);
        call.check_buffer("buffer", *rank, extent(buffer), per_element, expected)?;
        let whole = buffer.as_mut_ptr().cast::<u8>();
        // `wrapping` for buffers of no elements.
        let [input, output] = within.map(|start| whole.wrapping_add(start));
        // SAFETY: checked for length and alignment, and borrowed for the call; the buffer holds both.
        unsafe { self.checked(UserBuffers::new(input, output)) }
    }

    /// Makes the call, after the check if it is the first.
    ///
    /// # Safety
    /// As for [`RankCall::make`].
    unsafe fn checked(&self, buffers: UserBuffers) -> Result<(), Error> {
        if let Some(first) = self.0.first_call()? {
            let memory = |like, words| self.0.memory(like, words);
            // SAFETY: the buffers of a check are like the caller's.
            first.make(buffers, memory, |buffers| unsafe { self.0.make(buffers) })?;
        }
        // SAFETY: the caller's promise.
        unsafe { self.0.make(buffers) }
    }

    /// Brings together a few words of each rank, for a check.
    pub(crate) fn exchange(&self, mine: &[u64], all: &mut [u64]) -> Result<(), Error> {
        let [inputs, outputs] = self.0.part().lens;
        assert_eq!([mine.len(), all.len()], [inputs, outputs], "a plan for these words");
        let (input, output) = (mine.as_ptr().cast(), all.as_mut_ptr().cast());
        // SAFETY: as long as the plan has them, and borrowed for the call.
        unsafe { self.0.make(UserBuffers::new(input, output).for_a_check()) }
    }
}
