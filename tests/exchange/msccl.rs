//! Every algorithm of the library as a program for MSCCL's runtime: read again and proved, or refused for a reason.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use expect_test::expect;
use roundelay::{Algorithm as _, select};
use roundelay_core::diagnostics::{Code, Finding};
use roundelay_core::exchange::msccl::{self, Exported, Options, Protocol, Runtime, export};
use roundelay_core::messages::TwoSided;
use roundelay_core::prove_source;

const PLAIN: Options = Options { protocol: Protocol::Simple, instances: 1, runtime: Runtime::Rccl };

/// The program of an algorithm of the library; `None` where the algorithm refuses so many ranks.
fn exported(name: &str, nranks: u32, options: &Options) -> Option<Result<Exported, Vec<Finding>>> {
    let algorithm = select::library().iter().find(|a| a.name() == name)?;
    let proved = prove_source(algorithm, nranks).ok()?;
    let form = TwoSided::of(&proved).expect("it has the form");
    Some(export(&form, options))
}

/// A line for each algorithm: at which numbers of ranks it is a program, of how many steps in the longest block of how
/// many blocks, for which modes and sizes; or why it is none.
fn table(options: &Options, counts: &[u32]) -> String {
    let mut text = String::new();
    for algorithm in select::library() {
        let mut said: BTreeMap<String, Vec<u32>> = BTreeMap::new();
        for nranks in counts.iter().copied() {
            let what = match exported(algorithm.name(), nranks, options) {
                None => continue,
                Some(Ok(exported)) => {
                    let size = exported.verdict.safe.and_then(|safe| safe.bytes);
                    let modes = exported.verdict.modes.iter().map(|mode| mode.mode.name());
                    let modes = modes.collect::<Vec<_>>().join(", ");
                    match size {
                        None => format!("{modes}, any size"),
                        Some(bytes) => format!("{modes}, up to {bytes} bytes"),
                    }
                }
                Some(Err(findings)) => {
                    assert_eq!(findings[0].code, Code::NotExportable, "{findings:?}");
                    findings[0].title.clone()
                }
            };
            said.entry(what).or_default().push(nranks);
        }
        for (what, nranks) in said {
            let nranks: Vec<_> = nranks.iter().map(ToString::to_string).collect();
            let _ = writeln!(text, "{} at {}: {what}", algorithm.name(), nranks.join(", "));
        }
    }
    text
}

#[test]
fn the_library() {
    expect![[r#"
        RingAllReduce at 2, 3, 5, 8: in place and out of place, any size
        RingReduceScatter at 2, 3, 5, 8: in place and out of place, any size
        RingAllGather at 2, 3, 5, 8: in place and out of place, any size
        RingBroadcast at 2, 3, 5, 8: Broadcast has a root, and programs for MSCCL have none
        RingReduce at 2, 3, 5, 8: Reduce has a root, and programs for MSCCL have none
        NcclRingAllReduce at 2, 3, 5, 8: in place and out of place, any size
        NcclRingReduceScatter at 2, 3, 5, 8: in place and out of place, any size
        NcclRingAllGather at 2, 3, 5, 8: in place and out of place, any size
        NcclRingBroadcast at 2, 3, 5, 8: Broadcast has a root, and programs for MSCCL have none
        NcclRingReduce at 2, 3, 5, 8: Reduce has a root, and programs for MSCCL have none
        TwistedRingAllReduce at 2, 3, 5, 8: in place and out of place, any size
        TwistedRingReduceScatter at 2, 3, 5, 8: in place and out of place, any size
        TwistedRingAllGather at 2, 3, 5, 8: in place and out of place, any size
        MultiRingAllReduce at 2, 3, 5, 8: in place and out of place, any size
        MultiRingReduceScatter at 2, 3, 5, 8: in place and out of place, any size
        MultiRingAllGather at 2, 3, 5, 8: in place and out of place, any size
        TreeAllReduce at 2, 3, 5, 8: in place and out of place, any size
        TreeReduce at 2, 3, 5, 8: Reduce has a root, and programs for MSCCL have none
        TreeBroadcast at 2, 3, 5, 8: Broadcast has a root, and programs for MSCCL have none
        DoubleBinaryTreeAllReduce at 2, 3, 5, 8: in place and out of place, any size
        DoubleBinaryTreeReduce at 2, 3, 5, 8: Reduce has a root, and programs for MSCCL have none
        DoubleBinaryTreeBroadcast at 2, 3, 5, 8: Broadcast has a root, and programs for MSCCL have none
        HalvingDoublingAllReduce at 2, 8: in place and out of place, any size
        HalvingDoublingReduceScatter at 2, 8: in place and out of place, any size
        HalvingDoublingAllGather at 2, 8: in place and out of place, any size
        RecursiveHalvingDoublingAllReduce at 2, 3, 5, 8: in place and out of place, any size
        RecursiveHalvingDoublingReduceScatter at 2, 3, 5, 8: in place and out of place, any size
        RecursiveHalvingDoublingAllGather at 2, 3, 5, 8: in place and out of place, any size
        NhrAllReduce at 2, 3, 5, 8: in place and out of place, any size
        NhrReduceScatter at 2, 3, 5, 8: in place and out of place, any size
        NhrAllGather at 2, 3, 5, 8: in place and out of place, any size
        NhrScatter at 2, 3, 5, 8: Scatter has a root, and programs for MSCCL have none
        NhrBroadcast at 2, 3, 5, 8: Broadcast has a root, and programs for MSCCL have none
        NhrOneShotAllReduce at 2, 3, 5, 8: in place and out of place, any size
        MeshAllReduce at 2, 3, 5, 8: in place and out of place, any size
        OneShotMeshAllReduce at 2, 3, 5, 8: in place and out of place, any size
        MeshReduceScatter at 2, 3, 5, 8: in place and out of place, any size
        MeshAllGather at 2, 3, 5, 8: in place and out of place, any size
        MeshAllToAll at 2, 3, 5, 8: out of place, any size
        MeshScatter at 2, 3, 5, 8: Scatter has a root, and programs for MSCCL have none
        MeshGather at 2, 3, 5, 8: Gather has a root, and programs for MSCCL have none
        OneShotAround at 2, 3, 5, 8: in place and out of place, any size
        TwoShotAround at 2, 3, 5, 8: in place and out of place, any size
        MeshAround at 2, 3, 5, 8: in place and out of place, any size
        MeshAroundReduceScatter at 2, 3, 5, 8: in place and out of place, any size
        MeshAroundAllGather at 2, 3, 5, 8: in place and out of place, any size
        RecursiveDoublingAllReduce at 2, 8: in place and out of place, any size
        RecursiveDoublingAllGather at 2, 8: in place and out of place, any size
        BruckAllGather at 2, 3, 5, 8: in place and out of place, any size
        BruckAllToAll at 2, 3, 5, 8: out of place, any size
        PairwiseAllToAll at 2, 3, 5, 8: out of place, any size
        PairwiseReduceScatter at 2, 3, 5, 8: in place and out of place, any size
        HierarchicalAllReduce at 2, 3, 5, 8: in place and out of place, any size
        HierarchicalReduceScatter at 2, 3, 5, 8: in place and out of place, any size
        HierarchicalAllGather at 2, 3, 5, 8: in place and out of place, any size
        HierarchicalBroadcast at 2, 3, 5, 8: Broadcast has a root, and programs for MSCCL have none
        HierarchicalMeshAllReduce at 2, 3, 5, 8: in place and out of place, any size
    "#]].assert_eq(&table(&PLAIN, &[2, 3, 5, 8]));
}
