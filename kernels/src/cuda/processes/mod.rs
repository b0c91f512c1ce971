//! A process for each GPU: the ranks of a [`World`](crate::World), each with a device, run generated kernels on memory
//! that all of them map.
//!
//! A rank's block of device memory holds its counters, its scratch and the stage of its buffers. Each process maps the
//! blocks of all ranks, so a kernel is that of [`CudaWorld`](super::CudaWorld) with one launch for each rank; signals have
//! the scope of the system. A kernel copies the buffers of its caller into the stage and out of it, or uses them where they
//! are: see [`Registration`](super::Registration). The words with which kernels give up are in one page of the host that all processes map: a
//! process that sees another one end has the kernels of all ranks end there.

mod agreement;
mod groups;
mod host_part;
mod lent_memory;
mod levels_part;
mod loaded_kernel;
mod part;
mod process_part;
mod rank;
mod rank_buffer;
mod registry;
mod transport;
mod watcher;

pub use host_part::{HostCall, HostPart};
pub use levels_part::LevelsPart;
pub use part::KernelPart;
pub use process_part::{InsideHost, ProcessPart, ProcessPlan};
pub use rank::CudaRank;
pub use rank_buffer::{MappableMemory, RankBuffer};
pub use transport::Transport;
