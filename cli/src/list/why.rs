//! `roundelay list --why`: the model's table, the algorithm that it chooses, and the times of the other ones.

use roundelay::select::{Counts, Numbers, Refused, Row, select_beside};
use roundelay::{Choice, Collective};
use roundelay_core::layout::Configured;
use roundelay_simulate::cost::Work;
use serde::Serialize;

use super::SHOWN;
use super::filters::ListFlags;
use crate::constants::ConstantsJson;
use crate::report::{Failure, Format};
use crate::streams::{print, print_json};
use crate::topology;

/// nccl-tests' size where none is given.
const BYTES: u64 = 1 << 20;

pub(super) fn main(
    flags: &ListFlags,
    collective: Collective,
    own: &[Configured],
) -> Result<bool, Failure> {
    let given = topology::optional(flags.topology.as_deref(), flags.assume.as_deref())?;
    let topology = given.as_ref().map(|given| &*given.topology);
    let nranks = flags.nranks.or(topology.map(|topology| topology.nranks())).unwrap_or(SHOWN);
    let constants = flags.costs.of(topology, nranks)?;
    let bytes = flags.bytes.unwrap_or(BYTES);
    let choice = select_beside(
        (own, flags.order.unwrap_or_default()),
        &constants.costs,
        collective,
        nranks,
        bytes,
        topology,
    );
    match flags.format {
        Format::Json => print_json(&RankingJson::new(&choice, constants.json(topology))),
        Format::Human => {
            print(&choice.to_string());
            constants.tell();
        }
    }
    Ok(choice.best().is_some())
}

#[derive(Serialize)]
struct RankingJson<'c> {
    collective: &'static str,
    nranks: u32,
    bytes: u64,
    topology: Option<&'c str>,
    best: Option<&'c str>,
    constants: ConstantsJson<'c>,
    ranked: Vec<Ranked<'c>>,
    refused: Vec<Named<'c>>,
}

#[derive(Serialize)]
struct Ranked<'c> {
    algorithm: &'c str,
    /// Whether it is the source's, and not the library's.
    own: bool,
    seconds: f64,
    steps: u32,
    messages: Load,
    pieces: Load,
    /// In shares of S.
    volume: Load,
    reduced: Load,
    copied: Load,
    /// `simulation`, `cores`, or the family of the closed form.
    by: &'static str,
    parts: Parts,
}

/// The work of the busiest rank, and of all ranks.
#[derive(Serialize)]
struct Load {
    busiest: f64,
    total: f64,
}

impl From<Work> for Load {
    fn from(Work { busiest, total }: Work) -> Self {
        Self { busiest, total }
    }
}

/// Seconds.
#[derive(Serialize)]
struct Parts {
    latency: f64,
    pieces: f64,
    bytes: f64,
    reducing: f64,
    copying: f64,
}

#[derive(Serialize)]
struct Named<'c> {
    algorithm: &'c str,
    code: &'static str,
    reason: &'c str,
    help: Option<&'c str>,
}

impl<'c> RankingJson<'c> {
    fn new(choice: &'c Choice, constants: ConstantsJson<'c>) -> Self {
        let ranked = |row: &'c Row| {
            let Counts { steps, messages, pieces, volume, reduced, copied } = row.counts;
            let time = row.time;
            Ranked {
                algorithm: &row.algorithm,
                own: row.own,
                seconds: time.seconds(),
                steps,
                messages: messages.into(),
                pieces: pieces.into(),
                volume: volume.into(),
                reduced: reduced.into(),
                copied: copied.into(),
                by: match row.numbers {
                    Numbers::Simulated => "simulation",
                    Numbers::Cores => "cores",
                    Numbers::Form(form) => form.family,
                },
                parts: Parts {
                    latency: time.steps,
                    pieces: time.pieces,
                    bytes: time.volume,
                    reducing: time.reduced,
                    copying: time.copied,
                },
            }
        };
        let refused = |Refused { algorithm, code, reason, help }: &'c Refused| Named {
            algorithm,
            code: code.as_str(),
            reason,
            help: help.as_deref(),
        };
        Self {
            collective: choice.collective.name(),
            nranks: choice.nranks,
            bytes: choice.bytes,
            topology: choice.topology.as_deref(),
            best: choice.best().map(|row| row.algorithm.as_str()),
            constants,
            ranked: choice.ranked.iter().map(ranked).collect(),
            refused: choice.refused.iter().map(refused).collect(),
        }
    }
}
