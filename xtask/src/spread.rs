//! Times of several launches.

/// The times of launches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// Computes the spread. The median of an even number of times is the mean of the middle two.
    pub(crate) fn of(times: &[f64]) -> Option<Self> {
        let mut sorted = times.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let half = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 {
            sorted[half]
        } else {
            f64::midpoint(sorted[half - 1], sorted[half])
        };
        Some(Self { median, min, max })
    }
}

/// Formats three significant digits, or all before the point.
pub(crate) fn micros(time: f64) -> String {
    let digits = match time {
        ..9.995 => 2,
        ..99.95 => 1,
        _ => 0,
    };
    format!("{time:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_launches_count_and_the_spread_is_from_the_least_to_the_longest() {
        let spread = Spread { median: 3.0, min: 1.0, max: 9.0 };
        assert_eq!(Spread::of(&[9.0, 1.0, 3.0]), Some(spread));
        assert_eq!(Spread::of(&[2.0, 1.0]).map(|spread| spread.median), Some(1.5));
        assert_eq!(Spread::of(&[]), None);
    }
}
