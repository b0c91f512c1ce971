//! Times in seconds as positions in the picture, as numbers of the axis, and as text.

use roundelay_core::units::decimals;

/// The room left of the time axis, for the names of the ranks.
pub(super) const LEFT: f64 = 76.0;
/// The least distance from a number of the axis to the next.
const APART: f64 = 72.0;
/// The digits of a time.
const DIGITS: i32 = 4;

/// The time axis.
pub(super) struct Scale {
    /// The time at its left end, in seconds.
    from: f64,
    /// The time from end to end, in seconds.
    seconds: f64,
    /// The width in pixels.
    pub(super) wide: f64,
}

impl Scale {
    /// Returns the axis of a stretch of time. A run without duration is all at its left end.
    pub(super) fn new((from, to): (f64, f64), wide: f64) -> Self {
        Self { from, seconds: if to > from { to - from } else { 1.0 }, wide }
    }

    /// Returns the position of a time.
    pub(super) fn x(&self, seconds: f64) -> f64 {
        LEFT + (self.wide * (seconds - self.from) / self.seconds).clamp(0.0, self.wide)
    }

    /// Returns the times of the axis with their texts, 1, 2 or 5 times a power of ten apart.
    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        let least = self.seconds * APART / self.wide;
        let power = 10_f64.powf(least.log10().floor());
        let step = [1.0, 2.0, 5.0].map(|d| d * power).into_iter().find(|s| *s >= least);
        let step = step.unwrap_or(10.0 * power);
        let last = self.from + self.seconds;
        let first = (self.from / step * (1.0 - 1e-9)).ceil();
        let count = (last / step * (1.0 + 1e-9)).floor() - first;
        let (unit, size) = unit(last);
        let tick = |i| {
            let at = (first + f64::from(i)) * step;
            (at, if at == 0.0 { "0".to_owned() } else { format!("{} {unit}", short(at / size)) })
        };
        (0..=count.max(0.0) as u32).map(tick).collect()
    }
}

/// Returns a time as text: `12.35 us`
pub(super) fn time_text(seconds: f64) -> String {
    let (unit, size) = unit(seconds);
    format!("{} {unit}", short(seconds / size))
}

/// Returns a stretch of time as text, in one unit: `12.3 us to 14.5 us`
pub(super) fn stretch_text(start: f64, end: f64) -> String {
    let (unit, size) = unit(end);
    format!("{} to {} {unit}", short(start / size), short(end / size))
}

/// Returns the largest unit that is not larger than the time.
fn unit(seconds: f64) -> (&'static str, f64) {
    match seconds {
        s if s >= 1.0 => ("s", 1.0),
        s if s >= 1e-3 => ("ms", 1e-3),
        s if s >= 1e-6 => ("us", 1e-6),
        _ => ("ns", 1e-9),
    }
}

/// Rounds to a few digits, without zeros at the end.
pub(super) fn short(value: f64) -> String {
    let before = value.abs().max(1e-3).log10().floor() as i32 + 1;
    decimals(value, (DIGITS - before).clamp(0, 6) as usize)
}
