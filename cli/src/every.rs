//! The proof for every number of ranks, as a line and as JSON.

use roundelay_core::program::Program;
use roundelay_core::syntax::Source;
use roundelay_core::verify::parametric;
use serde::Serialize;

/// The proof for all rank counts at once, or the obstacle to it.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Every {
    /// Proved for every nranks from this on.
    From(u32),
    /// Proved for every nranks from this on, and there for every vector of counts.
    #[serde(rename = "from")]
    FromWithCounts(u32),
    /// Proved for every nranks from this on that is a power of two.
    FromPowersOfTwo(u32),
    /// Proved for every nranks from this on that is a power of two, and there for every vector of counts.
    #[serde(rename = "from_powers_of_two")]
    FromPowersOfTwoWithCounts(u32),
    /// The construct that the proof for all rank counts does not support.
    Outside { line: u32, column: u32, construct: String, what: String },
}

impl Every {
    pub(crate) fn new(program: &Program, source: &Source) -> Self {
        match parametric::prove(program) {
            Ok(parametric::Every { from, blocks, powers_of_two }) => {
                match (powers_of_two, blocks) {
                    (false, false) => Self::From(from),
                    (false, true) => Self::FromWithCounts(from),
                    (true, false) => Self::FromPowersOfTwo(from),
                    (true, true) => Self::FromPowersOfTwoWithCounts(from),
                }
            }
            Err(outside) => {
                let place = source.location(outside.at);
                let (line, column) = (place.line, place.column);
                let from = column as usize - 1;
                let text = source.line(line).unwrap_or_default();
                let to =
                    if place.end_line == line { place.end_column as usize - 1 } else { text.len() };
                let construct = text.chars().take(to).skip(from).collect();
                Self::Outside { line, column, construct, what: outside.what }
            }
        }
    }

    pub(crate) fn is_proved(&self) -> bool {
        self.counts().is_some()
    }

    /// Returns the rank counts that are proved at once, in a few words.
    pub(crate) fn counts(&self) -> Option<&'static str> {
        match self {
            Self::From(_) | Self::FromWithCounts(_) => Some("every nranks"),
            Self::FromPowersOfTwo(_) | Self::FromPowersOfTwoWithCounts(_) => {
                Some("every power of two")
            }
            Self::Outside { .. } => None,
        }
    }

    /// Whether the proof covers these rank counts. It holds for rings in any order; one rank has only one order.
    pub(crate) fn holds_in_any_order(&self, counts: &[u32]) -> bool {
        let (from, powers_of_two) = match self {
            Self::From(from) | Self::FromWithCounts(from) => (*from, false),
            Self::FromPowersOfTwo(from) | Self::FromPowersOfTwoWithCounts(from) => (*from, true),
            Self::Outside { .. } => return false,
        };
        let holds = |n: &u32| *n == 1 || *n >= from && (!powers_of_two || n.is_power_of_two());
        counts.iter().all(holds)
    }

    /// Returns a line for a terminal.
    pub(crate) fn line(&self) -> String {
        match self {
            Self::From(from) => format!("proved for every nranks >= {from}"),
            Self::FromWithCounts(from) => {
                format!("proved for every nranks >= {from}, and there for every vector of counts")
            }
            Self::FromPowersOfTwo(from) => {
                format!("proved for every nranks >= {from} that is a power of two")
            }
            Self::FromPowersOfTwoWithCounts(from) => format!(
                "proved for every nranks >= {from} that is a power of two, and there for every \
                 vector of counts"
            ),
            Self::Outside { line, construct, what, .. } => {
                format!("not proved for every nranks: line {line}, `{construct}`: {what}")
            }
        }
    }
}
