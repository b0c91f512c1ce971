//! Roundelay: collective algorithms as pages of step loops, proved before they run.
//!
//! ```
//! use roundelay::{DType, ReduceOp, Run, library::RingAllReduce};
//!
//! // Four ranks, ten elements each; the plan is proved before it exists.
//! let plan = RingAllReduce::new().plan(4, 10, DType::F32, ReduceOp::Sum)?;
//! let inputs = [[1.0_f32; 10], [2.0; 10], [3.0; 10], [4.0; 10]];
//! let mut outputs = [[0.0_f32; 10]; 4];
//! plan.run(&inputs.each_ref().map(|i| &i[..]), &mut outputs.each_mut().map(|o| &mut o[..]))?;
//! assert_eq!(outputs, [[10.0; 10]; 4]);
//! # Ok::<(), roundelay::Error>(())
//! ```
//!
//! [`collective!`] makes algorithms of your own; [`library`] holds those that come along.

extern crate self as roundelay;

mod comm;
#[cfg(feature = "cuda")]
pub mod cuda;
mod error;
pub mod executor;
pub mod expand;
pub mod select;

use roundelay_core::verify::Proved;

pub use half;
pub use roundelay_core::collective::Collective;
pub use roundelay_core::dtype::{DType, ReduceOp};
pub use roundelay_core::optimize::Level;
pub use roundelay_core::schedule::groups::Groups;
pub use roundelay_core::schedule::ring::Ring;
pub use roundelay_core::schedule::rings::Rings;
pub use roundelay_core::schedule::tree::Tree;
pub use roundelay_core::schedule::{Algorithm, Schedule};
pub use roundelay_core::topology::Topology;
pub use roundelay_kernels::{Element, Options, Plan, Stats, Team, stay_on_core};
pub use roundelay_macros::{collective, executor, include_collective};

pub use comm::{Comm, Rank};
pub use error::{Error, Unproved};
pub use select::{Choice, Costs, select, select_with};

/// From an algorithm to a plan: laid out, proved, and bound to a count, a dtype and a reduce op.
pub trait Run: Algorithm {
    /// A plan for `nranks` ranks and `count` elements a unit (NCCL's count).
    ///
    /// The schedule is proved first, always; proofs are cached by the schedule's content, so the second
    /// plan of the same shape costs no proof.
    fn plan(&self, nranks: u32, count: u64, dtype: DType, op: ReduceOp) -> Result<Plan, Error> {
        self.plan_with(nranks, count, dtype, op, Options::default())
    }

    /// The same, to be run so.
    fn plan_with(
        &self,
        nranks: u32,
        count: u64,
        dtype: DType,
        op: ReduceOp,
        options: Options,
    ) -> Result<Plan, Error> {
        let proved = proved(self, nranks)?;
        Ok(Plan::with(&proved, count, dtype, op, options)?)
    }

    /// The plan of ranks that each call by themselves, from a thread of their own.
    fn team(&self, nranks: u32, count: u64, dtype: DType, op: ReduceOp) -> Result<Team, Error> {
        self.team_with(nranks, count, dtype, op, Options::default())
    }

    /// The same with a deadline of its own, or another level of optimization.
    fn team_with(
        &self,
        nranks: u32,
        count: u64,
        dtype: DType,
        op: ReduceOp,
        options: Options,
    ) -> Result<Team, Error> {
        let proved = proved(self, nranks)?;
        Ok(Team::new(&proved, count, dtype, op, options)?)
    }

    /// A plan that is refused where the algorithm uses a link that `topology` does not have. All its ranks take part.
    fn plan_on(
        &self,
        topology: &Topology,
        count: u64,
        dtype: DType,
        op: ReduceOp,
    ) -> Result<Plan, Error> {
        let nranks = topology.nranks();
        let proved = proved(self, nranks)?;
        let missing = roundelay_core::verify::links(proved.schedule(), topology);
        if !missing.is_empty() {
            return Err(Error::from_findings(self, nranks, missing));
        }
        Ok(Plan::new(&proved, count, dtype, op)?)
    }
}

impl<A: Algorithm + ?Sized> Run for A {}

fn proved<A: Algorithm + ?Sized>(algorithm: &A, nranks: u32) -> Result<Proved, Error> {
    let unproved = |findings| Error::from_findings(algorithm, nranks, findings);
    roundelay_core::prove(algorithm, nranks).map_err(unproved)
}

/// The algorithms that come with Roundelay, each written in the language itself.
pub mod library {
    use roundelay_macros::include_library;

    include_library!("ring.coll");
    include_library!("nccl_ring.coll");
    include_library!("twisted_ring.coll");
    include_library!("multi_ring.coll");
    include_library!("tree.coll");
    include_library!("halving_doubling.coll");
    include_library!("nhr.coll");
    include_library!("mesh.coll");
    include_library!("around.coll");
    include_library!("doubling.coll");
    include_library!("bruck.coll");
    include_library!("pairwise.coll");
    include_library!("hierarchical.coll");
    include_library!("islands.coll");

    pub use roundelay_library::SOURCES;
}

/// The README's program runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
