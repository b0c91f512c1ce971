//! The proof for every number of ranks, in words.

use crate::program::Program;
use crate::syntax::Source;
use crate::verify::parametric;

/// The proof for all rank counts at once, or the obstacle to it.
#[derive(Clone, Debug)]
pub enum Every {
    /// There is a proof.
    Proved(parametric::Every),
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
        let outside = match parametric::prove(program) {
            Ok(every) => return Self::Proved(every),
            Err(outside) => outside,
        };
        let place = source.location(outside.at);
        let (line, column) = (place.line, place.column);
        let from = column as usize - 1;
        let text = source.line(line).unwrap_or_default();
        let to = if place.end_line == line { place.end_column as usize - 1 } else { text.len() };
        let construct = text.chars().take(to).skip(from).collect();
        Self::Outside { line, column, construct, what: outside.what }
    }

    /// Whether there is a proof.
    pub fn is_proved(&self) -> bool {
        self.counts().is_some()
    }

    /// Returns the rank counts that are proved at once, in a few words.
    pub fn counts(&self) -> Option<&'static str> {
        match self {
            Self::Proved(every) if every.powers_of_two => Some("every power of two"),
            Self::Proved(_) => Some("every nranks"),
            Self::Outside { .. } => None,
        }
    }

    /// Whether the proof covers these rank counts. It holds for rings in any order; one rank has only one order.
    pub fn holds_in_any_order(&self, counts: &[u32]) -> bool {
        let Self::Proved(every) = self else { return false };
        let is_of_class = |n: u32| !every.powers_of_two || n.is_power_of_two();
        counts.iter().all(|n| *n == 1 || *n >= every.from && is_of_class(*n))
    }

    /// Returns a line for a terminal.
    pub fn line(&self) -> String {
        match self {
            Self::Proved(parametric::Every { from, blocks, powers_of_two }) => {
                let class = if *powers_of_two { " that is a power of two" } else { "" };
                let counts = if *blocks { ", and there for every vector of counts" } else { "" };
                format!("proved for every nranks >= {from}{class}{counts}")
            }
            Self::Outside { line, construct, what, .. } => {
                format!("not proved for every nranks: line {line}, `{construct}`: {what}")
            }
        }
    }
}
