//! Ranks of several hosts on systems without ranks as processes: all public names that the engine has on Linux, with
//! types without values, so that programs compile everywhere.

#![allow(missing_docs, reason = "the modules for Linux say what each of these is")]
#![allow(clippy::needless_pass_by_value, reason = "there are no values")]

mod carrier;

use std::sync::Arc;

use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_core::verify::Proved;

use crate::lowered::{Nowhere, Runs};
use crate::shared_memory::World;
use crate::{Element, Error, Options};
pub use carrier::{Carrier, MOST, TAGS};

/// The rank of this process in a world of several hosts.
#[derive(Debug)]
pub enum Hosts {}

impl Hosts {
    pub fn new(world: World, _: Vec<Vec<u32>>, _: u32, _: Arc<dyn Carrier>) -> Result<Self, Error> {
        match world {}
    }

    pub fn nranks(&self) -> u32 {
        match *self {}
    }

    pub fn rank(&self) -> u32 {
        match *self {}
    }

    pub fn hosts(&self) -> &[Vec<u32>] {
        match *self {}
    }

    pub fn world(&self) -> &Arc<World> {
        match *self {}
    }

    pub fn options(&self) -> Options {
        match *self {}
    }

    pub fn send<T: Element>(&self, _: &[T], _: u32) -> Result<(), Error> {
        match *self {}
    }

    pub fn recv<T: Element>(&self, _: &mut [T], _: u32) -> Result<(), Error> {
        match *self {}
    }
}

/// The plan of a rank in a world of several hosts, for calls of one shape.
pub type HostsPlan = Runs<Nowhere<1>>;

impl HostsPlan {
    pub fn new(
        hosts: &Arc<Hosts>,
        _: &Proved,
        _: u64,
        _: DType,
        _: ReduceOp,
    ) -> Result<Self, Error> {
        match **hosts {}
    }
}

/// The algorithms of the two levels.
#[derive(Clone, Debug)]
pub struct Levels {
    pub reduce: Proved,
    pub across: Proved,
    pub broadcast: Proved,
}

/// The plan of a rank for calls of `AllReduce` of one shape on two levels.
pub type LevelsPlan = Runs<Nowhere<2>>;

impl LevelsPlan {
    pub fn new(
        hosts: &Arc<Hosts>,
        _: &Levels,
        _: u64,
        _: DType,
        _: ReduceOp,
    ) -> Result<Self, Error> {
        match **hosts {}
    }
}
