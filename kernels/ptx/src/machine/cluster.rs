//! The barrier of a cluster, to which threads come, and for which they wait later.

use super::Machine;
use super::image::lanes;
use super::warp::State;
use crate::memory::{Clock, Release};
use crate::program::Scope;

/// Lanes of warps, with their numbers.
type WarpLanes = Vec<(usize, u32)>;

/// The barrier of a cluster.
#[derive(Debug, Default)]
pub(super) struct ClusterBarrier {
    /// The lanes that have come since it was complete.
    come: WarpLanes,
    /// What they have released.
    releases: Vec<Release>,
    /// The lanes that have come before it was complete, and have not waited yet.
    passed: WarpLanes,
    /// What all had released then.
    told: Option<Clock>,
}

fn of(list: &WarpLanes, warp: usize) -> u32 {
    list.iter().filter(|(number, _)| *number == warp).fold(0, |all, (_, lanes)| all | lanes)
}

impl Machine<'_> {
    /// Lets lanes come to the barrier of their cluster.
    pub(super) fn arrive_in_cluster(&mut self, warp: usize, mask: u32, releases: bool) {
        self.counters_of(warp).barriers += 1;
        let cluster = self.blocks[self.warps[warp].block].cluster;
        let first = self.warps[warp].first;
        let barrier = self.clusters.entry(cluster).or_default();
        barrier.come.push((warp, mask));
        for lane in lanes(mask).filter(|_| releases) {
            barrier.releases.push(self.memory.clocks.release(first + lane, Scope::Cluster));
        }
        self.progress();
        self.complete_cluster(cluster);
    }

    /// Lets the threads of a cluster go on, if all that have not ended have come to its barrier.
    pub(super) fn complete_cluster(&mut self, cluster: u32) {
        let Some(barrier) = self.clusters.get_mut(&cluster) else { return };
        let launch = self.blocks[cluster as usize].rank as usize;
        let blocks = cluster as usize..(cluster + self.launches[launch].cluster[0]) as usize;
        let running = || blocks.clone().filter(|&block| !self.blocks[block].has_ended);
        let mut warps = running().flat_map(|block| &self.blocks[block].warps);
        let all_come = warps.all(|&warp| self.warps[warp].live & !of(&barrier.come, warp) == 0);
        if !all_come || barrier.come.is_empty() {
            return;
        }
        barrier.passed.append(&mut barrier.come);
        barrier.told = Some(self.memory.clocks.told(&std::mem::take(&mut barrier.releases)));
        for block in running().collect::<Vec<_>>() {
            for &warp in &self.blocks[block].warps {
                for group in &mut self.warps[warp].groups {
                    if group.state == State::Cluster {
                        group.state = State::Ready;
                    }
                }
            }
        }
        self.progress();
    }

    /// Lets a group wait at the barrier of its cluster. Returns whether it waits.
    pub(super) fn wait_in_cluster(&mut self, warp: usize, group: usize, acquires: bool) -> bool {
        let cluster = self.blocks[self.warps[warp].block].cluster;
        let (mask, first) = (self.warps[warp].groups[group].lanes, self.warps[warp].first);
        let barrier = self.clusters.entry(cluster).or_default();
        if mask & !of(&barrier.passed, warp) != 0 {
            self.warps[warp].groups[group].state = State::Cluster;
            return true;
        }
        for (number, lanes) in &mut barrier.passed {
            *lanes &= if *number == warp { !mask } else { u32::MAX };
        }
        barrier.passed.retain(|(_, lanes)| *lanes != 0);
        if let Some(told) = barrier.told.as_ref().filter(|_| acquires) {
            for lane in lanes(mask) {
                self.memory.clocks.know(first + lane, told);
            }
        }
        false
    }
}
