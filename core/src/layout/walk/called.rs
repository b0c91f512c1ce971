//! Programs as algorithms that other programs may run: with parameters at their defaults, or with values from a
//! caller.

use std::sync::Arc;

use super::{Given, Origin, walk};
use crate::collective::Collective;
use crate::layout::Algorithm;
use crate::layout::builder::{Builder, Stop};
use crate::program::ir::Program;
use crate::source::Location;
use crate::topology::Topology;

impl Program {
    /// Returns the program as an algorithm with every parameter at its default.
    pub fn algorithm(&self) -> impl Algorithm + '_ {
        Walked {
            program: self,
            placed: None,
            by: |b: &mut Builder<'_>| walk(self, &Given::new(), b, Origin::Source),
        }
    }
}

/// A program as an algorithm whose ranks a closure lays out: with values for its parameters, or in part.
pub(in crate::layout) struct Walked<'p, F> {
    pub(in crate::layout) program: &'p Program,
    /// The topology that the run was placed on.
    pub(in crate::layout) placed: Option<&'p Arc<Topology>>,
    /// Lays out one rank.
    pub(in crate::layout) by: F,
}

impl<F: Fn(&mut Builder<'_>) -> Result<(), Stop>> Algorithm for Walked<'_, F> {
    fn name(&self) -> &str {
        &self.program.name
    }

    fn collective(&self) -> Collective {
        self.program.collective
    }

    fn out_of_place(&self) -> bool {
        self.program.out_of_place
    }

    fn file(&self) -> &str {
        &self.program.file
    }

    fn source(&self) -> &'static str {
        ""
    }

    fn locations(&self) -> &[Location] {
        &self.program.locations
    }

    fn placed_on(&self) -> Option<&Arc<Topology>> {
        self.placed
    }

    fn build(&self, builder: &mut Builder<'_>) -> Result<(), Stop> {
        (self.by)(builder)
    }
}
