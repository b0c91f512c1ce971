//! The engines from outside, on schedules built by hand, and the device headers on CPU threads.

#![allow(missing_docs)]

mod common;
// The headers are those of the text that the crate of exports writes.
#[cfg(feature = "grid")]
mod device;
mod failures;
