//! Tori, recognized by their links: a grid in which each rank is joined only to adjacent ranks.

use super::plane::{PITCH, PlanePoint};
use roundelay_topology::{Fabric, NodeId};

/// The distance from a rank of a grid to the next.
const STEP: f64 = 2.2 * PITCH;

/// Returns the numbers of rows and columns, preceded by the number of planes if there are planes.
pub(super) fn dimensions(topology: &Fabric) -> Option<Vec<u32>> {
    let n = topology.nranks();
    if topology.nodes().len() > n as usize || topology.links().is_empty() {
        return None;
    }
    let factors = |n: u32| (2..n).filter(move |d| n.is_multiple_of(*d));
    let planes = factors(n).map(|rows| vec![rows, n / rows]);
    let spaces = factors(n).flat_map(|planes| {
        factors(n / planes).map(move |rows| vec![planes, rows, n / planes / rows])
    });
    planes.chain(spaces).find(|dims| fits(topology, dims))
}

/// Whether every link joins neighbors, and every dimension has a link.
fn fits(topology: &Fabric, dims: &[u32]) -> bool {
    let mut used = vec![false; dims.len()];
    let all = topology.links().iter().all(|link| {
        let (a, b) = (place(dims, link.from.0), place(dims, link.to.0));
        let apart = (0..dims.len()).filter(|d| a[*d] != b[*d]).collect::<Vec<_>>();
        let [d] = apart[..] else { return false };
        let far = a[d].abs_diff(b[d]);
        used[d] = true;
        far == 1 || far + 1 == dims[d]
    });
    all && used.into_iter().all(|used| used)
}

fn place(dims: &[u32], mut rank: u32) -> Vec<u32> {
    let mut at = vec![0; dims.len()];
    for (at, dim) in at.iter_mut().zip(dims).rev() {
        (*at, rank) = (rank % dim, rank / dim);
    }
    at
}

/// Returns the places of ranks; planes are behind each other, the first in front.
pub(super) fn places(dims: &[u32]) -> Vec<(NodeId, PlanePoint)> {
    let count: u32 = dims.iter().product();
    let depth = if dims.len() > 2 { dims[0] } else { 1 };
    let step = STEP * (1.0 + 0.75 * f64::from(depth - 1));
    let at = |rank: u32| {
        let place = place(dims, rank);
        let [.., row, column] = place[..] else { return PlanePoint::default() };
        let back = if dims.len() > 2 { f64::from(place[0]) } else { 0.0 };
        let aside = step / f64::from(depth) * back;
        PlanePoint::new(f64::from(column) * step + aside * 0.9, f64::from(row) * step - aside * 0.6)
    };
    (0..count).map(|rank| (NodeId(rank), at(rank))).collect()
}
