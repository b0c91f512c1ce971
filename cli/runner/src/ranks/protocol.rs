//! The questions of the command to its ranks, and their answers: a line of JSON each.

use roundelay_core::diagnostics::Code;
use roundelay_topology::Problem;
use serde::{Deserialize, Serialize};

use super::PlanShape;
use crate::error::RunError;

#[derive(Serialize, Deserialize)]
pub(super) enum Ask {
    /// To join the world of all ranks; with the text that the command read from its standard input, if it did.
    Join { typed: Option<String> },
    /// To make buffers and a plan.
    Plan(PlanShape),
    /// To write the input, and clear the output.
    Prepare { in_place: bool },
    /// To meet the other ranks, and then to run `runs` times; with `rewrite`, to write the input again and meet them
    /// before each run; with `traced`, to record the runs.
    Row { in_place: bool, runs: u32, rewrite: bool, traced: bool },
    /// To send the output, or in place the whole buffer, after the answer.
    Show { in_place: bool },
    /// To add the ways that the world has chosen to the host's file.
    KeepWays,
    /// To send the record of the traced runs after the answer, as lines of a trace.
    Trace,
}

#[derive(Default, Serialize, Deserialize)]
pub(super) struct Answer {
    /// The time of a row.
    pub(super) seconds: f64,
    /// Bytes that follow the line.
    pub(super) bytes: usize,
    /// The ways that the world has chosen, and the host's file.
    pub(super) ways: Vec<String>,
    pub(super) file: Option<String>,
}

pub(super) type Reply = Result<Answer, Told>;

/// A failure as it is sent.
#[derive(Serialize, Deserialize)]
pub(super) struct Told {
    code: String,
    title: String,
    notes: Vec<String>,
    help: Option<String>,
}

impl From<RunError> for Told {
    fn from(failure: RunError) -> Self {
        let problem = match failure {
            RunError::Problem(problem) => *problem,
            // The process that asks has read and proved the same program.
            RunError::Unproved => {
                Problem::new(Code::UnreadableSource, "a rank does not find what the command found")
                    .help("leave the source alone while it runs")
            }
        };
        let Problem { code, title, notes, help } = problem;
        Self { code: code.as_str().to_owned(), title, notes, help }
    }
}

impl Told {
    /// Whether the message of a rank is about another rank.
    pub(super) fn is_of_another(&self) -> bool {
        let told = [Code::Timeout, Code::RankEnded, Code::Abandoned];
        told.iter().any(|code| self.code == code.as_str())
    }
}

impl From<Told> for RunError {
    fn from(Told { code, title, notes, help }: Told) -> Self {
        let code = Code::parse(&code).expect("ranks send codes");
        let mut problem = Problem::new(code, title);
        (problem.notes, problem.help) = (notes, help);
        problem.into()
    }
}
