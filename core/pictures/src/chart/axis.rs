//! The positions of values along an axis, in logarithms or linear, and the values that are named.

/// Numbers along an axis at most.
const TICKS: usize = 9;

/// Maps values to shares of an axis.
pub struct Axis {
    low: f64,
    high: f64,
    scale: Scale,
}

/// The values that are equally far apart everywhere on an axis.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scale {
    /// Values of equal ratio.
    Ratios,
    /// Values of equal difference.
    Differences,
}

impl Axis {
    /// Makes a logarithmic axis over these values, and a share of their range more at both ends.
    pub fn new(values: impl Iterator<Item = f64>, more: f64) -> Self {
        let (mut low, mut high) = (f64::MAX, f64::MIN);
        for value in values.map(f64::log2) {
            (low, high) = (low.min(value), high.max(value));
        }
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        // One value stands in the middle.
        if high - low < 0.5 {
            (low, high) = (low - 1.0, high + 1.0);
        }
        let more = more * (high - low);
        Self { low: low - more, high: high + more, scale: Scale::Ratios }
    }

    /// Makes a linear axis from 0 to a little above the largest of these values.
    pub fn from_zero(values: impl Iterator<Item = f64>) -> Self {
        let high = values.fold(0.0, f64::max);
        let high = if high > 0.0 { 1.06 * high } else { 1.0 };
        Self { low: 0.0, high, scale: Scale::Differences }
    }

    /// Returns the position of a value: 0 at the low end, 1 at the high one.
    pub fn share(&self, value: f64) -> f64 {
        let place = match self.scale {
            Scale::Ratios => value.log2(),
            Scale::Differences => value,
        };
        (place - self.low) / (self.high - self.low)
    }

    /// Returns the exponents of the powers of two along a logarithmic axis, or of as many of them as can be named.
    pub fn powers(&self) -> Vec<i32> {
        let (first, last) = (self.low.ceil() as i32, self.high.floor() as i32);
        let step = (last - first) / TICKS as i32 + 1;
        (first..=last).step_by(step as usize).collect()
    }

    /// Returns round values: 1, 2 and 5 with their powers of ten, or the powers alone if these are too many, and on a
    /// linear axis the multiples of one round value.
    pub fn values(&self) -> Vec<f64> {
        if self.scale == Scale::Differences {
            return self.multiples();
        }
        let range = self.low.exp2()..=self.high.exp2();
        let of = |digits: &[f64]| {
            let decades = (-6..7).flat_map(|power| digits.iter().map(move |d| (*d, power)));
            let values = decades.map(|(digit, power)| decimal(digit, power));
            values.filter(|v| range.contains(v)).collect::<Vec<_>>()
        };
        let fine = of(&[1.0, 2.0, 5.0]);
        if fine.len() > TICKS + 3 { of(&[1.0]) } else { fine }
    }

    /// Returns the multiples of the least of 1, 2 and 5 with their powers of ten that are not too many.
    fn multiples(&self) -> Vec<f64> {
        let digits = [1.0, 2.0, 5.0];
        let mut steps =
            (-9..12).flat_map(|power| digits.iter().map(move |digit| decimal(*digit, power)));
        let step = steps.find(|step| self.high / step <= TICKS as f64).unwrap_or(self.high);
        // A rounded multiple, so that three fifths are written as 0.6.
        let value = |k: u32| (f64::from(k) * step * 1e9).round() / 1e9;
        (0..=(self.high / step) as u32).map(value).collect()
    }
}

/// Returns a digit with a power of ten; it divides for negative powers, so that 0.2 is printed as such.
fn decimal(digit: f64, power: i32) -> f64 {
    match power {
        0.. => digit * 10_f64.powi(power),
        _ => digit / 10_f64.powi(-power),
    }
}
