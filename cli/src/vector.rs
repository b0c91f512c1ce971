//! A count for each block of a collective, as `--counts` gives it.

use clap::Args;
use roundelay_core::diagnostics::{Code, Finding};
use roundelay_core::ids::SpanId;
use roundelay_core::verify::Proved;
pub(crate) use roundelay_runner::vector::VectorForm;

use crate::report::Failure;
use crate::values::{self, RefusedValue};

/// A count for each block.
#[derive(Args)]
pub(crate) struct BlocksFlags {
    /// A count for each block, for `schedule`, `mpi` and the `steps` of one rank (other forms have one count): a list such
    /// as 5,0,7, one for each rank (for an AllToAll one for each pair, those of sender 0 first); skew:ALPHA or random:SEED,
    /// around 100 elements each
    #[arg(long, value_name = "COUNTS", value_parser = vector)]
    counts: Option<VectorForm>,
}

impl BlocksFlags {
    /// Returns a proved schedule for the counts, if counts are given.
    pub(crate) fn of(&self, proved: &Proved) -> Result<Option<Proved>, Vec<Finding>> {
        let Some(form) = &self.counts else { return Ok(None) };
        let (collective, nranks) = (proved.schedule().collective, proved.schedule().nranks);
        let counts = form.counts(collective, nranks, MEAN);
        let counts = counts.map_err(|problem| vec![problem.into_finding(SpanId(0))])?;
        proved.for_counts(&counts).map(Some)
    }

    /// Whether counts are given.
    pub(crate) fn any(&self) -> bool {
        self.counts.is_some()
    }

    /// Refuses counts where a form has one count for all blocks.
    pub(crate) fn refuse(&self, form: &str) -> Result<(), Failure> {
        if self.counts.is_none() {
            return Ok(());
        }
        let title = format!("--counts does not go with `emit {form}`, whose text has one count");
        Err(Failure::usage(Code::BadFlag, title)
            .with_help("`emit schedule`, `emit steps --rank` and `emit mpi` take counts"))
    }
}

/// The mean of counts that are drawn.
const MEAN: u64 = 100;

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

#[cfg(test)]
mod tests {
    use super::{VectorForm, vector};
    use roundelay_core::collective::Collective;

    #[test]
    fn vectors_have_three_forms() {
        let of = |text: &str| vector(text).expect(text).counts(Collective::AllGather, 3, 100);
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
        assert!(VectorForm::Skew(1.0).counts(Collective::AllReduce, 3, 100).is_err());
    }
}
