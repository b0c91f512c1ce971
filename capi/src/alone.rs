//! Runs of an algorithm in one process, which has the buffers of all ranks.

use std::ffi::{c_int, c_void};

use roundelay::{Plan, ToPlan as _};

use crate::buffers::{read, write};
use crate::codes;
use crate::compiler::AlgorithmSource;
use crate::status::{Outcome, null};

/// An algorithm that is proved for its ranks, and their data.
pub(crate) struct Run {
    plan: Plan,
    nranks: u32,
    size: usize,
}

impl Run {
    pub(crate) fn new(
        source: &AlgorithmSource,
        nranks: u32,
        count: u64,
        dtype: c_int,
        op: c_int,
    ) -> Outcome<Self> {
        let (dtype, op) = (codes::dtype(dtype)?, codes::op(op)?);
        let plan = source.algorithm(-1)?.plan(nranks, count, dtype, op)?;
        Ok(Self { plan, nranks, size: dtype.size() })
    }

    /// Runs it from the inputs to the outputs.
    ///
    /// # Safety
    /// There are as many pointers as ranks, to as many elements as the plan says, and no two outputs overlap.
    pub(crate) unsafe fn on(
        &self,
        inputs: *const *const c_void,
        outputs: *const *mut c_void,
    ) -> Outcome<()> {
        if inputs.is_null() || outputs.is_null() {
            return Err(null(if inputs.is_null() { "inputs" } else { "outputs" }));
        }
        let (mut from, mut to) = (Vec::new(), Vec::new());
        for rank in 0..self.nranks {
            let (len, at) = (self.plan.input_len(rank) * self.size, rank as usize);
            if len == 0 {
                from.push(&[][..]);
            } else {
                // SAFETY: the caller's promise.
                from.push(unsafe { read(inputs.add(at).read_unaligned().cast(), len, "inputs") }?);
            }
            let len = self.plan.output_len(rank) * self.size;
            if len == 0 {
                to.push(&mut [][..]);
            } else {
                // SAFETY: the caller's promise.
                to.push(unsafe { write(outputs.add(at).read_unaligned().cast(), len, "outputs") }?);
            }
        }
        self.plan.run_bytes(&from, &mut to)?;
        Ok(())
    }
}
