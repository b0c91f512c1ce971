//! The verdict of a check, and its form in JSON.

use roundelay_core::dtype::named_enum;
use roundelay_ptx::machine::Counters;
use serde_json::{Value, json};

use crate::assumption::{Assumption, Assumptions, names};
use crate::case::Case;
use crate::coverage::Coverage;
use crate::finding::{Finding, ThreadSite};
use crate::harness::Harness;
use crate::sequence::Variation;

named_enum! {
    /// The state of a harness after its check.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum State {
        /// No finding in the runs that were made.
        Clean = "clean",
        /// No finding with some of the declared assumptions.
        Relies = "relies",
        /// A finding that no declared assumption cures.
        Error = "error",
        /// An instruction that the machine does not have.
        Unsupported = "unsupported",
        /// A run with more instructions than the limit.
        Limit = "limit",
    }
}

/// The things that no check looks at.
pub const NOT_COVERED: [&str; 5] = [
    "the machine code below PTX",
    "caches",
    "timing and speed",
    "sizes and seeds that were not run",
    "residency of blocks",
];

/// The runs of a case.
#[derive(Clone, Debug)]
pub struct CaseRuns {
    /// The ranks.
    pub ranks: u32,
    /// The elements of its calls, in turn.
    pub elements: Vec<i64>,
    /// The seeds that were run.
    pub seeds: u64,
    /// The counts of the kernels of the harness's modules, over all runs.
    pub counters: Counters,
}

/// The verdict of a check.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The state.
    pub state: State,
    /// The finding: with an error the error, with a verdict `relies` what PTX alone allows.
    pub finding: Option<Box<Finding>>,
    /// The smallest set of declared assumptions that cures all.
    pub assumptions: Assumptions,
    /// The declared assumptions.
    pub declared: Assumptions,
    /// The runs of each case, in the pass that decided.
    pub cases: Vec<CaseRuns>,
    /// Whether all seeds were run; else the time was up.
    pub whole: bool,
    /// Whether the caller ended the work.
    pub stopped: bool,
    /// Seconds that it took.
    pub seconds: f64,
    /// The verdicts of which the harness says that one is right.
    pub stated: Vec<String>,
    /// The name of the case, where the harness has one.
    pub case: Option<String>,
    pub(crate) coverage: Coverage,
    modules: Vec<Value>,
}

impl Verdict {
    pub(crate) fn new(harness: &Harness, cases: &[Case], runs: &[CaseRuns], whole: bool) -> Self {
        let mut modules = Vec::new();
        for loaded in cases.first().map_or(&[][..], |case| &case.loaded) {
            let files: Vec<_> = loaded.sources.iter().map(|(file, _)| file.as_str()).collect();
            let (major, minor) = loaded.module.version;
            modules.push(json!({
                "name": loaded.name, "files": files, "sha256": loaded.hash, "arch": loaded.module.target,
                "isa": format!("{major}.{minor}"),
            }));
        }
        Self {
            state: State::Clean,
            finding: None,
            assumptions: Assumptions::new(),
            declared: harness.assume.keys().cloned().collect(),
            cases: runs.to_vec(),
            whole,
            stopped: false,
            seconds: 0.0,
            stated: harness.verdict.clone(),
            case: harness.case.clone(),
            coverage: Coverage::default(),
            modules,
        }
    }

    pub(crate) fn take_runs(&mut self, runs: &[CaseRuns], whole: bool) {
        self.cases = runs.to_vec();
        self.whole = whole;
    }

    /// The verdict in one word: the kind of an error, or `relies(NAME, NAME)`.
    pub fn word(&self) -> String {
        match (self.state, &self.finding) {
            (State::Error, Some(found)) => found.kind.name().to_owned(),
            (State::Relies, _) => format!("relies({})", names(&self.assumptions)),
            (state, _) => state.name().to_owned(),
        }
    }

    /// Whether the harness states a verdict, and whether this is one of those that it states.
    pub fn is_as_stated(&self) -> Option<bool> {
        (!self.stated.is_empty()).then(|| self.stated.contains(&self.word()))
    }

    /// Whether the verdict is one that the harness states, or, where it states none, no error and not left open.
    pub fn is_right(&self) -> bool {
        self.is_as_stated().unwrap_or(matches!(self.state, State::Clean | State::Relies))
    }

    /// Seeds of all cases.
    pub fn seeds(&self) -> u64 {
        self.cases.iter().map(|case| case.seeds).sum()
    }

    /// The verdict for a program. `tool` is the version that made it.
    pub fn json(&self, file: &str, tool: &str) -> Value {
        let names = |set: &Assumptions| set.iter().map(ToString::to_string).collect::<Vec<_>>();
        let unused: Assumptions = match self.state {
            State::Clean | State::Relies => {
                self.declared.difference(&self.assumptions).cloned().collect()
            }
            _ => Assumptions::new(),
        };
        let case = |runs: &CaseRuns| {
            json!({ "ranks": runs.ranks, "elements": runs.elements, "seeds": runs.seeds,
                    "instructions": runs.counters.instructions })
        };
        let granted = Assumption::all().filter(|one| !one.is_optional()).map(|one| one.to_string());
        json!({
            "file": file,
            "case": self.case,
            "verdict": self.word(),
            "state": self.state.name(),
            "expected": self.stated,
            "as_expected": self.is_as_stated(),
            "seconds": self.seconds,
            "whole": self.whole,
            "tool": tool,
            "model": { "isa": "PTX 9.1", "granted": granted.collect::<Vec<_>>() },
            "modules": self.modules,
            "cases": self.cases.iter().map(case).collect::<Vec<_>>(),
            "assumptions": { "declared": names(&self.declared), "used": names(&self.assumptions),
                             "unused": names(&unused) },
            "findings": self.finding.iter().map(|found| self.finding(found)).collect::<Vec<_>>(),
            "covered": self.coverage.json(),
            "not_covered": NOT_COVERED,
        })
    }

    fn finding(&self, found: &Finding) -> Value {
        let access = |at: &ThreadSite| {
            let lines = |places: &[(String, u32)]| {
                places
                    .iter()
                    .map(|(file, line)| json!({ "file": file, "line": line }))
                    .collect::<Vec<_>>()
            };
            json!({
                "stores": at.stores, "file": at.source.as_ref().map(|(file, _)| file),
                "line": at.source.as_ref().map(|(_, line)| line), "inlined_from": lines(&at.inlined),
                "ptx_line": at.ptx_line, "function": at.function, "rank": at.rank, "call": at.call,
                "launch": at.step, "block": at.block, "warp": at.warp, "lanes": at.lanes,
            })
        };
        let waiting =
            found.waiting.iter().map(|(at, what)| json!({ "at": access(at), "for": what }));
        let memory = found.memory.as_ref().map(|memory| {
            json!({ "buffer": memory.name, "rank": memory.rank, "offset": memory.offset, "element": memory.element })
        });
        let (late, absent) = match found.variation {
            Variation::Plain => (None, None),
            Variation::Late(rank) => (Some(rank), None),
            Variation::Absent(rank) => (None, Some(rank)),
        };
        json!({
            "kind": found.kind.name(),
            "severity": if self.state == State::Relies { "relies" } else { "error" },
            "message": found.title,
            "at": found.at.as_ref().map(access),
            "other": found.other.as_ref().map(access),
            "waiting": waiting.collect::<Vec<_>>(),
            "memory": memory,
            "ranks": found.ranks, "elements": found.elements, "seed": found.seed, "late": late, "absent": absent,
            "story": found.story.map(|(before, left)| json!({ "choices": before, "needed": left })),
            "behind": found.behind,
            "cured_by": found.cured_by.as_ref().map(names),
        })
    }
}
