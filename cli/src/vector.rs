//! A count for each block of a collective, as `--counts` gives it.

use roundelay_core::collective::Collective;
use roundelay_core::counts::Counts;
use roundelay_core::topology::Problem;
use roundelay_kernels::reference::SplitMix64;

use crate::values::{self, RefusedValue};

/// The forms of a vector of counts.
#[derive(Clone, Debug)]
pub(crate) enum VectorForm {
    /// The counts themselves.
    List(Vec<u64>),
    /// The count of block i falls with the power `ALPHA` of i + 1; together they are as many elements as equal counts.
    Skew(f64),
    /// Each count is a random number up to twice the count.
    Random(u64),
}

/// Reads `5,0,7`, `skew:1.5` or `random:7`.
pub(crate) fn vector(text: &str) -> Result<VectorForm, RefusedValue> {
    let refused = |why| {
        RefusedValue::new(why)
            .help("give a count for each rank, such as 5,0,7, or skew:1.5, or random:7")
    };
    if let Some(alpha) = text.strip_prefix("skew:") {
        let alpha = alpha.parse::<f64>().ok().filter(|alpha| (0.0..=16.0).contains(alpha));
        return alpha.map(VectorForm::Skew).ok_or_else(|| refused("is no power from 0 to 16"));
    }
    if let Some(seed) = text.strip_prefix("random:") {
        let seed = seed.parse().ok();
        return seed.map(VectorForm::Random).ok_or_else(|| refused("is no seed below 2^64"));
    }
    let counts: Result<Vec<u64>, RefusedValue> =
        text.split(',').map(|count| values::count(count.trim())).collect();
    counts.map(VectorForm::List)
}

impl VectorForm {
    /// Returns the counts for a collective; `count` is the count of each block if all were equal.
    pub(crate) fn of(
        &self,
        collective: Collective,
        nranks: u32,
        count: u64,
    ) -> Result<Counts, Problem> {
        let blocks = collective.blocks(nranks).unwrap_or(1);
        let counts: Vec<u64> = match self {
            Self::List(counts) => counts.clone(),
            Self::Skew(alpha) => {
                let weight = |block: u64| (block as f64 + 1.0).powf(-alpha);
                let all: f64 = (0..blocks).map(weight).sum();
                let sum = count as f64 * blocks as f64;
                (0..blocks).map(|block| (weight(block) / all * sum).round() as u64).collect()
            }
            Self::Random(seed) => {
                let mut random = SplitMix64(*seed);
                let most = count.saturating_mul(2).saturating_add(1);
                (0..blocks).map(|_| random.draw() % most).collect()
            }
        };
        Counts::new(collective, nranks, &counts)
    }
}

#[cfg(test)]
mod tests {
    use super::{VectorForm, vector};
    use roundelay_core::collective::Collective;

    #[test]
    fn vectors_have_three_forms() {
        let of = |text: &str| vector(text).expect(text).of(Collective::AllGather, 3, 100);
        assert_eq!(of("5,0,1K").unwrap().all(), [5, 0, 1024]);
        assert_eq!(of("skew:0").unwrap().all(), [100, 100, 100]);
        assert_eq!(of("skew:1").unwrap().all(), [164, 82, 55]);
        let random = of("random:3").unwrap();
        assert!(random.all().iter().all(|count| *count <= 200), "{random:?}");
        assert_ne!(of("random:4").unwrap(), random);
        assert!(of("1,2").is_err());
        for wrong in ["skew:", "skew:-1", "skew:nan", "random:x", "", "1,,2", "1,-2"] {
            assert!(vector(wrong).is_err(), "{wrong}");
        }
        assert!(VectorForm::Skew(1.0).of(Collective::AllReduce, 3, 100).is_err());
    }
}
