//! The facts of a proof, as a short certificate for people and complete for programs.

mod lines;
mod order;

use crate::AnyProof;
use crate::diagnostics::Finding;
use crate::optimize::join;
use crate::schedule::Schedule;
use crate::stages::stage;
use crate::symmetry::{SymmetricProof, Way};
use crate::uneven;
use crate::verify::{Busiest, Depth, Proof, Proved, Signals, depth};

pub use crate::json::Json;
pub use order::{OrderFacts, OrderWitness, SameOrder};

/// The claims that hold of every proved schedule, in every interleaving.
pub const ALWAYS: [&str; 4] =
    ["no deadlock", "no data race", "no race with the caller", "every contribution exactly once"];

/// The facts that the proof of one schedule establishes. `{}` prints them in lines, as `roundelay check` does, and
/// [`Certificate::json`] has all of them for programs, as `roundelay check --format json` prints them.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Certificate {
    /// The number of ranks.
    pub nranks: u32,
    /// The ops of all ranks.
    pub ops: u64,
    /// The properties that hold in every interleaving; those of [`ALWAYS`] come first.
    pub proved: Vec<&'static str>,
    /// Whether it runs in place, too.
    pub in_place: bool,
    /// The number that every count must be a multiple of, where some counts do not fit.
    pub multiple: Option<u64>,
    /// Whether each rank may choose by itself between in place and not.
    pub any_mode: bool,
    /// The model of signals for which it was proved.
    pub signals: Signals,
    /// The most streams of a rank.
    pub streams: u32,
    /// The most signals from one rank to another.
    pub notifies: u32,
    /// The most signals between the streams of a rank.
    pub joins: u32,
    /// The most scratch of a rank, in units of the count.
    pub scratch_units: f64,
    /// The part of it that keeps narrow floats as f32, so that an element of bf16 takes four bytes there.
    pub wide_scratch_units: Option<f64>,
    /// The slots of a link, where it is a fifo.
    pub fifo: Option<Fifo>,
    /// Messages between all ranks.
    pub messages: u64,
    /// Pieces of these messages.
    pub pieces: u64,
    /// The most peers that a rank sends to in one step.
    pub sends_to: Port,
    /// The most peers that a rank receives from in one step.
    pub receives_from: Port,
    /// Reductions one after the other, for some element.
    pub reduce_depth: u32,
    /// The order of reduction, where the collective reduces.
    pub order: Option<SameOrder>,
    /// Whether the proof holds for a count for each block, where ranks own blocks.
    pub counts_by_block: Option<ByBlock>,
    /// The distance from the best.
    pub ideal: Ideal,
    /// The group of turns by which one rank stands for all, where the proof is of one rank.
    pub symmetry: Option<Symmetry>,
    /// The construct by which no rank stands for all, where there are many ranks.
    pub asymmetric: Option<String>,
}

/// The reason why the proof of one rank is the proof of all.
#[derive(Clone, Debug)]
pub struct Symmetry {
    /// The group of turns.
    pub turns: String,
    /// `followed` or `compared`.
    pub way: &'static str,
    /// The reason in one line.
    pub line: String,
}

/// Slots of a link that hold data at once: as the senders wait for credits, and as few as would do.
#[derive(Clone, Debug)]
pub struct Fifo {
    /// Slots in use at once, as the senders wait for credits.
    pub credits: u32,
    /// As few slots as would do.
    pub needed: u32,
}

impl From<Depth> for Fifo {
    fn from(Depth { credits, needed }: Depth) -> Self {
        Self { credits, needed }
    }
}

/// The most peers of any rank in one step.
#[derive(Clone, Debug)]
pub struct Port {
    /// The number of peers.
    pub peers: usize,
    /// A rank with this number of peers.
    pub rank: u32,
    /// The step in which it has them.
    pub step: u32,
}

/// Whether the proof for equal counts holds for every vector of counts.
#[derive(Clone, Debug)]
pub enum ByBlock {
    /// It does.
    Every,
    /// A move is right for equal counts alone.
    Refused {
        /// The line of the first such move.
        line: u32,
        /// The reason.
        why: String,
    },
}

impl ByBlock {
    /// Returns the fact of a schedule with the ops of all ranks; `kept` finds whether its moves keep blocks together.
    fn direct(
        schedule: &Schedule,
        kept: impl FnOnce() -> Result<(), Box<Finding>>,
    ) -> Option<Self> {
        schedule.collective.blocks(schedule.nranks)?;
        Some(match kept() {
            Ok(()) => Self::Every,
            Err(found) => Self::refused(schedule, &found),
        })
    }

    /// Returns the fact of a proof of one rank.
    fn symmetric(proved: &SymmetricProof) -> Option<Self> {
        Some(match proved.counts_by_block.as_ref()? {
            Ok(()) => Self::Every,
            Err(found) => Self::refused(&proved.of.own, found),
        })
    }

    fn refused(schedule: &Schedule, found: &Finding) -> Self {
        let line = schedule.location(found.at).line;
        Self::Refused { line, why: found.title.clone() }
    }
}

/// The distance from the best where each rank has one port each way and every pair of ranks is linked.
#[derive(Clone, Debug)]
pub struct Ideal {
    /// Units through the busiest port.
    pub units: f64,
    /// The fewest units of any algorithm.
    pub least_units: f64,
    /// Messages in the longest chain.
    pub steps: u32,
    /// The fewest messages in a chain of any algorithm.
    pub least_steps: u32,
    /// Ports a rank that `least_steps` allows: as many as the schedule uses.
    pub ports: usize,
}

impl Certificate {
    /// Makes the certificate of a schedule with the ops of all ranks, and of its proof.
    pub fn direct(schedule: &Schedule, proof: &Proof, signals: Signals) -> Self {
        let first = |found: Vec<Finding>| Box::new(found.into_iter().next().expect("there is one"));
        let kept = || uneven::blocks(schedule).map(drop).map_err(first);
        Self::with(schedule, proof, signals, kept)
    }

    /// Makes the certificate of a proved schedule with the ops of all ranks.
    pub fn of_proved(proved: &Proved, signals: Signals) -> Self {
        Self::with(proved.schedule(), proved.proof(), signals, || proved.owners().map(drop))
    }

    fn with(
        schedule: &Schedule,
        proof: &Proof,
        signals: Signals,
        kept: impl FnOnce() -> Result<(), Box<Finding>>,
    ) -> Self {
        let traffic = stage("messages", || join::messages(schedule));
        Self {
            messages: traffic.messages,
            pieces: traffic.pieces,
            fifo: depth(schedule).map(Fifo::from),
            counts_by_block: ByBlock::direct(schedule, kept),
            ..Self::of(schedule, proof, signals)
        }
    }

    /// Makes the certificate of a proof.
    pub fn new(proof: &AnyProof, signals: Signals) -> Self {
        let proved = match proof {
            AnyProof::Direct(proved, why) => {
                return Self { asymmetric: why.clone(), ..Self::of_proved(proved, signals) };
            }
            AnyProof::Symmetric(proved) => proved,
        };
        let (messages, pieces) = proved.messages();
        let mut certificate = Self::of(&proved.of.own, &proved.proof, signals);
        certificate.ideal.units = proved.busiest_port();
        let way = match proved.of.way {
            Way::Followed => "followed",
            Way::Compared => "compared",
        };
        let (turns, line) = (proved.of.turns.to_string(), proved.line());
        Self {
            ops: proved.ops(),
            messages,
            pieces,
            fifo: proved.depth().map(Fifo::from),
            counts_by_block: ByBlock::symmetric(proved),
            symmetry: Some(Symmetry { turns, way, line }),
            ..certificate
        }
    }

    /// Returns the facts that are those of all ranks, whether a schedule has all ranks or one that stands for them.
    fn of(schedule: &Schedule, proof: &Proof, signals: Signals) -> Self {
        let (needs, used) = (schedule.needs(), &proof.ports);
        let port = |busiest: &Busiest| Port {
            peers: busiest.peers.len(),
            rank: busiest.rank.0,
            step: busiest.step,
        };
        let mut holds = ALWAYS.to_vec();
        match (&proof.one_mode, proof.in_place) {
            (Some(_), _) => holds.push("in place too if all ranks are"),
            (None, true) => holds.push("in place too"),
            (None, false) => {}
        }
        if schedule.demands.topology.is_some() {
            holds.push("only links that exist");
        }
        if signals.one_shot {
            holds.push("no signal is lost");
        }
        let most_ports = used.most();
        let (collective, nranks) = (schedule.collective, schedule.nranks);
        let scratch = needs.scratch.map_or(f64::INFINITY, |r| r.num() as f64 / r.den() as f64);
        Self {
            nranks,
            ops: schedule.ops.len() as u64,
            proved: holds,
            in_place: proof.in_place,
            multiple: (schedule.multiple > 1).then_some(schedule.multiple),
            any_mode: proof.one_mode.is_none(),
            signals,
            streams: needs.streams,
            notifies: needs.notifies,
            joins: needs.joins,
            scratch_units: scratch,
            wide_scratch_units: (schedule.scratch.iter().filter(|of| of.wide))
                .map(|of| f64::from(of.slots) * of.width.num() as f64 / of.width.den() as f64)
                .reduce(|sum, of| sum + of),
            fifo: None,
            messages: 0,
            pieces: 0,
            sends_to: port(&used.send),
            receives_from: port(&used.receive),
            reduce_depth: proof.reduce_depth,
            order: SameOrder::of(proof),
            counts_by_block: None,
            symmetry: None,
            asymmetric: None,
            ideal: Ideal {
                units: schedule.busiest_port(),
                least_units: collective.least_units(nranks),
                steps: proof.steps,
                least_steps: collective.least_rounds(nranks, most_ports as u32),
                ports: most_ports,
            },
        }
    }
}
