//! The table of choices: which calls we make faster than MPI does. It was measured on two cores, with 2, 4 and 8 ranks,
//! for blocks of 4 B to 64 MB (`cargo xtask mpi bench`), and with 4 ranks on each of two hosts (`cargo xtask mpi
//! hosts`); where we were not faster, and for calls that were not measured, calls are MPI's.

use std::ops::RangeInclusive;

use crate::call::MpiCollective;

/// The maker of an MPI library, as far as it matters for the library's speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Maker {
    OpenMpi,
    Mpich,
    /// The quickest on one host; an unknown library counts as this one.
    Intel,
}

impl Maker {
    /// Returns the maker by the version text of a library.
    pub(crate) fn of(version: &str) -> Self {
        match version {
            text if text.contains("Open MPI") => Self::OpenMpi,
            text if text.contains("MPICH") => Self::Mpich,
            _ => Self::Intel,
        }
    }
}

/// The properties of a call that the choice depends on. They are equal on all ranks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallShape {
    pub(crate) what: MpiCollective,
    /// Bytes of a block: the data from a rank to another, or the whole buffer of a reduction or a broadcast.
    pub(crate) block: u64,
    pub(crate) nranks: u32,
    /// Hosts that the ranks are on.
    pub(crate) hosts: usize,
    /// Whether ranks outnumber cores.
    pub(crate) crowded: bool,
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const END: u64 = u64::MAX;

impl CallShape {
    /// Whether we are faster.
    pub(crate) fn is_faster(self, than: Maker) -> bool {
        let is_in = |range: Option<RangeInclusive<u64>>| {
            range.is_some_and(|range| range.contains(&self.block))
        };
        if self.hosts > 1 {
            return is_in(self.faster_across(than));
        }
        is_in(self.faster(than)) && !is_in(self.slower(than))
    }

    /// Returns the blocks among those of [`Self::faster`] for which MPI is faster nevertheless.
    fn slower(self, than: Maker) -> Option<RangeInclusive<u64>> {
        match (than, self.crowded, self.what) {
            (Maker::Intel, true, MpiCollective::Allgather) if self.nranks < 8 => {
                Some(3 * MIB..=6 * MIB)
            }
            (Maker::Intel, false, MpiCollective::Allreduce) => Some(12 * MIB..=24 * MIB),
            _ => None,
        }
    }

    /// Returns the blocks for which we are faster on several hosts.
    fn faster_across(self, than: Maker) -> Option<RangeInclusive<u64>> {
        match (than, self.crowded, self.what) {
            (Maker::OpenMpi | Maker::Mpich, true, MpiCollective::Allreduce) => Some(0..=END),
            _ => None,
        }
    }

    /// Returns the blocks for which we are faster on one host.
    fn faster(self, than: Maker) -> Option<RangeInclusive<u64>> {
        use MpiCollective::{Allgather, Allreduce, Bcast, ReduceScatterBlock};
        Some(match (than, self.crowded, self.what) {
            // MPI's ranks keep their cores while they wait.
            (Maker::Mpich, true, _)
            | (Maker::OpenMpi, true, Allreduce | Allgather | ReduceScatterBlock) => 0..=END,
            (Maker::Intel, true, Allgather | ReduceScatterBlock)
            | (Maker::OpenMpi, false, ReduceScatterBlock) => KIB..=END,
            (Maker::OpenMpi, true, Bcast) => 8 * KIB..=END,
            (Maker::Intel, true, Allreduce) => KIB..=MIB / 2,
            (Maker::Intel, true, Bcast) | (Maker::Mpich, false, Allgather) => KIB..=256 * KIB,
            (Maker::OpenMpi | Maker::Mpich, false, Allreduce) => 4 * KIB..=END,
            (Maker::Mpich, false, ReduceScatterBlock) => KIB..=MIB,
            (Maker::Intel, false, Allreduce) => 4 * MIB..=END,
            (Maker::Intel, false, ReduceScatterBlock) => 32 * KIB..=END,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{CallShape, Maker, MpiCollective};

    #[test]
    fn makers_are_known_by_what_they_say() {
        let makers =
            ["Open MPI v5.0.11, package", "MPICH Version: 5.0.2", "Intel(R) MPI Library 2021"];
        assert_eq!(makers.map(Maker::of), [Maker::OpenMpi, Maker::Mpich, Maker::Intel]);
    }

    #[test]
    fn the_table_is_by_maker_cores_hosts_and_size() {
        let shape = |block, hosts, crowded| CallShape {
            what: MpiCollective::Allreduce,
            block,
            nranks: 4,
            hosts,
            crowded,
        };
        assert!(shape(4096, 1, false).is_faster(Maker::OpenMpi));
        assert!(!shape(4095, 1, false).is_faster(Maker::OpenMpi));
        assert!(!shape(4096, 1, false).is_faster(Maker::Intel));
        assert!(shape(4096, 1, true).is_faster(Maker::Intel));
        assert!(shape(1 << 20, 2, true).is_faster(Maker::OpenMpi));
        assert!(!shape(1 << 20, 2, false).is_faster(Maker::OpenMpi));
        assert!(!shape(1 << 20, 2, true).is_faster(Maker::Intel));
        assert!(
            [8 << 20, 32 << 20].map(|at| shape(at, 1, false).is_faster(Maker::Intel)) == [true; 2]
        );
        assert!(!shape(16 << 20, 1, false).is_faster(Maker::Intel));
        let gathers = |nranks| CallShape {
            what: MpiCollective::Allgather,
            nranks,
            ..shape(4 << 20, 1, true)
        };
        assert_eq!([4, 8].map(|n| gathers(n).is_faster(Maker::Intel)), [false, true]);
        assert!(
            !CallShape { what: MpiCollective::Gather, ..shape(4096, 1, true) }
                .is_faster(Maker::OpenMpi)
        );
    }
}
