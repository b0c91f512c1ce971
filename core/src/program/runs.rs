//! The algorithm that another one's only statement runs, with the values that it is given: how an executor names
//! an algorithm, which is then laid out as itself.

use std::cell::RefCell;

use super::ir::Program;
use super::{Configured, walk};
use crate::check::hir::StmtKind;
use crate::collective::Collective;
use crate::diagnostics::Finding;
use crate::schedule::builder::{Builder, Stop};
use crate::schedule::params::ParamValue;
use crate::schedule::{Algorithm, Limits};
use crate::source::Location;

/// Asks the first rank which values the only call of a program gives.
struct Question<'a> {
    whose: &'a Program,
    given: Vec<(usize, ParamValue)>,
    answer: RefCell<Option<Vec<(usize, ParamValue)>>>,
}

impl Configured {
    /// What the only statement of this algorithm runs; its arguments are evaluated for `nranks` ranks.
    pub(crate) fn runs(&self, nranks: u32) -> Result<Self, Vec<Finding>> {
        let answer = RefCell::default();
        let question = Question { whose: self.program(), given: self.given(), answer };
        question.schedule_within(nranks, Limits::FULL)?;
        let given = question.answer.into_inner().expect("its only statement runs an algorithm");
        let run = self.checked().body.iter().find_map(|stmt| match &stmt.kind {
            StmtKind::Run(run) => Some(run),
            _ => None,
        });
        Ok(Self::called(&run.expect("its only statement runs an algorithm").callee, given))
    }
}

impl Algorithm for Question<'_> {
    fn name(&self) -> &str {
        &self.whose.name
    }

    fn collective(&self) -> Collective {
        self.whose.collective
    }

    fn file(&self) -> &str {
        &self.whose.file
    }

    fn source(&self) -> &'static str {
        ""
    }

    fn locations(&self) -> &[Location] {
        &self.whose.locations
    }

    fn build(&self, builder: &mut Builder<'_>) -> Result<(), Stop> {
        if self.answer.borrow().is_none() {
            let given = walk::only_call(self.whose, &self.given, builder)?;
            *self.answer.borrow_mut() = given;
        }
        Ok(())
    }
}
