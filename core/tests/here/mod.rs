//! The machine of a folder of files, as this machine's own are.

mod files;
mod hostile;
mod machines;
mod processors;
mod same_again;

use roundelay_machines::here::{self, DriverGpu};
use roundelay_topology::Problem;
use roundelay_topology::nccl::System;

use files::Files;

/// No driver was asked.
const NONE: Result<&[DriverGpu], &str> = Err("this is a test");

/// Reads the machine of files.
fn read(files: &Files, driver: Result<&[DriverGpu], &str>) -> Result<System, Problem> {
    here::read("here", &files.root(), driver, None)
}
