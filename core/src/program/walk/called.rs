//! Programs as algorithms that others may run: with parameters at their defaults, or as a caller gives them.

use std::cell::{Cell, RefCell};

use super::trace::Trace;
use super::{Walk, walk};
use crate::collective::Collective;
use crate::program::ir::Program;
use crate::schedule::Algorithm;
use crate::schedule::builder::{Builder, Stop};
use crate::schedule::params::ParamValue;
use crate::source::Location;

/// With every parameter at its default.
impl Algorithm for Program {
    fn name(&self) -> &str {
        &self.name
    }

    fn collective(&self) -> Collective {
        self.collective
    }

    fn out_of_place(&self) -> bool {
        self.out_of_place
    }

    fn file(&self) -> &str {
        &self.file
    }

    fn source(&self) -> &'static str {
        ""
    }

    fn locations(&self) -> &[Location] {
        &self.locations
    }

    fn build(&self, builder: &mut Builder<'_>) -> Result<(), Stop> {
        walk(self, &[], builder)
    }
}

/// A program that another one calls.
pub(super) struct Called<'p> {
    program: &'p Program,
    given: Vec<(usize, ParamValue)>,
    /// What the caller looked up so far, and what the callee adds to it.
    trace: RefCell<Option<Trace>>,
    /// Whether its input and its output are the rank's own blocks of a region.
    blocks: Cell<[bool; 2]>,
}

impl<'p> Called<'p> {
    pub(super) fn new(
        program: &'p Program,
        given: Vec<(usize, ParamValue)>,
        trace: Option<Trace>,
    ) -> Self {
        Self { program, given, trace: RefCell::new(trace), blocks: Cell::default() }
    }

    /// What was looked up, and whether input and output were the rank's own blocks of a region.
    pub(super) fn done(self) -> (Option<Trace>, [bool; 2]) {
        (self.trace.into_inner(), self.blocks.get())
    }
}

impl Algorithm for Called<'_> {
    fn name(&self) -> &str {
        self.program.name()
    }

    fn collective(&self) -> Collective {
        self.program.collective()
    }

    fn out_of_place(&self) -> bool {
        self.program.out_of_place()
    }

    fn file(&self) -> &str {
        self.program.file()
    }

    fn source(&self) -> &str {
        self.program.source()
    }

    fn locations(&self) -> &[Location] {
        self.program.locations()
    }

    fn build(&self, builder: &mut Builder<'_>) -> Result<(), Stop> {
        self.blocks.set(builder.blocks());
        let mut walk = Walk::new(self.program, &self.given, builder, self.trace.take())?;
        walk.record_params(builder)?;
        walk.block(builder, &self.program.body)?;
        self.trace.replace(walk.trace);
        Ok(())
    }
}
