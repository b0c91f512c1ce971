//! The judge of candidates: kernels that are to do a collective, in cases that are made from the collective's specification.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use roundelay_core::collective::{Alias, Collective};
use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_core::ids::RankId;

use crate::assumption::{Assumptions, names};
use crate::case::Case;
use crate::check_run::CheckOptions;
use crate::expression::Expression;
use crate::harness::{
    Argument, Buffer, Expect, ExpectedValues, Fill, Harness, Order, RunLimits, Special, Step,
    StepWork,
};
use crate::verdict::{State, Verdict};

/// The families of cases, each with what it looks at.
pub const FAMILIES: [(&str, &str); 12] = [
    ("once", "one call, 64 elements, everything aligned"),
    ("ranks", "one call of 3 and of 5 to 9 ranks"),
    ("counts", "odd numbers of elements, and one element"),
    ("unaligned", "buffers with the alignment of an element"),
    ("in-place", "input and output in one buffer, as NCCL lays them out"),
    ("calls", "three calls with other inputs each"),
    ("graph", "the same, with the arguments of the first call"),
    ("sizes", "three calls with other numbers of elements"),
    ("late", "a rank that starts late"),
    ("special", "inputs with NaN, infinities, -0 and subnormal numbers"),
    ("roots", "the last rank as the root"),
    ("mixed", "all of these at once"),
];

/// The name of the buffer that holds input and output in place.
pub(crate) const WHOLE: &str = "in_place";
/// The alignment of buffers that are aligned.
const ALIGN: u64 = 16;
/// The most that a run of a candidate takes: cases are small.
const LIMITS: RunLimits =
    RunLimits { bytes: 1 << 26, threads: 1 << 18, instructions: 1 << 21, end: None };

/// A case of the judge: how it differs from one aligned call.
#[expect(clippy::struct_excessive_bools, reason = "each is an axis of its own")]
#[derive(Clone, Copy)]
struct CaseShape {
    family: &'static str,
    ranks: u32,
    elements: &'static [i64],
    calls: u32,
    graph: bool,
    odd: bool,
    in_place: bool,
    late: bool,
    special: bool,
    last_root: bool,
}

const ONCE: CaseShape = CaseShape {
    family: "once",
    ranks: 2,
    elements: &[64],
    calls: 1,
    graph: false,
    odd: false,
    in_place: false,
    late: false,
    special: false,
    last_root: false,
};
const MIXED: CaseShape = CaseShape {
    family: "mixed",
    calls: 3,
    odd: true,
    late: true,
    special: true,
    last_root: true,
    ..ONCE
};

const fn ranks(ranks: u32) -> CaseShape {
    CaseShape { family: "ranks", ranks, elements: &[48], ..ONCE }
}

const fn counts(ranks: u32, elements: &'static [i64]) -> CaseShape {
    CaseShape { family: "counts", ranks, elements, ..ONCE }
}

const SHAPES: [CaseShape; 30] = [
    ONCE,
    CaseShape { ranks: 4, ..ONCE },
    ranks(3),
    ranks(5),
    ranks(6),
    ranks(7),
    ranks(8),
    ranks(9),
    counts(2, &[1]),
    counts(3, &[7]),
    counts(2, &[67]),
    counts(3, &[300]),
    CaseShape { family: "unaligned", odd: true, ..ONCE },
    CaseShape { family: "unaligned", ranks: 3, elements: &[67], odd: true, ..ONCE },
    CaseShape { family: "in-place", in_place: true, ..ONCE },
    CaseShape { family: "in-place", ranks: 4, elements: &[16], in_place: true, ..ONCE },
    CaseShape { family: "calls", calls: 3, ..ONCE },
    CaseShape { family: "calls", ranks: 3, calls: 3, ..ONCE },
    CaseShape { family: "graph", calls: 3, graph: true, ..ONCE },
    CaseShape { family: "sizes", elements: &[64, 16, 144], calls: 3, ..ONCE },
    CaseShape { family: "sizes", ranks: 3, elements: &[16, 144, 64], calls: 3, ..ONCE },
    CaseShape { family: "late", calls: 2, late: true, ..ONCE },
    CaseShape { family: "late", ranks: 3, calls: 2, late: true, ..ONCE },
    CaseShape { family: "special", special: true, ..ONCE },
    CaseShape { family: "special", ranks: 3, elements: &[48], special: true, ..ONCE },
    CaseShape { family: "roots", last_root: true, ..ONCE },
    CaseShape { family: "roots", ranks: 3, elements: &[48], last_root: true, ..ONCE },
    CaseShape { ranks: 3, elements: &[33], in_place: true, ..MIXED },
    CaseShape { ranks: 5, elements: &[7, 65, 1], ..MIXED },
    CaseShape { ranks: 8, elements: &[20], in_place: true, graph: true, ..MIXED },
];

/// Kernels that are to do a collective.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The collective.
    pub collective: Collective,
    /// The op, where it reduces.
    pub op: ReduceOp,
    /// The type of the elements.
    pub dtype: DType,
    /// The cases that it is for.
    pub claims: Claims,
    /// Its kernels, with an input and an output that are not laid out yet.
    pub harness: Harness,
}

/// The cases that a candidate is for.
#[derive(Clone, Debug)]
pub struct Claims {
    /// The numbers of ranks; all where there is none.
    pub ranks: Vec<u32>,
    /// The number of which counts are multiples.
    pub multiple: i64,
    /// The alignment of input and output.
    pub align: u64,
    /// Whether input and output may be one buffer.
    pub in_place: bool,
}

impl Default for Claims {
    fn default() -> Self {
        Self { ranks: Vec::new(), multiple: 1, align: 1, in_place: true }
    }
}

/// The outcome of a case of the judge.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// It was run.
    Checked(Box<Verdict>),
    /// It makes no sense with what the manifest says.
    Refused(String),
    /// The candidate is not for it.
    Unclaimed(String),
    /// The time was up before it was run, or the first case did not end.
    Unrun,
}

/// A case of the judge, with its outcome.
#[derive(Clone, Debug)]
pub struct JudgedCase {
    /// The family.
    pub family: &'static str,
    /// The harness, whose case is the name.
    pub harness: Harness,
    /// The modules, where the case was run.
    pub cases: Vec<Case>,
    /// The outcome.
    pub outcome: Outcome,
}

/// The judgement of a candidate.
#[derive(Clone, Debug, Default)]
pub struct Judgement {
    /// All cases.
    pub cases: Vec<JudgedCase>,
    /// The seconds that their runs took.
    pub seconds: f64,
}

impl Outcome {
    /// Whether the candidate passes.
    pub fn passes(&self) -> bool {
        matches!(self, Self::Checked(verdict) if matches!(verdict.state, State::Clean | State::Relies))
    }

    /// The outcome in one word.
    pub fn word(&self) -> String {
        match self {
            Self::Checked(verdict) => verdict.word(),
            Self::Refused(_) => "refused".to_owned(),
            Self::Unclaimed(_) => "unclaimed".to_owned(),
            Self::Unrun => "unrun".to_owned(),
        }
    }

    /// The reason, where the candidate does not pass.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Checked(_) if self.passes() => None,
            Self::Checked(verdict) => verdict.finding.as_ref().map(|found| found.title.as_str()),
            Self::Refused(why) | Self::Unclaimed(why) => Some(why),
            Self::Unrun => Some("it was not run: the time was up, or the first case did not end"),
        }
    }
}

impl JudgedCase {
    /// The name of the case.
    pub fn name(&self) -> &str {
        self.harness.case.as_deref().unwrap_or(self.family)
    }
}

impl Judgement {
    /// The cases that the candidate passes.
    pub fn pass_count(&self) -> usize {
        self.cases.iter().filter(|case| case.outcome.passes()).count()
    }

    /// Seeds of all cases.
    pub fn seeds(&self) -> u64 {
        let of = |case: &JudgedCase| match &case.outcome {
            Outcome::Checked(verdict) => verdict.seeds(),
            _ => 0,
        };
        self.cases.iter().map(of).sum()
    }

    /// The part of all cases that the candidate passes, from 0 to 1.
    pub fn score(&self) -> f64 {
        self.pass_count() as f64 / self.cases.len().max(1) as f64
    }

    /// The first case that the candidate does not pass: one with an error, or else one that it is not for.
    pub fn first(&self) -> Option<&JudgedCase> {
        let is_unclaimed = |case: &&JudgedCase| matches!(case.outcome, Outcome::Unclaimed(_));
        let failed = || self.cases.iter().filter(|case| !case.outcome.passes());
        failed().find(|case| !is_unclaimed(case)).or_else(|| failed().next())
    }

    /// The assumptions on which some case relies.
    pub fn assumptions(&self) -> Assumptions {
        let of = |case: &JudgedCase| match &case.outcome {
            Outcome::Checked(verdict) => verdict.assumptions.clone(),
            _ => Assumptions::new(),
        };
        self.cases.iter().flat_map(of).collect()
    }

    /// Whether every seed of every case was run that a finding did not end.
    pub fn is_whole(&self) -> bool {
        self.cases.iter().all(|case| match &case.outcome {
            Outcome::Checked(verdict) => verdict.whole || !case.outcome.passes(),
            Outcome::Unrun => false,
            _ => true,
        })
    }

    /// The judgement in one word: `clean`, `relies(NAME)`, or the family and the word of the first case that fails.
    pub fn word(&self) -> String {
        match self.first() {
            Some(case) => format!("{}: {}", case.family, case.outcome.word()),
            None if self.assumptions().is_empty() => "clean".to_owned(),
            None => format!("relies({})", names(&self.assumptions())),
        }
    }

    /// By family: its name, the cases that the candidate passes, and all of them.
    pub fn families(&self) -> Vec<(&'static str, usize, usize)> {
        let count = |&(family, _): &(&'static str, &str)| {
            let of = || self.cases.iter().filter(|case| case.family == family);
            (family, of().filter(|case| case.outcome.passes()).count(), of().count())
        };
        FAMILIES.iter().map(count).filter(|(_, _, all)| *all > 0).collect()
    }
}

impl Candidate {
    /// The cases of the collective, with `seeds` seeds for each way in which their runs differ.
    fn shapes(&self) -> Vec<CaseShape> {
        let in_place = self.collective.has_in_place();
        let special = self.dtype.is_float();
        let mut all = SHAPES.to_vec();
        all.retain(|shape| match shape.family {
            "in-place" => in_place,
            "special" => special,
            "roots" => self.collective.is_rooted(),
            _ => true,
        });
        for shape in &mut all {
            shape.in_place &= in_place;
            shape.special &= special;
            shape.last_root &= self.collective.is_rooted();
        }
        all
    }

    /// Why the candidate is not for a case.
    fn disclaims(&self, shape: &CaseShape) -> Option<String> {
        let Claims { ranks, multiple, align, in_place } = &self.claims;
        if !(ranks.is_empty() || ranks.contains(&shape.ranks)) {
            return Some(format!("it is not for {} ranks", shape.ranks));
        }
        if let Some(count) = shape.elements.iter().find(|&&count| count % multiple != 0) {
            return Some(format!("{count} elements are no multiple of {multiple}"));
        }
        if shape.odd && *align > self.dtype.size() as u64 {
            return Some(format!("it is for buffers aligned to {align} bytes"));
        }
        (shape.in_place && !in_place).then(|| "it is not for one buffer in place".to_owned())
    }

    /// The harness of a case.
    fn case(&self, shape: &CaseShape, seeds: u64) -> Harness {
        let &CaseShape { ranks, elements, calls, .. } = shape;
        let mut harness = self.harness.clone();
        let sizes = elements.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
        harness.case = Some(format!("{}-{ranks}x{sizes}", shape.family));
        harness.verdict.clear();
        let root = if shape.last_root { ranks - 1 } else { 0 };
        let (collective, size) = (self.collective, self.dtype.size() as u64);
        let align = if shape.odd { size } else { ALIGN };
        let expression = |text: &str| Expression::parse(text).expect("names and numbers");
        // In units: the lengths of input and output at each rank.
        let units = |rank: u32| {
            let rank = RankId(rank);
            [
                collective.input_units(rank, ranks, RankId(root)),
                collective.output_units(rank, ranks, RankId(root)),
            ]
        };
        if shape.in_place {
            // Sizes do not change in place, so that tables of addresses stay right.
            let unit = elements[0] as u64 * size;
            for place in 0..2 {
                let part = |rank: u32| {
                    let starts = match collective.alias(RankId(rank), RankId(root)) {
                        Alias::Apart => (0, 0),
                        alias => alias.starts(),
                    };
                    let start = [starts.0, starts.1][place];
                    (u64::from(start) * unit, u64::from(units(rank)[place]) * unit)
                };
                let parts = (0..ranks).map(part).collect();
                harness.memory[place].part = Some((WHOLE.to_owned(), parts));
            }
            let len = expression(&format!("{}*elements", collective.max_units(ranks)));
            harness.memory.push(Buffer::new(WHOLE, self.dtype, len));
        } else {
            for place in 0..2 {
                let terms = (0..ranks).map(|rank| format!("{}*(rank=={rank})", units(rank)[place]));
                let terms = terms.collect::<Vec<_>>().join("+");
                harness.memory[place].len = expression(&format!("elements*({terms})"));
            }
        }
        let reached = harness.calls.iter().any(|step| match &step.work {
            StepWork::Kernel(call) => call.args.iter().any(reaches),
            StepWork::Copy { to, .. } | StepWork::Set { to, .. } => to.rank.is_some(),
            StepWork::Write(_) => false,
        });
        let tables = harness.memory.iter().filter_map(|buffer| buffer.pointers.as_ref());
        let reached =
            reached || tables.flat_map(|table| &table.of).any(|(name, _)| name == "output");
        let (input, output) = if shape.in_place { (WHOLE, WHOLE) } else { ("input", "output") };
        for buffer in &mut harness.memory {
            if ["input", "output", WHOLE].contains(&buffer.name.as_str()) {
                buffer.align = align;
                buffer.peers = buffer.name != "output" || shape.in_place || reached;
            }
            if buffer.name == input {
                buffer.fill = Fill::Random;
            }
        }
        let written = StepWork::Write(input.to_owned());
        harness.calls.insert(0, Step::new("new inputs", written));
        harness.expect = vec![Expect {
            buffer: output.to_owned(),
            values: ExpectedValues::Collective {
                collective,
                op: self.op,
                input: input.to_owned(),
                root: i64::from(root).into(),
                count: Some(expression("elements")),
                order: Order::Any,
                wide: true,
            },
            ulp: None,
            same_bits: false,
            ranks: Vec::new(),
        }];
        let run = &mut harness.run;
        (run.calls, run.graph, run.ranks) = (calls, shape.graph, vec![ranks]);
        (run.elements, run.root, run.limits) = (vec![elements.to_vec()], root, LIMITS);
        if shape.late {
            run.late = vec![0.into(), i64::from(ranks - 1).into()];
        }
        // One run of each way, and more of each.
        run.seeds = seeds * (1 + run.late.len() as u64);
        if shape.special {
            let zeros = [-0.0, 1e-40, -1e-40];
            let all = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
            let may_be_nan = !matches!(self.op, ReduceOp::Min | ReduceOp::Max);
            let all = all.into_iter().skip(usize::from(!may_be_nan)).chain(zeros);
            run.special = all.map(Special::Number).collect();
        }
        harness
    }

    /// Runs the candidate in the cases of which `chosen` takes the family and the name. `compile` gives the case of a
    /// harness with its modules. Findings behind the first one are not explained.
    ///
    /// # Errors
    /// The error of `compile`.
    pub fn judge<E>(
        &self,
        seeds: u64,
        chosen: impl Fn(&str, &str) -> bool,
        compile: impl Fn(&Harness) -> Result<Vec<Case>, E>,
        options: &CheckOptions,
    ) -> Result<Judgement, E> {
        let all = self.shapes();
        let mut all: Vec<_> = all.iter().map(|shape| (shape, self.case(shape, seeds))).collect();
        all.retain(|(shape, harness)| {
            chosen(shape.family, harness.case.as_deref().unwrap_or_default())
        });
        let total = all.len();
        let mut spent = Duration::ZERO;
        let mut compiled = BTreeMap::<u32, Case>::new();
        let mut judged = Vec::new();
        let (mut explain, mut ends) = (true, true);
        for (at, (shape, mut harness)) in all.into_iter().enumerate() {
            let left = options.budget.saturating_sub(spent);
            let mut cases = Vec::new();
            let outcome = if let Some(why) = self.disclaims(shape) {
                Outcome::Unclaimed(why)
            } else if !ends || left == Duration::ZERO || (options.stop)() {
                Outcome::Unrun
            } else {
                let known = compiled.get(&shape.ranks).cloned();
                cases = match known {
                    Some(case) => vec![Case { elements: shape.elements.to_vec(), ..case }],
                    None => compile(&harness)?,
                };
                compiled.extend(cases.first().map(|case| (shape.ranks, case.clone())));
                // The time counts from here: a compiler is slow where the caller's machine is.
                let begun = Instant::now();
                harness.run.limits.end = begun.checked_add(left);
                let budget = left / (total - at) as u32;
                let progress = |text: &str| {
                    let name = harness.case.as_deref().unwrap_or_default();
                    (options.progress)(&format!("{name}, {} of {total}: {text}", at + 1));
                };
                let of_case =
                    CheckOptions { seeds: None, budget, explain, progress: &progress, ..*options };
                let checked = harness.check(&cases, &of_case);
                spent += begun.elapsed();
                match checked {
                    Ok(verdict) if verdict.stopped && verdict.finding.is_none() => Outcome::Unrun,
                    // A run that was cut off tells nothing, except of the first case, which had all of the time.
                    Ok(verdict)
                        if at > 0 && verdict.state == State::Limit && spent >= options.budget =>
                    {
                        Outcome::Unrun
                    }
                    Ok(verdict) => Outcome::Checked(Box::new(verdict)),
                    Err(why) => Outcome::Refused(why),
                }
            };
            // A kernel that does not end at all takes the time of one case, and not of each.
            ends &= at > 0 || outcome.word() != "limit";
            explain &= outcome.passes() || matches!(outcome, Outcome::Unclaimed(_));
            judged.push(JudgedCase { family: shape.family, harness, cases, outcome });
        }
        Ok(Judgement { cases: judged, seconds: spent.as_secs_f64() })
    }
}

/// Whether an argument reaches the outputs of peers.
fn reaches(argument: &Argument) -> bool {
    match argument {
        Argument::Pointers(name, ..) | Argument::Multicast(name) => name == "output",
        Argument::Pointer(place) => place.buffer == "output" && place.rank.is_some(),
        Argument::Struct(parts, _) => parts.iter().any(reaches),
        _ => false,
    }
}
