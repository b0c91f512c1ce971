//! Runs a plan on seeded data and counts the wrong elements. Apart: every test of results does this.

use std::collections::BTreeMap;

use roundelay::{Algorithm, DType, Options, Plan, ReduceOp};
use roundelay_core::collective::Alias;
use roundelay_core::ids::RankId;
use roundelay_core::verify::Proved;
use roundelay_kernels::reference::Reference;
use roundelay_tests::kinds;

/// One point of the product that the tests sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Kind {
    pub(super) dtype: DType,
    pub(super) op: ReduceOp,
    pub(super) in_place: bool,
}

impl Kind {
    /// All [`kinds`] x out of place and in place.
    pub(super) fn all() -> Vec<Self> {
        kinds()
            .into_iter()
            .flat_map(|(dtype, op)| [false, true].map(|in_place| Self { dtype, op, in_place }))
            .collect()
    }
}

/// An algorithm, proved once for each rank count: only the plan changes from run to run.
pub(super) struct Proofs<'a> {
    algorithm: &'a dyn Algorithm,
    proved: BTreeMap<u32, Proved>,
}

impl<'a> Proofs<'a> {
    pub(super) fn new(algorithm: &'a dyn Algorithm) -> Self {
        Self { algorithm, proved: BTreeMap::new() }
    }

    pub(super) fn proved(&mut self, nranks: u32) -> &Proved {
        self.proved.entry(nranks).or_insert_with(|| {
            roundelay_core::prove(self.algorithm, nranks).unwrap_or_else(|findings| {
                panic!("{} at nranks = {nranks}: {findings:#?}", self.algorithm.name())
            })
        })
    }

    pub(super) fn plan(&mut self, nranks: u32, count: u64, kind: Kind) -> Plan {
        self.plan_with(nranks, count, kind, Options::new())
    }

    pub(super) fn plan_with(
        &mut self,
        nranks: u32,
        count: u64,
        kind: Kind,
        options: Options,
    ) -> Plan {
        let proved = self.proved(nranks);
        Plan::for_options(proved, count, kind.dtype, kind.op, options)
            .expect("a plan of what is proved")
    }
}

/// Runs on seeded data; fails unless every element of every output is right.
pub(super) fn assert_right(plan: &Plan, kind: Kind, seed: u64) {
    let (reference, inputs) = data(plan, seed);
    let outputs = run(plan, kind.in_place, &inputs);
    let views: Vec<&[u8]> = outputs.iter().map(Vec::as_slice).collect();
    let wrong = reference.count_wrong(&inputs, &views, plan.proof().reduce_depth);
    let schedule = plan.schedule();
    assert_eq!(
        wrong,
        0,
        "wrong elements: {}, nranks = {}, root = {}, count = {}, {kind:?}",
        schedule.algorithm,
        schedule.nranks,
        schedule.root,
        plan.count()
    );
}

pub(super) fn data(plan: &Plan, seed: u64) -> (Reference, Vec<Vec<u8>>) {
    let schedule = plan.schedule();
    let reference = Reference {
        collective: schedule.collective,
        nranks: schedule.nranks,
        root: schedule.root,
        count: plan.count() as usize,
        dtype: plan.dtype(),
        op: plan.op(),
    };
    (reference, reference.inputs(seed))
}

/// Returns the outputs of one run; unwritten bytes show as a pattern.
pub(super) fn run(plan: &Plan, in_place: bool, inputs: &[Vec<u8>]) -> Vec<Vec<u8>> {
    const UNWRITTEN: u8 = 0xA5;
    let size = plan.dtype().size();
    let ranks = || (0..plan.schedule().nranks).map(RankId);
    if !in_place {
        let mut outputs: Vec<_> =
            ranks().map(|rank| vec![UNWRITTEN; plan.output_len(rank) * size]).collect();
        let reads: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
        let mut writes: Vec<&mut [u8]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
        let before = inputs.to_vec();
        plan.run_bytes(&reads, &mut writes).expect("a run");
        assert!(inputs == before, "inputs changed: {}", plan.schedule().algorithm);
        return outputs;
    }
    let unit = plan.count() as usize * size;
    let offsets = |rank| match plan.schedule().collective.alias(rank, plan.schedule().root) {
        Alias::Apart => (0, 0),
        Alias::InputInOutput(units) => (units as usize * unit, 0),
        Alias::OutputInInput(units) => (0, units as usize * unit),
    };
    let mut buffers: Vec<_> =
        ranks().map(|rank| vec![UNWRITTEN; plan.in_place_len(rank) * size]).collect();
    for (rank, buffer) in ranks().zip(&mut buffers) {
        let input = &inputs[rank.index()];
        buffer[offsets(rank).0..][..input.len()].copy_from_slice(input);
    }
    let mut views: Vec<&mut [u8]> = buffers.iter_mut().map(Vec::as_mut_slice).collect();
    plan.run_bytes_in_place(&mut views).expect("a run in place");
    let output = |rank: RankId| {
        buffers[rank.index()][offsets(rank).1..][..plan.output_len(rank) * size].to_vec()
    };
    ranks().map(output).collect()
}
