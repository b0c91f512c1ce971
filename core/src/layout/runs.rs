//! The algorithm that the only statement of another algorithm runs, with its arguments. An executor names an
//! algorithm in this way, which is then laid out by itself.

use std::cell::RefCell;

use super::assembly::walk_ranks;
use super::{Configured, Limits, walk};
use crate::diagnostics::Finding;
use crate::program::ir::StmtKind;

impl Configured {
    /// Returns the algorithm that this algorithm's only statement runs; its arguments are evaluated for `nranks`
    /// ranks, by the first rank.
    pub(crate) fn runs(&self, nranks: u32) -> Result<Self, Vec<Finding>> {
        let (program, args) = (self.program(), RefCell::new(None));
        walk_ranks(self, nranks, Limits::FULL, None, |b| {
            if args.borrow().is_none() {
                args.replace(walk::only_call(program, self.given(), b)?);
            }
            Ok(())
        })?;
        let called = program.body.iter().find_map(|stmt| match &stmt.kind {
            StmtKind::Call(call) => Some(call.program.clone()),
            _ => None,
        });
        let run = called.zip(args.into_inner());
        let (called, args) = run.expect("its only statement runs an algorithm");
        Ok(Self::called(called, args))
    }
}
