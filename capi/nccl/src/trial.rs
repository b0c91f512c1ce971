//! The operations of a communicator that are on trial, and their times.

use std::sync::{Mutex, PoisonError};

use roundelay::cuda::cudarc::driver::CudaEvent;
use roundelay_interposer::{CallMaker, Contests, Shape};

/// The operations that are decided alike: a collective, and the size of a block.
pub(crate) type OperationShape = Shape<&'static str>;

/// An operation on trial.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trial {
    pub(crate) maker: CallMaker,
    pub(crate) shape: OperationShape,
}

/// The contests of a communicator, and the work that is timed for them.
#[derive(Default)]
pub(crate) struct Trials {
    pub(crate) contests: Contests<&'static str>,
    /// The beginning and the end of operations that may not be over.
    pub(crate) timed: Mutex<Vec<(Trial, [CudaEvent; 2])>>,
}

impl Trials {
    /// Leaves all further operations of a shape to NCCL.
    pub(crate) fn give_up(&self, shape: OperationShape) {
        self.contests.settle(shape, CallMaker::Theirs);
    }

    /// Keeps the time of an operation, which is known when it is over.
    pub(crate) fn note(&self, trial: Trial, events: [CudaEvent; 2]) {
        self.timed.lock().unwrap_or_else(PoisonError::into_inner).push((trial, events));
    }
}
