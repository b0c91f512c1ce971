//! The rates of pairs of ranks that all send at once.

use roundelay_base::ids::RankId;

use super::machine::Machine;
use super::paths::RankPaths;
use super::sharing::Sharing;

/// Returns the bytes a second of each pair of ranks, if all pairs send at once and without end: links are shared max-min
/// fairly. `None` where two ranks of a pair are not linked.
///
/// ```
/// use std::sync::Arc;
/// use roundelay_base::ids::RankId;
/// use roundelay_simulate::{Machine, rates};
/// use roundelay_topology::shape::Shape;
///
/// let machine = Machine::new(Arc::new(Shape::crossbar(3).build()?.into()));
/// let pair = |from, to| (RankId(from), RankId(to));
/// // Two pairs share the port of rank 0, and the third pair has ports of its own.
/// assert_eq!(rates(&machine, &[pair(0, 1), pair(0, 2), pair(1, 0)]).unwrap(), [0.5, 0.5, 1.0]);
/// # Ok::<(), roundelay_topology::Problem>(())
/// ```
pub fn rates(machine: &Machine, pairs: &[(RankId, RankId)]) -> Option<Vec<f64>> {
    let paths = RankPaths::between_pairs(pairs, machine)?;
    let mut sharing = Sharing::new(&paths);
    for (flow, (from, to)) in (0..).zip(pairs) {
        sharing.start(flow, paths.between(((*from).into(), (*to).into())), f64::INFINITY);
    }
    sharing.settle(0.0, |_, _| {});
    Some((0..pairs.len() as u32).map(|flow| sharing.flow(flow).rate).collect())
}
