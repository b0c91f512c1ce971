//! The engine for ranks as processes on systems without them: all public items of the engine on Linux, as types without
//! values, so that programs compile everywhere. A program that asks for a world gets an error that names its needs.

#![allow(missing_docs, reason = "the modules for Linux say what each of these is")]

#[allow(dead_code, reason = "nobody looks into an id")]
#[path = "meet/unique.rs"]
mod unique;

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use roundelay_core::counts::RankBlocks;
use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_core::ids::RankId;
use roundelay_core::schedule::Schedule;
use roundelay_core::verify::Proved;

pub use crate::chosen_way::ChosenWay;
use crate::lowered::{Nowhere, Runs, UserBuffers};
use crate::{Element, Error, Options};
pub use unique::UniqueId;

/// Returns E0429: the missing parts of the system, and the alternative.
fn refused() -> Error {
    let what = "ranks as processes need Linux: memory without a name (memfd), futexes between processes, and descriptors of processes (pidfd); ranks as threads (`Comm`) run here".to_owned();
    Error::SystemRefused { what }
}

/// The system's facts of which an id is made.
mod system {
    use crate::Error;

    pub(super) fn random(_: &mut [u8]) -> Result<(), Error> {
        Err(super::refused())
    }

    /// One number for all users, as there is no world to protect.
    pub(super) fn user() -> u32 {
        0
    }

    pub(super) fn boot() -> Option<[u8; 16]> {
        None
    }

    pub(super) fn network() -> Option<u64> {
        None
    }
}

/// Returns no site: there are no processes that look.
pub fn current_site() -> Option<Arc<str>> {
    None
}

pub fn at_site<R>(_: Option<Arc<str>>, call: impl FnOnce() -> R) -> R {
    call()
}

/// The rank of this process in a world of processes.
#[derive(Debug)]
pub enum World {}

impl World {
    pub fn from_env(_: Options) -> Result<Self, Error> {
        Err(refused())
    }

    pub fn from_env_of_host(_: Options) -> Result<Self, Error> {
        Err(refused())
    }

    pub fn set_progress(&self, _: impl Fn() + Send + Sync + 'static) {
        match *self {}
    }

    pub fn caller_site(&self) -> Option<Arc<str>> {
        match *self {}
    }

    pub fn ways(&self) -> Vec<ChosenWay> {
        match *self {}
    }

    pub fn keep_ways(&self) -> Result<Option<std::path::PathBuf>, Error> {
        match *self {}
    }

    pub fn set_deadline(&self, _: std::time::Duration) {
        match *self {}
    }

    pub fn record(&self, _: bool) {
        match *self {}
    }

    pub fn trace(&self) -> String {
        match *self {}
    }

    pub fn join(_: &UniqueId, _: u32, _: u32, _: Options) -> Result<Self, Error> {
        Err(refused())
    }

    #[doc(hidden)]
    pub fn together(_: u32, _: Options) -> Result<Vec<Self>, Error> {
        Err(refused())
    }

    #[doc(hidden)]
    pub fn here(&self) -> Result<(), Error> {
        match *self {}
    }

    pub fn refuse(&self, _: &str) -> Result<(), Error> {
        match *self {}
    }

    pub fn farewell(&self) -> Result<(), Error> {
        match *self {}
    }

    pub fn depart(&self) {
        match *self {}
    }

    pub fn abort(&self, _: &str) -> Result<(), Error> {
        match *self {}
    }

    pub fn inject(&self, _: u64, _: u32, _: fn(), _: Fault) {
        match *self {}
    }

    pub fn nranks(&self) -> u32 {
        match *self {}
    }

    pub fn rank(&self) -> u32 {
        match *self {}
    }

    pub fn options(&self) -> Options {
        match *self {}
    }

    pub fn alloc<T: Element>(self: &Arc<Self>, _: usize) -> Result<Lent<T>, Error> {
        match **self {}
    }

    pub fn prepare<E>(
        &self,
        _: &[&str],
        _: impl FnOnce() -> Result<Proved, E>,
    ) -> Result<Prepared, E> {
        match *self {}
    }

    pub fn send<T: Element>(&self, _: &[T], _: u32) -> Result<(), Error> {
        match *self {}
    }

    pub fn recv<T: Element>(&self, _: &mut [T], _: u32) -> Result<(), Error> {
        match *self {}
    }

    pub fn shrink(&self) -> Result<Self, Error> {
        match *self {}
    }
}

/// A fault that a rank suffers in tests.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {}

/// A schedule for the plans of a world.
#[derive(Debug)]
pub struct Prepared(Proved);

impl Prepared {
    pub fn own(proved: Proved) -> Self {
        Self(proved)
    }

    pub fn schedule(&self) -> &Schedule {
        self.0.schedule()
    }
}

/// The plan of a rank that is a process of one host, for calls of one shape.
pub type WorldPlan = Runs<Nowhere<0>>;

impl WorldPlan {
    pub fn new(
        world: &Arc<World>,
        _: &Proved,
        _: u64,
        _: DType,
        _: ReduceOp,
    ) -> Result<Self, Error> {
        match **world {}
    }

    pub fn of(
        world: &Arc<World>,
        _: &Prepared,
        _: u64,
        _: DType,
        _: ReduceOp,
    ) -> Result<Self, Error> {
        match **world {}
    }
}

/// The plan of a rank that is a process of one host, for calls with a count for each block.
#[derive(Debug)]
pub enum BlocksPlan {}

impl BlocksPlan {
    pub fn new(world: &Arc<World>, _: &Proved, _: DType, _: ReduceOp) -> Result<Self, Error> {
        match **world {}
    }

    pub fn run_bytes(&self, _: &RankBlocks, _: &[u8], _: &mut [u8]) -> Result<(), Error> {
        match *self {}
    }

    pub fn multiple(&self) -> u64 {
        match *self {}
    }

    pub fn check_in_place(&self) -> Result<(), Error> {
        match *self {}
    }

    #[allow(clippy::missing_safety_doc, reason = "the module for Linux has it")]
    pub unsafe fn run_at(&self, _: &RankBlocks, _: UserBuffers) -> Result<(), Error> {
        match *self {}
    }
}

/// Elements in the memory that the ranks of a world share, which only Linux has.
pub struct Lent<T: Element> {
    world: World,
    elements: PhantomData<T>,
}

impl<T: Element> Lent<T> {
    /// Returns the rank to which the memory was lent.
    pub fn rank(&self) -> RankId {
        match self.world {}
    }
}

impl<T: Element> Deref for Lent<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match self.world {}
    }
}

impl<T: Element> DerefMut for Lent<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match self.world {}
    }
}

impl<T: Element> fmt::Debug for Lent<T> {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.world {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_wants_a_world_is_told_what_it_needs() {
        let options = Options::new();
        let id = UniqueId::from_bytes([7; UniqueId::BYTES]);
        assert_eq!(UniqueId::from_hex(&id.to_hex()), Ok(id.clone()));
        let refusals = [
            UniqueId::new().map(drop),
            World::from_env(options).map(drop),
            World::from_env_of_host(options).map(drop),
            World::join(&id, 1, 0, options).map(drop),
            World::together(1, options).map(drop),
        ];
        for refusal in refusals {
            let text = refusal.expect_err("there are no processes").to_string();
            assert!(text.contains("need Linux") && text.ends_with("[E0429]"), "{text}");
        }
    }
}
