//! The result of a proof, as a short certificate for people and complete for programs.

use roundelay_core::AnyProof;
use roundelay_core::diagnostics::Finding;
use roundelay_core::dtype::DType;
use roundelay_core::optimize::join;
use roundelay_core::schedule::Schedule;
use roundelay_core::symmetry::{SymmetricProof, Way};
use roundelay_core::uneven;
use roundelay_core::verify::{
    Busiest, Depth, Proof, Proved, ReductionOrder, Sameness, Signals, depth,
};
use serde::Serialize;
use std::collections::BTreeMap;

use crate::topo::{count, short};

/// The claims that hold of every proved schedule, in every interleaving.
pub(crate) const ALWAYS: [&str; 4] =
    ["no deadlock", "no data race", "no race with the caller", "every contribution exactly once"];

/// The properties of one schedule.
#[derive(Serialize)]
pub(crate) struct Certificate {
    pub(crate) nranks: u32,
    ops: u64,
    /// The properties that hold in every interleaving.
    proved: Vec<&'static str>,
    in_place: bool,
    /// The number that every count must be a multiple of, where some counts do not fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    multiple: Option<u64>,
    /// Whether each rank may choose by itself between in place and not.
    any_mode: bool,
    signals: String,
    streams: u32,
    /// The most from one rank to another.
    notifies: u32,
    /// Between the streams of a rank.
    joins: u32,
    /// The most of a rank, in units of the count.
    scratch_units: f64,
    /// The part of it that keeps narrow floats as f32, so that an element of bf16 takes four bytes there.
    #[serde(skip_serializing_if = "Option::is_none")]
    wide_scratch_units: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fifo: Option<Fifo>,
    /// Between all ranks.
    messages: u64,
    pieces: u64,
    sends_to: Port,
    receives_from: Port,
    /// Reductions one after the other, for some element.
    reduce_depth: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    order: Option<SameOrder>,
    /// Whether the proof holds for a count for each block, where ranks own blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    counts_by_block: Option<ByBlock>,
    ideal: Ideal,
    /// The group of turns by which one rank stands for all, where the proof is of one rank.
    #[serde(skip_serializing_if = "Option::is_none")]
    symmetry: Option<Symmetry>,
    /// The construct by which no rank stands for all, where there are many ranks.
    #[serde(skip_serializing_if = "Option::is_none")]
    asymmetric: Option<String>,
}

/// The reason why the proof of one rank is the proof of all.
#[derive(Serialize)]
struct Symmetry {
    turns: String,
    /// `followed` or `compared`.
    way: &'static str,
    #[serde(skip)]
    line: String,
}

/// Slots of a link that hold data at once: as the senders wait for credits, and as few as would do.
#[derive(Serialize)]
struct Fifo {
    credits: u32,
    needed: u32,
}

impl From<Depth> for Fifo {
    fn from(Depth { credits, needed }: Depth) -> Self {
        Self { credits, needed }
    }
}

/// The most peers of any rank in one step.
#[derive(Serialize)]
struct Port {
    peers: usize,
    rank: u32,
    step: u32,
}

/// The agreement of reduction orders: `exact`, `commuted` (but for the order of two operands) or `differs`.
#[derive(Serialize)]
struct SameOrder {
    #[serde(flatten)]
    weakest: OrderFacts,
    /// The order of a run in place, where it may differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    in_place: Option<OrderFacts>,
    /// Between a run in place and one out of place, where these may differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    in_both_modes: Option<Same>,
    /// For each promise that does not hold, two results that show it.
    witnesses: Vec<Witness>,
}

/// The facts of an order, in one mode or the weakest of all.
#[derive(Serialize)]
struct OrderFacts {
    on_all_ranks: Same,
    for_all_elements: Same,
    /// Of each rank's block: another count, or another cut of a message, moves its elements to other pieces.
    for_all_counts: Same,
    in_rank_order: bool,
    /// Roundings of a contribution in a type narrower than f32.
    roundings: u32,
    /// Whether the last of them is the division of an average, which comes after its sum is rounded.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    average_rounds_again: bool,
    /// Roundings of a contribution in f32 and f64.
    roundings_of_f32: u32,
    /// The largest error of a sum, as a share of the sum of the absolute values.
    error_bounds: BTreeMap<&'static str, f64>,
    #[serde(skip)]
    text: String,
}

impl OrderFacts {
    fn new(order: &ReductionOrder, proof: &Proof) -> Self {
        let floats = DType::ALL.iter().filter(|dtype| dtype.is_float());
        Self {
            on_all_ranks: order.ranks.into(),
            for_all_elements: order.elements.into(),
            for_all_counts: order.counts.into(),
            in_rank_order: order.in_rank_order,
            roundings: order.roundings,
            average_rounds_again: proof.scale_outputs,
            roundings_of_f32: order.depth,
            error_bounds: floats.map(|d| (d.name(), order.error_bound(*d))).collect(),
            text: order.to_string(),
        }
    }

    /// Returns two lines for a terminal.
    fn lines(&self) -> [String; 2] {
        let bound = |dtype: DType| format!("{:.1e} ({dtype})", self.error_bounds[dtype.name()]);
        [
            self.text.clone(),
            format!(
                "roundings: {} in narrow floats{}, {} in f32; error <= {}, {} of sum |x|",
                self.roundings,
                if self.average_rounds_again { " (the last divides an average)" } else { "" },
                self.roundings_of_f32,
                bound(DType::Bf16),
                bound(DType::F32),
            ),
        ]
    }
}

#[derive(Serialize)]
struct Witness {
    promise: &'static str,
    ranks: [u32; 2],
    pieces: [String; 2],
    orders: [String; 2],
    /// Whether the two differ in place only.
    in_place: bool,
}

/// Whether the proof for equal counts holds for every vector of counts.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum ByBlock {
    Every,
    /// The first move that is right for equal counts alone.
    Refused {
        line: u32,
        why: String,
    },
}

impl ByBlock {
    /// Returns the fact of a schedule with the ops of all ranks.
    fn direct(schedule: &Schedule) -> Option<Self> {
        schedule.collective.blocks(schedule.nranks)?;
        match uneven::blocks(schedule) {
            Ok(_) => Some(Self::Every),
            Err(found) => found.first().map(|found| Self::refused(schedule, found)),
        }
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

    fn line(&self) -> String {
        match self {
            Self::Every => "for every vector of counts, one for each block".to_owned(),
            Self::Refused { line, why } => format!("for equal counts alone: line {line}, {why}"),
        }
    }
}

/// The distance from the best where each rank has one port each way and every pair of ranks is linked.
#[derive(Serialize)]
struct Ideal {
    /// Units through the busiest port.
    units: f64,
    least_units: f64,
    /// Messages in the longest chain.
    steps: u32,
    least_steps: u32,
    /// Ports a rank that `least_steps` allows: as many as the schedule uses.
    ports: usize,
}

impl Certificate {
    /// Returns the certificate of a proof of all ranks.
    pub(crate) fn direct(proved: &Proved, signals: Signals) -> Self {
        let schedule = proved.schedule();
        let traffic = join(schedule).messages();
        Self {
            messages: traffic.messages,
            pieces: traffic.pieces,
            fifo: depth(schedule).map(Fifo::from),
            counts_by_block: ByBlock::direct(schedule),
            ..Self::of(schedule, proved.proof(), signals)
        }
    }

    /// Returns the certificate of a proof.
    pub(crate) fn new(proof: &AnyProof, signals: Signals) -> Self {
        let proved = match proof {
            AnyProof::Direct(proved, why) => {
                return Self { asymmetric: why.clone(), ..Self::direct(proved, signals) };
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
        let order = proof.reduction.as_ref().map(|reduction| SameOrder {
            weakest: OrderFacts::new(&reduction.in_every_mode(), proof),
            in_place: reduction.in_place.as_ref().map(|order| OrderFacts::new(order, proof)),
            in_both_modes: proof.one_mode.is_some().then(|| reduction.modes.into()),
            witnesses: (reduction.witnesses.iter())
                .map(|(class, witness)| Witness {
                    promise: class.name(),
                    ranks: witness.ranks.map(|rank| rank.0),
                    pieces: witness.pieces.clone(),
                    orders: witness.orders.clone(),
                    in_place: witness.in_place,
                })
                .collect(),
        });
        Self {
            nranks,
            ops: schedule.ops.len() as u64,
            proved: holds,
            in_place: proof.in_place,
            multiple: (schedule.multiple > 1).then_some(schedule.multiple),
            any_mode: proof.one_mode.is_none(),
            signals: signals.to_string(),
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
            order,
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

    /// Returns the counts for which it holds, if not all.
    pub(crate) fn counts(&self) -> Option<String> {
        let (multiple, n) = (self.multiple?, self.nranks);
        Some(format!(
            "only for counts that are multiples of {multiple}, at {}",
            count(n as usize, "rank")
        ))
    }

    /// Returns the steps and the order of reduction in a few words, such as `14 steps · one order`.
    pub(crate) fn brief(&self) -> String {
        let steps = count(self.ideal.steps as usize, "step");
        let order = self.order.as_ref().map(|order| match order.weakest.on_all_ranks {
            Same::Exact => " · one order",
            Same::Commuted => " · one order up to swapped operands",
            Same::Differs => " · orders differ",
        });
        steps + order.unwrap_or_default()
    }

    /// Returns lines for a terminal.
    pub(crate) fn lines(&self, with_ideal: bool) -> Vec<String> {
        let n = self.nranks;
        let scratch = match self.scratch_units {
            0.0 => "no scratch".to_owned(),
            some => {
                let wide = self.wide_scratch_units.map(|wide| format!(" ({} as f32)", short(wide)));
                let wide = wide.unwrap_or_default();
                format!("{} of scratch{wide}", units(some))
            }
        };
        let signals = match self.signals.as_str() {
            "counting" => None,
            signals => Some(format!("signals: {signals}")),
        };
        // Two lines, so that neither is wider than a page of the book.
        let conditions = &self.proved[ALWAYS.len()..];
        let conditions: Vec<_> =
            conditions.iter().map(|c| (*c).to_owned()).chain(signals).collect();
        let Self { messages, pieces, sends_to, receives_from, .. } = self;
        let mut lines = vec![ALWAYS.join(", ")];
        lines.extend(self.symmetry.as_ref().map(|symmetry| symmetry.line.clone()));
        lines.extend(self.asymmetric.as_ref().map(|why| format!("no rank stands for all: {why}")));
        if !conditions.is_empty() {
            lines.push(conditions.join("; "));
        }
        lines.push(format!(
            "at {}: {}, {} a link, {scratch}",
            count(n as usize, "rank"),
            count(self.streams as usize, "stream"),
            if self.notifies == 1 {
                "1 notify".into()
            } else {
                format!("{} notifies", self.notifies)
            },
        ));
        if sends_to.peers + receives_from.peers > 0 {
            lines.push(format!(
                "{} of {}; in one step a rank sends to at most {} and receives from {}",
                count(*messages as usize, "message"),
                count(*pieces as usize, "piece"),
                count(sends_to.peers, "peer"),
                receives_from.peers
            ));
        }
        if let Some(Fifo { credits, needed }) = self.fifo {
            lines.push(format!(
                "fifo: up to {} a link in use, {needed} needed",
                count(credits as usize, "credit")
            ));
        }
        lines.extend(self.counts_by_block.as_ref().map(ByBlock::line));
        if let Some(order) = &self.order {
            lines.extend(order.weakest.lines());
            if let Some(modes) = order.in_both_modes {
                lines.push(format!("in place and out of place, the order is {}", modes.text()));
            }
        }
        if with_ideal && n > 1 {
            let Ideal { units: most, least_units, steps, least_steps, .. } = self.ideal;
            lines.push(format!(
                "busiest port: {}, at least {} ({:.1} %); {}, at least {least_steps}",
                units(most),
                short(least_units),
                100.0 * least_units / most.max(f64::MIN_POSITIVE),
                count(steps as usize, "step"),
            ));
        }
        lines
    }
}

/// The agreement of two orders.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
enum Same {
    Exact,
    Commuted,
    Differs,
}

impl Same {
    const fn text(self) -> &'static str {
        match self {
            Self::Exact => "the same",
            Self::Commuted => "the same up to swapped operands",
            Self::Differs => "not the same",
        }
    }
}

impl From<Sameness> for Same {
    fn from(same: Sameness) -> Self {
        match same {
            Sameness::Exact => Self::Exact,
            Sameness::Commuted => Self::Commuted,
            Sameness::Differs => Self::Differs,
        }
    }
}

/// Returns an amount: `1 unit`, also where a sum of parts is 1 but for its rounding.
fn units(amount: f64) -> String {
    let amount = short(amount);
    if amount == "1" { "1 unit".to_owned() } else { format!("{amount} units") }
}
