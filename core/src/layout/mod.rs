//! From a program to a schedule: a walk through the program lays out one rank after another, statement by statement,
//! with a builder that makes the checks that need a number of ranks.

mod advice;
pub mod area;
pub(crate) mod assembly;
pub mod builder;
mod call_identity;
mod configuration;
pub(crate) mod interning;
mod loop_values;
pub mod roots;
mod runs;
pub(crate) mod slots;
pub(crate) mod turning;
pub(crate) mod walk;
mod wrap;

use std::sync::Arc;

use crate::collective::Collective;
use crate::diagnostics::Finding;
use crate::schedule::Schedule;
use crate::source::{CalledSource, Location};
use crate::topology::Topology;
use crate::values::escape::{Escapes, Int, Scope};
use crate::values::params::ParamValue;
use builder::{Builder, Stop};
pub use walk::trace;

pub(crate) use assembly::is_together;
pub use assembly::one_rank;
pub use builder::fifo::{CREDITS, SLICES};
pub use configuration::Configured;
pub use interning::Limits;
pub use loop_values::with_loop_values;
pub use turning::Leaves;

/// An algorithm that can be laid out for a number of ranks.
///
/// The macros `collective!` and `include_collective!` implement it for the structs that they make, and
/// [`Configured`] for a source that is read at run time. Callers need little of it: the
/// crate `roundelay` makes plans of every algorithm by its trait `ToPlan`, and [`prove`](crate::prove) makes a proof.
pub trait Algorithm {
    /// The name of the algorithm.
    fn name(&self) -> &str;

    /// The collective that it implements.
    fn collective(&self) -> Collective;

    /// Whether its author says that it has no in-place form (`#[out_of_place]`).
    fn out_of_place(&self) -> bool {
        false
    }

    /// The file that holds it, for messages.
    fn file(&self) -> &str;

    /// The source in canonical form.
    fn source(&self) -> &str;

    /// The places of its statements, by [`SpanId`](crate::ids::SpanId).
    fn locations(&self) -> &[Location];

    /// The algorithms that it calls, and those that they call, except the library's: each comes after those that it
    /// calls itself.
    fn callees(&self) -> &[CalledSource<'_>] {
        &[]
    }

    /// The parameters that were given values, by name.
    fn given(&self) -> Vec<(&'static str, ParamValue)> {
        Vec::new()
    }

    /// The text of the facts that make its schedules beside its source, the sources of [`Self::callees`], the number of
    /// ranks and the topology.
    fn settings(&self) -> String {
        format!("{:?}", self.given())
    }

    /// The `rust { }` escapes of the algorithm and of those that it calls: an entry for each algorithm that has
    /// escapes.
    fn escapes(&self) -> &'static [Escapes] {
        &[]
    }

    /// Returns the value of one of its own escapes, with the values in `scope` for the names in its text.
    #[doc(hidden)]
    fn escape(number: u32, scope: &Scope<'_>) -> Int
    where
        Self: Sized,
    {
        unreachable!("there is no escape {number} for {scope:?}")
    }

    /// The topology that it was placed on, if it was.
    #[doc(hidden)]
    fn placed_on(&self) -> Option<&Arc<Topology>> {
        None
    }

    /// Returns the algorithm as its source has it, with the values of its parameters, for engines that start from its
    /// loops.
    fn configured(&self) -> Configured;

    /// Lays out one rank's program into `builder`.
    ///
    /// # Errors
    /// [`Stop`] where the layout cannot go on; the builder knows the reason.
    #[doc(hidden)]
    fn build(&self, builder: &mut Builder<'_>) -> Result<(), Stop> {
        let read = self.configured();
        walk::walk(read.program(), read.given(), builder, walk::Origin::Expanded(self.escapes()))
    }

    /// Lays out the schedule for `nranks` ranks. It is not proved yet: see [`prove`](crate::prove).
    ///
    /// # Errors
    /// E0409 for no ranks or too many, E02xx for every reason why it cannot be laid out for `nranks` ranks.
    fn schedule(&self, nranks: u32) -> Result<Schedule, Vec<Finding>> {
        self.schedule_within(nranks, Limits::FULL)
    }

    /// Lays out the schedule for `nranks` ranks within a budget of steps and ops.
    ///
    /// # Errors
    /// E0206 where it takes more work than `limits` allow; else those of [`Self::schedule`].
    fn schedule_within(&self, nranks: u32, limits: Limits) -> Result<Schedule, Vec<Finding>> {
        assembly::build(self, nranks, limits, None)
    }

    /// Lays out the schedule for all ranks of `topology`, on its links: it is the value of each parameter of type
    /// `Topology` that was not given a value, and the proof demands that all data and signals use its links (E0313).
    ///
    /// # Errors
    /// Those of [`Self::schedule`].
    fn schedule_on(&self, topology: &Arc<Topology>) -> Result<Schedule, Vec<Finding>> {
        assembly::build(self, topology.nranks(), Limits::FULL, Some(topology))
    }
}
