//! The check that comes before the first call of a plan: one call of the same plan on data that all ranks know, in
//! memory of its own that is laid out as the caller's, then an exchange of what each rank found.

use std::ops::{DerefMut, Range};
use std::sync::atomic::Ordering;

use roundelay_core::collective::Collective;
use roundelay_core::counts::Block;
use roundelay_core::dtype::DType;
use roundelay_core::ids::RankId;
use roundelay_core::schedule::text;
use roundelay_core::verify::Proved;

use super::plan_call::PlannedCall;
use super::rank_part::RankPart;
use super::user_buffers::UserBuffers;
use crate::element::{bytes_of, bytes_of_mut};
use crate::error::Error;
use crate::reference::{KnownRank, WrongData, WrongElements};

/// The words with which a rank tells the others what it found.
pub(crate) const WORDS: u64 = 4;
/// The type of these words.
pub(crate) const WORD: DType = DType::U64;

/// The content of memory before a check, which few results have.
const EMPTY: u64 = 0xa5a5_5a5a_5aa5_a55a;

/// Memory of a check.
pub struct Memory<'p>(Box<dyn DerefMut<Target = [u64]> + 'p>);

impl<'p> Memory<'p> {
    /// Takes memory of this process.
    ///
    /// # Errors
    /// E0407 where there is no room.
    pub(crate) fn own(words: usize) -> Result<Self, Error> {
        let mut all: Vec<u64> = Vec::new();
        let room = all.try_reserve_exact(words);
        room.map_err(|_| Error::TooLarge {
            what: format!("no memory for {} bytes of the check of a first call", 8 * words),
        })?;
        all.resize(words, 0);
        Ok(Self(Box::new(all)))
    }

    /// Returns the address of the memory.
    #[cfg(all(test, target_os = "linux"))]
    pub(crate) fn address(&self) -> *const u8 {
        self.0.as_ptr().cast()
    }

    /// Takes memory that its owner lends.
    pub(crate) fn lent(memory: impl DerefMut<Target = [u64]> + 'p) -> Self {
        Self(Box::new(memory))
    }
}

/// Input and output of a rank in a call on known data, each in its memory, or both in one where the caller's overlap.
pub(crate) struct KnownBuffers<'p> {
    memory: Vec<Memory<'p>>,
    /// For input and output: the number of the memory, and the place there from which blocks are counted.
    places: [(usize, usize); 2],
}

impl<'p> KnownBuffers<'p> {
    /// Lays out buffers for the blocks of `known` as the caller's are, with the rank's known data as the input.
    pub(crate) fn new(
        known: &KnownRank,
        like: UserBuffers,
        memory: impl Fn(*const u8, usize) -> Result<Memory<'p>, Error>,
    ) -> Result<Self, Error> {
        let size = known.dtype.size();
        let starts = [like.input, like.output.cast_const()];
        let [input, output] = [(starts[0], &known.input), (starts[1], &known.output)]
            .map(|(start, blocks)| span(start.addr(), blocks, size));
        let together = input.start < output.end && output.start < input.end;
        let whole = input.start.min(output.start)..input.end.max(output.end);
        let spans = if together { &[whole][..] } else { &[input, output] };
        let mut made = Vec::with_capacity(2);
        for (span, start) in spans.iter().zip(starts) {
            let mut words = memory(start, span.len().div_ceil(8))?;
            words.0.fill(EMPTY);
            made.push(words);
        }
        let place = |which: usize| {
            let at = if together { 0 } else { which };
            (at, starts[which].addr().wrapping_sub(spans[at].start))
        };
        let mut made = Self { memory: made, places: [place(0), place(1)] };
        let (at, origin) = made.places[0];
        known.fill(bytes_of_mut(&mut made.memory[at].0), origin);
        Ok(made)
    }

    /// Returns the addresses from which the blocks of input and output are counted.
    pub(crate) fn buffers(&mut self) -> UserBuffers {
        let starts: Vec<*mut u8> =
            self.memory.iter_mut().map(|memory| memory.0.as_mut_ptr().cast()).collect();
        let [input, output] = self.places.map(|(at, origin)| starts[at].wrapping_add(origin));
        UserBuffers::new(input, output).for_a_check()
    }

    /// Returns the elements of the output that are wrong after the call.
    pub(crate) fn wrong(&self, known: &KnownRank) -> Option<WrongElements> {
        let (at, origin) = self.places[1];
        known.wrong(bytes_of(&self.memory[at].0), origin)
    }
}

/// Returns the bytes of all blocks together; an empty range at `start` where there are no elements.
fn span(start: usize, blocks: &[Block], size: usize) -> Range<usize> {
    let filled = || blocks.iter().filter(|block| block.count > 0);
    let at = |element: u64| start.wrapping_add((element as usize).wrapping_mul(size));
    let first = filled().map(|block| at(block.start)).min();
    let end = filled().map(|block| at(block.start + block.count)).max();
    first.zip(end).map_or(start..start, |(first, end)| first..end)
}

impl PlannedCall {
    /// Returns a rank of `nranks` in this call on known data.
    pub(crate) fn known(&self, nranks: u32, rank: RankId) -> KnownRank {
        let (collective, root) = (self.schedule.collective, self.schedule.root);
        let (dtype, op) = (self.dtype, self.op);
        let equal = |units: u32| Block::pack((0..units).map(|_| self.count));
        let (input, output) = match &self.even {
            None => (
                equal(collective.input_units(rank, nranks, root)),
                equal(collective.output_units(rank, nranks, root)),
            ),
            Some((_, counts)) => {
                let blocks = counts.of_rank(rank, root);
                (blocks.input().to_vec(), blocks.output().to_vec())
            }
        };
        KnownRank { collective, nranks, root, dtype, op, rank, input, output }
    }

    /// Tells the other ranks what this rank found, and returns the first wrong data of any rank, alike on all ranks.
    /// `exchange` is an AllGather of [`WORDS`] words.
    pub(crate) fn agreed<E>(
        &self,
        known: &KnownRank,
        mine: Option<WrongElements>,
        exchange: impl FnOnce(&[u64], &mut [u64]) -> Result<(), E>,
    ) -> Result<Option<WrongData>, E> {
        let none = WrongElements { number: 0, first: 0, expected: 0, found: 0 };
        let WrongElements { number, first, expected, found } = mine.unwrap_or(none);
        let mut all = vec![0; known.nranks as usize * WORDS as usize];
        exchange(&[number, first, expected, found], &mut all)?;
        let of_rank = |(rank, words): (u32, &[u64])| {
            let &[number, first, expected, found] = words else { return None };
            (number > 0).then_some((RankId(rank), WrongElements { number, first, expected, found }))
        };
        let told = (0..).zip(all.chunks_exact(WORDS as usize)).find_map(of_rank);
        // A rank fails by its own finding, even if its words are lost on a machine that loses data.
        let found = told.or_else(|| mine.map(|wrong| (known.rank, wrong)));
        Ok(found.map(|(rank, wrong)| self.wrong_data(rank, wrong)))
    }

    /// Returns the error for elements of a rank that are wrong.
    pub(crate) fn wrong_data(&self, rank: RankId, wrong: WrongElements) -> WrongData {
        wrong.of(rank, self.dtype, (self.name(), self.schedule.algorithm.clone()))
    }
}

/// The check of a rank before the first call of its plan, until it is done.
pub struct FirstCall<'p> {
    part: &'p RankPart,
    known: KnownRank,
    /// An AllGather of [`WORDS`] words of each rank.
    exchange: Box<Exchange>,
}

/// An exchange of words: those of this rank, and room for those of all ranks.
type Exchange = dyn Fn(&[u64], &mut [u64]) -> Result<(), Error>;

impl<'p> FirstCall<'p> {
    /// Makes the check of a rank, which tells the others by `exchange` what it found.
    pub(crate) fn new(part: &'p RankPart, exchange: Box<Exchange>) -> Self {
        Self { part, known: part.call.known(part.nranks, part.rank), exchange }
    }

    /// Makes it the check of a call with these blocks.
    pub(crate) fn of_blocks(mut self, input: &[Block], output: &[Block]) -> Self {
        (self.known.input, self.known.output) = (input.to_vec(), output.to_vec());
        self
    }

    /// Checks a call on buffers that lie as the caller's do, in other memory. `make` makes the call.
    ///
    /// # Errors
    /// E0433 on all ranks where the data of any rank were wrong; E0407 where there is no room; the errors of calls.
    pub(crate) fn make(
        self,
        like: UserBuffers,
        memory: impl Fn(*const u8, usize) -> Result<Memory<'p>, Error>,
        make: impl Fn(UserBuffers) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Self { part, known, exchange } = self;
        let mut buffers = KnownBuffers::new(&known, like, memory)?;
        make(buffers.buffers())?;
        let mine = buffers.wrong(&known);
        drop(buffers);
        match part.call.agreed(&known, mine, exchange)? {
            Some(wrong) => Err(Error::WrongData(Box::new(wrong))),
            None => {
                part.checked.store(true, Ordering::Release);
                Ok(())
            }
        }
    }
}

/// Returns an AllGather of `nranks` ranks through rank 0, by which ranks tell each other what they found.
pub(crate) fn exchange(nranks: u32) -> Result<Proved, Error> {
    use std::fmt::Write as _;

    let mut all =
        format!("schedule CheckExchange {} nranks {nranks} root 0\n", Collective::AllGather);
    let others = || 1..nranks;
    let mut line = |text: std::fmt::Arguments<'_>| {
        // A String takes every text.
        _ = writeln!(all, "{text}");
    };
    line(format_args!("rank 0 stream 0"));
    line(format_args!("  copy 0.input[0..1] -> 0.output[0..1] @0"));
    for other in others() {
        line(format_args!("  wait ack {other}->0 @0"));
        line(format_args!("  copy {other}.input[0..1] -> 0.output[{other}..{}] @0", other + 1));
    }
    others().for_each(|other| line(format_args!("  post data 0->{other} @0")));
    others().for_each(|other| line(format_args!("  wait data {other}->0 @0")));
    for other in others() {
        line(format_args!("rank {other} stream 0"));
        line(format_args!("  post ack {other}->0 @0"));
        line(format_args!("  wait data 0->{other} @0"));
        line(format_args!("  copy 0.output[0..{nranks}] -> {other}.output[0..{nranks}] @0"));
        line(format_args!("  post data {other}->0 @0"));
    }
    let wrong = |what: String| super::bad(roundelay_core::diagnostics::Code::Unproved, what);
    let schedule = text::parse(&all).map_err(|why| wrong(format!("{why:?}")))?;
    Proved::new(schedule).map_err(|found| {
        wrong(found.into_iter().next().map_or_else(String::new, |found| found.title))
    })
}
