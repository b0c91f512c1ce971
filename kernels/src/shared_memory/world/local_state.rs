//! The state of a rank that only this rank uses, for one call at a time.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::call_sites::CallSites;
use super::memory::arena::RING;
use super::reach::Reach;
use super::ways::trials::Trials;
use crate::call_numbers::CallNumbers;

/// The state of a rank that only this rank uses, by the part of the engine that uses it.
pub(crate) struct LocalState {
    pub(crate) call: CallState,
    pub(crate) stage: StageState,
    pub(crate) sites: SiteState,
}

/// The part of the calls: how far this rank knows itself and the other ranks to be.
pub(crate) struct CallState {
    pub(crate) numbers: CallNumbers,
    /// The last call of each rank that this rank knows to be done.
    pub(crate) finished: Box<[u64]>,
}

/// The part of the staging: the places of data, and the signals beside it.
pub(crate) struct StageState {
    /// The number of slots that the rank has used.
    pub(crate) slots: u64,
    /// The last use of each slot.
    pub(crate) uses: [Use; RING as usize],
    /// The number of each rank's slot with the first tile of this call, or the address in its place in the header.
    pub(crate) first: Box<[u64]>,
    /// The address of each rank's buffer in its own memory in this call, if other ranks are to read it there; else 0.
    pub(crate) lent: Box<[u64]>,
    pub(crate) reach: Reach,
    /// The positions of each rank's buffers in this call, if they lie in the arena.
    pub(crate) places: Box<[[u64; 2]]>,
    /// The large buffers in heaps whose pages this process has had looked up.
    pub(crate) seen: BTreeSet<(usize, usize)>,
    /// The number of tiles that all ranks have made together.
    pub(crate) made: u64,
    pub(crate) trials: Trials,
    /// The numbers of signals that the rank has posted to each rank and taken from each rank.
    pub(crate) posted: Vec<Vec<u64>>,
    pub(crate) taken: Vec<Vec<u64>>,
}

/// The part of the sites: what observers have been told about this rank's program.
pub(crate) struct SiteState {
    /// The identities of the calls whose algorithms this rank has seen to be named.
    pub(crate) named: Vec<u64>,
    /// The sites of the rank's calls, if they are kept.
    pub(crate) kept: Option<CallSites>,
}

/// The last tile in a slot, and the ranks that read it.
#[derive(Clone, Default)]
pub(crate) struct Use {
    pub(crate) number: u64,
    pub(crate) tiles: u64,
    pub(crate) readers: Arc<[usize]>,
}

impl LocalState {
    /// Returns the state of a rank of `n` ranks before its first call; `sites` says whether it keeps the sites of calls.
    pub(crate) fn new(n: usize, reach: Reach, sites: bool) -> Self {
        Self {
            call: CallState { numbers: CallNumbers::default(), finished: vec![0; n].into() },
            stage: StageState {
                slots: 0,
                uses: Default::default(),
                first: vec![0; n].into(),
                lent: vec![0; n].into(),
                reach,
                places: vec![[0; 2]; n].into(),
                seen: BTreeSet::new(),
                made: 0,
                trials: Trials::default(),
                posted: vec![Vec::new(); n],
                taken: vec![Vec::new(); n],
            },
            sites: SiteState { named: Vec::new(), kept: sites.then(CallSites::default) },
        }
    }
}
