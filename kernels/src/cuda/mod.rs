//! The CUDA engine: kernels compiled by NVRTC, launched by the driver. Both libraries are looked for when they
//! are used, so a machine that has neither can still build this, and gets [`Error::NoCuda`].

mod error;
mod log;

pub use error::{Error, Missing, Part, Refused};
pub use log::{Message, Severity};
