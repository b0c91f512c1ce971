//! The engines from outside, on schedules built by hand, and the device headers on CPU threads.

#![allow(missing_docs)]

mod common;
mod device;
mod failures;
mod results;
