//! Where there are no ranks as processes.

use std::convert::Infallible;

use roundelay_core::diagnostics::Code;

use super::Shape;
use crate::report::Failure;

pub(crate) struct Ranks(Infallible);

impl Ranks {
    pub(crate) fn start(_: u32) -> Result<Self, Failure> {
        let title = "--callers processes starts processes on Linux only";
        Err(Failure::usage(Code::SystemRefused, title)
            .with_help("--callers each has a thread for each rank"))
    }

    pub(crate) fn nranks(&self) -> u32 {
        match self.0 {}
    }

    pub(crate) fn plan(&mut self, _: &Shape) -> Result<(), Failure> {
        match self.0 {}
    }

    pub(crate) fn prepare(&mut self, _: bool) -> Result<(), Failure> {
        match self.0 {}
    }

    pub(crate) fn row(&mut self, _: bool, _: u32, _: bool) -> Result<f64, Failure> {
        match self.0 {}
    }

    pub(crate) fn fetch(&mut self, _: bool, _: &mut [&mut [u8]]) -> Result<(), Failure> {
        match self.0 {}
    }
}
