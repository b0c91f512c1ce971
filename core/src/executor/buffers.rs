//! The sizes of CCL buffers and of loops. A proved executor runs for every element type, so there must be room for an
//! element of the widest.

use super::Executor;
use crate::check;
use crate::diagnostics::{Code, Diagnostic};
use crate::dtype::DType;
use crate::program::Program;
use crate::units::size_text;

impl Executor {
    /// The units of the larger of a rank's two buffers, of which a CCL buffer holds one loop's part.
    pub fn units(&self) -> u64 {
        self.collective.max_units(self.nranks())
    }

    /// The most elements a unit that one loop handles, where each CCL buffer has `ccl_buffer` bytes and an element
    /// `unit_size`. 0 where not even one element of each unit fits.
    pub fn loop_max_count(&self, ccl_buffer: u64, unit_size: u64) -> u64 {
        let fits = ccl_buffer / self.units();
        self.loop_bytes.map_or(fits, |most| most.min(fits)) / unit_size.max(1)
    }
}

/// Returns the message for CCL buffers of `ccl_buffer` bytes that have no room for a loop.
pub fn holds_no_element(ccl_buffer: u64, size: u64) -> String {
    format!(
        "a CCL buffer of {} holds no element of {} of every unit",
        size_text(ccl_buffer),
        size_text(size)
    )
}

/// Returns the errors for buffers or loops that hold no element of some type, and for loops that no CCL buffer holds.
pub(super) fn too_small(checked: &check::Executor<Program>, units: u64) -> Vec<Diagnostic> {
    let widest = DType::ALL.iter().map(|dtype| dtype.size() as u64).max().unwrap_or(1);
    let types = DType::ALL.iter().filter(|dtype| dtype.size() as u64 == widest);
    let types = types.map(|dtype| dtype.name()).collect::<Vec<_>>().join(", ");
    let every =
        format!("an executor runs for every element type: {} for {types}", size_text(widest));
    let mut errors = Vec::new();
    let (ccl_buffer, needed) = (checked.ccl_buffer, units * widest);
    let fits = ccl_buffer / units;
    if fits < widest {
        let title = holds_no_element(ccl_buffer, widest);
        errors.push(
            Diagnostic::new(Code::OverBudget, checked.ccl_buffer_span, title)
                .label("too small")
                .note(format!("{every}; units: {units}"))
                .help(format!("write `ccl_buffer: {};` or more", size_text(needed))),
        );
    }
    let Some((most, span)) = checked.loop_bytes else { return errors };
    if most < widest {
        let (most, least) = (size_text(most), size_text(widest));
        let title = format!("a loop of {most} a unit holds no element of {least}");
        errors.push(
            Diagnostic::new(Code::OverBudget, span, title).label("too short").note(every).help(
                format!("write `loop_bytes: {least};` or more, or leave it out: it is derived"),
            ),
        );
    } else if most > fits && fits >= widest {
        let (most, fits) = (size_text(most), size_text(fits));
        let title = format!("declared loops of {most} a unit, and a CCL buffer holds {fits}");
        errors.push(
            Diagnostic::new(Code::OverBudget, span, title)
                .label("too long")
                .note(format!("a CCL buffer of {}, units: {units}", size_text(ccl_buffer)))
                .help(format!("write `loop_bytes: {fits};`, or leave it out: it is derived")),
        );
    }
    errors
}
