//! Programs of other runtimes: read, and proved as what those runtimes make of them.

mod draft;
mod findings;
mod memory;
pub mod msccl;
pub mod mscclpp;
mod report;
mod terms;

pub use findings::Checked;
pub use terms::Mode;
