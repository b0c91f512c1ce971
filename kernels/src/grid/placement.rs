//! The placement of ranks on devices.

use std::ops::Range;

use roundelay_core::ids::RankId;
use roundelay_export::cuda::Group;

/// Ranks dealt to devices in rows, as evenly as possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The number of devices.
    pub devices: usize,
    /// The number of ranks.
    pub nranks: u32,
}

impl Placement {
    /// The ranks of a device.
    pub fn ranks(self, device: usize) -> Range<u32> {
        let bound = |device: usize| {
            let (device, devices) = (device as u64, self.devices.max(1) as u64);
            (u64::from(self.nranks) * device / devices) as u32
        };
        bound(device)..bound(device + 1)
    }

    /// The device of a rank.
    pub fn device(self, rank: RankId) -> usize {
        (0..self.devices).find(|device| self.ranks(*device).contains(&rank.0)).unwrap_or(0)
    }

    /// The streams of a device, which are in the order of their ranks.
    pub fn groups(self, device: usize, groups: &[Group]) -> Range<usize> {
        let ranks = self.ranks(device);
        let bound = |rank| groups.partition_point(|group| group.rank.0 < rank);
        bound(ranks.start)..bound(ranks.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_and_stream_is_on_one_device() {
        for (devices, nranks) in [(1, 8), (2, 8), (3, 8), (4, 3), (8, 8)] {
            let placement = Placement { devices, nranks };
            // Rank r has r % 3 + 1 streams.
            let streams = |rank: u32| (0..=rank % 3).map(move |stream| (rank, stream));
            let groups: Vec<Group> = (0..nranks)
                .flat_map(streams)
                .map(|(rank, stream)| Group { rank: RankId(rank), stream })
                .collect();
            let (mut ranks, mut at) = (0, 0);
            for device in 0..devices {
                let (mine, range) = (placement.ranks(device), placement.groups(device, &groups));
                assert_eq!((mine.start, range.start), (ranks, at), "{devices} {nranks}");
                (ranks, at) = (mine.end, range.end);
                for group in &groups[range] {
                    assert_eq!(placement.device(group.rank), device);
                }
                let even = nranks as usize / devices;
                assert!((even..=even + 1).contains(&mine.len()), "{mine:?}");
            }
            assert_eq!((ranks, at), (nranks, groups.len()));
        }
    }
}
