//! NCCL's formula for the costs of an all-reduce, in our words, for nodes of 8 H100 with a network card each: what a
//! host has in its table before it asks a plugin. The correction of trees by sizes is left out.

use crate::interface::{ALGORITHMS, NVLS_TREE, PROTOCOLS, SIMPLE, TREE};

/// The number of NCCL's ring.
pub(super) const RING: usize = 1;

const RANKS: u32 = 8;
const CHANNELS: f64 = 16.0;
/// GB/s of a channel, in a node and between nodes.
const CHANNEL: f64 = 24.0;
/// Microseconds that a processor needs to post a message to the network.
const POST: [f64; 3] = [1.0, 1.0, 3.0];

/// Returns the costs of a number of bytes on `nodes` nodes.
pub(super) fn costs(nodes: u32, bytes: u64) -> [[f32; PROTOCOLS.len()]; ALGORITHMS.len()] {
    let mut table = [[-1.0; PROTOCOLS.len()]; ALGORITHMS.len()];
    let (n, m) = (f64::from(nodes * RANKS), f64::from(nodes));
    let several = nodes > 1;
    let scale = nodes.min(3) as usize - 1;
    let levels = f64::from(nodes.ilog2());
    let bus = CHANNELS * CHANNEL;
    let most_by_ll = [141.0, 45.0, 35.0][scale];
    let time = |latency: f64, bandwidth: f64| (latency + bytes as f64 / (1e3 * bandwidth)) as f32;
    for p in 0..PROTOCOLS.len() {
        let post = if several { POST[p] } else { 0.0 };
        let (inside, across) = ([0.6, 1.9, 3.4][p], [2.7, 4.0, 14.0][p]);
        let crossing = 2.0 * (m - 1.0);
        let hops = (2.0 * (n - 1.0) - crossing) * f64::max(inside, post) + crossing * across;
        let mut latency = [6.6, 14.0, 8.4][p] + hops;
        if p == SIMPLE && several && bytes as f64 / (CHANNELS * n) >= 64.0 {
            latency *= 1.4;
        }
        let ring = [f64::min(bus / 2.0, most_by_ll), f64::min(bus * 0.92, CHANNELS * 36.7), bus][p];
        table[RING][p] = time(latency, ring * n / (2.0 * (n - 1.0)));

        let (inside, across) = ([0.6, 1.25, 4.0][p], [5.0, 8.5, 14.0][p]);
        let hops = 2.0 * (f64::from(RANKS - 1) * inside + levels * across);
        let tree = f64::min(bus * 0.92, CHANNELS * [38.7, 41.4, 36.0][scale]);
        let lines = if several { 120.0 / 128.0 } else { 7.0 / 9.0 };
        let by_lines = f64::min(tree * lines, CHANNELS * [36.7, 36.7, 29.0][scale]);
        let tree = [f64::min(tree / 3.8, most_by_ll), by_lines, tree][p];
        table[TREE][p] = time([6.8, 14.0, 8.4][p] + hops, tree / 2.0);
    }
    if several {
        let inside = CHANNEL * 0.85 * (CHANNELS - 1.0) / CHANNELS * 2.0;
        let across = if nodes == 2 { 2.0 * CHANNEL } else { CHANNEL };
        let channel = inside.min(across).min([0.0, 57.7, 45.5][scale]);
        let latency = 25.0 + 2.0 * levels * 20.9;
        table[NVLS_TREE][SIMPLE] = time(latency, CHANNELS * channel * n / (2.0 * (n - 1.0)));
    }
    table
}
