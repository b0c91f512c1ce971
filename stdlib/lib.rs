//! Collective algorithms (`AllReduce`, `AllGather`, `Broadcast` and their kin) as pages of per-rank step loops, which are
//! proved before they run.
//!
//! An algorithm is a struct: one of the [`library`], or one that [`collective!`] makes of your own page. There are three
//! ways to run it on slices of this process:
//!
//! | you have | use |
//! |---|---|
//! | one thread, which holds the buffers of all ranks | a [`Plan`], from [`ToPlan::plan`] |
//! | a thread for each rank, and one algorithm and size | an [`SpmdPlan`], from [`ToPlan::spmd_plan`] |
//! | either, and collectives of many kinds and sizes, as with MPI or NCCL | a [`Comm`] |
//!
//! All three prove the schedule for the number of ranks in use before anything runs: no deadlock, no race, every
//! contribution exactly once. A program that is not right is an [`Error::Unproved`], with the place and the reason.
//!
//! ```
//! use roundelay::{DType, ReduceOp, ToPlan as _, library::RingAllReduce};
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
//! Elements are the types of [`Element`], counts are NCCL's (for an `AllReduce` the elements of a rank), and errors have
//! stable codes, which `roundelay explain E0306` and the book's pages explain.
//!
//! # Features
//!
//! * `cuda` (off by default): the module `cuda`, which compiles an algorithm's loops to a kernel by NVRTC and launches it
//!   on NVIDIA GPUs. It needs nothing of CUDA to build.
//!
//! The book, from a first ring to the internals, is in the repository under `book/`.

extern crate self as roundelay;

mod comm;
#[cfg(feature = "cuda")]
pub mod cuda;
mod error;
pub mod executor;
#[doc(hidden)]
pub mod expand;
mod plans;
pub mod select;

/// The compiler, for tools that look into schedules and proofs: what [`Plan::schedule`], [`Plan::proof`] and
/// [`Algorithm`] speak of, and the way from a text to a proof.
pub use roundelay_core as compiler;

pub use half;
#[doc(inline)]
pub use roundelay_core::{
    collective::Collective,
    diagnostics::{Code, Finding},
    dtype::{DType, ReduceOp},
    ids::RankId,
    optimize::Level,
    schedule::{Algorithm, Schedule, groups::Groups, ring::Ring, rings::Rings, tree::Tree},
    topology::{Problem, Topology},
    verify::{Proof, Proved},
};
#[doc(inline)]
pub use roundelay_kernels::{
    Differ, Element, Error as EngineError, Missing, Options, Plan, RankPlan, SpmdPlan, Stats,
    Stuck, stay_on_core,
};
pub use roundelay_macros::{collective, executor, include_collective};

pub use comm::{Comm, Rank};
pub use error::{Error, Unproved};
pub use plans::ToPlan;
#[doc(inline)]
pub use select::{Choice, Costs, select, select_with};

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

    #[doc(inline)]
    pub use roundelay_library::SOURCES;
}

/// The README's program runs.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
