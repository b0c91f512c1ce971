//! The steps of a rank, issued in their order on one stream.

use super::super::error::Error;
use super::comm::{NcclEnd, NcclLink, Stream};
use super::nccl_steps::{Bases, NcclStep, Steps, Transfer};

/// A rank's memory as folds see it: it runs them in the order of the calls.
pub(super) trait FoldMemory {
    /// Computes `to = from[0]`, with each other source folded into it in turn, divided by `divisor` unless that is 0.
    /// All addresses are those of `len` elements within the buffers that were lent for the call.
    fn fold(&mut self, from: &[u64], to: u64, len: u64, divisor: i64) -> Result<(), Error>;
}

/// Issues all steps of a rank in order.
///
/// # Safety
/// The buffers at `bases` have the lengths that the steps were made for, and stay lent until `stream` is done.
pub(super) unsafe fn issue(
    steps: &Steps,
    link: &mut NcclLink,
    bases: Bases,
    stream: Stream,
    memory: &mut impl FoldMemory,
) -> Result<(), Error> {
    let end = |transfer: &Transfer| NcclEnd {
        peer: transfer.peer,
        address: bases.address(transfer.place),
        len: transfer.len,
    };
    for step in &steps.list {
        match step {
            NcclStep::Group { sends, receives } => {
                let sends: Vec<NcclEnd> = sends.iter().map(end).collect();
                let receives: Vec<NcclEnd> = receives.iter().map(end).collect();
                // SAFETY: transfers lie within the buffers, which the caller lends.
                unsafe { link.group(&sends, &receives, steps.dtype, stream) }?;
            }
            NcclStep::Fold { from, to, len, divisor } => {
                let from: Vec<u64> = from.iter().map(|place| bases.address(*place)).collect();
                let to: Vec<u64> = to.iter().map(|place| bases.address(*place)).collect();
                memory.fold(&from, to[0], *len, *divisor)?;
                for other in &to[1..] {
                    memory.fold(&to[..1], *other, *len, 0)?;
                }
            }
        }
    }
    Ok(())
}
