//! The depth of nested statements where steps and called algorithms are laid out in the place of their calls.

use std::collections::HashMap;

use super::{Algorithm, Stmt, StmtKind, VarId};
use crate::ids::SpanId;

/// The depth that a walk can reach on the stack of any thread.
pub(crate) const MOST_DEPTH: usize = 160;

impl Algorithm {
    /// Returns the depth of the deepest statement, and the statement of the algorithm's own body that holds it.
    pub(crate) fn deepest(&self) -> (usize, SpanId) {
        let mut steps = HashMap::new();
        let depths = self.body.iter().map(|stmt| (depth(stmt, &mut steps), stmt.at));
        depths.max().unwrap_or_default()
    }
}

/// Returns the number of nested statements, including this one. `steps` are the depths of the steps' bodies up to now.
fn depth(stmt: &Stmt, steps: &mut HashMap<VarId, usize>) -> usize {
    let mut inside = |body: &[Stmt]| body.iter().map(|stmt| depth(stmt, steps)).max().unwrap_or(0);
    1 + match &stmt.kind {
        StmtKind::For(_, _, body)
        | StmtKind::Parallel(_, _, _, body)
        | StmtKind::Within(_, body) => inside(body),
        StmtKind::If(arms, otherwise) => {
            let bodies = arms.iter().map(|(_, body)| body).chain(otherwise);
            bodies.map(|body| inside(body)).max().unwrap_or(0)
        }
        StmtKind::Step(step) => {
            let body = inside(&step.body);
            steps.insert(step.name, body);
            0
        }
        StmtKind::Call(step, _) => steps.get(step).copied().unwrap_or(0),
        StmtKind::Run(run) => run.callee.statements,
        _ => 0,
    }
}
