//! The names of collectives. Each runtime reads names of its own, and refuses a program with any other name.

use super::runtime::Runtime;
use roundelay_core::collective::Collective;
use roundelay_core::diagnostics::near::nearest;

/// The promise of a program, as far as the name of its collective tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Promise {
    /// A collective whose result is compared.
    Of(Collective),
    /// No result can be compared, for this reason.
    Open(&'static str),
}

/// A collective of the runtimes: its promise, and the name that each runtime reads, in the order of [`Runtime::ALL`].
pub(super) type NameRow = (Promise, [Option<&'static str>; 3]);

const ROOT: Promise = Promise::Open("the call alone says which rank is the root");
const COUNTS: Promise = Promise::Open("the call alone says what goes where");
const CUSTOM: Promise = Promise::Open("the program alone says what goes where");

/// Every collective: RCCL, `msccl-executor-nccl`, `microsoft/msccl`.
const NAMES: [NameRow; 12] = [
    (Promise::Of(Collective::AllReduce), [Some("allreduce"), Some("allreduce"), Some("allreduce")]),
    (Promise::Of(Collective::AllGather), [Some("allgather"), Some("allgather"), Some("allgather")]),
    (
        Promise::Of(Collective::ReduceScatter),
        [Some("reducescatter"), Some("reducescatter"), Some("reduce_scatter")],
    ),
    (Promise::Of(Collective::AllToAll), [Some("alltoall"), Some("alltoall"), Some("alltoall")]),
    (ROOT, [Some("broadcast"), Some("broadcast"), Some("broadcast")]),
    (ROOT, [Some("reduce"), Some("reduce"), Some("reduce")]),
    (ROOT, [Some("gather"), Some("gather"), None]),
    (ROOT, [Some("scatter"), Some("scatter"), None]),
    (COUNTS, [Some("alltoallv"), Some("alltoallv"), None]),
    (COUNTS, [Some("send"), Some("send"), None]),
    (COUNTS, [Some("recv"), Some("recv"), None]),
    (CUSTOM, [None, None, Some("custom")]),
];

/// Returns the collective of a name that some runtime reads.
pub(super) fn collective(name: &str) -> Option<&'static NameRow> {
    NAMES.iter().find(|(_, names)| names.contains(&Some(name)))
}

/// Returns the runtimes that refuse `name`.
pub(super) fn refusing(name: &str) -> Vec<Runtime> {
    let reads = |runtime: &Runtime| NAMES.iter().any(|row| read_by(row, *runtime) == Some(name));
    Runtime::ALL.into_iter().filter(|runtime| !reads(runtime)).collect()
}

/// Returns the name of a collective that a runtime reads.
pub(super) fn read_by((_, names): &NameRow, runtime: Runtime) -> Option<&'static str> {
    names[runtime as usize]
}

/// Returns the name that a runtime reads for a collective that has one.
pub(super) fn written(promised: Collective, runtime: Runtime) -> Option<&'static str> {
    let row = NAMES.iter().find(|(promise, _)| *promise == Promise::Of(promised))?;
    read_by(row, runtime)
}

/// Returns the name that was probably meant by one that no runtime reads.
pub(super) fn meant(name: &str, runtime: Option<Runtime>) -> Option<&'static str> {
    let runtimes = runtime.map_or(Runtime::ALL.to_vec(), |runtime| vec![runtime]);
    let names = NAMES.iter().flat_map(|row| runtimes.iter().map(|one| read_by(row, *one)));
    nearest(name, names.flatten())
}
