//! Common parts of the integration tests: every `.coll` source of the tree, and paths.

use std::path::{Path, PathBuf};

use roundelay_core::check::Frontend;
use roundelay_core::check::dependencies::Dependencies;
use roundelay_core::diagnostics::Diagnostic;
use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_core::layout::{Algorithm as _, Configured};
use roundelay_core::program::CompiledSource;
use roundelay_core::syntax::Source;

/// A source, with the library; paths begin in this package.
pub fn compile(source: &Source, frontend: Frontend) -> Result<CompiledSource, Vec<Diagnostic>> {
    let load = |path: &str| {
        let text = std::fs::read_to_string(root().join("tests").join(path));
        text.map(|text| Source::from_text(path, &text)).map_err(|error| error.to_string())
    };
    let dependencies = Dependencies { prelude: roundelay::library::SOURCES, load: &load };
    roundelay_core::compile_with(source, frontend, &dependencies)
}

/// The library's algorithm of that name.
pub fn named(name: &str) -> &'static Configured {
    let mut all = roundelay::select::library().iter();
    all.find(|algorithm| algorithm.name() == name).unwrap_or_else(|| panic!("no {name}"))
}

/// Whether the tests take the case `at` of a sweep too long to be run whole each time, of which they take one in `every`.
/// `cargo xtask sweeps` runs all of each.
pub fn taken(at: usize, every: usize) -> bool {
    at.is_multiple_of(every) || is_set("ROUNDELAY_WHOLE")
}

/// Whether the tests take the cases of a sweep that a usual run leaves out: `cargo xtask test --all` does, and so does
/// `cargo xtask sweeps`.
pub fn takes_all() -> bool {
    is_set("ROUNDELAY_WHOLE") || std::env::var("ROUNDELAY_TESTS").is_ok_and(|which| which == "all")
}

fn is_set(variable: &str) -> bool {
    std::env::var_os(variable).is_some()
}

/// Returns every dtype with every op that all dtypes have, and then each op of integers with one of these: the kernels'
/// own tests have all pairs, and see errors of an op with one dtype alone.
pub fn kinds() -> Vec<(DType, ReduceOp)> {
    let (of_integers, of_all): (Vec<ReduceOp>, Vec<ReduceOp>) =
        ReduceOp::ALL.iter().partition(|op| op.is_for_integers());
    let integers = DType::ALL.iter().filter(|dtype| !dtype.is_float()).cycle();
    let all = DType::ALL.iter().flat_map(|dtype| of_all.iter().map(|op| (*dtype, *op)));
    all.chain(integers.copied().zip(of_integers)).collect()
}

/// The repository's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The `.coll` files of `folder`, sorted by name: path and text.
pub fn sources(folder: &str) -> Vec<(PathBuf, String)> {
    let folder = root().join(folder);
    let mut paths: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("a readable folder").path())
        .filter(|path| path.extension().is_some_and(|e| e == "coll"))
        .collect();
    paths.sort();
    paths
        .into_iter()
        .map(|path| {
            let text = std::fs::read_to_string(&path).expect("sources are UTF-8");
            (path, text)
        })
        .collect()
}

/// The files of a folder and below that have this extension, sorted by path.
pub fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("a readable entry").path();
        if path.is_dir() {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|e| e == extension) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Every source that is meant to be right.
pub fn right_sources() -> Vec<(PathBuf, String)> {
    ["stdlib/library", "examples", "core/tests/data"].into_iter().flat_map(sources).collect()
}

/// The file's name alone.
pub fn name(path: &Path) -> String {
    path.file_name().expect("a file").to_string_lossy().into_owned()
}

/// Every algorithm of the library, one per line, handed to a macro: families, named as their files, of algorithms, each
/// with the rank counts that it promises to admit and its parameters. A `Topology` is not listed: it only has `rings`
/// found. Tests run over this list and compare it with the sources, so an algorithm is listed only here.
#[macro_export]
macro_rules! library {
    ($then:ident) => {
        $then! {
            ring {
                RingAllReduce any [ring]
                RingReduceScatter any [ring]
                RingAllGather any [ring]
                RingBroadcast any [root slices ring]
                RingReduce any [root slices ring]
            }
            nccl_ring {
                NcclRingAllReduce any [ring credits slices loops handshake]
                NcclRingReduceScatter any [ring credits slices loops]
                NcclRingAllGather any [ring credits slices loops]
                NcclRingBroadcast any [root pieces ring credits slices]
                NcclRingReduce any [root pieces ring credits slices]
            }
            twisted_ring {
                TwistedRingAllReduce any [ring]
                TwistedRingReduceScatter any [ring]
                TwistedRingAllGather any [ring]
            }
            multi_ring {
                MultiRingAllReduce any [rings]
                MultiRingReduceScatter any [rings]
                MultiRingAllGather any [rings]
            }
            tree {
                TreeAllReduce any [tree slices]
                TreeReduce any [root tree slices]
                TreeBroadcast any [root tree slices]
                DoubleBinaryTreeAllReduce any [slices]
                DoubleBinaryTreeReduce any [root slices]
                DoubleBinaryTreeBroadcast any [root slices]
            }
            nccl_tree {
                NcclTreeAllReduce any [tree pieces credits slices]
                NcclDoubleBinaryTreeAllReduce any [pieces credits slices]
            }
            trees {
                TreesAllGather any [trees slices]
                TreesReduceScatter any [trees slices]
                TreesAllReduce any [trees slices at_once down]
                TreesBroadcast any [root trees slices]
                TreesReduce any [root trees slices]
            }
            halving_doubling {
                HalvingDoublingAllReduce power_of_two [near_first]
                HalvingDoublingReduceScatter power_of_two [near_first]
                HalvingDoublingAllGather power_of_two [far_first]
                RecursiveHalvingDoublingAllReduce any []
                RecursiveHalvingDoublingReduceScatter any []
                RecursiveHalvingDoublingAllGather any []
            }
            nhr {
                NhrAllReduce any [reorder]
                NhrReduceScatter any []
                NhrAllGather any []
                NhrScatter any [root]
                NhrBroadcast any [root]
                NhrOneShotAllReduce any [root]
            }
            mesh {
                MeshAllReduce any []
                OneShotMeshAllReduce any []
                MeshReduceScatter any []
                MeshAllGather any []
                MeshAllToAll any []
                MeshScatter any [root]
                MeshGather any [root]
            }
            switch {
                SwitchAllReduce any []
                OneShotSwitchAllReduce any []
                SwitchReduceScatter any []
                SwitchAllGather any []
            }
            ordered {
                OrderedAllReduce any []
                OrderedOneShotAllReduce any []
                OrderedReduceScatter any []
                OrderedReduce any [root]
            }
            pushed {
                PushedOneShotAllReduce any []
                PushedMeshAllReduce any []
            }
            around {
                OneShotAround any []
                TwoShotAround any [hubs]
                MeshAround any [shares slices]
                MeshAroundReduceScatter any [slices]
                MeshAroundAllGather any []
            }
            doubling {
                RecursiveDoublingAllReduce power_of_two []
                RecursiveDoublingAllGather power_of_two []
            }
            bruck {
                BruckAllGather any []
                BruckAllToAll any []
            }
            pairwise {
                PairwiseAllToAll any []
                PairwiseReduceScatter any []
            }
            hierarchical {
                HierarchicalAllReduce any [groups ring_inside ring_across]
                HierarchicalReduceScatter any [groups ring_inside ring_across]
                HierarchicalAllGather any [groups ring_inside ring_across]
                HierarchicalBroadcast any [root groups slices]
                SwitchIslandsAllReduce any [groups]
                CollNetAllReduce any [groups]
            }
            islands {
                HierarchicalMeshAllReduce any [groups parts slices]
            }
        }
    };
}
