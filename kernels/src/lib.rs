//! The engines of Roundelay, which move all bytes. Their `unsafe` code is in this crate, and the `unsafe` code of the C
//! library is in `capi`.
//!
//! A [`Plan`] is a proved schedule with a count, a dtype and a reduce op; it runs on the callers' slices.
//! [`mod@reference`] computes the same results in a plain way, for comparison.

#[cfg(target_os = "linux")]
#[doc(hidden)]
pub mod allocation;
mod blocks;
mod buffers;
#[doc(hidden)]
pub mod cache_folder;
mod call_numbers;
#[cfg(all(test, target_os = "linux"))]
mod checks;
mod chosen_way;
#[cfg(feature = "cuda")]
pub mod cuda;
mod element;
mod error;
pub mod executor;
#[cfg(feature = "grid")]
pub mod grid;
#[cfg(feature = "ptx")]
#[doc(hidden)]
pub mod interpreter;
#[cfg(all(test, any(feature = "cuda", target_os = "linux")))]
mod library;
#[doc(hidden)]
pub mod library_files;
#[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
#[doc(hidden)]
pub mod loaded_library;
mod lowering;
#[cfg(all(test, loom))]
mod model_memory;
#[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
pub mod mpi;
pub mod network;
#[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
#[doc(hidden)]
pub mod nvml;
mod options;
#[doc(hidden)]
pub mod recorder;
pub mod reduce;
pub mod reference;
pub mod shared_memory;
#[cfg(feature = "grid")]
#[doc(hidden)]
pub mod shim;
mod stuck;
mod sync;
#[cfg(all(
    feature = "tcp",
    target_os = "linux",
    target_pointer_width = "64",
    target_endian = "little"
))]
pub mod tcp;
pub mod threads;
#[doc(hidden)]
pub mod trust;
#[cfg(all(
    feature = "tcp",
    target_os = "linux",
    target_pointer_width = "64",
    target_endian = "little"
))]
pub mod ucx;

pub use blocks::BlocksAt;
pub use element::{Element, bytes_of, bytes_of_mut};
pub use error::{Differ, Ended, Error, Message, Missing};
pub use lowering::{AnyRankPlan, Runs, UserBuffers};
pub use options::{Check, Options};
pub use reference::WrongData;
pub use stuck::Stuck;
pub use threads::{
    AFFINITY, Calls, Plan, RankPlan, SpmdPlan, Stats, share, stay_in_place, stay_in_share,
    stay_on_core,
};
