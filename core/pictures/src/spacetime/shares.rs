//! Shares of time and of rates.

/// The number of colors for a rate above 0.
pub(super) const LEVELS: u8 = 5;

/// Returns the level from 1 to [`LEVELS`] of a share of the largest.
pub(super) fn level(share: f64) -> u8 {
    ((share * f64::from(LEVELS)).ceil() as u8).clamp(1, LEVELS)
}

/// Returns the columns that a stretch of time touches, each with its share of the stretch. A stretch without duration
/// has one column.
pub(super) fn shares(
    (from, to): (f64, f64),
    columns: usize,
    start: f64,
    end: f64,
) -> impl Iterator<Item = (usize, f64)> {
    let each = (to - from).max(f64::MIN_POSITIVE) / columns as f64;
    let column = |seconds: f64| (((seconds - from) / each).max(0.0) as usize).min(columns - 1);
    let (first, last) = (column(start), column(end));
    (first..=last).map(move |at| {
        let (left, right) = (from + each * at as f64, from + each * (at + 1) as f64);
        let share = (end.min(right) - start.max(left)) / (end - start);
        (at, if end > start { share.clamp(0.0, 1.0) } else { 1.0 })
    })
}
