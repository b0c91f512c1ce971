//! The memory that a run may take: a larger run is left out or refused before memory is allocated.

mod available;

use std::fmt;

use roundelay::{DType, Schedule};
use roundelay_core::diagnostics::Code;
use roundelay_core::ids::{RankId, ScratchId};
use roundelay_core::schedule::Buffer;

use crate::error::RunError;
use available::available;

/// The environment variable with the bytes that a run may take, instead of half of the available memory.
pub const VARIABLE: &str = "ROUNDELAY_MEMORY";

/// The bound of a run's memory.
#[derive(Clone, Copy)]
pub enum Room {
    /// Half of the available memory, measured anew for each run.
    Half,
    /// A number of bytes, by the environment.
    Given(u64),
    /// The bytes of a GPU.
    Gpu(u64),
}

/// Why there is no memory for a run.
pub struct TooMuch {
    needed: u128,
    /// The number of bytes that it may take.
    most: u64,
    room: Room,
}

impl Room {
    /// Checks that a run of `needed` bytes has room.
    pub fn admit(self, needed: u128) -> Result<(), TooMuch> {
        let most = match self {
            Self::Half => available().map_or(u64::MAX, |bytes| bytes / 2),
            Self::Given(bytes) | Self::Gpu(bytes) => bytes,
        };
        if needed <= u128::from(most) { Ok(()) } else { Err(TooMuch { needed, most, room: self }) }
    }
}

impl fmt::Display for TooMuch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let most = rounded(self.most.into());
        write!(f, "needs {} of memory, and ", rounded(self.needed))?;
        match self.room {
            Room::Half => write!(f, "half of what is available is {most}"),
            Room::Given(_) => write!(f, "{VARIABLE} lets it take {most}"),
            Room::Gpu(_) => write!(f, "the GPU has {most}"),
        }
    }
}

impl From<TooMuch> for RunError {
    fn from(much: TooMuch) -> Self {
        Self::usage(Code::TooLarge, format!("the run {much}"))
            .with_help("lower --count or the sizes, or the number of ranks")
    }
}

/// Formats bytes in the largest unit that they reach, with a digit behind the point.
fn rounded(bytes: u128) -> String {
    let units = [(1_u64 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let unit = units.into_iter().find(|(unit, _)| bytes >= u128::from(*unit));
    unit.map_or_else(
        || format!("{bytes} B"),
        |(unit, name)| format!("{:.1} {name}", bytes as f64 / unit as f64),
    )
}

/// Returns the bytes of the scratch of all ranks.
pub fn scratch(schedule: &Schedule, count: u64, dtype: DType) -> u128 {
    let ids = || (0..schedule.scratch.len() as u32).map(|id| Buffer::Scratch(ScratchId(id)));
    let of = |rank| ids().map(move |id| u128::from(schedule.elements(id, rank, count)));
    (0..schedule.nranks).map(RankId).flat_map(of).sum::<u128>() * dtype.size() as u128
}

/// Returns the bytes of the inputs and outputs of all ranks, and the sum over ranks of the larger of the two, which is
/// a rank's buffer in place.
pub fn ends(schedule: &Schedule, count: u64, dtype: DType) -> (u128, u128) {
    let elements = |buffer, rank| {
        u128::from(schedule.elements(buffer, RankId(rank), count)) * dtype.size() as u128
    };
    let both = (0..schedule.nranks)
        .map(|rank| (elements(Buffer::Input, rank), elements(Buffer::Output, rank)));
    both.fold((0, 0), |(apart, shared), (input, output)| {
        (apart + input + output, shared + input.max(output))
    })
}
