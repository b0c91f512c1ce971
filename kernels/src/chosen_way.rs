//! The ways of data that a world of processes has chosen, for reports.

use std::fmt;

/// A way that a world has chosen for the calls of a shape.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ChosenWay {
    /// The algorithm, and the first call of the shape: the shape also has the calls whose bytes reach the same power of
    /// two.
    pub call: String,
    /// The way in words, such as `tiles of 1 MiB, inputs staged in the caches`.
    pub way: String,
    /// Seconds of a call on the usual way, and on the chosen one; `None` where they were not both measured.
    pub seconds: Option<[f64; 2]>,
}

impl fmt::Display for ChosenWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.call, self.way)?;
        match self.seconds.map(|both| both.map(|seconds| seconds * 1e6)) {
            Some([usual, chosen]) => write!(f, " ({chosen:.1} us; the usual way {usual:.1} us)"),
            None => Ok(()),
        }
    }
}
