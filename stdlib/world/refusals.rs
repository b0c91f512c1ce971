//! Calls that a rank of a world does not make, of which the other ranks hear, and void calls of which a rank hears when it
//! leaves.

use std::sync::Arc;
use std::thread;

use roundelay_kernels::{Error as EngineError, shared_memory};

use super::World;
use crate::Error;

/// Returns the error of a call of a rank of `world`. If the call was not made, because of its arguments, the other ranks
/// are told.
pub(super) fn refused(world: Option<&shared_memory::World>, error: Error) -> Error {
    let told = world.filter(|_| Error::is_of_arguments(error.code()));
    match told.map(|world| world.refuse(&error.to_string())) {
        // It comes in place of this call.
        Some(Err(late @ EngineError::CallsDiffer(_))) => late.into(),
        _ => error,
    }
}

/// The end of this rank's part in a world: a void call from which it had returned is reported, unless it has left before.
#[derive(Debug)]
pub(super) struct Parting(Option<Arc<shared_memory::World>>);

impl Parting {
    pub(super) fn of(engine: &Arc<shared_memory::World>) -> Self {
        Self(Some(engine.clone()))
    }
}

impl Drop for Parting {
    fn drop(&mut self) {
        if let Some(engine) = self.0.take()
            && !thread::panicking()
        {
            engine.depart();
        }
    }
}

impl World {
    /// Returns the error of a call of this rank, after its calls that are under way. If the call was not made, because of
    /// its arguments, the other ranks are told.
    #[doc(hidden)]
    pub fn tell(&self, error: Error) -> Error {
        if self.hosts.is_some() || !Error::is_of_arguments(error.code()) {
            return error;
        }
        match self.settle() {
            Ok(()) => refused(Some(&self.engine), error),
            Err(earlier) => earlier,
        }
    }

    /// Tells the other ranks that this rank does not make its next call, for a reason in words. The call is void for all
    /// ranks, and counts as made by this rank: the other ranks get the reason from theirs at once (E0414), and all go on.
    /// A call whose arguments are refused does this by itself, such as a call with a buffer of a wrong length. It waits for
    /// the calls of this rank that are under way.
    ///
    /// On several hosts it does nothing: ranks there wait for the call until the deadline.
    ///
    /// ```
    /// use roundelay::{UniqueId, World};
    ///
    /// let world = World::join(&UniqueId::new()?, 1, 0)?;
    /// world.refuse("the tensor is on another device")?;
    /// world.rank().barrier()?;
    /// # Ok::<(), roundelay::Error>(())
    /// ```
    ///
    /// # Errors
    /// E0414 where this rank had returned from an earlier call that was void; else the errors of a call.
    pub fn refuse(&self, why: &str) -> Result<(), Error> {
        if self.hosts.is_some() {
            return Ok(());
        }
        self.settle()?;
        Ok(self.engine.refuse(why)?)
    }

    /// Leaves the world as a drop does, and returns the error of a void call from which this rank had returned. It waits
    /// until the other ranks are done with the last call of this rank, have left or have ended, and for half of the deadline
    /// at most. After a drop that finds such a call, the process writes the error to its standard error and ends with code
    /// 1.
    ///
    /// ```
    /// use roundelay::{UniqueId, World};
    ///
    /// let world = World::join(&UniqueId::new()?, 1, 0)?;
    /// world.rank().broadcast(&mut [1, 2, 3], 0)?;
    /// world.leave()?;
    /// # Ok::<(), roundelay::Error>(())
    /// ```
    ///
    /// # Errors
    /// E0414 where a call was void; the error of a call whose handle was dropped.
    pub fn leave(mut self) -> Result<(), Error> {
        self.settle()?;
        // The last of the values that share the rank leaves.
        let Some(parting) = Arc::get_mut(&mut self.parting) else { return Ok(()) };
        parting.0 = None;
        Ok(self.engine.farewell()?)
    }
}
