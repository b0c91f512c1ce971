//! Edits of a program.

use super::ir::{Call, Demand, Expr, Pass, Program, Stmt, StmtKind};

impl Program {
    /// Calls `edit` with every statement, each before the statements inside it.
    pub(crate) fn edit(&mut self, edit: &mut impl FnMut(&mut Stmt)) {
        self.edit_blocks(&mut |block| block.iter_mut().for_each(&mut *edit));
    }

    /// Calls `edit` with every block of statements, each before the blocks inside it.
    pub(crate) fn edit_blocks(&mut self, edit: &mut impl FnMut(&mut Vec<Stmt>)) {
        let steps = self.steps.iter_mut().map(|step| &mut step.body);
        for body in steps.chain([&mut self.body]) {
            edit_block(body, edit);
        }
    }

    /// Calls `edit` with every expression, each after the expressions inside it.
    pub(crate) fn edit_exprs(&mut self, edit: &mut impl FnMut(&mut Expr)) {
        for default in self.params.iter_mut().filter_map(|param| param.default.as_mut()) {
            default.edit(edit);
        }
        self.edit(&mut |stmt| stmt.exprs_mut().into_iter().for_each(|expr| expr.edit(edit)));
    }
}

fn edit_block(body: &mut Vec<Stmt>, edit: &mut impl FnMut(&mut Vec<Stmt>)) {
    edit(body);
    for stmt in body {
        match &mut stmt.kind {
            StmtKind::For(_, _, _, body)
            | StmtKind::Each(_, _, body)
            | StmtKind::Parallel(_, _, _, body)
            | StmtKind::Within(_, body) => edit_block(body, edit),
            StmtKind::If(arms, otherwise) => {
                for body in arms.iter_mut().map(|(_, body)| body).chain([otherwise]) {
                    edit_block(body, edit);
                }
            }
            _ => {}
        }
    }
}

impl Stmt {
    /// Its expressions, without those of statements inside it.
    pub(crate) fn exprs_mut(&mut self) -> Vec<&mut Expr> {
        match &mut self.kind {
            StmtKind::Let(_, one)
            | StmtKind::Require(one, _)
            | StmtKind::Post(_, one)
            | StmtKind::Wait(_, one)
            | StmtKind::Within(one, _)
            | StmtKind::Each(_, one, _)
            | StmtKind::Demand(
                Demand::Roundings(one)
                | Demand::Links(one)
                | Demand::AtMost(_, one)
                | Demand::Multiple(one, _),
            ) => vec![one],
            StmtKind::For(_, lo, hi, _)
            | StmtKind::Parallel(_, lo, hi, _)
            | StmtKind::Switch(lo, hi) => vec![lo, hi],
            StmtKind::Limit(bounds) => bounds.iter_mut().flat_map(|(lo, hi)| [lo, hi]).collect(),
            StmtKind::If(arms, _) => arms.iter_mut().map(|(condition, _)| condition).collect(),
            StmtKind::Scratch(_, count, like, _) => count.iter_mut().chain([like]).collect(),
            StmtKind::Step(_, args) => args.iter_mut().collect(),
            StmtKind::Copy(src, dsts) => std::iter::once(src).chain(dsts).collect(),
            StmtKind::Reduce(srcs, dst) => srcs.iter_mut().chain([dst]).collect(),
            StmtKind::Call(Call { args, input, output, .. }) => {
                args.iter_mut().map(|(_, arg)| arg).chain([input, output]).collect()
            }
            StmtKind::Fifo(like, credits, slices) => {
                std::iter::once(like).chain(credits).chain(slices).collect()
            }
            StmtKind::Pass(Pass { from, own, dst, to }) => {
                from.iter_mut().chain(own).chain(dst).chain(to).collect()
            }
            StmtKind::Demand(Demand::Order(_) | Demand::Uneven) => Vec::new(),
        }
    }
}

impl Expr {
    /// Calls `edit` with the expressions inside this one, then with this one.
    pub(crate) fn edit(&mut self, edit: &mut impl FnMut(&mut Self)) {
        self.args.iter_mut().for_each(|arg| arg.edit(edit));
        edit(self);
    }
}
