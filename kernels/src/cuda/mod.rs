//! The CUDA engine: kernels compiled by NVRTC, launched by the driver; and ranks that send to each other over NCCL. The
//! libraries are looked for when they are used, so a machine that has none can still build this, and gets
//! [`Error::NoCuda`].

mod arch;
mod bandwidth;
mod cache;
mod compile;
mod control;
mod device;
mod device_plan;
mod device_rank;
mod driven;
mod error;
mod find;
mod first_call;
mod fold;
mod graph;
mod host_program;
mod launch;
mod log;
mod module;
#[cfg(target_os = "linux")]
mod multicast;
mod nccl;
mod nvrtc;
mod options;
mod outlook;
mod plan;
#[cfg(target_os = "linux")]
mod processes;
mod rank_plan;
mod report;
mod rooms;
#[cfg(target_os = "linux")]
mod shared_block;
mod state;
mod symbols;
mod world;

pub use arch::Arch;
pub use cache::Cache;
pub use compile::{
    Compiled, Compiler, Fitted, ForeignPtx, ForeignText, HEADERS, THREADS, Target, WALKERS,
    compile, compile_foreign, fit, ptx,
};
/// The driver's slices and streams: plans are launched on these.
pub use cudarc;
pub use device_rank::DeviceRank;
pub use driven::Driven;
pub use error::{Error, Missing, Part, Refused};
pub use fold::{Products, Scalar};
pub use graph::PlanGraph;
pub use host_program::host_program;
pub use log::{Message, Severity};
pub use module::LoadedPtx;
pub use nccl::{NcclComm, NcclId, NcclPart, NcclPlan, nccl_dtype};
pub use options::{CudaOptions, Registration};
pub use outlook::Outlook;
pub use plan::CudaPlan;
#[cfg(target_os = "linux")]
pub use processes::{
    CudaRank, HostCall, HostPart, InsideHost, KernelPart, LevelsPart, MappableMemory, ProcessPart,
    ProcessPlan, RankBuffer, Transport,
};
pub use rank_plan::{PartOfRank, RankPlan};
pub use report::{Resources, Usage};
pub use rooms::Rooms;
pub use world::CudaWorld;
