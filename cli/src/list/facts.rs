//! One algorithm of a list: its parameters, the rank counts that it admits, and its costs at one of them.

use std::sync::Arc;

use roundelay_core::dtype::DType;
use roundelay_core::layout::{Algorithm as _, Configured};
use roundelay_core::optimize::join;
use roundelay_core::schedule::Schedule;
use roundelay_core::units::ranges;
use roundelay_core::verify::{self, Sameness, Signals};
use roundelay_simulate::{Machine, simulate};
use serde::Serialize;

use crate::topo::{count, short};

/// The meaning of the words of a list.
pub(super) const LEGEND: &str = "\
steps   messages in the longest chain in which each message waits for the one before
S       nccl-tests' size in bytes; `1.5 S` passes one after another through a port, streams by data
scratch of a rank, in units of the count
order   whether results are reduced in one order: on all ranks, in all blocks, in all pieces of a
        block; rank order is the same for ops that do not commute; roundings of f16, bf16 and fp8
`list COLLECTIVE --why` ranks algorithms by predicted time; `--format json` says more";

/// Rank counts that are tried.
const TRIED: u32 = 33;
/// Elements of a unit that are cut as exactly as shares are shown.
const COUNT: u64 = 1 << 24;
/// Columns of a line.
const WIDTH: usize = 100;

#[derive(Serialize)]
pub(super) struct Listed {
    name: String,
    collective: &'static str,
    parameters: Vec<Parameter>,
    /// The admitted rank counts of 1..=33, and as text.
    admits: Vec<u32>,
    admitted: String,
    /// The first reason why the other counts are not admitted.
    refusal: Option<String>,
    /// The error at rank counts that are not refused by `require`.
    wrong: Option<Wrong>,
    /// The costs at the rank count asked for.
    shown: Option<Shown>,
    /// Where that count is refused, the next rank count that is admitted.
    next_admitted: Option<u32>,
    nranks: u32,
    summary: String,
    file: String,
}

#[derive(Serialize)]
struct Parameter {
    name: String,
    #[serde(rename = "type")]
    ty: &'static str,
    /// As written; `natural` for a ring or topology without one; `None` for a value that must be set.
    default: Option<String>,
    #[serde(skip)]
    text: String,
}

#[derive(Serialize)]
struct Wrong {
    nranks: u32,
    code: &'static str,
    title: String,
}

/// Counts of one schedule.
#[derive(Serialize)]
struct Shown {
    /// Messages in the longest chain.
    steps: u32,
    /// The messages of all ranks.
    messages: u64,
    pieces: u64,
    /// Shares of S, nccl-tests' size, that pass one after another where each rank has one port each way.
    volume: f64,
    streams: u32,
    /// The scratch of a rank, in units of the count.
    scratch_units: f64,
    order: ListedOrder,
    /// Roundings of a result in a type narrower than f32.
    roundings: u32,
}

/// The agreement of reduction orders.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
enum ListedOrder {
    /// The algorithm does not reduce.
    Copies,
    /// The order of the ranks everywhere, so that an op need not commute.
    RankOrder,
    /// One order everywhere, but for the order of two operands of one fold.
    Same,
    /// One order on all ranks and in each block, and another in another block.
    DependsOnBlock,
    /// One order on all ranks, and another where a piece begins.
    DependsOnPiece,
    /// Ranks differ.
    DependsOnRank,
    /// The algorithm is not right.
    NotProved,
}

impl ListedOrder {
    /// Returns the order, and the roundings of a result.
    fn new(schedule: &Schedule) -> (Self, u32) {
        if !schedule.collective.reduces() || schedule.nranks < 2 {
            return (Self::Copies, 0);
        }
        // The author's demands are not checked: the list shows the algorithm as it is.
        let proof = verify::verify_with(schedule, Signals::default());
        match proof.ok().and_then(|proof| proof.reduction) {
            None => (Self::NotProved, 0),
            Some(reduction) => {
                use Sameness::Differs;
                let order = reduction.in_every_mode();
                let listed = match (order.ranks, order.counts, order.elements) {
                    (Differs, ..) => Self::DependsOnRank,
                    (_, Differs, _) => Self::DependsOnPiece,
                    (.., Differs) => Self::DependsOnBlock,
                    _ if order.in_rank_order => Self::RankOrder,
                    _ => Self::Same,
                };
                (listed, order.roundings)
            }
        }
    }

    const fn text(self) -> &'static str {
        match self {
            Self::Copies => "copies only",
            Self::RankOrder => "rank order",
            Self::Same => "one order",
            Self::DependsOnBlock => "order by block",
            Self::DependsOnPiece => "order by piece",
            Self::DependsOnRank => "order by rank",
            Self::NotProved => "not proved",
        }
    }
}

impl Listed {
    pub(super) fn new(algorithm: &Configured, nranks: u32) -> Self {
        let (mut admits, mut refusal, mut wrong) = (Vec::new(), None, None);
        let mut at = |n: u32| match algorithm.schedule(n) {
            Ok(schedule) => Some(schedule),
            Err(findings) => {
                let title = |f: &roundelay_core::diagnostics::Finding| f.title.clone();
                if let Some(first) = findings.iter().find(|f| !f.code.refuses()) {
                    wrong.get_or_insert_with(|| Wrong {
                        nranks: n,
                        code: first.code.as_str(),
                        title: title(first),
                    });
                } else {
                    refusal = refusal.take().or_else(|| findings.first().map(title));
                }
                None
            }
        };
        let shown = at(nranks);
        for n in 1..=TRIED {
            let admitted = if n == nranks { shown.is_some() } else { at(n).is_some() };
            admits.extend(admitted.then_some(n));
        }
        let next_admitted = match shown {
            Some(_) => None,
            None => admits.iter().copied().find(|n| *n > nranks),
        };
        Self {
            name: algorithm.name().to_owned(),
            collective: algorithm.collective().name(),
            parameters: parameters(algorithm),
            admitted: written(&admits),
            admits,
            refusal,
            wrong,
            shown: shown.as_ref().and_then(Shown::new),
            next_admitted,
            nranks,
            summary: first_sentence(algorithm.docs()),
            file: algorithm.file().to_owned(),
        }
    }

    /// Returns its name and parameters; its costs; its description.
    pub(super) fn lines(&self) -> Vec<String> {
        let parameters: Vec<_> = self.parameters.iter().map(|p| p.text.as_str()).collect();
        let Self { name, collective, .. } = self;
        let parameters = parameters.join(", ");
        let takes = format!("{parameters}) -> {collective}");
        let head = format!("\x1b[1m{name}\x1b[0m(");
        let mut lines = if name.len() + 1 + takes.chars().count() > WIDTH {
            std::iter::once(head).chain(wrapped(&takes)).collect()
        } else {
            vec![head + &takes]
        };
        lines.extend(wrapped(&self.summary));
        let n = self.nranks;
        let mut facts = vec![format!("nranks {}", self.admitted)];
        match &self.shown {
            Some(shown) => {
                let scratch = match shown.scratch_units {
                    0.0 => "no scratch".to_owned(),
                    units => format!("scratch {}", short(units)),
                };
                facts.push(format!(
                    "at {n}: {}, {} S, {}, {scratch}, {}",
                    count(shown.steps as usize, "step"),
                    short(shown.volume),
                    count(shown.streams as usize, "stream"),
                    shown.order(),
                ));
            }
            None => facts.push(match self.next_admitted {
                Some(next) => format!("at {n}: -, next admitted: {next}"),
                None => format!("at {n}: -, and no more up to {TRIED}"),
            }),
        }
        lines.push(format!("    {}", facts.join("; ")));
        if let Some(Wrong { nranks, code, title }) = &self.wrong {
            lines.extend(wrapped(&format!("wrong at nranks = {nranks} [{code}]: {title}")));
        }
        lines
    }
}

impl Shown {
    /// Returns `None` for a schedule that cannot end.
    fn new(schedule: &Schedule) -> Option<Self> {
        let steps = verify::steps(schedule).ok()?.into_iter().max().unwrap_or(0);
        let joined = join(schedule);
        // A byte a second and no latency: the time over the size is the volume that passes in sequence.
        let port = format!("crossbar({})", schedule.nranks).parse().ok()?;
        let done =
            simulate(&joined, &Machine::new(Arc::new(port)), COUNT, DType::U8, false).ok()?;
        let needs = schedule.needs();
        let (order, roundings) = ListedOrder::new(schedule);
        Some(Self {
            steps,
            messages: done.messages,
            pieces: done.pieces,
            volume: done.seconds / done.bytes as f64,
            streams: needs.streams,
            scratch_units: needs.scratch.map_or(f64::INFINITY, |r| r.num() as f64 / r.den() as f64),
            order,
            roundings,
        })
    }

    /// Returns the order, and the roundings where there are some.
    fn order(&self) -> String {
        let order = self.order.text();
        match self.roundings {
            0 => order.to_owned(),
            some => format!("{order}, {}", count(some as usize, "rounding")),
        }
    }
}

/// Returns the parameters, with defaults as the canonical source has them.
fn parameters(algorithm: &Configured) -> Vec<Parameter> {
    let head = algorithm.source().split_once(&format!("algorithm {}(", algorithm.name()));
    let mut rest = head.map_or("", |(_, rest)| rest);
    let mut parameters = Vec::new();
    let program = algorithm.program();
    for param in &program.params {
        let end = end_of_parameter(rest);
        let text: Vec<&str> = rest[..end].split_whitespace().collect();
        let text = text.join(" ");
        let written = text.split_once(" = ").map(|(_, default)| default.to_owned());
        let natural = || param.ty.has_natural().then(|| "natural".to_owned());
        parameters.push(Parameter {
            name: program.var(param.var).name.clone(),
            ty: param.ty.name(),
            default: written.or_else(natural),
            text,
        });
        rest = rest[end..].trim_start_matches(',');
    }
    parameters
}

/// Returns the end of the first of a list of parameters: at a comma or bracket outside all others.
fn end_of_parameter(text: &str) -> usize {
    let mut depth = 0_u32;
    let end = text.find(|c| match c {
        '(' | '[' => {
            depth += 1;
            false
        }
        ')' if depth == 0 => true,
        ')' | ']' => {
            depth = depth.saturating_sub(1);
            false
        }
        ',' => depth == 0,
        _ => false,
    });
    end.unwrap_or(text.len())
}

/// Formats rank counts as ranges, or in words.
fn written(counts: &[u32]) -> String {
    let powers: Vec<u32> = (1..=TRIED).filter(|n| n.is_power_of_two()).collect();
    if counts == powers {
        return "powers of two".to_owned();
    }
    if counts.is_empty() { format!("none of 1..={TRIED}") } else { ranges(counts) }
}

/// Breaks a text into indented lines that fit the terminal.
fn wrapped(text: &str) -> impl Iterator<Item = String> {
    let lines =
        roundelay_core::units::wrap(text, WIDTH - 4).into_iter().filter(|line| !line.is_empty());
    lines.map(|line| format!("    {line}"))
}

/// Returns the first sentence of a doc comment, on one line.
fn first_sentence(docs: &[String]) -> String {
    let paragraph: Vec<&str> =
        docs.iter().map(|line| line.trim()).take_while(|line| !line.is_empty()).collect();
    let text = paragraph.join(" ");
    match text.split_once(". ") {
        Some((sentence, _)) => format!("{sentence}."),
        None => text,
    }
}
