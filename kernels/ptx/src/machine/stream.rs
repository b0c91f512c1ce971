//! Launches that run one after another, as the launches of a CUDA stream do, or where events order them.

use std::ops::Range;

use super::fault::Where;
use super::image::{first_lanes, lanes};
use super::rank::RankLaunch;
use super::warp::State;
use super::{Machine, Occupant};
use crate::assumptions::Assumption;
use crate::memory::{Clock, Home, LANES};

/// A launch among the others of a run.
#[derive(Debug)]
pub(super) struct InStream {
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
    pub(super) cluster: [u32; 3],
    /// The frame of its kernel.
    pub(super) kernel: usize,
    /// The number of its kernel's module.
    pub(super) module: usize,
    /// The number of its variables.
    pub(super) variables: u32,
    device: u32,
    number: usize,
    /// Its blocks among all blocks.
    pub(super) blocks: Range<usize>,
    /// The warps that it runs in, block by block.
    pub(super) columns: Vec<u32>,
    /// The number of its blocks that have begun.
    begun_blocks: usize,
    /// The number of its blocks that have ended.
    ended_blocks: usize,
    /// The launches that it is given to run after.
    pub(super) after: Vec<usize>,
    /// Whether it may begin before they have ended.
    pub(super) early: bool,
    /// What its threads know at the start; none before it has begun.
    start: Option<Clock>,
    /// What is known behind its end; none before it has ended, and where no launch needs it any more.
    end: Option<Clock>,
    has_ended: bool,
    /// The number of launches that begin behind its end, or may wait for it, and have not.
    needed: usize,
}

/// A set of launches, by their numbers.
#[derive(Clone, Debug, Default)]
struct Set(Vec<u64>);

impl Set {
    fn insert(&mut self, number: usize) {
        self.0.resize(self.0.len().max(number / 64 + 1), 0);
        self.0[number / 64] |= 1 << (number % 64);
    }

    fn has(&self, number: usize) -> bool {
        self.0.get(number / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    fn extend(&mut self, other: &Self) {
        self.0.resize(self.0.len().max(other.0.len()), 0);
        self.0.iter_mut().zip(&other.0).for_each(|(word, more)| *word |= more);
    }
}

/// The warps of a run: a launch takes over those of launches that have ended when it begins.
#[derive(Debug, Default)]
pub(super) struct Columns {
    /// The launch that has a warp last, and its device.
    last: Vec<(usize, u32)>,
    /// For each launch those that have ended when it begins, and all that it is behind.
    before: Vec<[Set; 2]>,
}

impl Columns {
    /// Takes warps for a launch. None: there would be too many.
    pub(super) fn take(&mut self, launch: &InStream, warps: u64) -> Option<Vec<u32>> {
        let (number, device) = (launch.number, launch.device);
        let mut sets = [Set::default(), Set::default()];
        for &after in &launch.after {
            let [before, behind] = &self.before[after];
            sets[1].extend(behind);
            sets[1].insert(after);
            if launch.early {
                sets[0].extend(before);
            }
        }
        if !launch.early {
            sets[0] = sets[1].clone();
        }
        let is_free = |last: &(usize, u32)| last.1 == device && sets[0].has(last.0);
        let free = (0..).zip(&self.last).filter(|(_, last)| is_free(last));
        let mut taken: Vec<u32> = free.map(|(column, _)| column).take(warps as usize).collect();
        for &column in &taken {
            self.last[column as usize] = (number, device);
        }
        self.before.push(sets);
        let more = warps as usize - taken.len();
        if self.last.len() + more > MOST_WARPS {
            return None;
        }
        taken.extend(self.last.len() as u32..(self.last.len() + more) as u32);
        self.last.resize(self.last.len() + more, (number, device));
        Some(taken)
    }

    pub(super) fn count(&self) -> usize {
        self.last.len()
    }
}

/// The warps of a run at most.
const MOST_WARPS: usize = 1 << 20;

impl InStream {
    /// A launch of a kernel's frame of a module.
    pub(super) fn new(rank: &RankLaunch, (kernel, module): (usize, usize), number: usize) -> Self {
        Self {
            grid: rank.grid,
            block: rank.block,
            cluster: rank.cluster,
            kernel,
            module,
            variables: 0,
            device: rank.device,
            number,
            blocks: 0..0,
            columns: Vec::new(),
            begun_blocks: 0,
            ended_blocks: 0,
            after: rank.after.clone(),
            early: rank.early,
            start: None,
            end: None,
            has_ended: false,
            needed: 0,
        }
    }

    /// The lanes of a warp of a block that have threads.
    fn lanes_of(&self, in_block: u32) -> u32 {
        first_lanes(self.block.iter().product::<u32>() - in_block * LANES)
    }

    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Whether all its blocks have begun.
    fn has_begun(&self) -> bool {
        self.has_ended || self.start.is_some() && self.begun_blocks == self.blocks.len()
    }
}

impl Machine<'_> {
    /// Counts for each launch those that need its end, before the run.
    pub(super) fn count_needs(&mut self) {
        for number in 0..self.launches.len() {
            for before in self.ends_before(number) {
                self.launches[before].needed += 1;
            }
        }
    }

    /// Begins the launches that may begin, and the blocks for which there is room.
    pub(super) fn begin_launches(&mut self) {
        while self.launches.get(self.first_open).is_some_and(InStream::has_begun) {
            self.first_open += 1;
        }
        let mut number = self.first_open;
        while number < self.launches.len() {
            let launch = &self.launches[number];
            let is_open = launch.start.is_none() && !launch.has_ended;
            if is_open && self.may_begin(number) {
                self.begin_launch(number);
                if self.end_launch(number) {
                    // One without blocks has ended at once, and others may be behind it.
                    number = self.first_open;
                    continue;
                }
            }
            self.begin_blocks(number);
            number += 1;
        }
    }

    /// Launches whose ends are before a launch, or that those before it may have begun beside.
    fn ends_before(&self, number: usize) -> Vec<usize> {
        let mut all: Vec<usize> = self.launches[number].after.clone();
        let mut next = 0;
        while let Some(&before) = all.get(next) {
            if self.launches[before].early {
                let more = self.launches[before].after.iter().filter(|after| !all.contains(after));
                all.extend(more.copied().collect::<Vec<_>>());
            }
            next += 1;
        }
        all
    }

    fn may_begin(&self, number: usize) -> bool {
        let launch = &self.launches[number];
        if !launch.early {
            return self.ends_before(number).iter().all(|&before| self.launches[before].has_ended);
        }
        launch.after.iter().all(|&after| {
            let after = &self.launches[after];
            let is_done = |block: usize| self.blocks[block].is_done();
            after.has_ended || after.start.is_some() && after.blocks.clone().all(is_done)
        })
    }

    fn begin_launch(&mut self, number: usize) {
        let launch = &self.launches[number];
        let before: Vec<Clock> = if launch.early {
            let starts = launch.after.iter().map(|&after| self.launches[after].start.clone());
            starts.flatten().collect()
        } else {
            let ends = self.ends_before(number);
            ends.iter().filter_map(|&before| self.launches[before].end.clone()).collect()
        };
        let start = self.memory.clocks.known_by(&[], before.into_iter());
        self.launches[number].start = Some(start);
        if !self.launches[number].early {
            self.needs_no_more(number);
        }
    }

    /// Notes that a launch has begun behind the ends of others, or has ended itself.
    fn needs_no_more(&mut self, number: usize) {
        for before in self.ends_before(number) {
            let before = &mut self.launches[before];
            before.needed -= 1;
            if before.needed == 0 && before.has_ended {
                (before.start, before.end) = (None, None);
            }
        }
    }

    fn begin_blocks(&mut self, number: usize) {
        let launch = &self.launches[number];
        let in_cluster = launch.cluster.iter().product::<u32>() as usize;
        let device = launch.device;
        while self.launches[number].start.is_some()
            && self.launches[number].begun_blocks < self.launches[number].blocks.len()
            && self.has_room(device, in_cluster)
        {
            for _ in 0..in_cluster {
                let launch = &mut self.launches[number];
                launch.begun_blocks += 1;
                let block = launch.blocks.start + launch.begun_blocks - 1;
                self.begin_block(number, block);
            }
        }
    }

    fn has_room(&self, device: u32, blocks: usize) -> bool {
        if self.assumptions.has(&Assumption::Resident) {
            return true;
        }
        let of_device = self.launches.iter().filter(|launch| launch.device == device);
        let running: usize = of_device.map(|l| l.begun_blocks - l.ended_blocks).sum();
        running == 0 || running + blocks <= self.limits.resident_blocks as usize
    }

    fn begin_block(&mut self, number: usize, block: usize) {
        let launch = &self.launches[number];
        let Some(start) = &launch.start else { return };
        let rank = &self.ranks[number];
        let sizes = &self.image.sizes[launch.module];
        let first = (launch.kernel, self.image.frames[launch.kernel].first);
        let home = Home {
            block: block as u32,
            cluster: self.blocks[block].cluster,
            in_cluster: launch.cluster[0],
            rank: number as u32,
            device: launch.device,
        };
        let releases = self.assumptions.has(&Assumption::StartReleases);
        self.memory.begin_block(block as u32, sizes.shared + u64::from(rank.dynamic_shared));
        for (in_block, &column) in (0..).zip(&self.blocks[block].warps) {
            let lanes_of_warp = launch.lanes_of(in_block);
            let epoch = self.memory.clocks.begin(column as u32, home, start, releases);
            let occupant = Occupant { epoch, block: block as u32, in_block };
            self.occupants[column].push(occupant);
            self.warps[column].begin((block, in_block), lanes_of_warp, first, sizes.registers);
            for lane in lanes(lanes_of_warp) {
                let thread = column as u32 * LANES + lane;
                self.memory.begin_thread(thread, &rank.parameters);
            }
        }
        self.blocks[block].live = self.blocks[block].warps.len();
    }

    /// Notes that all lanes of a warp have ended.
    pub(super) fn end_warp(&mut self, warp: usize) {
        self.warps[warp].end();
        let block = self.warps[warp].block;
        self.blocks[block].live -= 1;
        if self.blocks[block].live > 0 {
            return;
        }
        self.blocks[block].has_ended = true;
        self.memory.end_block(block as u32);
        let number = self.blocks[block].rank as usize;
        self.launches[number].ended_blocks += 1;
        self.end_launch(number);
        self.begin_launches();
    }

    /// Ends a launch, all of whose blocks have ended. Returns whether it has.
    fn end_launch(&mut self, number: usize) -> bool {
        let launch = &self.launches[number];
        if launch.has_ended || launch.ended_blocks < launch.blocks.len() {
            return false;
        }
        let others = launch.start.iter().cloned();
        let end = self.memory.clocks.known_by(&launch.columns, others);
        let launch = &mut self.launches[number];
        launch.has_ended = true;
        if launch.needed > 0 {
            launch.end = Some(end);
        } else {
            launch.start = None;
        }
        if launch.early {
            self.needs_no_more(number);
        }
        self.wake_behind();
        true
    }

    /// Notes that a block says that launches which may begin early need not wait for it.
    pub(super) fn launch_dependents(&mut self, warp: usize) {
        let block = self.warps[warp].block;
        if !std::mem::replace(&mut self.blocks[block].lets_launch, true) {
            self.progress();
            self.begin_launches();
        }
    }

    /// Lets lanes wait for the end of the launches before their own. Returns whether they do.
    pub(super) fn wait_for_launches(&mut self, warp: usize, group: usize) -> bool {
        let number = self.rank(warp);
        let after = &self.launches[number].after;
        let all_ended = after.iter().all(|&after| self.launches[after].has_ended());
        if !all_ended {
            self.warps[warp].groups[group].state = State::Launches;
            return true;
        }
        let ends: Vec<Clock> =
            after.iter().filter_map(|&after| self.launches[after].end.clone()).collect();
        for lane in lanes(self.warps[warp].groups[group].lanes) {
            let thread = self.warps[warp].first + lane;
            for end in &ends {
                self.memory.clocks.know(thread, end);
            }
        }
        false
    }

    /// Lets lanes look again that wait for the ends of launches.
    fn wake_behind(&mut self) {
        for group in self.warps.iter_mut().flat_map(|warp| &mut warp.groups) {
            if group.state == State::Launches {
                group.state = State::Ready;
            }
        }
    }

    /// The launches and blocks that have not begun, with what they wait for.
    pub(super) fn not_begun(&self) -> impl Iterator<Item = (Where, String)> {
        let open = |launch: &&InStream| !launch.has_begun();
        self.launches.iter().filter(open).map(|launch| {
            let function = self.image.frames[launch.kernel].function;
            let at = Where {
                rank: launch.number as u32,
                block: launch.begun_blocks as u32,
                warp: 0,
                lanes: launch.lanes_of(0),
                function: function.name.clone(),
                source: None,
                line: function.instructions.first().map_or(0, |first| first.line),
            };
            let what = match launch.start {
                None => "waits for the launches before its own",
                Some(_) => "waits for the end of a block on its device, as not all are resident",
            };
            (at, what.to_owned())
        })
    }
}
