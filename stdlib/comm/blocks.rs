//! Calls of a rank with a count for each block.

use std::sync::Arc;

use roundelay_core::counts::{Block, Counts, CountsDiffer, RankBlocks, block_name};
use roundelay_core::ids::RankId;
use roundelay_kernels::{Differ, Error as EngineError, bytes_of, bytes_of_mut};

use super::Rank;
use super::call::{Call, Shape};
use crate::{Collective, Element, Error, ReduceOp};

/// The calls with a count for each block. Counts are in elements, and any of them may be 0; the blocks of a buffer lie
/// one behind the other, in the order of ranks.
///
/// The library's algorithms serve every vector of counts by the proof for equal counts, and so does every algorithm
/// whose certificate says `for every vector of counts`. For other algorithms these calls fail with E0319.
impl Rank<'_> {
    /// Copies the input of rank r, of `counts[r]` elements, to block r of every output, as `MPI_Allgatherv` does. All
    /// ranks give the same counts. [Errors](crate::Comm#errors-of-calls): E0402 where a slice is not as long as its
    /// counts say, E0432 for another number of counts, E0414 where ranks give different counts.
    ///
    /// ```
    /// use roundelay::Comm;
    ///
    /// let comm = Comm::new(3)?;
    /// let inputs = [&[7][..], &[], &[8, 9]];
    /// std::thread::scope(|threads| {
    ///     for rank in 0..3 {
    ///         let mut mine = comm.rank(rank).expect("a rank of three");
    ///         threads.spawn(move || {
    ///             let mut output = [0; 3];
    ///             let input = inputs[rank as usize];
    ///             mine.all_gather_v(input, &mut output, &[1, 0, 2]).expect("all ranks call");
    ///             assert_eq!(output, [7, 8, 9]);
    ///         });
    ///     }
    /// });
    /// # Ok::<(), roundelay::Error>(())
    /// ```
    pub fn all_gather_v<T: Element>(
        &mut self,
        input: &[T],
        output: &mut [T],
        counts: &[usize],
    ) -> Result<(), Error> {
        let called = (Collective::AllGather, 0, ReduceOp::Sum);
        self.v(called, [&[input.len()], counts], input, output)
    }

    /// Reduces block r of all inputs, of `counts[r]` elements, into the output of rank r, as `MPI_Reduce_scatter` does.
    /// All ranks give the same counts. [Errors](crate::Comm#errors-of-calls): E0402 where a slice is not as long as its
    /// counts say, E0432 for another number of counts, E0414 where ranks give different counts.
    pub fn reduce_scatter_v<T: Element>(
        &mut self,
        input: &[T],
        output: &mut [T],
        counts: &[usize],
        op: ReduceOp,
    ) -> Result<(), Error> {
        let called = (Collective::ReduceScatter, 0, op);
        self.v(called, [counts, &[output.len()]], input, output)
    }

    /// Copies the input of rank r to block r of the root's output, as `MPI_Gatherv` does. The root gives the counts of
    /// all ranks, the other ranks give none and an empty output. [Errors](crate::Comm#errors-of-calls): E0402 where a
    /// slice is not as long as its counts say, E0432 for another number of counts, E0414 where the root's count of a
    /// rank is not the length of that rank's input.
    pub fn gather_v<T: Element>(
        &mut self,
        input: &[T],
        output: &mut [T],
        counts: &[usize],
        root: u32,
    ) -> Result<(), Error> {
        let called = (Collective::Gather, root, ReduceOp::Sum);
        self.v(called, [&[input.len()], counts], input, output)
    }

    /// Copies block r of the root's input to the output of rank r, as `MPI_Scatterv` does. The root gives the counts of
    /// all ranks, the other ranks give none and an empty input. [Errors](crate::Comm#errors-of-calls): E0402 where a
    /// slice is not as long as its counts say, E0432 for another number of counts, E0414 where the root's count of a
    /// rank is not the length of that rank's output.
    pub fn scatter_v<T: Element>(
        &mut self,
        input: &[T],
        output: &mut [T],
        counts: &[usize],
        root: u32,
    ) -> Result<(), Error> {
        let called = (Collective::Scatter, root, ReduceOp::Sum);
        self.v(called, [counts, &[output.len()]], input, output)
    }

    /// Copies block s of the input, of `sends[s]` elements, to rank s, and the block of rank r for this rank, of
    /// `receives[r]` elements, to block r of the output, as `MPI_Alltoallv` does. [Errors](crate::Comm#errors-of-calls):
    /// E0402 where a slice is not as long as its counts say, E0432 for another number of counts, E0414 where two ranks
    /// give different counts for the block from the one to the other.
    pub fn all_to_all_v<T: Element>(
        &mut self,
        input: &[T],
        sends: &[usize],
        output: &mut [T],
        receives: &[usize],
    ) -> Result<(), Error> {
        let called = (Collective::AllToAll, 0, ReduceOp::Sum);
        self.v(called, [sends, receives], input, output)
    }

    /// Makes a call on slices that hold the blocks of `blocks` and nothing else.
    fn v<T: Element>(
        &mut self,
        (collective, root, op): (Collective, u32, ReduceOp),
        [inputs, outputs]: [&[usize]; 2],
        input: &[T],
        output: &mut [T],
    ) -> Result<(), Error> {
        let nranks = self.nranks();
        let checked = || {
            let call = Call { collective, root, count: 0, dtype: T::DTYPE, op }.of(nranks)?;
            let packed = |counts: &[usize]| Block::pack(counts.iter().map(|count| *count as u64));
            let (inputs, outputs) = (packed(inputs), packed(outputs));
            self.check("input", input.len(), &inputs, u64::eq)?;
            self.check("output", output.len(), &outputs, u64::eq)?;
            let root = RankId(call.root);
            Ok((call, RankBlocks::new(collective, root, self.id, nranks, inputs, outputs)?))
        };
        let (call, blocks) = checked().map_err(|error| self.home.refused(error))?;
        self.call_blocks(call, &blocks, input, output)
    }

    /// Checks the length of a slice, which must stand in this relation to the end of its last block.
    fn check(
        &self,
        what: &'static str,
        len: usize,
        blocks: &[Block],
        fits: fn(&u64, &u64) -> bool,
    ) -> Result<(), Error> {
        let (given, expected) = (len as u64, Block::end(blocks));
        if fits(&given, &expected) {
            return Ok(());
        }
        let (rank, unit) = (self.id, "elements");
        Err(EngineError::WrongBufferLength { what, rank, given, expected, unit }.into())
    }

    /// Makes a call with a count for each block on slices in which the blocks lie where `blocks` says; elements between
    /// them do not change. The count of `call` has no meaning. [Errors](crate::Comm#errors-of-calls): E0402 where a
    /// slice ends before its last block does, E0414 where ranks give different counts for a block.
    ///
    /// ```
    /// use roundelay::compiler::counts::{Block, RankBlocks};
    /// use roundelay::{Call, Collective, Comm, DType, ReduceOp};
    ///
    /// let comm = Comm::new(1)?;
    /// let (collective, dtype, op) = (Collective::AllGather, DType::I32, ReduceOp::Sum);
    /// let call = Call { collective, root: 0, count: 0, dtype, op };
    /// let there = vec![Block { start: 2, count: 3 }];
    /// let blocks = RankBlocks::new(collective, 0.into(), 0.into(), 1, Block::pack([3]), there)?;
    /// let mut output = [-1; 6];
    /// comm.rank(0)?.call_blocks(call, &blocks, &[1, 2, 3], &mut output)?;
    /// assert_eq!(output, [-1, -1, 1, 2, 3, -1]);
    /// # Ok::<(), roundelay::Error>(())
    /// ```
    pub fn call_blocks<T: Element>(
        &mut self,
        call: Call,
        blocks: &RankBlocks,
        input: &[T],
        output: &mut [T],
    ) -> Result<(), Error> {
        let (given, expected) = (T::DTYPE, call.dtype);
        if given != expected {
            return Err(self.home.refused(EngineError::WrongDType { given, expected }.into()));
        }
        self.call_blocks_bytes(call, blocks, bytes_of(input), bytes_of_mut(output))
    }

    /// Makes a call with a count for each block on bytes: the places and counts of `blocks` are in elements of the
    /// call's type. [Errors](crate::Comm#errors-of-calls): those of [`Self::call_blocks`]; E0404 for bytes that are not
    /// aligned for the type.
    pub fn call_blocks_bytes(
        &mut self,
        call: Call,
        blocks: &RankBlocks,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<(), Error> {
        let home = self.home;
        let made = self.blocks_made(call, blocks, input, output);
        made.map_err(|error| home.refused(error))
    }

    fn blocks_made(
        &mut self,
        call: Call,
        blocks: &RankBlocks,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<(), Error> {
        self.home.settled()?;
        let size = call.dtype.size();
        let (nranks, root) = (self.nranks(), RankId(call.of(self.nranks())?.root));
        let units = [
            call.collective.input_units(self.id, nranks, root) as usize,
            call.collective.output_units(self.id, nranks, root) as usize,
        ];
        let given = (blocks.collective(), blocks.rank(), blocks.nranks());
        if given != (call.collective, self.id, nranks)
            || [blocks.input().len(), blocks.output().len()] != units
        {
            let (rank, collective) = (self.id, call.collective);
            let what = format!("these are no blocks of rank {rank} in this {collective}");
            return Err(EngineError::BadCounts { what }.into());
        }
        self.check("input", input.len() / size, blocks.input(), u64::ge)?;
        self.check("output", output.len() / size, blocks.output(), u64::ge)?;
        let call = Call { count: 0, ..call.of(self.nranks())? };
        if let Some(plan) = self.home.plan_of_blocks(call)? {
            return Ok(plan.run_bytes(blocks, input, output)?);
        }
        let counts = self.exchanged(call, blocks)?;
        let largest = Call { count: counts.largest(), ..call };
        let shape = Shape { call: largest, counts: Some(Arc::from(counts.all())) };
        // Dropped first, as the home may have to drop it, too.
        self.last = None;
        let plan = self.home.plan_of(shape, self.id)?;
        let range = |block: &Block| {
            let start = block.start as usize * size;
            start..start + block.count as usize * size
        };
        let [sent, received] = [blocks.input(), blocks.output()]
            .map(|blocks| blocks.iter().filter(|block| block.count > 0).map(range));
        let gathered;
        let input = if is_packed(blocks.input()) {
            &input[..Block::end(blocks.input()) as usize * size]
        } else {
            gathered = aligned(sent.map(|range| &input[range]));
            let bytes = blocks.input().iter().map(|block| block.count as usize * size).sum();
            &bytes_of(&gathered)[..bytes]
        };
        if is_packed(blocks.output()) {
            let end = Block::end(blocks.output()) as usize * size;
            return Ok(plan.run_bytes(input, &mut output[..end])?);
        }
        let mut spread = aligned(received.clone().map(|range| &output[range]));
        let bytes = blocks.output().iter().map(|block| block.count as usize * size).sum();
        let made = &mut bytes_of_mut(&mut spread)[..bytes];
        plan.run_bytes(input, made)?;
        let mut from = 0;
        for range in received {
            let len = range.len();
            output[range].copy_from_slice(&made[from..from + len]);
            from += len;
        }
        Ok(())
    }

    /// Brings together the counts that all ranks know.
    fn exchanged(&mut self, call: Call, blocks: &RankBlocks) -> Result<Counts, Error> {
        let nranks = self.nranks();
        let n = nranks as usize;
        let mut mine = vec![0_u64; 2 * n + 1];
        let place = |found: Option<usize>| found.map_or(0, |at| at as u64);
        let collective = place(Collective::ALL.iter().position(|c| *c == call.collective));
        mine[0] = u64::from(call.root) << 8 | collective;
        let (input, output) = mine[1..].split_at_mut(n);
        for (words, blocks) in [(input, blocks.input()), (output, blocks.output())] {
            for (word, block) in words.iter_mut().zip(blocks) {
                *word = block.count;
            }
        }
        let mut all = vec![0; n * mine.len()];
        self.all_gather(&mine, &mut all)?;
        let rows: Vec<&[u64]> = all.chunks(mine.len()).collect();
        let name = |word: u64| {
            let of = Collective::ALL.get((word & 0xff) as usize);
            of.map_or_else(String::new, |of| {
                let root =
                    if of.is_rooted() { format!(", root {}", word >> 8) } else { String::new() };
                format!("{of}V of {}{root}", call.dtype)
            })
        };
        let differ = |ranks: [u32; 2], calls: [String; 2]| {
            let ranks = ranks.map(RankId);
            let differ = Differ { number: 0, ranks, calls, reason: None, late: None };
            Error::from(EngineError::CallsDiffer(Box::new(differ)))
        };
        if let Some(other) = rows.iter().position(|row| row[0] != rows[0][0]) {
            let calls = [rows[0][0], rows[other][0]].map(name);
            return Err(differ([0, other as u32], calls));
        }
        let root = RankId(call.root);
        let of_rank = |(rank, row): (u32, &&[u64])| {
            let rank = RankId(rank);
            let (inputs, outputs) = row[1..].split_at(n);
            let units = [
                call.collective.input_units(rank, nranks, root),
                call.collective.output_units(rank, nranks, root),
            ];
            let packed =
                |counts: &[u64], units: u32| Block::pack(counts[..units as usize].to_vec());
            let (inputs, outputs) = (packed(inputs, units[0]), packed(outputs, units[1]));
            RankBlocks::new(call.collective, root, rank, nranks, inputs, outputs)
        };
        let ranks: Vec<RankBlocks> = (0..).zip(&rows).map(of_rank).collect::<Result<_, _>>()?;
        Counts::agree(&ranks).map_err(|CountsDiffer { block, ranks, counts }| {
            let block = block_name(call.collective, nranks, block);
            let calls = counts
                .map(|count| format!("{} with {count} elements in {block}", name(rows[0][0])));
            differ(ranks.map(|rank| rank.0), calls)
        })
    }
}

/// Whether blocks lie one behind the other, from the beginning of their buffer.
fn is_packed(blocks: &[Block]) -> bool {
    let mut next = 0;
    blocks.iter().all(|block| {
        let here = block.start == next || block.count == 0;
        next += block.count;
        here
    })
}

/// Returns parts one behind the other, in memory that is aligned for every element type.
fn aligned<'a>(parts: impl Iterator<Item = &'a [u8]> + Clone) -> Vec<u64> {
    let bytes: usize = parts.clone().map(<[u8]>::len).sum();
    let mut all = vec![0_u64; bytes.div_ceil(8)];
    let mut rest = bytes_of_mut(&mut all);
    for part in parts {
        let (to, after) = rest.split_at_mut(part.len());
        to.copy_from_slice(part);
        rest = after;
    }
    all
}
