//! The verdict on a plan: its schedule is proved, with one stretch of each loop and with several.

use super::program::Program;
use crate::exchange::findings::{Checked, FindingPlacer, orders};
use roundelay_core::diagnostics::Diagnostic;
use roundelay_core::stages::stage;
use roundelay_core::syntax::Source;

/// The verdict on a plan.
#[derive(Clone, Debug)]
pub struct MscclppVerdict {
    /// The findings in the plan's mode.
    pub checked: Checked,
    /// Warnings of harmless oddities.
    pub warnings: Vec<Diagnostic>,
    /// The largest number of orders in which ranks reduce one piece; `None` if no rank reduces, or if a result is
    /// wrong.
    pub orders: Option<usize>,
    /// The numbers of stretches of each loop that were checked; empty without loops.
    pub stretches: Vec<u32>,
}

impl MscclppVerdict {
    /// Whether there are no errors.
    pub fn is_right(&self) -> bool {
        self.checked.errors.is_empty()
    }
}

/// The numbers of stretches of a loop that are checked: a single stretch, and a first, a middle and a last one.
const STRETCHES: [u32; 2] = [1, 3];

impl Program {
    /// Proves the plan. `source` is the text that the plan was read from.
    pub fn verdict(&self, source: &Source) -> MscclppVerdict {
        let step = |at| self.op(at).map(|op| op.to_string());
        let promised = self.header.collective.is_some();
        let teller = FindingPlacer { source, step: &step, whole: self.whole, promised };
        let mut warnings = Vec::new();
        let mut check = |stretches| {
            let laid = stage("schedule", || self.lay_out(source, stretches));
            let schedule = laid.map(|laid| {
                warnings = laid.warnings;
                laid.schedule
            });
            teller.prove(self.header.mode(), schedule)
        };
        let [one, several] = STRETCHES;
        let mut checked = check(one);
        if self.loops() && checked.errors.is_empty() {
            checked = check(several);
        }
        let orders = orders(std::slice::from_ref(&checked));
        let stretches = if self.loops() { STRETCHES.to_vec() } else { Vec::new() };
        MscclppVerdict { checked, warnings, orders, stretches }
    }
}
