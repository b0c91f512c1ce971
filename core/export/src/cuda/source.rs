//! An algorithm as its statements are written: where it stands, and what its schedule tells of them.

use std::collections::BTreeSet;

use roundelay_core::check::hir::{self, Algorithm, ExprKind, Stmt, StmtKind, Ty, VarId};
use roundelay_core::ids::SpanId;
use roundelay_core::source::Location;

/// An algorithm whose statements are written, and what is known of them.
#[derive(Clone, Copy)]
pub(super) struct KernelSource<'a> {
    pub(super) algorithm: &'a Algorithm,
    /// The file it stands in, and where its statements stand there.
    pub(super) file: &'a str,
    pub(super) locations: &'a [Location],
    /// `None` for an algorithm that another calls: its statements are the caller's one.
    pub(super) notes: Option<&'a Notes>,
}

/// What the schedule tells of statements.
#[derive(Default)]
pub(super) struct Notes {
    /// Signals that others imply at every rank and every time: left out.
    pub(super) dropped: BTreeSet<SpanId>,
    /// Data statements after which the parts of a stream must meet.
    pub(super) meets: BTreeSet<SpanId>,
}

impl KernelSource<'_> {
    pub(super) fn dropped(&self, at: SpanId) -> bool {
        self.notes.is_some_and(|notes| notes.dropped.contains(&at))
    }

    pub(super) fn meets(&self, at: SpanId) -> bool {
        self.notes.is_none_or(|notes| notes.meets.contains(&at))
    }

    /// Whether all CTAs of a rank must walk what one iteration of a `parallel` does: it forks streams, which are
    /// numbered on the way, or writes slots whose length the others need to know.
    pub(super) fn all_walk(&self, body: &[Stmt]) -> bool {
        forks(self.algorithm, body) || self.shares_slots(body)
    }

    /// Whether slots that take the length of what is written to them are used in `body` and elsewhere too.
    fn shares_slots(&self, body: &[Stmt]) -> bool {
        let mut slots = Vec::new();
        hir::walk(&self.algorithm.body, &mut |stmt| match &stmt.kind {
            StmtKind::Scratch(var, _, like) if like.ty == Ty::Pieces => slots.push(*var),
            _ => {}
        });
        let uses = |body: &[Stmt], slots: VarId| {
            let mut uses = 0;
            hir::walk(body, &mut |stmt| {
                for expr in stmt.exprs() {
                    expr.walk(&mut |expr| uses += u32::from(*expr.kind == ExprKind::Var(slots)));
                }
            });
            uses
        };
        slots.into_iter().any(|slots| {
            let inside = uses(body, slots);
            inside > 0 && inside < uses(&self.algorithm.body, slots)
        })
    }
}

/// Whether statements may fork streams.
fn forks(algorithm: &Algorithm, body: &[Stmt]) -> bool {
    let (mut forks_itself, mut calls_a_step) = (false, false);
    hir::walk(body, &mut |stmt| match &stmt.kind {
        StmtKind::Parallel(..) => forks_itself = true,
        StmtKind::Run(run) => {
            let callee = &run.callee.algorithm;
            forks_itself |= forks(callee, &callee.body);
        }
        StmtKind::Call(..) => calls_a_step = true,
        _ => {}
    });
    let mut a_step_forks = false;
    hir::walk(&algorithm.body, &mut |stmt| {
        if let StmtKind::Step(step) = &stmt.kind {
            hir::walk(&step.body, &mut |stmt| {
                a_step_forks |= matches!(stmt.kind, StmtKind::Parallel(..) | StmtKind::Run(_));
            });
        }
    });
    forks_itself || (calls_a_step && a_step_forks)
}
