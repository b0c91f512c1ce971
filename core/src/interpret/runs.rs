//! The algorithm that another one's only statement runs, with the values that it is given: how an executor names
//! an algorithm, which is then laid out as itself.

use std::cell::RefCell;

use super::{Interpreted, Run};
use crate::check::hir::StmtKind;
use crate::collective::Collective;
use crate::diagnostics::Finding;
use crate::schedule::builder::{Builder, Stop};
use crate::schedule::{Algorithm, Limits};
use crate::source::Location;

/// Asks the first rank what it would run.
struct Asking<'a> {
    whose: &'a Interpreted,
    found: RefCell<Option<Interpreted>>,
}

impl Interpreted {
    /// What the only statement of this algorithm runs; its arguments are evaluated for `nranks` ranks.
    pub(crate) fn runs(&self, nranks: u32) -> Result<Self, Vec<Finding>> {
        let asking = Asking { whose: self, found: RefCell::default() };
        asking.schedule_within(nranks, Limits::FULL)?;
        Ok(asking.found.into_inner().expect("its only statement runs an algorithm"))
    }
}

impl Algorithm for Asking<'_> {
    fn name(&self) -> &str {
        self.whose.name()
    }

    fn collective(&self) -> Collective {
        self.whose.collective()
    }

    fn file(&self) -> &str {
        self.whose.file()
    }

    fn source(&self) -> &str {
        self.whose.source()
    }

    fn locations(&self) -> &[Location] {
        self.whose.locations()
    }

    fn build(&self, builder: &mut Builder<'_>) -> Result<(), Stop> {
        if self.found.borrow().is_some() {
            return Ok(());
        }
        let mut run = Run::new(self.whose, builder)?;
        for param in &self.whose.algorithm.params {
            run.param(builder, param, self.whose)?;
        }
        for stmt in &self.whose.algorithm.body {
            if let StmtKind::Run(called) = &stmt.kind {
                run.at = stmt.at.0;
                *self.found.borrow_mut() = Some(run.called(builder, called)?);
            }
        }
        Ok(())
    }
}
