//! Collective algorithms (`AllReduce`, `AllGather`, `Broadcast` and their kin) as pages of per-rank step loops, which
//! are proved before they run.
//!
//! An algorithm is a struct: one of the [`library`], or one that [`collective!`] makes of your own page. There are
//! four ways to run it on slices:
//!
//! | you have | use |
//! |---|---|
//! | one thread, which holds the buffers of all ranks | a [`Plan`], from [`ToPlan::plan`] |
//! | a thread for each rank, and one algorithm and size | an [`SpmdPlan`], from [`ToPlan::spmd_plan`] |
//! | either, and collectives of many kinds and sizes, as with MPI or NCCL | a [`Comm`] |
//! | a process for each rank, on Linux | a [`World`] |
//!
//! All four prove the schedule for the number of ranks in use before a call runs: no deadlock, no race, every
//! contribution exactly once. A wrong program is an [`Error::Unproved`], with the place and the reason.
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
//! # Conventions
//!
//! * Elements are the Rust types of [`Element`]; [`DType`] names them at run time.
//! * The *count* of a plan is NCCL's: the elements of one unit of the collective. For an `AllReduce`, `Broadcast` or
//!   `Reduce` the unit is the buffer of a rank; for the other collectives it is one block of a buffer that has a block
//!   for each rank. [`Collective`] lists the units of each buffer.
//! * A size in bytes, where an algorithm is chosen by size, is nccl-tests': the larger of a rank's two buffers.
//! * Ranks count from 0. A buffer that a rank does not have is an empty slice.
//! * [`Error::code`] returns a stable [`Code`], such as E0306. `roundelay explain E0306` on the command line and the
//!   book's page `book/src/errors/E0306.md` explain it, with a wrong program and a right one.
//!
//! # Where to look
//!
//! | for | see |
//! |---|---|
//! | algorithms of the library | [`library`], and [`select()`] for the algorithm that a model finds the fastest |
//! | algorithms of your own | [`collective!`] in Rust, [`include_collective!`] for a `.coll` file |
//! | machines, missing links, rings and trees on them | [`Topology`], [`Ring`], [`Rings`], [`Tree`], [`Trees`], [`Groups`] |
//! | an algorithm for each range of sizes, as the contest has it | [`executor!`], module [`executor`](mod@executor) |
//! | the proof of a schedule, and the compiler itself | [`Plan::certificate`], [`Proof`], [`compiler`] |
//!
//! # Features
//!
//! No feature is on by default.
//!
//! * `cuda`: the module `cuda`, which compiles an algorithm's loops to a kernel by NVRTC and launches it on NVIDIA
//!   GPUs. It needs no part of CUDA to build: the compiler's and the driver's library are looked for when they are
//!   used, and E0415 says which library is missing. It brings `export`.
//! * `export`: the module `export`, with the forms of algorithms for other programs, which the command has and a
//!   program that runs algorithms does not need: steps, kernels, C++ of executors, files of MSCCL, and pictures.
//!
//! # The book
//!
//! The book is in the repository below `book/src`: `tutorial/one_ring.md` for a first algorithm, `guide/running.md` for
//! plans and communicators, `guide/proof.md` for the proof, `guide/topologies.md` for machines, and
//! `reference/language.md` for the language on one page. `mdbook build book` makes pages of it.

extern crate self as roundelay;

mod comm;
#[cfg(feature = "cuda")]
pub mod cuda;
mod error;
pub mod executor;
#[doc(hidden)]
pub mod expand;
mod order;
mod plans;
pub mod select;
pub mod selection;
#[doc(hidden)]
pub mod tools;
mod world;

/// The compiler, for tools that look into schedules and proofs: the types of [`Plan::schedule`], [`Plan::proof`] and
/// [`Algorithm`], and the functions from a text to a proof.
pub mod compiler {
    #[doc(no_inline)]
    pub use roundelay_core::*;
    #[doc(no_inline)]
    pub use roundelay_simulate::{self as simulate, cost};

    /// Machines: the topology of a text, and the graph below it with its paths, rings, trees and bounds.
    pub mod topology {
        #[doc(no_inline)]
        pub use roundelay_core::topology::Topology;
        #[doc(no_inline)]
        pub use roundelay_topology::*;
    }

    /// Traces of runs, on engines and simulated.
    pub mod trace {
        #[doc(no_inline)]
        pub use roundelay_core::trace::*;
        #[doc(no_inline)]
        pub use roundelay_simulate::trace::add_simulation;
    }
}

/// The verdict of `roundelay check`, as a value: the rank counts that are proved, with the certificate of each, or the
/// errors.
///
/// ```
/// use roundelay::compiler::{check::Frontend, compile, layout::Configured, syntax::Source};
/// use roundelay::verdict::{Asked, Verdict, Within};
///
/// let text = "algorithm Nothing() -> AllGather { copy(local.input, local.output); }";
/// let source = Source::from_text("nothing.coll", text);
/// let program = compile(&source, Frontend::File).expect("names and types are right");
/// let algorithm = Configured::new(program.algorithms[0].clone(), &source);
///
/// let alone = Verdict::check(&algorithm, &source, &Asked::with_limits(&[1], Within::Plans), |_, _| ());
/// assert_eq!((alone.is_right(), alone.counts()), (true, vec![1]));
/// println!("{}", alone.json()); // an algorithm of `roundelay check --format json`
///
/// let two = Verdict::check(&algorithm, &source, &Asked::with_limits(&[1, 2], Within::Plans), |_, _| ());
/// assert_eq!((two.counts(), two.wrong, two.errors[0].code.as_str()), (vec![1], vec![2], "E0208"));
/// ```
#[doc(inline)]
pub use roundelay_core::verdict;

/// The forms of programs and schedules for other programs: texts for other compilers and runtimes, files of other
/// languages of collectives and of machines, and pictures.
#[cfg(feature = "export")]
pub mod export {
    pub use roundelay_exchange as exchange;
    #[doc(no_inline)]
    pub use roundelay_export::*;
    pub use roundelay_machines as machines;
    #[doc(no_inline)]
    pub use roundelay_pictures::{spacetime, topology_svg};
}

pub use float8;
pub use half;
#[doc(inline)]
pub use roundelay_core::{
    certificate::Certificate,
    collective::Collective,
    diagnostics::problem::Problem,
    diagnostics::{Code, Finding},
    dtype::{DType, NoSuchOp, ReduceOp},
    ids::RankId,
    layout::Algorithm,
    optimize::Level,
    schedule::Schedule,
    topology::Topology,
    values::{groups::Groups, ring::Ring, rings::Rings, tree::Tree, trees::Trees},
    verify::{Proof, Proved},
};
#[doc(inline)]
pub use roundelay_kernels::{
    Check, Differ, Element, Ended, Error as EngineError, Message, Missing, Options, RankPlan, Runs,
    Stats, Stuck, WrongData, stay_in_place, stay_on_core,
};

/// A plan for one thread, which holds the buffers of all ranks: [`ToPlan::plan`] makes it of an algorithm.
///
/// ```
/// use roundelay::{DType, ReduceOp, ToPlan as _, library::RingAllGather};
///
/// // Three ranks with two elements each; every rank gets all six.
/// let plan = RingAllGather::new().plan(3, 2, DType::I32, ReduceOp::Sum)?;
/// assert_eq!((plan.input_len(0), plan.output_len(0)), (2, 6));
/// let (mut a, mut b, mut c) = ([0; 6], [0; 6], [0; 6]);
/// plan.run(&[&[1, 2], &[3, 4], &[5, 6]], &mut [&mut a, &mut b, &mut c])?;
/// assert_eq!([a, b, c], [[1, 2, 3, 4, 5, 6]; 3]);
///
/// // An output that is too short is refused before anything moves.
/// let refused = plan.run(&[&[1, 2], &[3, 4], &[5, 6]], &mut [&mut a, &mut b, &mut c[1..]]);
/// assert_eq!(refused.unwrap_err().code().as_str(), "E0402");
/// # Ok::<(), roundelay::Error>(())
/// ```
///
/// [`Plan::certificate`] has the facts that the proof established, as `roundelay check` prints them:
///
/// ```
/// use roundelay::{DType, ReduceOp, ToPlan as _, library::RingAllReduce};
///
/// let certificate = RingAllReduce::new().plan(8, 1000, DType::F32, ReduceOp::Sum)?.certificate();
/// assert!(certificate.proved.contains(&"no deadlock"));
/// assert_eq!((certificate.ideal.steps, certificate.ideal.least_units), (14, 1.75));
/// println!("{certificate}"); // the lines of the command
/// let facts = certificate.json().to_string(); // and of `--format json`
/// assert!(facts.starts_with(r#"{"nranks": 8, "#));
/// # Ok::<(), roundelay::Error>(())
/// ```
#[doc(inline)]
pub use roundelay_kernels::Plan;

/// A plan for a thread per rank: [`ToPlan::spmd_plan`] makes it of an algorithm.
///
/// ```
/// use roundelay::{DType, ReduceOp, ToPlan as _, library::RingReduceScatter};
///
/// // Two ranks with two blocks of three elements each; rank r gets the sum of the blocks r.
/// let plan = RingReduceScatter::new().spmd_plan(2, 3, DType::F64, ReduceOp::Sum)?;
/// std::thread::scope(|threads| {
///     for rank in 0..2 {
///         let mine = plan.rank(rank).expect("a rank of two");
///         threads.spawn(move || {
///             let input = [1.0, 1.0, 1.0, 2.0, 2.0, 2.0];
///             let mut output = [0.0; 3];
///             mine.run(&input, &mut output).expect("both ranks call");
///             assert_eq!(output, [2.0 * (rank as f64 + 1.0); 3]);
///         });
///     }
/// });
/// # Ok::<(), roundelay::Error>(())
/// ```
#[doc(inline)]
pub use roundelay_kernels::SpmdPlan;

/// An algorithm written in Rust source; its struct has a method for each parameter and the methods of [`ToPlan`].
///
/// ```
/// use roundelay::{DType, ReduceOp, ToPlan as _, collective};
///
/// collective! {
///     /// Every rank pulls root's input.
///     pub algorithm Star(root: Rank = 0) -> Broadcast {
///         let hub = peer(root);
///         if rank == root {
///             copy(local.input, local.output);
///             for d in 1..nranks {
///                 let other = peer((root + d) % nranks);
///                 other.TxAck();
///                 other.RxDataSignal();
///             }
///         } else {
///             hub.RxAck();
///             copy(hub.output, local.output);
///             hub.TxDataSignal();
///         }
///     }
/// }
///
/// let plan = Star::new().root(2).plan(4, 1, DType::U8, ReduceOp::Sum)?;
/// let mut outputs = [[0_u8]; 4];
/// let [a, b, c, d] = &mut outputs;
/// plan.run(&[&[], &[], &[7], &[]], &mut [a, b, c, d])?;
/// assert_eq!(outputs, [[7]; 4]);
/// # Ok::<(), roundelay::Error>(())
/// ```
#[doc(inline)]
pub use roundelay_macros::collective;
#[doc(inline)]
pub use roundelay_macros::{executor, include_collective};

pub use comm::call::Call;
pub use comm::{Comm, Rank};
pub use error::{Error, Unproved};
pub use order::{NotPromises, OrderClass, Promises};
pub use plans::ToPlan;
#[doc(inline)]
pub use roundelay_kernels::shared_memory::{ChosenWay, Lent, UniqueId};
#[doc(inline)]
pub use select::{Choice, Costs, select, select_with};
pub use world::{Nonblocking, Pending, Scope, World};

/// The algorithms that come with Roundelay, each written in the language itself.
///
/// Each is a struct: `new()` has every parameter at its default, a method for each parameter sets it, and [`ToPlan`]
/// makes plans of it. The description of each struct says which data goes where; a limit on its number of ranks is
/// checked when it is laid out (E0205). [`select()`](crate::select()) ranks the algorithms by a model.
pub mod library {
    use roundelay_macros::include_library;

    include_library!("ring.coll");
    include_library!("nccl_ring.coll");
    include_library!("twisted_ring.coll");
    include_library!("multi_ring.coll");
    include_library!("tree.coll");
    include_library!("nccl_tree.coll");
    include_library!("trees.coll");
    include_library!("halving_doubling.coll");
    include_library!("nhr.coll");
    include_library!("mesh.coll");
    include_library!("switch.coll");
    include_library!("ordered.coll");
    include_library!("pushed.coll");
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
