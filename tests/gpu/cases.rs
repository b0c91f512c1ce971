//! The cases: an algorithm on data, as a kernel, and its expected results.

use roundelay::{Algorithm as _, DType, Options, Plan, ReduceOp};
use roundelay_core::ids::RankId;
use roundelay_core::layout::Configured;
use roundelay_core::optimize::{Goal, Level};
use roundelay_core::verify::Callers;
use roundelay_core::verify::Proved;
use roundelay_export::cuda::{Form, Kernel, Protocol, Spec};
use roundelay_kernels::grid::Buffers;
use roundelay_kernels::reference::Reference;

use super::engine::Engine;

/// The number of consecutive launches in most runs, and in runs where each costs more.
const REPEATS: u32 = 100;
const FEW_REPEATS: u32 = 3;

/// The data of a case.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Data {
    pub(crate) count: usize,
    pub(crate) dtype: DType,
    pub(crate) op: ReduceOp,
}

pub(crate) fn rank_counts(engine: &dyn Engine, quick: bool) -> Vec<u32> {
    if quick { vec![2, 5] } else { engine.rank_counts() }
}

/// The way in which a case is launched.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Way {
    /// One launch for all ranks.
    One,
    /// A launch by each rank, with a device for all ranks or for each.
    Each {
        /// Whether each rank has a device of its own.
        apart: bool,
    },
    /// One launch for all ranks, whose ops are recorded.
    Traced,
    /// A launch for each move, from the host.
    Driven,
}

impl Way {
    fn callers(self) -> Callers {
        match self {
            Self::Each { .. } => Callers::Each,
            Self::One | Self::Traced | Self::Driven => Callers::One,
        }
    }

    /// The way in words, behind a comma; nothing for the usual way.
    fn in_words(self) -> &'static str {
        match self {
            Self::One => "",
            Self::Each { apart: false } => ", callers each",
            Self::Each { apart: true } => ", callers each, on a device each",
            Self::Traced => ", traced",
            Self::Driven => ", driven",
        }
    }
}

/// An algorithm on data.
pub(crate) struct Case<'a> {
    pub(crate) algorithm: &'a Configured,
    pub(crate) proved: &'a Proved,
    pub(crate) nranks: u32,
    pub(crate) data: Data,
    pub(crate) form: Form,
    pub(crate) protocol: Protocol,
    pub(crate) way: Way,
}

impl Case<'_> {
    pub(crate) fn name(&self, in_place: bool) -> String {
        let Data { count, dtype, op } = self.data;
        let place = if in_place { "in place" } else { "out of place" };
        let (nranks, form, protocol) = (self.nranks, self.form, self.protocol.name());
        let way = self.way.in_words();
        format!("{nranks} ranks, count {count}, {dtype} {op}, {form}, {protocol}, {place}{way}")
    }

    /// Launches in a row: many where they are cheap.
    pub(crate) fn repeats(&self, quick: bool) -> u32 {
        if self.data.count > 1000 || quick { FEW_REPEATS } else { REPEATS }
    }

    pub(crate) fn inputs(&self) -> Vec<Vec<u8>> {
        let Data { count, dtype, op } = self.data;
        let schedule = self.proved.schedule();
        let (collective, root) = (self.algorithm.collective(), schedule.root);
        let reference = Reference { collective, nranks: self.nranks, root, count, dtype, op };
        reference.inputs(7)
    }

    pub(crate) fn buffers(&self) -> Vec<Buffers> {
        let Data { count, dtype, .. } = self.data;
        let ranks = (0..self.nranks).map(RankId);
        let schedule = self.proved.schedule();
        ranks.map(|rank| Buffers::new(schedule, rank, count as u64, dtype.size())).collect()
    }

    /// The kernel, for the callers of the way.
    pub(crate) fn kernel(&self) -> Result<Kernel, String> {
        let Data { dtype, op, .. } = self.data;
        let callers = self.way.callers();
        let spec = Spec { element: dtype, op, protocol: self.protocol, vector: 16, callers };
        match self.form {
            Form::Loops => Kernel::of_loops(self.algorithm, self.proved, spec)
                .map_err(|all| all.iter().map(|e| e.title.clone()).collect::<Vec<_>>().join("; ")),
            Form::Table => {
                let goal = Goal { level: Level::O2, callers, reassociate: false };
                let made = self.proved.optimize(goal).map_err(|unproved| unproved.to_string())?;
                Kernel::of_table(&made, spec).map_err(|refused| refused.title)
            }
            Form::Switch => Kernel::of_switch(self.proved, spec).map_err(|refused| refused.title),
        }
    }

    /// Returns the host engine's results; `None` where the form does not exist.
    pub(crate) fn expected(&self, in_place: bool) -> Option<Vec<Vec<u8>>> {
        let Data { count, dtype, op } = self.data;
        let options = Options::new().level(Level::O0);
        let plan = Plan::for_options(self.proved, count as u64, dtype, op, options)
            .expect("the host runs every proved schedule");
        let (inputs, buffers) = (self.inputs(), self.buffers());
        if !in_place {
            let mut outputs: Vec<Vec<u8>> = buffers.iter().map(|b| vec![0; b.output]).collect();
            let given: Vec<&[u8]> = inputs.iter().map(Vec::as_slice).collect();
            let mut taken: Vec<&mut [u8]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
            plan.run_bytes(&given, &mut taken).expect("the host runs it");
            return Some(outputs);
        }
        let mut shared: Vec<Vec<u8>> =
            buffers.iter().zip(&inputs).map(|(b, input)| Self::entered(b, input)).collect();
        let mut views: Vec<&mut [u8]> = shared.iter_mut().map(Vec::as_mut_slice).collect();
        plan.run_bytes_in_place(&mut views).ok()?;
        Some(
            shared
                .iter()
                .zip(&buffers)
                .map(|(all, b)| all[b.output_at..][..b.output].to_vec())
                .collect(),
        )
    }

    /// Returns a rank's buffer in place, with its input in it.
    pub(crate) fn entered(buffers: &Buffers, input: &[u8]) -> Vec<u8> {
        let mut shared = vec![0xA5; buffers.shared];
        shared[buffers.input_at..][..input.len()].copy_from_slice(input);
        shared
    }

    /// The first element that is wrong.
    pub(crate) fn difference(
        &self,
        in_place: bool,
        expected: &[Vec<u8>],
        got: &[Vec<u8>],
    ) -> String {
        let size = self.data.dtype.size();
        let ranks = expected.iter().zip(got).enumerate();
        let wrong = ranks.filter_map(|(rank, (expected, got))| {
            let at = expected.iter().zip(got).position(|(a, b)| a != b)? / size;
            let element = |all: &[u8]| format!("{:02x?}", &all[at * size..][..size]);
            Some(format!("rank {rank} element {at}: {} for {}", element(got), element(expected)))
        });
        let first = wrong.take(1).next().unwrap_or_else(|| "another length".to_owned());
        format!("{}: {first}", self.name(in_place))
    }
}
