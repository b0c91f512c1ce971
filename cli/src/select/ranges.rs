//! The ranges of sizes in which one algorithm is the fastest; where one ends is found by bisection.

use roundelay::select::{Row, select_beside};
use roundelay::{Choice, Collective, Costs, Promises, Topology};
use roundelay_core::ids::RankId;
use roundelay_topology::bounds::{Bound, Usable};
use serde::Serialize;

use super::why;

/// The sizes between which ranges are sought: 1 KiB and 1 GiB, as powers of 2.
const POWERS: std::ops::RangeInclusive<u32> = 10..=30;
/// The number of bytes of which the end of a range is a multiple.
const GRAIN: u64 = 64;
/// A crossover is known when the sizes around it differ by less than one part in this many.
const NEAR: u64 = 64;

/// The arguments of the choice.
pub(super) struct Question<'a> {
    pub(super) collective: Collective,
    pub(super) nranks: u32,
    pub(super) topology: Option<&'a Topology>,
    pub(super) costs: &'a Costs,
    pub(super) promises: Promises,
}

/// Sizes at which one algorithm is the fastest.
#[derive(Debug, Serialize)]
pub(super) struct Range {
    /// The sizes in bytes, both inclusive.
    pub(super) from: u64,
    pub(super) to: u64,
    /// Whether it is the last one, so that larger sizes are taken to belong to it.
    #[serde(skip)]
    pub(super) open: bool,
    pub(super) algorithm: String,
    /// The predicted time at its smallest and at its largest size.
    pub(super) seconds: [f64; 2],
    /// The bandwidth bound over the time at its largest size, on a topology that gives bandwidths.
    pub(super) share: Option<f64>,
    pub(super) why: String,
    /// The promises about the order of reductions that the algorithm keeps, as `--order` takes them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) order: Option<String>,
}

impl Question<'_> {
    fn choice(&self, bytes: u64) -> Choice {
        select_beside(
            (&[], self.promises),
            self.costs,
            self.collective,
            self.nranks,
            bytes,
            self.topology,
        )
    }

    /// Returns one row for each of these sizes.
    pub(super) fn at(&self, sizes: &[u64]) -> Vec<Range> {
        let bound = self.bound();
        let row = |bytes: &u64| {
            let choice = self.choice(*bytes);
            let best = choice.best()?;
            let ends = [(*bytes, best), (*bytes, best)];
            let range = self.range(ends, bound.as_ref(), why::of(&choice));
            Some(Range { order: order(&choice), ..range })
        };
        sizes.iter().filter_map(row).collect()
    }

    /// Returns all ranges, by size.
    pub(super) fn ranges(&self) -> Vec<Range> {
        // The choice at the first size of each, its last size, and the last choice before the next one.
        let mut ends: Vec<(Choice, u64, Choice)> = Vec::new();
        let mut begun = self.choice(1 << POWERS.start());
        let mut at = begun.clone();
        for power in POWERS.skip(1) {
            let next = self.choice(1 << power);
            // Between two powers of two there may be more than one change: each is found from the one before.
            while name(&at) != name(&next) {
                let (end, then) = self.change(at, &next);
                ends.push((begun, then.bytes - 1, end));
                begun = then.clone();
                at = then;
            }
            at = next;
        }
        ends.push((begun, at.bytes, at));
        let bound = self.bound();
        let mut found: Vec<Range> = Vec::new();
        for (index, (begun, to, choice)) in ends.iter().enumerate() {
            let Some(best) = choice.best() else { continue };
            let of_best = |choice: &Choice| {
                choice.ranked.iter().find(|row| row.algorithm == best.algorithm).cloned()
            };
            let at_start = of_best(begun);
            // The last choice before the next range is of a size close to the last one.
            let at_end = of_best(&self.choice(*to));
            let middle = self.choice(middle(begun.bytes, *to));
            let mut reason = why::of(&middle);
            let next = ends.get(index + 1);
            if let Some((beyond, _, next)) = next {
                reason.push_str(&why::beyond(&middle, beyond.bytes, next));
            }
            let from = (begun.bytes, at_start.as_ref().unwrap_or(best));
            let to = (*to, at_end.as_ref().unwrap_or(best));
            let range = self.range([from, to], bound.as_ref(), reason);
            found.push(Range { open: next.is_none(), order: order(choice), ..range });
        }
        found
    }

    /// Makes the range from one size to another, with the row of the algorithm at each.
    fn range(&self, ends: [(u64, &Row); 2], bound: Option<&Bound>, why: String) -> Range {
        let [(from, _), (to, last)] = ends;
        let seconds = ends.map(|(_, row)| row.time.seconds());
        // The time is that of whole elements of every unit.
        let unit = self.collective.max_units(self.nranks);
        let share = |bound: &Bound| bound.seconds(to / unit * unit) / seconds[1];
        Range {
            from,
            to,
            open: false,
            algorithm: last.algorithm.clone(),
            seconds,
            share: bound.filter(|_| seconds[1] > 0.0).map(share),
            why,
            order: None,
        }
    }

    /// Returns the bandwidth bound, on a topology that gives bandwidths.
    fn bound(&self) -> Option<Bound> {
        let topology = self.topology.filter(|topology| !topology.is_relative())?;
        let found = Usable::new(topology, self.nranks, self.collective, RankId(0)).ok()?;
        Some(found.bound)
    }

    /// Finds the size between two sizes where another algorithm becomes the best: the last choice before it, and the
    /// first choice of it.
    fn change(&self, at: Choice, beyond: &Choice) -> (Choice, Choice) {
        let (mut low, mut high) = (at, beyond.clone());
        while high.bytes - low.bytes > GRAIN.max(low.bytes / NEAR) {
            let size = middle(low.bytes, high.bytes);
            if size <= low.bytes || size >= high.bytes {
                break;
            }
            let choice = self.choice(size);
            if name(&choice) == name(&low) {
                low = choice;
            } else {
                high = choice;
            }
        }
        (low, high)
    }
}

/// Returns the promises of the fastest algorithm, which are those of a proof: not for rank counts whose proof takes
/// longer than the choice.
fn order(choice: &Choice) -> Option<String> {
    const MOST: u32 = 128;
    (choice.nranks <= MOST).then(|| choice.order().map(|kept| kept.to_string())).flatten()
}

fn name(choice: &Choice) -> Option<&str> {
    choice.best().map(|row| row.algorithm.as_str())
}

/// Returns the middle of two sizes by their ratio, a multiple of [`GRAIN`].
fn middle(low: u64, high: u64) -> u64 {
    let middle = ((low as f64) * (high as f64)).sqrt() as u64;
    (middle / GRAIN * GRAIN).clamp(low, high)
}
