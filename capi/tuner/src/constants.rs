//! The constants of NCCL's model of time that the plugin needs: the latency of a hop between nodes.

use crate::interface::{Constants, NETWORK, NVLS_TREE, PAT, PROTOCOLS, SIMPLE, TREE};

/// Microseconds of a hop between nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Latencies {
    /// Of the tree, by protocol.
    pub(crate) tree: [f64; PROTOCOLS.len()],
    /// Of the tree over nodes that reduce in their switch.
    pub(crate) nvls_tree: f64,
    /// Of the parallel trees.
    pub(crate) pat: f64,
}

impl Latencies {
    /// The constants of NCCL 2.24 to 2.27, which tell none.
    pub(crate) const fn published() -> Self {
        Self { tree: [5.0, 8.5, 14.0], nvls_tree: 14.0, pat: 14.0 }
    }

    /// The constants that NCCL tells.
    ///
    /// # Errors
    /// A constant that is no time, in words.
    pub(crate) fn given(constants: &Constants) -> Result<Self, String> {
        let network = &constants.hops[NETWORK];
        let found = Self {
            tree: network[TREE],
            nvls_tree: network[NVLS_TREE][SIMPLE],
            pat: network[PAT][SIMPLE],
        };
        let all = found.tree.into_iter().chain([found.nvls_tree, found.pat]);
        // A second is more than any hop takes.
        match all.into_iter().find(|time| !(0.0..=1e6).contains(time)) {
            Some(time) => Err(format!("NCCL tells a latency of {time} us")),
            None => Ok(found),
        }
    }

    /// The constants where each rank is a node: there NCCL counts each hop as one of the tree.
    pub(crate) fn exposed(self) -> Self {
        let simple = self.tree[SIMPLE];
        Self { nvls_tree: simple, pat: simple, ..self }
    }
}
