//! Choosing: the predicted time of each algorithm of the library on a machine of given constants, and so which one to
//! run.
//!
//! The time is the simulated time of the schedule, its pieces joined, on the links of a topology or with one port a
//! rank. Where ranks share cores, it is at least the time that the cores need for the work of all ranks. A schedule
//! that is too large to be laid out has the time of the closed form of its family. An algorithm that cannot run is
//! listed with the reason.

use std::sync::{Arc, OnceLock};

use roundelay_core::check::Frontend;
use roundelay_core::check::dependencies::Dependencies;
use roundelay_core::diagnostics::{Code, Finding};
use roundelay_core::ids::SpanId;
use roundelay_core::layout::{Configured, Limits};
use roundelay_core::optimize::join;
use roundelay_core::schedule::Schedule;
use roundelay_core::syntax::Source;
use roundelay_core::{compile_with, prove};
use roundelay_simulate::cost::{self, has_latency};
use roundelay_simulate::{Machine, Spent, simulate};

pub use roundelay_simulate::cost::{CostForm, Costs, Counts, GivenCosts, Origin, Time};

mod table;

pub use roundelay_core::units::{rate, size, time};

use crate::library::SOURCES;
use crate::{Algorithm, Collective, DType, Error, Plan, Promises, ReduceOp, ToPlan as _, Topology};

/// Work beyond which a schedule is not laid out to be counted, where a closed form may stand in for it.
const LIMITS: Limits = Limits { steps: 1 << 18, ops: 1 << 20 };
/// Work beyond which a schedule is not laid out on a topology, where no closed form can stand in for it.
const LIMITS_ON: Limits = Limits { steps: 1 << 22, ops: 1 << 24 };

/// The predicted times of all algorithms of the library for one collective and size, the fastest first, and the
/// algorithms that cannot run, with the reason.
///
/// [`select()`] makes it; [`Choice::plan`] makes a plan of the fastest. `Display` prints the table.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The collective that was asked about.
    pub collective: Collective,
    /// The number of ranks that was asked about.
    pub nranks: u32,
    /// The size S in bytes as nccl-tests counts it: the larger of a rank's two buffers.
    pub bytes: u64,
    /// The name of the topology that joins the ranks, if one was given.
    pub topology: Option<String>,
    /// The constants of the model: latencies in seconds, rates in bytes a second.
    pub costs: Costs,
    /// The bandwidth in bytes a second by which volumes are divided: the bandwidth of the topology's fastest link, or
    /// the one in the constants where no topology gives bandwidths.
    pub bandwidth: f64,
    /// Whether the latency of a step is the latency of the topology's links, in place of the one in the constants.
    pub latency_of_links: bool,
    /// The algorithms that can run, the fastest first; times that are equal to the picosecond are in the order of
    /// names.
    pub ranked: Vec<Row>,
    /// The algorithms that cannot run, in the order of names.
    pub refused: Vec<Refused>,
    own: Vec<Configured>,
    placed_on: Option<Arc<Topology>>,
}

/// An algorithm that can run, with its predicted time.
#[derive(Clone, Debug)]
pub struct Row {
    /// The name of the algorithm.
    pub algorithm: String,
    /// Whether the algorithm was given to [`select_beside`], and is not of the library.
    pub own: bool,
    /// The steps, messages and pieces, and the data in shares of the size S.
    pub counts: Counts,
    /// The predicted time in seconds, by its parts.
    pub time: Time,
    /// The method by which the time was found.
    pub numbers: Numbers,
}

/// The method by which the time of a [`Row`] was found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Numbers {
    /// The schedule was simulated: the time is the length of its critical path.
    Simulated,
    /// Ranks share cores, and these need longer for the work of all ranks than the critical path takes.
    Cores,
    /// The schedule is too large to be laid out for this: counts and time are by the closed form of its family.
    Form(&'static CostForm),
}

/// An algorithm that cannot run on this number of ranks or on that topology, and the reason.
#[derive(Clone, Debug)]
pub struct Refused {
    /// The name of the algorithm.
    pub algorithm: String,
    /// The code of the error, such as E0205 where the algorithm refuses the number of ranks.
    pub code: Code,
    /// The message of the error.
    pub reason: String,
    /// Advice, if there is any.
    pub help: Option<String>,
}

/// Ranks the library's algorithms for `collective` by their predicted time for `bytes` bytes (nccl-tests' size: the
/// larger of input and output) on `nranks` ranks, every parameter at its default; parameters of type `Topology` get
/// `topology`. The constants are those of [`Costs::for_topology`]: those published of the GPUs of the topology where its ranks are
/// GPUs, and else those of the host engine.
///
/// ```
/// use roundelay::{Collective, select};
///
/// let choice = select(Collective::AllReduce, 8, 1 << 20, None);
/// let best = choice.best().expect("some algorithm takes 8 ranks");
/// println!("{}: {:.1} us\n{choice}", best.algorithm, best.time.seconds() * 1e6);
/// ```
pub fn select(
    collective: Collective,
    nranks: u32,
    bytes: u64,
    topology: Option<&Topology>,
) -> Choice {
    select_with(
        &Costs::for_topology(topology, nranks, &GivenCosts::default()),
        collective,
        nranks,
        bytes,
        topology,
    )
}

/// Ranks the library's algorithms as [`select`] does, by constants of your own, such as those that `roundelay
/// calibrate` measures.
pub fn select_with(
    costs: &Costs,
    collective: Collective,
    nranks: u32,
    bytes: u64,
    topology: Option<&Topology>,
) -> Choice {
    select_beside((&[], Promises::new()), costs, collective, nranks, bytes, topology)
}

/// Ranks the algorithms in `own` that are for `collective` beside the library's, as [`select_with`] does. Each
/// algorithm in `own` is proved first for `nranks` ranks, and listed with the reason where it is wrong.
///
/// Algorithms that break one of the `promises` about the order of reductions are refused. Where `all_counts` is promised,
/// so are algorithms whose order is not that of the library's ordered algorithms: the choice for another size then has
/// results of equal bits.
pub fn select_beside(
    (own, promises): (&[Configured], Promises),
    costs: &Costs,
    collective: Collective,
    nranks: u32,
    bytes: u64,
    topology: Option<&Topology>,
) -> Choice {
    let shared = topology.cloned().map(Arc::new);
    let costs = match topology {
        // Each rank of a topology works by itself.
        Some(_) => Costs { cores: None, ..costs.clone() },
        None => costs.clone(),
    };
    let asked = SelectQuery { costs: &costs, nranks, bytes, topology: shared.as_ref(), promises };
    let (mut ranked, mut refused) = (Vec::new(), Vec::new());
    let all = own.iter().zip(std::iter::repeat(true)).chain(library().iter().map(|a| (a, false)));
    for (algorithm, own) in all.filter(|(a, _)| a.collective() == collective) {
        let name = algorithm.name().to_owned();
        match predicted(algorithm, own, &asked) {
            Ok((counts, time, numbers)) => {
                ranked.push(Row { algorithm: name, own, counts, time, numbers });
            }
            Err(findings) => {
                // The first is the worst.
                let Some(Finding { code, title, help, .. }) = findings.into_iter().next() else {
                    continue;
                };
                refused.push(Refused { algorithm: name, code, reason: title, help });
            }
        }
    }
    // Algorithms whose times are equal in the arithmetic are ordered as well.
    let picoseconds = |row: &Row| (row.time.seconds() * 1e12).round();
    ranked.sort_by(|a, b| {
        let by_time = picoseconds(a).total_cmp(&picoseconds(b));
        by_time.then_with(|| a.algorithm.cmp(&b.algorithm))
    });
    refused.sort_by(|a, b| a.algorithm.cmp(&b.algorithm));
    let fastest = topology.filter(|t| !t.is_relative()).and_then(|t| {
        let capacity =
            |l: &roundelay_topology::Link| l.capacity.num() as f64 / l.capacity.den() as f64;
        t.links().iter().map(capacity).reduce(f64::max)
    });
    Choice {
        collective,
        nranks,
        bytes,
        topology: topology.map(|t| t.name().to_owned()),
        bandwidth: fastest.unwrap_or(costs.bandwidth),
        latency_of_links: topology.is_some_and(|topology| has_latency(topology)),
        costs,
        ranked,
        refused,
        own: own.to_vec(),
        placed_on: shared,
    }
}

/// Returns the library's algorithms, every parameter at its default.
pub fn library() -> &'static [Configured] {
    static LIBRARY: OnceLock<Vec<Configured>> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let checked = |(file, text): &(&'static str, &'static str)| {
            let source = Source::from_text(*file, text);
            let dependencies = Dependencies::library(SOURCES);
            let program = compile_with(&source, Frontend::File, &dependencies)
                .expect("the macro has checked the library");
            program.algorithms.into_iter().map(|a| Configured::new(a, &source)).collect::<Vec<_>>()
        };
        SOURCES.iter().flat_map(checked).collect()
    })
}

/// The arguments of a choice.
struct SelectQuery<'a> {
    costs: &'a Costs,
    nranks: u32,
    bytes: u64,
    topology: Option<&'a Arc<Topology>>,
    promises: Promises,
}

/// Returns an algorithm on the topology, where there is one.
fn placed(algorithm: &Configured, topology: Option<&Arc<Topology>>) -> Configured {
    let mut algorithm = algorithm.clone();
    if let Some(topology) = topology {
        algorithm.place_on(topology.clone());
    }
    algorithm
}

/// Predicts the time of an algorithm, or says why it cannot run.
fn predicted(
    algorithm: &Configured,
    own: bool,
    asked: &SelectQuery<'_>,
) -> Result<(Counts, Time, Numbers), Vec<Finding>> {
    let SelectQuery { nranks, topology, .. } = *asked;
    let algorithm = placed(algorithm, topology);
    if asked.promises.any() && algorithm.collective().reduces() {
        let proved = asked.promises.demanded_of(prove(&algorithm, nranks)?)?;
        if let Some(ordered) = Promises::algorithm(algorithm.collective(), 0, nranks)
            && let Some(apart) = asked.promises.apart(&proved, &prove(&*ordered, nranks)?)
        {
            return Err(vec![apart]);
        }
    }
    // The library's algorithms are proved in its tests; for an algorithm in `own` no closed form replaces the
    // simulation.
    if own {
        return simulated(prove(&algorithm, nranks)?.schedule(), asked);
    }
    let limits = if topology.is_some() { LIMITS_ON } else { LIMITS };
    let laid_out = algorithm.schedule_within(nranks, limits);
    // Engines have ranks do what a switch does: as much as an algorithm of the mesh, and no faster.
    if laid_out.as_ref().is_ok_and(Schedule::has_switch) {
        let title = "kernels of the form `switch` alone have a switch fold or store";
        let finding = Finding::new(Code::NoSuchKernel, SpanId::default(), title);
        return Err(vec![
            finding.help("`roundelay simulate` has its time on a switch that reduces"),
        ]);
    }
    match laid_out.and_then(|schedule| simulated(&schedule, asked)) {
        Err(findings) if findings.iter().any(|f| f.code == Code::StepLimit) => {
            // A form knows no links but its own.
            let form = cost::of_algorithm(algorithm.name(), nranks)
                .filter(|_| topology.is_none())
                .and_then(|form| Some((form.counts(nranks)?, form)));
            let (counts, form) = form.ok_or(findings)?;
            Ok((counts, asked.costs.time(&counts, asked.bytes), Numbers::Form(form)))
        }
        found => found,
    }
}

/// Simulates a schedule, or says why it cannot run there.
fn simulated(
    schedule: &Schedule,
    asked: &SelectQuery<'_>,
) -> Result<(Counts, Time, Numbers), Vec<Finding>> {
    let SelectQuery { costs, nranks, bytes, topology, .. } = *asked;
    let Some(machine) = Machine::for_ranks(costs, topology, nranks) else {
        let most = Topology::PAIRS_LIMIT;
        let title = format!("{nranks} ranks are more than are simulated: at most {most}");
        return Err(vec![Finding::new(Code::StepLimit, SpanId::default(), title)]);
    };
    let schedule = join(schedule);
    let counts = Counts::from_schedule(&schedule)?;
    // Elements are bytes here: the size need not be a whole number of larger elements.
    let count = bytes / schedule.collective.max_units(nranks);
    let done = simulate(&schedule, &machine, count, DType::U8, false)?;
    let spent = Spent::sum(&done.critical);
    let time = Time {
        steps: spent.latency,
        pieces: spent.pieces,
        volume: spent.flowing + spent.sharing,
        reduced: spent.reducing,
        copied: spent.local,
    };
    if costs.cores.is_some_and(|cores| cores < nranks) {
        let by_cores = costs.time(&counts, bytes);
        if by_cores.seconds() > time.seconds() {
            return Ok((counts, by_cores, Numbers::Cores));
        }
    }
    Ok((counts, time, Numbers::Simulated))
}

impl Choice {
    /// Returns the fastest algorithm; `None` where every one is refused.
    pub fn best(&self) -> Option<&Row> {
        self.ranked.first()
    }

    /// Makes a plan of the fastest algorithm, for the number of ranks and on the topology of the choice, and for
    /// `count` elements of `dtype` a unit (NCCL's count). The size of the choice does not set the count.
    ///
    /// # Errors
    /// [`Error::NoneFits`] where every algorithm is refused, with the first reason; else the errors of
    /// [`ToPlan`](crate::ToPlan).
    ///
    /// ```
    /// use roundelay::{Collective, DType, ReduceOp, Topology, select};
    ///
    /// let broken: Topology = "full_mesh(8) without (0, 1)".parse()?;
    /// let choice = select(Collective::AllReduce, 8, 4 << 20, Some(&broken));
    /// let plan = choice.plan(1 << 20, DType::F32, ReduceOp::Sum)?;
    /// assert_eq!(plan.schedule().algorithm, choice.best().expect("one fits").algorithm);
    /// # Ok::<(), roundelay::Error>(())
    /// ```
    pub fn plan(&self, count: u64, dtype: DType, op: ReduceOp) -> Result<Plan, Error> {
        let Some(best) = self.best() else {
            let why = self.refused.first().map(|refused| (refused.code, refused.reason.clone()));
            let (collective, nranks) = (self.collective, self.nranks);
            return Err(Error::NoneFits { collective, nranks, why });
        };
        let algorithm = self.configured(best);
        match &self.placed_on {
            Some(topology) => algorithm.plan_on(topology, count, dtype, op),
            None => algorithm.plan(self.nranks, count, dtype, op),
        }
    }

    /// Returns the promises about the order of reductions that the fastest algorithm keeps, after a proof of it; `None`
    /// where every algorithm is refused, or the collective does not reduce.
    pub fn order(&self) -> Option<Promises> {
        let algorithm = placed(self.configured(self.best()?), self.placed_on.as_ref());
        let proved = prove(&algorithm, self.nranks).ok()?;
        Promises::kept_by(&proved)
    }

    fn configured(&self, row: &Row) -> &Configured {
        let among = if row.own { &self.own[..] } else { library() };
        let algorithm = among.iter().find(|known| known.name() == row.algorithm);
        algorithm.expect("these algorithms were ranked")
    }
}
