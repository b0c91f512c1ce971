//! The kernel that writes the addresses of the callers' buffers into a table of ranks' memory.

/// The name of the kernel.
pub(crate) const BIND: &str = "roundelay_bind";
/// The text of the kernel.
pub(crate) const BIND_TEXT: &str = "#include \"bind.cuh\"\n";
/// Ranks that one launch of the kernel binds; the kernel's text has the number too.
pub(crate) const BOUND_AT_ONCE: usize = 64;

/// The argument of the kernel.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Addresses {
    ranks: u64,
    first: u64,
    count: u64,
    at: [[u64; 2]; BOUND_AT_ONCE],
}

#[cfg(feature = "ptx")]
impl Addresses {
    /// Returns the words, in order.
    pub(crate) fn words(&self) -> impl Iterator<Item = u64> {
        let Self { ranks, first, count, at } = self;
        [*ranks, *first, *count].into_iter().chain(at.iter().flatten().copied())
    }
}

/// Returns the arguments of the launches that bind all ranks' buffers: the input and the output of each rank.
pub(crate) fn batches(ranks: u64, io: &[[u64; 2]]) -> impl Iterator<Item = Addresses> {
    io.chunks(BOUND_AT_ONCE).enumerate().map(move |(nth, chunk)| {
        let mut at = [[0; 2]; BOUND_AT_ONCE];
        at[..chunk.len()].copy_from_slice(chunk);
        let first = (nth * BOUND_AT_ONCE) as u64;
        Addresses { ranks, first, count: chunk.len() as u64, at }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_is_bound_once_in_calls_of_what_fits() {
        for nranks in [0, 1, 63, 64, 65, 1000] {
            let io: Vec<[u64; 2]> = (0..nranks).map(|rank| [rank, rank + 10_000]).collect();
            let mut bound = Vec::new();
            for call in batches(7, &io) {
                assert_eq!((call.ranks, call.first), (7, bound.len() as u64));
                bound.extend_from_slice(&call.at[..call.count as usize]);
            }
            assert_eq!(bound, io);
        }
        assert!(size_of::<Addresses>() <= 4096, "a launch may carry 4096 bytes on every GPU");
    }
}
