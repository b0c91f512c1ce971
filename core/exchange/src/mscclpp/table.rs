//! The ops of a plan by name, with the keys of each op besides `name`. A plan has no version, so an unknown name or key
//! may be of a later executor, and is refused.

use roundelay_core::collective::Collective;
use roundelay_core::diagnostics::near::nearest;

/// The collectives whose results are compared, by the executor's names.
pub(super) const COLLECTIVES: [(Collective, &str); 4] = [
    (Collective::AllReduce, "allreduce"),
    (Collective::AllGather, "allgather"),
    (Collective::ReduceScatter, "reducescatter"),
    (Collective::AllToAll, "alltoall"),
];

/// The name of an op.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// `nop`
    Nop,
    /// `barrier`
    Barrier,
    /// `copy`
    Copy,
    /// `cpkt`
    CopyPackets,
    /// `upkt`
    Unpack,
    /// `signal`
    Signal,
    /// `rlxsignal`
    RelaxedSignal,
    /// `wait`
    Wait,
    /// `rlxwait`
    RelaxedWait,
    /// `flush`
    Flush,
    /// `sem_acquire`
    Acquire,
    /// `sem_release`
    Release,
    /// `put`
    Put,
    /// `ppkt`
    PutPackets,
    /// `rppkt`
    ReadPutPackets,
    /// `pws`
    PutSignal,
    /// `pwsf`
    PutSignalFlush,
    /// `get`
    Get,
    /// `re`
    Reduce,
    /// `res`
    ReduceSend,
    /// `rre`
    ReadReduce,
    /// `rres`
    ReadReduceSend,
    /// `repkt`
    ReducePackets,
    /// `respkt`
    ReduceSendPackets,
    /// `recpkt`
    ReduceCopyPackets,
    /// `recspkt`
    ReduceCopySendPackets,
    /// `glres`
    GroupReduceStore,
    /// `gstore`
    GroupStore,
    /// `gstorepkt`
    GroupStorePackets,
    /// `pipeline`
    Pipeline,
}

const SIGNAL: &[&str] = &["name", "channel_ids", "channel_type"];
const SEMAPHORE: &[&str] = &["name", "semaphore_ids"];
const LOCAL: &[&str] = &["name", "src_buff", "dst_buff", "tbg_info"];
const PUT: &[&str] = &["name", "src_buff", "dst_buff", "channel_type", "channel_ids", "tbg_info"];
const REDUCE: &[&str] = &["name", "src_buff", "dst_buff", "channel_type", "reduce_op", "tbg_info"];

/// Every op: its name, and its keys.
const OPS: [(&str, Name, &[&str]); 30] = [
    ("nop", Name::Nop, &["name"]),
    ("barrier", Name::Barrier, &["name", "barrier_id", "num_threadblocks"]),
    ("copy", Name::Copy, LOCAL),
    ("cpkt", Name::CopyPackets, LOCAL),
    ("upkt", Name::Unpack, LOCAL),
    ("signal", Name::Signal, SIGNAL),
    ("rlxsignal", Name::RelaxedSignal, SIGNAL),
    ("wait", Name::Wait, SIGNAL),
    ("rlxwait", Name::RelaxedWait, SIGNAL),
    ("flush", Name::Flush, SIGNAL),
    ("sem_acquire", Name::Acquire, SEMAPHORE),
    ("sem_release", Name::Release, SEMAPHORE),
    ("put", Name::Put, PUT),
    ("ppkt", Name::PutPackets, PUT),
    ("rppkt", Name::ReadPutPackets, PUT),
    ("pws", Name::PutSignal, PUT),
    ("pwsf", Name::PutSignalFlush, PUT),
    ("get", Name::Get, PUT),
    ("re", Name::Reduce, REDUCE),
    ("res", Name::ReduceSend, REDUCE),
    ("rre", Name::ReadReduce, REDUCE),
    ("rres", Name::ReadReduceSend, REDUCE),
    ("repkt", Name::ReducePackets, REDUCE),
    ("respkt", Name::ReduceSendPackets, REDUCE),
    ("recpkt", Name::ReduceCopyPackets, REDUCE),
    ("recspkt", Name::ReduceCopySendPackets, REDUCE),
    ("glres", Name::GroupReduceStore, REDUCE),
    ("gstore", Name::GroupStore, PUT),
    ("gstorepkt", Name::GroupStorePackets, PUT),
    ("pipeline", Name::Pipeline, &["name", "iter_context", "ops"]),
];

/// The op on a switch that is not read: the executor does not carry it out.
const GROUP_REDUCE: &str = "glre";

impl Name {
    /// Whether the op writes to peers only, by memory or by a proxy.
    pub(super) fn puts(self) -> bool {
        use Name::{Put, PutPackets, PutSignal, PutSignalFlush, ReadPutPackets};
        matches!(self, Put | PutPackets | ReadPutPackets | PutSignal | PutSignalFlush)
    }

    /// Whether the op copies within its rank.
    pub(super) fn is_local(self) -> bool {
        matches!(self, Self::Copy | Self::CopyPackets | Self::Unpack)
    }

    /// Returns the name in a plan.
    pub fn word(self) -> &'static str {
        OPS.iter().find(|(_, name, _)| *name == self).map_or("", |(word, ..)| word)
    }
}

/// Returns the op of a name, with its keys.
pub(super) fn op(word: &str) -> Option<(Name, &'static [&'static str])> {
    OPS.iter().find(|(known, ..)| *known == word).map(|(_, name, keys)| (*name, *keys))
}

/// Whether the op of a name works on a switch, and is not read.
pub(super) fn needs_switch(word: &str) -> bool {
    word == GROUP_REDUCE
}

/// Returns the name that was probably meant.
pub(super) fn meant(word: &str) -> Option<&'static str> {
    nearest(word, OPS.map(|(known, ..)| known))
}

/// The most ops of a block, with the ops of its pipelines.
pub(super) const OPERATIONS: usize = 64;
/// The most channels of one type, and the most remote buffers, of a block.
pub(super) const CHANNELS: usize = 16;
/// The most channels of an op.
pub(super) const CHANNELS_OF_OP: usize = 8;
/// The most sources or destinations of an op.
pub(super) const BUFFERS_OF_OP: usize = 10;
/// The most barriers of a rank.
pub(super) const BARRIERS: u32 = 16;
/// The most semaphores of an op.
pub(super) const SEMAPHORES_OF_OP: usize = 16;
