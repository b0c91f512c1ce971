//! Contests between NCCL and this library: with `ROUNDELAY_NCCL_TAKE=faster`, a communicator that makes many operations of a
//! shape has some of them made by each, times them on their streams, and leaves further ones to the faster of the two.
//! Operations of groups and those that graphs capture are NCCL's until then.

use std::sync::PoisonError;
use std::thread::sleep;
use std::time::Duration;

use roundelay::{Call, ReduceOp};
use roundelay_interposer::{CallMaker, Shape, Turn};

use crate::call_errors::Refusal;
use crate::own_comm::OwnComm;
use crate::process::process;
use crate::trial::{OperationShape, Trial, Trials};
use crate::types::Stream;
use crate::why::Why;

/// The pause between two looks at work that is timed.
const PAUSE: Duration = Duration::from_micros(50);

/// Returns the trial that an operation is for, `None` where it is made here, or why it is NCCL's.
pub(crate) fn contest(
    own: &OwnComm,
    call: &Call,
    stream: Stream,
    in_group: bool,
) -> Result<Option<Trial>, Why> {
    let Trials { contests, .. } = &own.trials;
    let block = call.count * call.dtype.size() as u64;
    let shape = Shape::new(call.collective.name(), block);
    if !contests.is_settled(shape)
        && (block == 0 || in_group || own.order.captures(stream).unwrap_or(true))
    {
        return Err(Why::Untried);
    }
    match contests.turn(shape, false) {
        Turn::Tried(maker) => Ok(Some(Trial { maker, shape })),
        Turn::Settled(CallMaker::Ours) => Ok(None),
        Turn::Settled(CallMaker::Theirs) if contests.is_settled(shape) => Err(Why::Slower),
        Turn::Settled(CallMaker::Theirs) => Err(Why::Untried),
        Turn::Due => match settle(own, shape) {
            Ok(CallMaker::Theirs) => Err(Why::Slower),
            Ok(CallMaker::Ours) => Ok(None),
            // The operation has the error, too.
            Err(failure) => {
                own.keep(failure);
                Ok(None)
            }
        },
    }
}

/// Has the ranks agree on the times of a contest, each the slowest rank's.
fn settle(own: &OwnComm, shape: OperationShape) -> Result<CallMaker, Refusal> {
    let Trials { contests, timed } = &own.trials;
    let mut all = timed.lock().unwrap_or_else(PoisonError::into_inner);
    for (trial, [begun, ended]) in all.extract_if(.., |(trial, _)| trial.shape == shape) {
        while !ended.try_is_complete()? {
            own.state().map_or(Ok(()), Err)?;
            sleep(PAUSE);
        }
        let seconds = f64::from(begun.elapsed_ms(&ended)?) / 1e3;
        contests.note(shape, trial.maker, Duration::from_secs_f64(seconds.max(0.0)));
    }
    drop(all);
    let mut times = contests.times(shape);
    own.world.rank().all_reduce(&mut times, ReduceOp::Max)?;
    let verdict = contests.decide(shape, times, false);
    process().decided(verdict.line(&shape, "NCCL"));
    Ok(if verdict.taken { CallMaker::Ours } else { CallMaker::Theirs })
}
