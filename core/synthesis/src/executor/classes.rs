//! The size classes: ranges of sizes, each with the algorithm that loses the least in it.

/// The most classes of an executor.
const MOST: usize = 3;

/// A class: its candidate, and the sizes before which it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The place of the candidate among all candidates.
    pub candidate: usize,
    /// The place of the first size that the class does not have.
    pub end: usize,
}

/// Returns at most three ranges of sizes with a candidate for each. `times[c][s]` is the time of candidate c at size s.
/// A size loses the logarithm of its time over the least time of any candidate, times its weight. Of equal ones, the first
/// candidates and the fewest classes are taken.
pub fn choose(times: &[Vec<f64>], weights: &[f64]) -> Vec<Range> {
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
