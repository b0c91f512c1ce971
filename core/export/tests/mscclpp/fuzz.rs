//! Plans with bytes changed, and plans that are cut off.

use super::{made, says, two_ranks};
use crate::fuzz::fuzz;

#[test]
fn changed_plans() {
    let all = made::all().into_iter().map(|(_, plan)| plan.to_string().into_bytes());
    let pieces = ["\"", "{", "}", "[", "]", ",", ":", "\\u", "\\ud800", "null", "1e9"];
    fuzz(all, 100, &pieces, [100, 300], |text| says(text).0);
}

/// Every prefix is refused, at its end or before.
#[test]
fn cut_off() {
    let whole = two_ranks();
    for end in (0..whole.trim_end().len()).step_by(7) {
        assert!(!says(&whole.as_bytes()[..end]).0, "{end}");
    }
}
