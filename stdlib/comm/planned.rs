//! The plan of a call by ranks that are processes: of one host, or of several.

use std::sync::Arc;

use roundelay_kernels::hosts::{HostsPlan, LevelsPlan};
use roundelay_kernels::process::WorldPlan;

use crate::{Element, Error};

/// What a rank that is a process does in a call.
#[derive(Clone, Debug)]
pub(crate) enum Planned {
    /// Through the memory of one host.
    Host(Arc<WorldPlan>),
    /// By messages, some of which go between hosts.
    Hosts(Arc<HostsPlan>),
    /// An AllReduce on two levels.
    Levels(Arc<LevelsPlan>),
}

impl Planned {
    pub(crate) fn run<T: Element>(&self, input: &[T], output: &mut [T]) -> Result<(), Error> {
        match self {
            Self::Host(plan) => plan.run(input, output)?,
            Self::Hosts(plan) => plan.run(input, output)?,
            Self::Levels(plan) => plan.run(input, output)?,
        }
        Ok(())
    }

    pub(crate) fn run_in_place<T: Element>(&self, buffer: &mut [T]) -> Result<(), Error> {
        match self {
            Self::Host(plan) => plan.run_in_place(buffer)?,
            Self::Hosts(plan) => plan.run_in_place(buffer)?,
            Self::Levels(plan) => plan.run_in_place(buffer)?,
        }
        Ok(())
    }

    pub(crate) fn run_bytes(&self, input: &[u8], output: &mut [u8]) -> Result<(), Error> {
        match self {
            Self::Host(plan) => plan.run_bytes(input, output)?,
            Self::Hosts(plan) => plan.run_bytes(input, output)?,
            Self::Levels(plan) => plan.run_bytes(input, output)?,
        }
        Ok(())
    }

    pub(crate) fn run_bytes_in_place(&self, buffer: &mut [u8]) -> Result<(), Error> {
        match self {
            Self::Host(plan) => plan.run_bytes_in_place(buffer)?,
            Self::Hosts(plan) => plan.run_bytes_in_place(buffer)?,
            Self::Levels(plan) => plan.run_bytes_in_place(buffer)?,
        }
        Ok(())
    }
}
