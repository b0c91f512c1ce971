//! The failure of a carrier: the first error, by which all its requests end.

use std::time::{Duration, Instant};

use super::not_joined;
use crate::Error;

/// The time between two looks for ranks that are gone.
const LOOK: Duration = Duration::from_millis(20);

/// The error by which a carrier has failed, if it has, and the time of the last look for ranks that are gone.
#[derive(Default)]
pub(crate) struct CarrierFailure {
    first: Option<Error>,
    looked: Option<Instant>,
}

impl CarrierFailure {
    /// The error by which the carrier has failed.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.first.clone().map_or(Ok(()), Err)
    }

    /// The error by which the carrier has failed, or now and then that of a rank that is gone, as `gone` says.
    pub(crate) fn look(&mut self, gone: impl FnOnce() -> Option<Error>) -> Result<(), Error> {
        self.check()?;
        if self.looked.is_some_and(|looked| looked.elapsed() <= LOOK) {
            return Ok(());
        }
        self.looked = Some(Instant::now());
        gone().map_or(Ok(()), Err)
    }

    /// Has the carrier fail by an error, which is returned.
    pub(crate) fn set(&mut self, error: Error) -> Error {
        self.first = Some(error.clone());
        error
    }

    /// Has the carrier fail, unless it has: no later message comes behind one that was taken back.
    pub(crate) fn set_cut(&mut self) {
        self.first.get_or_insert_with(|| {
            not_joined("a call of this world failed with messages under way".to_owned())
        });
    }
}
