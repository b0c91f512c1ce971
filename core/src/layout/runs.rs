//! The algorithm that the only statement of another algorithm runs, with its arguments. An executor names an
//! algorithm in this way, which is then laid out by itself.

use std::cell::RefCell;

use super::Configured;
use super::walk::{self, Walked};
use crate::diagnostics::Finding;
use crate::layout::Algorithm as _;
use crate::layout::builder::Builder;
use crate::program::ir::StmtKind;

impl Configured {
    /// Returns the algorithm that this algorithm's only statement runs; its arguments are evaluated for `nranks`
    /// ranks, by the first rank.
    pub(crate) fn runs(&self, nranks: u32) -> Result<Self, Vec<Finding>> {
        let (program, given, args) = (self.program(), self.given(), RefCell::new(None));
        let by = |b: &mut Builder<'_>| {
            if args.borrow().is_none() {
                args.replace(walk::only_call(program, given, b)?);
            }
            Ok(())
        };
        Walked { program, placed: None, by }.schedule(nranks)?;
        let called = program.body.iter().find_map(|stmt| match &stmt.kind {
            StmtKind::Call(call) => Some(call.program.clone()),
            _ => None,
        });
        let run = called.zip(args.into_inner());
        let (called, args) = run.expect("its only statement runs an algorithm");
        Ok(Self::called(called, args))
    }
}
