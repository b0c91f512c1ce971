//! The proof for every number of ranks, in words.

use crate::program::Program;
use crate::syntax::Source;
use crate::verify::parametric;

/// The proof for all rank counts at once, or the obstacle to it.
#[derive(Clone, Debug)]
pub enum Every {
    /// Proved for every nranks from this on.
    From(u32),
    /// Proved for every nranks from this on, and there for every vector of counts.
    FromWithCounts(u32),
    /// Proved for every nranks from this on that is a power of two.
    FromPowersOfTwo(u32),
    /// Proved for every nranks from this on that is a power of two, and there for every vector of counts.
    FromPowersOfTwoWithCounts(u32),
    /// The construct that the proof for all rank counts does not support.
    Outside {
        /// The line of the construct, from 1.
        line: u32,
        /// Its column, from 1.
        column: u32,
        /// Its text, up to the end of the line.
        construct: String,
        /// The reason.
        what: String,
    },
}

impl Every {
    /// Tries to prove a program for all rank counts; `source` has the text of the obstacle.
    pub fn new(program: &Program, source: &Source) -> Self {
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

    /// Whether there is a proof.
    pub fn is_proved(&self) -> bool {
        self.counts().is_some()
    }

    /// Returns the rank counts that are proved at once, in a few words.
    pub fn counts(&self) -> Option<&'static str> {
        match self {
            Self::From(_) | Self::FromWithCounts(_) => Some("every nranks"),
            Self::FromPowersOfTwo(_) | Self::FromPowersOfTwoWithCounts(_) => {
                Some("every power of two")
            }
            Self::Outside { .. } => None,
        }
    }

    /// Whether the proof covers these rank counts. It holds for rings in any order; one rank has only one order.
    pub fn holds_in_any_order(&self, counts: &[u32]) -> bool {
        let (from, powers_of_two) = match self {
            Self::From(from) | Self::FromWithCounts(from) => (*from, false),
            Self::FromPowersOfTwo(from) | Self::FromPowersOfTwoWithCounts(from) => (*from, true),
            Self::Outside { .. } => return false,
        };
        let holds = |n: &u32| *n == 1 || *n >= from && (!powers_of_two || n.is_power_of_two());
        counts.iter().all(holds)
    }

    /// Returns a line for a terminal.
    pub fn line(&self) -> String {
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
