//! The functions that the library exports, against those of NCCL and of its callers.

use std::collections::BTreeSet;
use std::process::Command;

use roundelay_nccl::Name;

use crate::made::{exported, library, real};

/// What torch 2.15 imports: the list of torch 2.11, and what came since.
const TORCH_2_11: &str = "AllGather AllReduce AlltoAll Bcast Broadcast Reduce ReduceScatter Send Recv
    CommAbort CommCount CommDeregister CommDestroy CommFinalize CommGetAsyncError CommInitAll CommInitRank
    CommInitRankConfig CommInitRankScalable CommRegister CommShrink CommSplit CommUserRank CommWindowRegister
    CommWindowDeregister DevCommCreate DevCommDestroy GetErrorString GetLastError GetUniqueId GetVersion
    GroupStart GroupEnd GroupSimulateEnd MemAlloc MemFree RedOpCreatePreMulSum RedOpDestroy";
const TORCH_2_15: &str =
    "CommGetUniqueId CommGrow CommMemStats CommSuspend CommResume CommRevoke Gather
    GetLsaMultimemDevicePointer GetPeerDevicePointer PutSignal Signal WaitSignal WinGetUserPtr";

#[test]
fn every_function_of_the_newest_nccl_is_exported_and_no_other() {
    let ours: BTreeSet<_> = exported(&library()).into_iter().collect();
    let real: BTreeSet<_> = exported(&real()).into_iter().collect();
    let missing: Vec<_> = real.difference(&ours).collect();
    assert!(missing.is_empty(), "NCCL has {missing:?}");
    assert!(real.len() > 190, "{real:?}");
    // NCCL has no second name for a function of its own, and does not audit.
    let more: Vec<_> = ours.difference(&real).map(String::as_str).collect();
    let known = ["la_objopen", "la_objsearch", "la_version", "pncclResetDebugInitInternal"];
    assert_eq!(more, known);
}

#[test]
fn every_function_has_both_names() {
    let ours: BTreeSet<_> = exported(&library()).into_iter().collect();
    for name in Name::ALL {
        assert!(ours.contains(&name.to_string()) && ours.contains(&format!("p{name}")), "{name}");
    }
}

#[test]
fn torch_finds_what_it_imports() {
    let known: BTreeSet<_> = Name::ALL.iter().map(Name::to_string).collect();
    let (old, new): (Vec<_>, Vec<_>) =
        (TORCH_2_11.split_whitespace().collect(), TORCH_2_15.split_whitespace().collect());
    assert_eq!((old.len(), old.len() + new.len()), (38, 51));
    for name in old.iter().chain(&new) {
        assert!(known.contains(&format!("nccl{name}")), "{name}");
    }
}

/// The loader knows the library as NCCL.
#[test]
fn the_library_has_the_name_of_nccl() {
    let output = Command::new("readelf").arg("-d").arg(library()).output().expect("readelf");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("Library soname: [libnccl.so.2]"), "{text}");
    assert!(!text.contains("NEEDED) Shared library: [libnccl"), "{text}");
}
