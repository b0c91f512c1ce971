//! Constants from measured times, by least squares of relative errors under the model itself: a time of microseconds
//! counts as much as one of milliseconds, and no constant is negative.

use super::counts::Counts;
use super::model::{Costs, Origin};

/// A measured run.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The name of the measured algorithm, for messages.
    pub name: String,
    /// The counts of the schedule that ran.
    pub counts: Counts,
    /// The size in bytes, as nccl-tests counts it.
    pub bytes: u64,
    /// The time that the run took, in seconds.
    pub seconds: f64,
}

/// Constants, and how well they explain the samples.
#[derive(Clone, Debug)]
pub struct Fit {
    /// The constants.
    pub costs: Costs,
    /// The share of the variance of the logarithms of times that the model explains.
    pub r2: f64,
    /// The error of the prediction for each sample, relative to the measured time.
    pub errors: Vec<f64>,
}

/// Constants of the model: latency, piece, 1 / bandwidth, 1 / reduce, 1 / copy.
const K: usize = 5;

/// The bytes a second of work whose cost is too small to be measured.
const FREE: f64 = 1e15;

/// Returns the constants that explain `samples` best; `None` if there are fewer samples than constants.
pub fn fit(name: &str, cores: Option<u32>, samples: &[Sample]) -> Option<Fit> {
    if samples.len() < K || samples.iter().any(|s| s.seconds.is_nan() || s.seconds <= 0.0) {
        return None;
    }
    let unit = Costs {
        name: name.to_owned(),
        origin: Origin::Measured,
        latency: 1.0,
        message: 1.0,
        bandwidth: 1.0,
        reduce: 1.0,
        copy: 1.0,
        cores,
    };
    // With constants of 1 the parts of the time are the factors.
    let rows: Vec<[f64; K]> = samples
        .iter()
        .map(|sample| {
            let time = unit.time(&sample.counts, sample.bytes);
            let parts = [time.steps, time.pieces, time.volume, time.reduced, time.copied];
            parts.map(|part| part / sample.seconds)
        })
        .collect();
    // There are so few constants that every set of nonzero ones can be tried.
    let best = (1..1_u32 << K)
        .filter_map(|set| solve(&rows, set))
        .filter(|constants| constants.iter().all(|c| *c >= 0.0))
        .min_by(|a, b| squares(&rows, a).total_cmp(&squares(&rows, b)))?;
    let rate = |inverse: f64| if inverse > 1.0 / FREE { 1.0 / inverse } else { FREE };
    let [latency, message, volume, reduce, copy] = best;
    let costs = Costs {
        latency,
        message,
        bandwidth: rate(volume),
        reduce: rate(reduce),
        copy: rate(copy),
        ..unit
    };
    let predicted = |s: &Sample| costs.time(&s.counts, s.bytes).seconds();
    let errors = samples.iter().map(|s| predicted(s) / s.seconds - 1.0).collect();
    let logs: Vec<(f64, f64)> = samples
        .iter()
        .map(|s| (s.seconds.ln(), predicted(s).max(f64::MIN_POSITIVE).ln()))
        .collect();
    let mean = logs.iter().map(|(measured, _)| measured).sum::<f64>() / logs.len() as f64;
    let left: f64 = logs.iter().map(|(measured, by)| (measured - by).powi(2)).sum();
    let all: f64 = logs.iter().map(|(measured, _)| (measured - mean).powi(2)).sum();
    let r2 = if all > 0.0 { 1.0 - left / all } else { 1.0 };
    Some(Fit { costs, r2, errors })
}

/// Returns the squared distance of the relative predictions from 1.
fn squares(rows: &[[f64; K]], constants: &[f64; K]) -> f64 {
    let predicted =
        |row: &[f64; K]| row.iter().zip(constants).map(|(factor, c)| factor * c).sum::<f64>();
    rows.iter().map(|row| (predicted(row) - 1.0).powi(2)).sum()
}

/// Solves the normal equations of the constants in `set`, by Gauss's elimination; `None` if there is no unique
/// solution.
fn solve(rows: &[[f64; K]], set: u32) -> Option<[f64; K]> {
    let used: Vec<usize> = (0..K).filter(|k| set >> k & 1 == 1).collect();
    // Scales columns to one size: seconds and bytes a second are far apart.
    let scale = |k: usize| rows.iter().map(|row| row[k] * row[k]).sum::<f64>().sqrt();
    let scales: Vec<f64> = used.iter().map(|k| scale(*k)).collect();
    if scales.contains(&0.0) {
        return None;
    }
    let at = |row: &[f64; K], i: usize| row[used[i]] / scales[i];
    let m = used.len();
    let mut system: Vec<Vec<f64>> = (0..m)
        .map(|i| {
            let product = |j: usize| rows.iter().map(|row| at(row, i) * at(row, j)).sum::<f64>();
            let right = rows.iter().map(|row| at(row, i)).sum::<f64>();
            (0..m).map(product).chain([right]).collect()
        })
        .collect();
    for i in 0..m {
        let pivot = (i..m).max_by(|a, b| system[*a][i].abs().total_cmp(&system[*b][i].abs()))?;
        system.swap(i, pivot);
        if system[i][i].abs() < 1e-9 {
            return None;
        }
        let (upper, lower) = system.split_at_mut(i + 1);
        for row in lower {
            let factor = row[i] / upper[i][i];
            for (to, from) in row.iter_mut().zip(&upper[i]).skip(i) {
                *to -= factor * from;
            }
        }
    }
    let mut solution = [0.0; K];
    for i in (0..m).rev() {
        let known: f64 = (i + 1..m).map(|j| system[i][j] * solution[used[j]] * scales[j]).sum();
        solution[used[i]] = (system[i][m] - known) / system[i][i] / scales[i];
    }
    Some(solution)
}
