//! The library's algorithms for ranks of one host.

use crate::library::{
    MeshAllGather, MeshAllToAll, MeshGather, MeshReduceScatter, MeshScatter, NhrAllReduce,
    NhrBroadcast, OneShotMeshAllReduce, RingReduce,
};
use crate::{Algorithm, Collective};

use super::call::Call;

/// The number of ranks from which a direct exchange takes longer to prove than to run.
const MESH: u32 = 64;

/// Returns the library's algorithm that is the quickest to lay out and prove: on one host the optimizer brings all
/// algorithms to the same data flow.
pub(super) fn of_library(call: &Call, nranks: u32) -> Box<dyn Algorithm> {
    let root = i64::from(call.root);
    match call.collective {
        Collective::AllReduce if nranks <= MESH => Box::new(OneShotMeshAllReduce::new()),
        Collective::AllReduce => Box::new(NhrAllReduce::new()),
        Collective::ReduceScatter => Box::new(MeshReduceScatter::new()),
        Collective::AllGather => Box::new(MeshAllGather::new()),
        Collective::Broadcast => Box::new(NhrBroadcast::new().root(root)),
        Collective::Reduce => Box::new(RingReduce::new().root(root).slices(1)),
        Collective::Scatter => Box::new(MeshScatter::new().root(root)),
        Collective::Gather => Box::new(MeshGather::new().root(root)),
        Collective::AllToAll => Box::new(MeshAllToAll::new()),
    }
}
