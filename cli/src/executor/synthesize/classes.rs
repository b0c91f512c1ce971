//! The size classes: ranges of sizes, each with the algorithm that loses the least in it.

/// The most classes of an executor.
const MOST: usize = 3;

/// A class: its candidate, and the sizes before which it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) candidate: usize,
    /// The place of the first size that the class does not have.
    pub(super) end: usize,
}

/// Returns at most three ranges of sizes with a candidate for each. `times[c][s]` is the time of candidate c at size s.
/// A size loses the logarithm of its time over the least time of any candidate, times its weight. Of equal ones, the first
/// candidates and the fewest classes are taken.
pub(super) fn chosen(times: &[Vec<f64>], weights: &[f64]) -> Vec<Range> {
    let sizes = weights.len();
    let least = |size: usize| times.iter().map(|of| of[size]).fold(f64::INFINITY, f64::min);
    // The loss of each candidate up to each size.
    let losses = times.iter().map(|of| {
        let mut sums = vec![0.0];
        for size in 0..sizes {
            let loss = if of[size] > 0.0 { (of[size] / least(size)).ln() } else { 0.0 };
            sums.push(sums[size] + loss * weights[size]);
        }
        sums
    });
    let losses: Vec<Vec<f64>> = losses.collect();
    // For each number of sizes, the least loss so far and its classes.
    let mut best: Vec<(f64, Vec<Range>)> = vec![(f64::INFINITY, Vec::new()); sizes + 1];
    best[0].0 = 0.0;
    for _ in 0..MOST {
        let before = best.clone();
        for (begin, (loss, ranges)) in before.iter().enumerate() {
            for end in begin + 1..=sizes {
                for (candidate, sums) in losses.iter().enumerate() {
                    let loss = loss + sums[end] - sums[begin];
                    if loss < best[end].0 - 1e-9 {
                        let more = std::iter::once(Range { candidate, end });
                        best[end] = (loss, ranges.iter().copied().chain(more).collect());
                    }
                }
            }
        }
    }
    best.pop().map(|(_, ranges)| ranges).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{Range, chosen};

    #[test]
    fn each_range_has_the_fastest_and_no_more_classes_than_help() {
        let (latency, both, bandwidth) =
            (vec![1.0, 9.0, 90.0], vec![4.0, 4.0, 40.0], vec![8.0, 8.0, 8.0]);
        let range = |candidate, end| Range { candidate, end };
        let all = [latency.clone(), both.clone(), bandwidth];
        assert_eq!(chosen(&all, &[1.0; 3]), [range(0, 1), range(1, 2), range(2, 3)]);
        let two = [both.clone(), both, latency];
        assert_eq!(chosen(&two, &[1.0; 3]), [range(2, 1), range(0, 3)]);
        // A size that weighs more decides for its class.
        let four = [vec![1.0, 2.0, 1.0, 2.0], vec![2.0, 1.0, 2.0, 1.0]];
        assert_eq!(chosen(&four, &[9.0, 9.0, 1.0, 9.0]), [range(0, 1), range(1, 4)]);
    }
}
