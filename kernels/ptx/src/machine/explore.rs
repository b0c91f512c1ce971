//! All runs of a launch.

use super::launch::{Failure, FinalState, Launch};
use crate::choices::{Choices, Path};

impl Launch<'_> {
    /// Runs with every choice of the order of warps and of the stores that strong loads read, in at most `most` runs, and
    /// calls `visit` with each result. It is for programs of few instructions without loops. Returns whether these
    /// were all runs.
    pub fn explore(
        &self,
        most: usize,
        mut visit: impl FnMut(&Result<FinalState, Failure>),
    ) -> bool {
        let mut path = Path::default();
        for _ in 0..most {
            let (choices, result) = self.run_by(Choices::Path(path));
            visit(&result);
            let Choices::Path(next) = choices else { return true };
            path = next;
            if !path.advance() {
                return true;
            }
        }
        false
    }
}
