//! Whether a plan is right: its schedule is proved like any other, with one stretch of each loop and with several.

use super::program::Program;
use crate::exchange::findings::{Checked, FindingPlacer, orders};
use roundelay_core::diagnostics::Diagnostic;
use roundelay_core::stages::stage;
use roundelay_core::syntax::Source;

/// What is to be said of a plan.
#[derive(Clone, Debug)]
pub struct MscclppVerdict {
    /// In the mode that it is called in.
    pub checked: Checked,
    /// What is odd, and does no harm.
    pub warnings: Vec<Diagnostic>,
    /// The most orders in which ranks reduce one and the same piece; `None` where nothing is reduced, or not rightly.
    pub orders: Option<usize>,
    /// How many stretches of each loop were looked at; none where there is no loop.
    pub stretches: Vec<u32>,
}

impl MscclppVerdict {
    /// Whether nothing is wrong.
    pub fn is_right(&self) -> bool {
        self.checked.errors.is_empty()
    }
}

/// Stretches of a loop that are looked at: where all is one, and where there is a first, a last and one between.
const STRETCHES: [u32; 2] = [1, 3];

impl Program {
    /// Whether the plan is right. `source` is the text that it was read from.
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
