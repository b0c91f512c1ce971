//! The source of an algorithm whose statements are written: its file, and notes from its schedule.

use std::collections::BTreeSet;

use roundelay_core::check::hir::{self, Algorithm, ExprKind, Stmt, StmtKind, Ty, VarId};
use roundelay_core::ids::SpanId;
use roundelay_core::source::Location;

/// An algorithm whose statements are written, with its source.
#[derive(Clone, Copy)]
pub(super) struct KernelSource<'a> {
    pub(super) algorithm: &'a Algorithm,
    /// The algorithm's file, and the places of its statements there.
    pub(super) file: &'a str,
    pub(super) locations: &'a [Location],
    /// `None` for an algorithm that another algorithm calls: there the caller's statement carries the notes.
    pub(super) notes: Option<&'a Notes>,
}

/// Notes on statements, from the schedule.
#[derive(Default)]
pub(super) struct Notes {
    /// Signals that are left out, since other signals imply them at every rank and every time.
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

    /// Whether statements do nothing in the kernel, because all their signals are left out.
    pub(super) fn idle(&self, body: &[Stmt]) -> bool {
        body.iter().all(|stmt| match &stmt.kind {
            StmtKind::Let(..) | StmtKind::Require(..) | StmtKind::Demand(_) => true,
            StmtKind::Signal(..) => self.dropped(stmt.at),
            StmtKind::For(.., body) => self.idle(body),
            StmtKind::If(arms, otherwise) => {
                arms.iter().all(|(_, body)| self.idle(body))
                    && otherwise.as_ref().is_none_or(|body| self.idle(body))
            }
            _ => false,
        })
    }

    /// Whether all CTAs of a rank must walk the whole body of a `parallel`: it forks streams, which are numbered at run
    /// time, or it writes slots whose lengths other CTAs need.
    pub(super) fn all_walk(&self, body: &[Stmt]) -> bool {
        forks(self.algorithm, body) || self.shares_slots(body)
    }

    /// Whether slots whose length is that of the data written to them are used both in `body` and elsewhere.
    fn shares_slots(&self, body: &[Stmt]) -> bool {
        let mut slots = Vec::new();
        hir::walk(&self.algorithm.body, &mut |stmt| match &stmt.kind {
            StmtKind::Scratch(var, _, like, _) if like.ty == Ty::Pieces => slots.push(*var),
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
