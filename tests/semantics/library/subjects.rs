//! Every algorithm of the library, a line each: which rank counts it admits, and which parameters it has. The
//! tests of the library run over this list, so an algorithm is listed once and nowhere else.

use roundelay::Algorithm;
use roundelay_core::check::Door;
use roundelay_core::check::hir::Ty;
use roundelay_core::source::Source;
use roundelay_tests::compile;

use super::values::Values;

/// Hands the list to a macro: families, named as their files, of algorithms, each with the rank counts that it
/// promises to admit and its parameters. A `Topology` is not listed: it only has `rings` found.
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
            }
        }
    };
}
pub(super) use library;

/// An algorithm of the library, to be given values.
#[derive(Clone, Copy)]
pub(super) struct Subject {
    pub(super) family: &'static str,
    pub(super) name: &'static str,
    /// Whether the family promises to admit so many ranks.
    pub(super) admits: fn(u32) -> bool,
    pub(super) params: &'static [&'static str],
    /// The algorithm with all its parameters set.
    pub(super) with: fn(&Values) -> Box<dyn Algorithm>,
}

fn any(_: u32) -> bool {
    true
}

fn power_of_two(nranks: u32) -> bool {
    nranks.is_power_of_two()
}

macro_rules! list {
    ($($family:ident { $($name:ident $admits:ident [$($param:ident)*])* })*) => {
        [$($(Subject {
            family: stringify!($family),
            name: stringify!($name),
            admits: $admits,
            params: &[$(stringify!($param)),*],
            with: |_values| Box::new(
                roundelay::library::$name::new()$(.$param(_values.$param.clone()))*
            ),
        }),*),*].to_vec()
    };
}

/// All of them.
pub(super) fn all() -> Vec<Subject> {
    library!(list)
}

/// Those of one file.
pub(super) fn family(name: &str) -> Vec<Subject> {
    all().into_iter().filter(|subject| subject.family == name).collect()
}

/// The list against the files: a new algorithm, a new file and a new parameter each fail here until they are listed.
#[test]
fn the_list_is_the_library() {
    let mut listed = Vec::new();
    for subject in all() {
        listed.push((subject.family.to_owned(), subject.name.to_owned(), subject.params.join(" ")));
    }
    let mut declared = Vec::new();
    for (file, text) in roundelay::library::SOURCES {
        let source = Source::from_text(*file, text);
        for algorithm in compile(&source, Door::File).expect("the library is right").algorithms {
            let params = algorithm.params.iter().map(|param| &algorithm.vars[param.var.0 as usize]);
            let varied = params.filter(|param| param.ty != Ty::Topology);
            let names: Vec<_> = varied.map(|param| param.name.as_str()).collect();
            let family = file.strip_suffix(".coll").expect("a source's name");
            declared.push((family.to_owned(), algorithm.name.clone(), names.join(" ")));
        }
    }
    assert_eq!(listed, declared);
}
