//! The lines of the page that threads work for. One warp of a block walks the page, and hands ops to the other warps
//! through shared memory; so the line of a word in shared memory is the line of the thread that stored it.

use super::Machine;
use super::image::lanes;
use crate::memory::{LANES, space_of};
use crate::program::{MemoryAccess, Space, is_page};

impl Machine<'_> {
    /// Notes, at a store to shared memory, the line of the thread that stores, and at a load the line of the word.
    pub(super) fn hand_line(
        &mut self,
        warp: usize,
        (mask, place): (u32, u32),
        access: &MemoryAccess,
        addresses: &[u64; LANES as usize],
        stores: bool,
    ) {
        let offset = |lane: u32| match (access.space, addresses[lane as usize]) {
            (Space::Shared, offset) => Some(offset),
            (Space::Generic, address) => {
                let (space, first) = space_of(address);
                (space == Space::Shared).then_some(address - first)
            }
            _ => None,
        };
        if lanes(mask).next().and_then(offset).is_none() {
            return;
        }
        let line = stores.then(|| self.page_of(warp, mask, place)).flatten();
        let known = &mut self.blocks[self.warps[warp].block].lines;
        for offset in lanes(mask).filter_map(offset) {
            match (stores, line) {
                (true, Some(line)) => _ = known.insert(offset, line),
                (true, None) => _ = known.remove(&offset),
                (false, _) => {
                    if let Some(&line) = known.get(&offset) {
                        self.warps[warp].line = Some(line);
                    }
                }
            }
        }
    }

    /// The file name and the line of lanes at an instruction: those of the page's line that they execute, or for which
    /// they do an op; otherwise those of the device library. For lanes that stand elsewhere by now, the instruction alone
    /// tells the line.
    pub(super) fn source_of(&self, warp: usize, lanes: u32, place: u32) -> Option<(&str, u32)> {
        let handed = if self.stands(warp, lanes, place) { self.warps[warp].line } else { None };
        let line = self.page_of(warp, lanes, place).or(handed).unwrap_or(place);
        self.source(line)
    }

    /// The instruction of a line of the page that lanes execute: their own, or that of a call.
    fn page_of(&self, warp: usize, lanes: u32, place: u32) -> Option<u32> {
        let mut groups = self.warps[warp].groups.iter();
        let standing = groups.find(|group| group.place == place && group.lanes & lanes != 0);
        let calls = standing.into_iter().flat_map(|group| group.calls.iter().rev());
        let mut through = std::iter::once(place).chain(calls.map(|&(_, call)| call));
        through.find(|&place| self.source(place).is_some_and(|(file, _)| is_page(file)))
    }

    fn stands(&self, warp: usize, lanes: u32, place: u32) -> bool {
        self.warps[warp].groups.iter().any(|g| g.place == place && g.lanes & lanes != 0)
    }

    pub(super) fn source(&self, place: u32) -> Option<(&str, u32)> {
        self.image.module_of(place).source_line(self.image.code[place as usize])
    }
}
