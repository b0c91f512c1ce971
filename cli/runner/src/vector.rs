//! Vectors of counts: a count for each block of a collective, as they are written, or as they are made.

use roundelay_core::collective::Collective;
use roundelay_core::counts::Counts;
use roundelay_kernels::reference::SplitMix64;
use roundelay_topology::Problem;

/// The forms of a vector of counts.
#[derive(Clone, Debug)]
pub enum VectorForm {
    /// The counts themselves.
    List(Vec<u64>),
    /// The count of block i falls with the power `ALPHA` of i + 1; together they are as many elements as equal counts.
    Skew(f64),
    /// Each count is a random number up to twice the count.
    Random(u64),
}

impl VectorForm {
    /// Returns the counts for a collective; `count` is the count of each block if all were equal.
    ///
    /// # Errors
    /// E0432 for a collective without blocks of ranks, and for a list of another length.
    pub fn counts(
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
