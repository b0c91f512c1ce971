//! The check of a plan over NCCL: a launch on known data when the plan is made, and an exchange of what each rank found.

use roundelay_core::dtype::ReduceOp;

use super::super::device::failed;
use super::super::error::Error;
use super::plan::NcclPlan;
use crate::element::{bytes_of, bytes_of_mut};
use crate::lowering::first_call::{WORD, WORDS, exchange};

/// The byte that fills an output before a launch.
const UNTOUCHED: u8 = 0xA5;

impl NcclPlan {
    /// Launches the plan on known data in buffers of its own, and compares the results of all ranks.
    ///
    /// # Errors
    /// E0433 on all ranks for wrong data on any rank; E0419 where the device has no room; the errors of a launch.
    pub(super) fn check_first(&self) -> Result<(), Error> {
        let nranks = self.comm.nranks();
        let known = self.call.known(nranks, self.comm.rank());
        let size = self.call.dtype.size();
        let [mut input, mut output] =
            [vec![0; self.input_len() * size], vec![0; self.output_len() * size]];
        known.fill(&mut input, 0);
        self.on_data(&input, &mut output)?;
        let all = Self::unchecked(&self.comm, &exchange(nranks)?, WORDS, WORD, ReduceOp::Sum)?;
        let exchange =
            |mine: &[u64], told: &mut [u64]| all.on_data(bytes_of(mine), bytes_of_mut(told));
        match self.call.agreed(&known, known.wrong(&output, 0), exchange)? {
            Some(wrong) => Err(crate::Error::WrongData(Box::new(wrong)).into()),
            None => Ok(()),
        }
    }

    /// Launches the plan on data of the host.
    fn on_data(&self, input: &[u8], output: &mut [u8]) -> Result<(), Error> {
        let copying = || failed("copying data of a check");
        let (comm, stream) = (&self.comm, self.comm.stream());
        let mut from = comm.buffer("input of a check", input.len())?;
        let mut to = comm.buffer("output of a check", output.len())?;
        output.fill(UNTOUCHED);
        stream.memcpy_htod(input, &mut from.slice_mut(..input.len())).map_err(copying())?;
        stream.memcpy_htod(&*output, &mut to.slice_mut(..output.len())).map_err(copying())?;
        self.launch_bytes(stream, &from.slice(..input.len()), &mut to.slice_mut(..output.len()))?;
        self.wait()?;
        if !output.is_empty() {
            stream.memcpy_dtoh(&to.slice(..output.len()), output).map_err(copying())?;
        }
        stream.synchronize().map_err(copying())
    }
}
