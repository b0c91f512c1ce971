//! The library's algorithms beside the page: the fastest in a simulated run of the same size, if no page is faster.

use roundelay::Algorithm as _;
use roundelay::select;
use roundelay_core::layout::Limits;

use super::Synthesis;
use crate::progress;
use crate::topo::short;

/// Work beyond which an algorithm is not laid out to be compared.
const LIMITS: Limits = Limits { steps: 1 << 18, ops: 1 << 20 };
/// The part of a time up to which two times are as good as equal.
const EQUAL: f64 = 1e-3;

impl Synthesis<'_> {
    /// Returns a line about the library's fastest algorithm, where it takes no longer than the page, which takes
    /// `seconds`. Every parameter but the root has its default.
    pub(super) fn in_library(&self, seconds: f64) -> Option<String> {
        let all = select::library().iter().filter(|a| a.collective() == self.flags.collective);
        let timed = all.filter_map(|algorithm| {
            progress::about(algorithm.name().to_owned());
            let mut algorithm = algorithm.clone();
            algorithm.place_on(self.topology.clone());
            if self.flags.root > 0 {
                algorithm.set_text("root", &self.flags.root.to_string()).ok()?;
            }
            let schedule = algorithm.schedule_within(self.nranks, LIMITS).ok()?;
            Some((self.run(&schedule).ok()?, algorithm.name().to_owned()))
        });
        let (best, name) = timed.min_by(|a, b| a.0.total_cmp(&b.0))?;
        let than = match best / seconds {
            less if less < 1.0 - EQUAL => "faster than",
            equal if equal <= 1.0 + EQUAL => "as fast as",
            _ => return None,
        };
        let us = short(best * 1e6);
        Some(format!("{name} of the library is {than} this page: it takes {us} us."))
    }
}
