//! Runs whose outputs are compared: each input is given, and the outputs of the last run are kept.

use roundelay_core::dtype::DType;
use roundelay_core::ids::RankId;
use roundelay_core::schedule::{Buffer, Schedule};
use roundelay_kernels::recorder::now;

use crate::calls::CallPlan;
use crate::error::RunError;

/// The byte that fills a result before a run.
const UNTOUCHED: u8 = 0xA5;

/// Some runs of a schedule, after one to warm up.
#[derive(Clone, Copy, Debug)]
pub struct CheckedRun<'a> {
    /// The schedule.
    pub schedule: &'a Schedule,
    /// Elements a unit.
    pub count: u64,
    /// The type of elements.
    pub dtype: DType,
    /// The timed runs.
    pub iterations: u32,
}

/// The outputs of all ranks, the seconds of all timed runs, and the time at which the last one began, in nanoseconds.
pub type Outcome = (Vec<Vec<u8>>, f64, u64);

impl CheckedRun<'_> {
    fn ranks(&self) -> impl Iterator<Item = RankId> + use<> {
        (0..self.schedule.nranks).map(RankId)
    }

    /// Returns the bytes of a rank's buffer.
    fn bytes(&self, buffer: Buffer, rank: RankId) -> usize {
        self.schedule.elements(buffer, rank, self.count) as usize * self.dtype.size()
    }

    /// Runs out of place.
    ///
    /// # Errors
    /// The failure of a run.
    pub fn apart(
        &self,
        plan: &mut CallPlan<'_>,
        inputs: &mut [Vec<u8>],
    ) -> Result<Outcome, RunError> {
        let output = |rank| vec![UNTOUCHED; self.bytes(Buffer::Output, rank)];
        let mut outputs: Vec<Vec<u8>> = self.ranks().map(output).collect();
        let mut reads: Vec<&mut [u8]> = inputs.iter_mut().map(Vec::as_mut_slice).collect();
        let mut writes: Vec<&mut [u8]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
        plan.prepare(false)?;
        plan.apart(&mut reads, &mut writes, 1)?;
        let (mut seconds, mut last) = (0.0, 0);
        for _ in 0..self.iterations {
            last = now();
            seconds += plan.apart(&mut reads, &mut writes, 1)?;
        }
        plan.fetch(false, &mut writes)?;
        Ok((outputs, seconds, last))
    }

    /// Runs in place, each time on the inputs again.
    ///
    /// # Errors
    /// The failure of a run.
    pub fn in_place(
        &self,
        plan: &mut CallPlan<'_>,
        inputs: &[Vec<u8>],
    ) -> Result<Outcome, RunError> {
        // The starts of input and output in the one buffer of a rank.
        let starts = |rank: RankId| {
            let (input, output) = self.schedule.in_place_starts(rank, self.count);
            (input as usize * self.dtype.size(), output as usize * self.dtype.size())
        };
        let len = |rank| [Buffer::Input, Buffer::Output].map(|buffer| self.bytes(buffer, rank));
        let room = |rank| vec![UNTOUCHED; len(rank).into_iter().max().unwrap_or(0)];
        let mut buffers: Vec<Vec<u8>> = self.ranks().map(room).collect();
        let (mut seconds, mut last) = (0.0, 0);
        for iteration in 0..=self.iterations {
            plan.prepare(true)?;
            for (rank, buffer) in self.ranks().zip(&mut buffers) {
                let input = &inputs[rank.index()];
                buffer[starts(rank).0..][..input.len()].copy_from_slice(input);
            }
            let mut views: Vec<&mut [u8]> = buffers.iter_mut().map(Vec::as_mut_slice).collect();
            last = now();
            let took = plan.in_place(&mut views, 1)?;
            // The first is to warm up.
            if iteration > 0 {
                seconds += took;
            }
        }
        let output =
            |(rank, buffer): (_, &Vec<u8>)| buffer[starts(rank).1..][..len(rank)[1]].to_vec();
        let mut outputs: Vec<Vec<u8>> = self.ranks().zip(&buffers).map(output).collect();
        let mut views: Vec<&mut [u8]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
        plan.fetch(true, &mut views)?;
        Ok((outputs, seconds, last))
    }
}
