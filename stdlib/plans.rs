//! Plans of algorithms, for one caller or for a thread for each rank.

use std::sync::Arc;

use roundelay_core::counts::Counts;
use roundelay_core::diagnostics::Finding;
use roundelay_core::layout::with_loop_values;
use roundelay_core::verify::Proved;
use roundelay_kernels::{Options, Plan, SpmdPlan};

use crate::{Algorithm, DType, Error, ReduceOp, Topology};

/// Makes plans of an algorithm: laid out for a number of ranks, proved, and bound to a count, an element type and a
/// reduce op.
///
/// Every algorithm has these methods; `use roundelay::ToPlan as _` brings them into scope. Proofs are cached by the
/// content of the schedule, so the second plan of the same algorithm and number of ranks costs no proof.
///
/// In all methods `nranks` is the number of ranks, from 1, and `count` is NCCL's count: the elements of one unit of the
/// collective. For an `AllReduce`, a `Broadcast` or a `Reduce` they are the elements of a rank's buffer, and for the
/// other collectives the elements of one block.
///
/// # Errors
///
/// All of these methods fail with
///
/// * [`Error::Unproved`], which has the findings of the proof: E02xx where the algorithm cannot be laid out for this
///   number of ranks (E0205 where it refuses it, E0409 for no ranks or too many), E03xx where it is wrong;
/// * [`Error::Engine`] where no run is possible: E0406 for options that no run can have, E0407 for buffers larger
///   than this machine can hold, E0431 for an op that the dtype does not have ([`ReduceOp::takes`]).
pub trait ToPlan: Algorithm {
    /// Makes a plan that one thread runs for all ranks, with a slice for each, with the default [`Options`].
    ///
    /// # Errors
    /// See [`ToPlan`](ToPlan#errors). [`Plan`] lists the errors of a run about its buffers (E0401 to E0404, E0408).
    ///
    /// ```
    /// use roundelay::{DType, ReduceOp, ToPlan as _, library::RingBroadcast};
    ///
    /// let plan = RingBroadcast::new().root(1).plan(3, 4, DType::F32, ReduceOp::Sum)?;
    /// let mut outputs = [[0.0_f32; 4]; 3];
    /// let [a, b, c] = &mut outputs;
    /// plan.run(&[&[], &[1.0, 2.0, 3.0, 4.0], &[]], &mut [a, b, c])?; // only the root has an input
    /// assert_eq!(outputs, [[1.0, 2.0, 3.0, 4.0]; 3]);
    /// # Ok::<(), roundelay::Error>(())
    /// ```
    fn plan(&self, nranks: u32, count: u64, dtype: DType, op: ReduceOp) -> Result<Plan, Error> {
        self.plan_with(nranks, count, dtype, op, Options::default())
    }

    /// Makes a plan that one thread runs for all ranks, made and run with `options`: the number of workers, the level
    /// of the optimizer, a deadline other than a minute.
    ///
    /// # Errors
    /// E0406 for options that no run can have; else the errors of [`ToPlan::plan`].
    fn plan_with(
        &self,
        nranks: u32,
        count: u64,
        dtype: DType,
        op: ReduceOp,
        options: Options,
    ) -> Result<Plan, Error> {
        let proved = proved(self, nranks)?;
        Ok(Plan::for_options(&proved, count, dtype, op, options)?)
    }

    /// Makes a plan with a count for each block, as `MPI_Allgatherv`, `MPI_Reduce_scatter`, `MPI_Gatherv`, `MPI_Scatterv`
    /// and `MPI_Alltoallv` have it: one count for each rank, or for an AllToAll one for each pair of ranks, those of
    /// sender 0 first. Blocks lie one behind the other in a rank's input and output; a count may be 0. [`Plan::input_len`]
    /// and [`Plan::output_len`] give the lengths of a rank's slices. The proof for equal counts holds for every vector of
    /// counts, as the moves of the algorithm keep blocks together.
    ///
    /// # Errors
    /// E0319 in [`Error::Unproved`] for an algorithm that is right for equal counts alone; E0432 for counts that do not
    /// fit the ranks; else the errors of [`ToPlan::plan_with`].
    ///
    /// ```
    /// use roundelay::{DType, Options, ReduceOp, ToPlan as _, library::RingAllGather};
    ///
    /// let options = Options::default();
    /// let ring = RingAllGather::new();
    /// let plan = ring.plan_of_blocks(3, &[1, 0, 2], DType::I32, ReduceOp::Sum, options)?;
    /// let mut outputs = [[0; 3]; 3];
    /// let [a, b, c] = &mut outputs;
    /// plan.run(&[&[7], &[], &[8, 9]], &mut [a, b, c])?; // rank 1 gives nothing
    /// assert_eq!(outputs, [[7, 8, 9]; 3]);
    /// # Ok::<(), roundelay::Error>(())
    /// ```
    fn plan_of_blocks(
        &self,
        nranks: u32,
        counts: &[u64],
        dtype: DType,
        op: ReduceOp,
        options: Options,
    ) -> Result<Plan, Error> {
        let proved = of_blocks(self, nranks, counts)?;
        Ok(Plan::for_options(&proved, 1, dtype, op, options)?)
    }

    /// Makes a plan with a count for each block whose ranks each have a thread of their own, as
    /// [`ToPlan::spmd_plan_with`] does with one count.
    ///
    /// # Errors
    /// The errors of [`ToPlan::plan_of_blocks`] and of [`ToPlan::spmd_plan_with`].
    fn spmd_plan_of_blocks(
        &self,
        nranks: u32,
        counts: &[u64],
        dtype: DType,
        op: ReduceOp,
        options: Options,
    ) -> Result<SpmdPlan, Error> {
        let proved = of_blocks(self, nranks, counts)?;
        Ok(SpmdPlan::new(&proved, 1, dtype, op, options)?)
    }

    /// Makes a plan whose ranks each have a thread of their own, as the processes of an MPI program: single program,
    /// multiple data. The thread of a rank calls [`SpmdPlan::rank`].
    ///
    /// # Errors
    /// E0424 where ranks could not choose by themselves whether they run in place; else see [`ToPlan`](ToPlan#errors).
    /// [`RankPlan`](crate::RankPlan) lists the errors of a call.
    ///
    /// ```
    /// use roundelay::{DType, ReduceOp, ToPlan as _, library::RingAllReduce};
    ///
    /// let plan = RingAllReduce::new().spmd_plan(4, 1000, DType::F32, ReduceOp::Sum)?;
    /// std::thread::scope(|threads| {
    ///     for rank in 0..4 {
    ///         let mine = plan.rank(rank).expect("a rank of four");
    ///         threads.spawn(move || {
    ///             let mut buffer = [rank as f32; 1000];
    ///             mine.run_in_place(&mut buffer).expect("all four call");
    ///             assert_eq!(buffer, [0.0 + 1.0 + 2.0 + 3.0; 1000]);
    ///         });
    ///     }
    /// });
    /// # Ok::<(), roundelay::Error>(())
    /// ```
    fn spmd_plan(
        &self,
        nranks: u32,
        count: u64,
        dtype: DType,
        op: ReduceOp,
    ) -> Result<SpmdPlan, Error> {
        self.spmd_plan_with(nranks, count, dtype, op, Options::default())
    }

    /// Makes a plan whose ranks each have a thread of their own, with the deadline and the level of `options`. The
    /// workers of `options` mean nothing here, as each rank runs on its own thread.
    ///
    /// # Errors
    /// E0406 for options that no run can have; else the errors of [`ToPlan::spmd_plan`].
    fn spmd_plan_with(
        &self,
        nranks: u32,
        count: u64,
        dtype: DType,
        op: ReduceOp,
        options: Options,
    ) -> Result<SpmdPlan, Error> {
        let proved = proved(self, nranks)?;
        Ok(SpmdPlan::new(&proved, count, dtype, op, options)?)
    }

    /// Makes a plan for all ranks of `topology` that uses its links only. A parameter of type `Topology` that was not
    /// set takes `topology`, as with `--topology` on the command line.
    ///
    /// # Errors
    /// E0313 in [`Error::Unproved`] for data or a signal between nodes that `topology` does not link; else the errors
    /// of [`ToPlan::plan`].
    ///
    /// ```
    /// use roundelay::{DType, ReduceOp, ToPlan as _, Topology, library};
    ///
    /// let broken: Topology = "full_mesh(8) without (0, 1)".parse()?;
    /// // The natural ring goes from rank 0 to rank 1; an exchange around the missing link does not.
    /// let ring = library::RingAllReduce::new().plan_on(&broken, 1000, DType::F32, ReduceOp::Sum);
    /// assert_eq!(ring.unwrap_err().code().as_str(), "E0313");
    /// library::TwoShotAround::new().plan_on(&broken, 1000, DType::F32, ReduceOp::Sum)?;
    /// # Ok::<(), roundelay::Error>(())
    /// ```
    fn plan_on(
        &self,
        topology: &Topology,
        count: u64,
        dtype: DType,
        op: ReduceOp,
    ) -> Result<Plan, Error> {
        let topology = Arc::new(topology.clone());
        let unproved = |findings: Vec<Finding>| {
            let nranks = topology.nranks();
            let told = |finding| with_loop_values(self, nranks, Some(&topology), finding);
            Error::from_findings(self, nranks, findings.into_iter().map(told).collect())
        };
        let schedule = self.schedule_on(&topology).map_err(unproved)?;
        let proved = Proved::new(schedule).map_err(unproved)?;
        Ok(Plan::new(&proved, count, dtype, op)?)
    }
}

impl<A: Algorithm + ?Sized> ToPlan for A {}

/// Returns the proof of an algorithm for a count for each block.
fn of_blocks<A: Algorithm + ?Sized>(
    algorithm: &A,
    nranks: u32,
    counts: &[u64],
) -> Result<Proved, Error> {
    let proved = proved(algorithm, nranks)?;
    let counts = Counts::new(algorithm.collective(), nranks, counts)?;
    let unproved = |findings| Error::from_findings(algorithm, nranks, findings);
    proved.for_counts(&counts).map_err(unproved)
}

/// Returns the proof of an algorithm for `nranks` ranks.
pub(crate) fn proved<A: Algorithm + ?Sized>(algorithm: &A, nranks: u32) -> Result<Proved, Error> {
    let unproved = |findings| Error::from_findings(algorithm, nranks, findings);
    roundelay_core::prove(algorithm, nranks).map_err(unproved)
}
