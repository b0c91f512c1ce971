//! NCCL's structures for tuner plugins: those of its versions 4, 5 and 6, as of NCCL 2.30.

use std::ffi::{c_char, c_int, c_ulong, c_void};
use std::mem::offset_of;

/// NCCL's function for its log: level, subsystems, file, line, a format of C and its values.
pub(crate) type Logger =
    unsafe extern "C" fn(c_int, c_ulong, *const c_char, c_int, *const c_char, ...);

/// The algorithms of a table, in NCCL's order.
pub(crate) const ALGORITHMS: [&str; 7] =
    ["Tree", "Ring", "CollNetDirect", "CollNetChain", "NVLS", "NVLSTree", "PAT"];

/// The protocols of a table, in NCCL's order.
pub(crate) const PROTOCOLS: [&str; 3] = ["LL", "LL128", "Simple"];

/// The collectives for which NCCL asks, in NCCL's order.
pub(crate) const COLLECTIVES: [&str; 5] =
    ["Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce"];

/// The number of [`ALGORITHMS`] that is NCCL's tree.
pub(crate) const TREE: usize = 0;
/// The number of the tree over nodes that reduce in their switch.
pub(crate) const NVLS_TREE: usize = 5;
/// The number of the parallel trees of an all-gather and a reduce-scatter.
pub(crate) const PAT: usize = 6;

/// The number of [`PROTOCOLS`] whose data goes in whole chunks.
pub(crate) const SIMPLE: usize = 2;

/// The number of the link between nodes, behind those of `NVLink` and of PCI.
pub(crate) const NETWORK: usize = 2;

/// A value for each algorithm and protocol.
type Values = [[f64; PROTOCOLS.len()]; ALGORITHMS.len()];
/// A value for each generation of GPUs, on one node, on two and on more.
type Bandwidths = [[f64; 3]; 4];

/// The constants of NCCL's model of time, which a plugin may read and change: microseconds, and GB/s.
#[repr(C)]
pub(crate) struct Constants {
    pub(crate) bases: Values,
    /// Of a hop, by the kind of its link.
    pub(crate) hops: [Values; 3],
    ring_ll: Bandwidths,
    channel_ring_ll128: Bandwidths,
    channel_tree_ll128: Bandwidths,
    channel_tree: Bandwidths,
    channel_nvls_tree: Bandwidths,
}

/// The ranks of the domains of `NVLink`, which are NCCL's nodes.
#[repr(C)]
pub(crate) struct NvlDomains {
    domains: c_int,
    fewest_ranks: c_int,
    most_ranks: c_int,
}

/// Asks for the costs of a call: context, collective, bytes, pipelined calls, the table and its two sizes, whether the
/// buffers are registered, and the number of channels to set.
pub(crate) type Cost = unsafe extern "C" fn(
    *mut c_void,
    c_int,
    usize,
    c_int,
    *mut *mut f32,
    c_int,
    c_int,
    c_int,
    *mut c_int,
) -> c_int;

type InitV4 = unsafe extern "C" fn(usize, usize, Option<Logger>, *mut *mut c_void) -> c_int;

type InitV5 = unsafe extern "C" fn(
    *mut *mut c_void,
    u64,
    usize,
    usize,
    Option<Logger>,
    *mut NvlDomains,
    *mut Constants,
) -> c_int;

type End = unsafe extern "C" fn(*mut c_void) -> c_int;

type ChunkSize =
    unsafe extern "C" fn(*mut c_void, c_int, usize, c_int, c_int, c_int, *mut usize) -> c_int;

/// Version 4 of a plugin.
#[repr(C)]
pub struct TunerV4 {
    pub(crate) name: *const c_char,
    pub(crate) init: InitV4,
    pub(crate) cost: Cost,
    pub(crate) destroy: End,
}

/// Version 5 of a plugin.
#[repr(C)]
pub struct TunerV5 {
    pub(crate) name: *const c_char,
    pub(crate) init: InitV5,
    pub(crate) cost: Cost,
    pub(crate) finalize: End,
}

/// Version 6 of a plugin.
#[repr(C)]
pub struct TunerV6 {
    pub(crate) name: *const c_char,
    pub(crate) init: InitV5,
    pub(crate) cost: Cost,
    pub(crate) finalize: End,
    pub(crate) chunk_size: Option<ChunkSize>,
}

// The sizes are those of NCCL's own headers.
const _: () = assert!(size_of::<TunerV4>() == 32 && size_of::<TunerV5>() == 32);
const _: () = assert!(size_of::<TunerV6>() == 40 && size_of::<NvlDomains>() == 12);
const _: () = assert!(size_of::<Constants>() == 1152 && offset_of!(Constants, hops) == 168);

// SAFETY: the name is a constant, which is never written.
unsafe impl Sync for TunerV4 {}
// SAFETY: the name is a constant, which is never written.
unsafe impl Sync for TunerV5 {}
// SAFETY: the name is a constant, which is never written.
unsafe impl Sync for TunerV6 {}

/// The costs of a call: microseconds for each algorithm and protocol. Less than 0 is a pair that NCCL does not offer.
pub(crate) struct CostTable<'a>(pub(crate) &'a mut [[f32; PROTOCOLS.len()]]);

impl CostTable<'_> {
    /// The most algorithms that a table is believed to have.
    pub(crate) const MOST: usize = 64;

    /// The table at an address, which NCCL declares as that of a pointer and uses as that of the first float. `None`
    /// where it is of another form than this version knows.
    ///
    /// # Safety
    /// `at` is null, or has `algorithms` times `protocols` floats, which no other code uses
    /// while the table lives.
    pub(crate) unsafe fn at(
        at: *mut *mut f32,
        algorithms: c_int,
        protocols: c_int,
    ) -> Option<Self> {
        let rows =
            usize::try_from(algorithms).ok().filter(|rows| (1..=Self::MOST).contains(rows))?;
        let first: *mut [f32; PROTOCOLS.len()] = at.cast();
        if first.is_null() || !first.is_aligned() || protocols as usize != PROTOCOLS.len() {
            return None;
        }
        // SAFETY: the caller's promise, and it is aligned.
        Some(Self(unsafe { std::slice::from_raw_parts_mut(first, rows) }))
    }

    /// Returns the pair that NCCL takes, and its microseconds: the first of the cheapest that are offered.
    pub(crate) fn best(&self) -> Option<(usize, usize, f32)> {
        let pairs = self.0.iter().enumerate().flat_map(|(algorithm, row)| {
            row.iter().enumerate().map(move |(protocol, cost)| (algorithm, protocol, *cost))
        });
        let offered = pairs.filter(|(.., cost)| (0.0..f32::MAX).contains(cost));
        offered.reduce(|best, next| if next.2 < best.2 { next } else { best })
    }
}
