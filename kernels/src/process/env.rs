//! What the environment of a process says of its place among ranks.

use super::unique::UniqueId;
use crate::Error;

/// Where a process stands in a world.
#[derive(Clone, Debug)]
pub struct Place {
    /// The world.
    pub id: UniqueId,
    /// The number of ranks.
    pub nranks: u32,
    /// The rank of this process, counted from 0.
    pub rank: u32,
}

/// What a launcher left in the environment.
///
/// # Errors
/// E0427 where no launcher did, or what is there makes no sense.
pub fn from_env() -> Result<Place, Error> {
    Err(Error::NotJoined { what: "no launcher is known".to_owned() })
}
