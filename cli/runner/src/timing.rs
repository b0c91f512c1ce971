//! The times of runs: the samples, and the one number that is shown for them.

use std::time::Duration;

/// The least time of a sample: the time to read the clock is then negligible.
const SAMPLE: Duration = Duration::from_millis(1);

/// Seconds that a run took, one entry a sample.
pub struct Timing(Vec<f64>);

impl Timing {
    /// Makes a timing of the seconds of some samples.
    pub fn from_samples(samples: Vec<f64>) -> Self {
        let mut samples = samples;
        samples.sort_by(f64::total_cmp);
        Self(samples)
    }

    /// Takes `warmup` runs, then `samples` samples: each is a row of runs between two readings of the clock, or one run
    /// where that lasts long enough. `row` makes as many runs as its argument says, and returns the seconds.
    pub fn take<E>(
        warmup: u32,
        samples: u32,
        mut row: impl FnMut(u32) -> Result<f64, E>,
    ) -> Result<Self, E> {
        row(warmup)?;
        let least = SAMPLE.as_secs_f64();
        let mut runs = 1;
        let mut first = row(runs)?;
        while first < least {
            let factor = (1.2 * least / first.max(1e-9)).clamp(2.0, 16.0);
            runs = (f64::from(runs) * factor).ceil() as u32;
            first = row(runs)?;
        }
        // The row that was long enough is the first sample where there was no need to look for its length.
        let mut all = if runs == 1 && warmup > 0 { vec![first] } else { Vec::new() };
        while all.len() < samples as usize {
            all.push(row(runs)? / f64::from(runs));
        }
        Ok(Self::from_samples(all))
    }

    /// Returns the mean of the middle half of the samples: other work on the machine makes some samples much longer.
    pub fn time(&self) -> f64 {
        let quarter = self.0.len() / 4;
        mean(&self.0[quarter..self.0.len() - quarter])
    }

    /// Returns the mean of all samples.
    pub fn mean(&self) -> f64 {
        mean(&self.0)
    }

    /// Returns the shortest sample.
    pub fn least(&self) -> f64 {
        self.0.first().copied().unwrap_or(0.0)
    }

    /// Returns the median of the samples.
    pub fn median(&self) -> f64 {
        self.0.get(self.0.len() / 2).copied().unwrap_or(0.0)
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Returns a bandwidth in GB/s.
pub fn bandwidth(size: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { size as f64 / seconds / 1e9 } else { 0.0 }
}
