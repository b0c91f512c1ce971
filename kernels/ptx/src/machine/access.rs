//! Accesses to memory of the lanes of a group.

use super::fault::{AccessedMemory, FaultKind, KernelFault};
use super::image::lanes;
use super::{Failed, Machine};
use crate::assumptions::Assumption;
use crate::memory::{
    Atomic, LANES, Memory, Refusal, Side, Thread, Unordered, VARIABLES, space_of, strength,
};
use crate::program::{
    Base, Fence, Instruction, MemoryAccess, Operand, Operation, ReduceOp, Slot, Space,
};

/// The lanes of an access: the first register of their function, the mask, and the instruction.
type Lanes = (u32, u32, u32);

/// Bytes of a sector, the unit of a warp's access to global memory.
const SECTOR: u64 = 32;

/// Bytes of the widest access of a lane.
const WIDE: u32 = 16;

/// The elements of a vector at most.
const ELEMENTS: usize = 4;

/// Lanes whose widest accesses fill a line, and its bytes.
const SHARERS: usize = 8;
const LINE: u64 = 128;

impl Machine<'_> {
    pub(super) fn load(
        &mut self,
        warp: usize,
        (base, mask, place): Lanes,
        access: &MemoryAccess,
        to: &[Option<(Slot, u8)>],
    ) -> Result<(), Failed> {
        let addresses = self.addresses(warp, base, place, access);
        self.count(warp, mask, access, &addresses, false);
        self.hand_line(warp, (mask, place), access, &addresses, false);
        let bits = access.ty.bits();
        let elements = usize::from(access.elements);
        for (lane, count) in self.performed(access, mask, &addresses) {
            let address = addresses[lane as usize];
            let mut values = [0; ELEMENTS * SHARERS];
            let values = &mut values[..elements * count];
            let thread = self.warps[warp].first + lane;
            let at = (thread, place);
            let loaded = self.memory.load(&mut self.choices, access, at, address, values);
            let range = (address, u64::from(bits / 8) * (elements * count) as u64);
            let side = (Side::Own, false);
            let loaded = loaded.and_then(|missing| {
                self.memory.note_side(access, at, range, side).map(|()| missing)
            });
            let missing = loaded
                .map_err(|refusal| self.refusal(&refusal, access, address, (thread, false)))?;
            self.note_races(place, access, address, (thread, false))?;
            for (nth, value) in values.iter().copied().enumerate() {
                let (lane, element) = (lane + (nth / elements) as u32, (nth % elements) as u32);
                let Some((slot, width)) = to[element as usize] else { continue };
                let extended = if access.ty.is_signed() {
                    let signed = (value << (64 - bits)) as i64 >> (64 - bits);
                    signed as u64 & (u64::MAX >> (64 - u32::from(width)))
                } else {
                    value
                };
                self.warps[warp].set(base, slot, lane, extended);
                if missing != 0 {
                    let missing = missing >> (element * bits / 8) & (0xff >> (8 - bits / 8));
                    let whole = access.ty.is_signed() && missing != 0;
                    let missing = if whole { u8::MAX } else { missing as u8 };
                    self.warps[warp].set_missing(base, slot, lane, missing);
                }
            }
        }
        if strength(access).is_some() {
            self.choices.has_loaded();
        }
        Ok(())
    }

    /// The first lanes of accesses that are performed as one, each with the number of its lanes.
    fn performed(
        &self,
        access: &MemoryAccess,
        mask: u32,
        addresses: &[u64; LANES as usize],
    ) -> impl Iterator<Item = (u32, usize)> + use<> {
        let wide = self.fills_lines(access) && self.choices.waiting_load().is_none();
        let fills = |line: &u32| {
            let all = &addresses[*line as usize * SHARERS..][..SHARERS];
            let is_next = |(at, address)| address == all[0] + at * u64::from(WIDE);
            mask >> (*line as usize * SHARERS) & 0xff == 0xff
                && all[0].is_multiple_of(LINE)
                && Memory::is_global(access.space, all[0])
                && (0..).zip(all.iter().copied()).all(is_next)
        };
        let lines = (0..LANES / SHARERS as u32).filter(|line| wide && fills(line));
        let lines = lines.fold(0_u32, |lines, line| lines | 1 << line);
        lanes(mask).filter_map(move |lane| match lines >> (lane as usize / SHARERS) & 1 {
            0 => Some((lane, 1)),
            _ => (lane as usize).is_multiple_of(SHARERS).then_some((lane, SHARERS)),
        })
    }

    /// Whether lanes that perform an access together perform lines as one.
    pub(super) fn fills_lines(&self, access: &MemoryAccess) -> bool {
        let is_wide = access.ty.bytes() * u32::from(access.elements) == WIDE;
        is_wide && strength(access).is_some() && self.assumptions.has(&Assumption::Line128)
    }

    /// Whether lanes stand at a strong load of a store that has not come, in a run in which loads wait.
    pub(super) fn waits(&mut self, warp: usize, group: usize, instruction: &Instruction) -> bool {
        let (Some(load), Operation::Load { access, .. }) =
            (self.choices.waiting_load(), &instruction.operation)
        else {
            return false;
        };
        let at = &self.warps[warp].groups[group];
        let (place, all) = (at.place, at.lanes);
        let base = self.image.frames[at.frame].registers;
        let mask = self.warps[warp].guarded(base, all, instruction.guard);
        let addresses = self.addresses(warp, base, place, access);
        let first = self.warps[warp].first;
        let has_come =
            |lane| self.memory.has_come(access, first + lane, addresses[lane as usize], load);
        !lanes(mask).all(has_come)
    }

    pub(super) fn store(
        &mut self,
        warp: usize,
        (base, mask, place): Lanes,
        access: &MemoryAccess,
        from: &[Operand],
    ) -> Result<(), Failed> {
        let addresses = self.addresses(warp, base, place, access);
        self.count(warp, mask, access, &addresses, true);
        let each = access.ty.bytes();
        let to_all = self.assumptions.has(&Assumption::MulticastStore);
        self.hand_line(warp, (mask, place), access, &addresses, true);
        let elements = usize::from(access.elements);
        for (lane, count) in self.performed(access, mask, &addresses) {
            let address = addresses[lane as usize];
            let mut values = [0; ELEMENTS * SHARERS];
            let values = &mut values[..elements * count];
            let mut missing = 0;
            for (nth, value) in values.iter_mut().enumerate() {
                let (lane, element) = (lane + (nth / elements) as u32, (nth % elements) as u32);
                let source = from[element as usize];
                *value = self.warps[warp].value(base, source, lane);
                if self.warps[warp].may_miss() {
                    let bytes = self.warps[warp].missing(base, source)[lane as usize];
                    let bytes = u32::from(bytes) & (0xff >> (8 - each));
                    missing |= bytes << (element * each);
                }
            }
            let thread = self.warps[warp].first + lane;
            let at = (thread, place);
            let what = (&*values, missing);
            let mut stored = self.memory.store(&mut self.choices, access, at, address, what);
            let bytes = u64::from(each) * u64::from(access.elements);
            if let (Err(Refusal::Multicast), true) = (&stored, to_all) {
                stored = self.memory.multicast(address, bytes).and_then(|all| {
                    all.into_iter().try_for_each(|address| {
                        let side = (Side::Multicast, true);
                        self.memory.store(&mut self.choices, access, at, address, what)?;
                        self.memory.note_side(access, at, (address, bytes), side)
                    })
                });
            } else if stored.is_ok() {
                stored = self.memory.note_side(access, at, (address, bytes), (Side::Own, true));
            }
            stored.map_err(|refusal| self.refusal(&refusal, access, address, (thread, true)))?;
            self.note_races(place, access, address, (thread, true))?;
        }
        if !matches!(access.space, Space::Local | Space::Param) {
            self.progress();
        }
        Ok(())
    }

    pub(super) fn reduce(
        &mut self,
        warp: usize,
        (base, mask, place): Lanes,
        access: &MemoryAccess,
        (op, from, returns, to): (ReduceOp, [Operand; 2], bool, Option<Slot>),
    ) -> Result<(), Failed> {
        let addresses = self.addresses(warp, base, place, access);
        self.counters_of(warp).reductions += 1;
        let mut changes = false;
        for lane in lanes(mask) {
            let address = addresses[lane as usize];
            let values = from.map(|from| self.warps[warp].value(base, from, lane));
            let thread = self.warps[warp].first + lane;
            let at = (thread, place);
            let atomic = Atomic { op, values, returns };
            let reduced = self.memory.reduce(&mut self.choices, access, at, address, atomic);
            let range = (address, u64::from(access.ty.bytes()));
            let side = (Side::Own, true);
            let reduced = reduced
                .and_then(|before| self.memory.note_side(access, at, range, side).map(|()| before));
            let (before, changed) = reduced
                .map_err(|refusal| self.refusal(&refusal, access, address, (thread, true)))?;
            self.note_races(place, access, address, (thread, true))?;
            if let Some(slot) = to {
                self.warps[warp].set(base, slot, lane, before);
            }
            changes |= changed;
        }
        // One that leaves the value as it is may be a poll.
        if changes {
            self.progress();
        }
        Ok(())
    }

    pub(super) fn fence(&mut self, warp: usize, mask: u32, fence: Fence) {
        self.counters_of(warp).fences += 1;
        for lane in lanes(mask) {
            let thread = self.warps[warp].first + lane;
            self.memory.clocks.fence(thread, fence.scope, fence.ordering);
        }
    }

    pub(super) fn fence_aliases(&mut self, warp: usize, mask: u32) {
        for lane in lanes(mask) {
            self.memory.clocks.fence_aliases(self.warps[warp].first + lane);
        }
    }

    /// The addresses of all lanes in the space of the access.
    pub(super) fn addresses(
        &self,
        warp: usize,
        base: u32,
        place: u32,
        access: &MemoryAccess,
    ) -> [u64; LANES as usize] {
        let offset = access.address.offset;
        match access.address.base {
            Base::Slot(slot) => self.warps[warp]
                .values(base, Operand::Slot(slot))
                .map(|address| address.wrapping_add_signed(offset)),
            Base::Value(value) => [value.wrapping_add_signed(offset); LANES as usize],
            Base::Symbol(symbol) => {
                let frame = self.image.frame_number(place);
                let variables = self.launches[self.rank(warp)].variables;
                let address = self.image.address(frame, symbol, variables);
                [address.wrapping_add_signed(offset); LANES as usize]
            }
        }
    }

    fn count(
        &mut self,
        warp: usize,
        mask: u32,
        access: &MemoryAccess,
        addresses: &[u64],
        stores: bool,
    ) {
        let counters = self.counters_of(warp);
        let Some(first) = lanes(mask).next().map(|lane| addresses[lane as usize]) else { return };
        let space = match access.space {
            Space::Generic => space_of(first).0,
            space => space,
        };
        let is_strong = strength(access).is_some();
        match space {
            Space::Global | Space::Generic => {}
            Space::Shared if is_strong => return counters.handovers += 1,
            Space::Shared => return counters.shared_accesses += 1,
            Space::Local | Space::Param | Space::Const => return counters.private_accesses += 1,
        }
        let mut sectors = [u64::MAX; LANES as usize];
        let mut count = 0;
        let global = lanes(mask).map(|lane| addresses[lane as usize]);
        for address in global.filter(|&address| Memory::is_global(access.space, address)) {
            let sector = address / SECTOR;
            let known =
                count > 0 && sectors[count - 1] == sector || sectors[..count].contains(&sector);
            if !known {
                sectors[count] = sector;
                count += 1;
            }
        }
        let count = count as u64;
        *(match (is_strong, stores) {
            (true, true) => &mut counters.strong_stores,
            (true, false) => &mut counters.strong_loads,
            (false, true) => &mut counters.global_stores,
            (false, false) => &mut counters.global_loads,
        }) += 1;
        *(if stores { &mut counters.store_sectors } else { &mut counters.load_sectors }) += count;
        if access.ty.bytes() * u32::from(access.elements) == WIDE {
            let (accesses, of_sectors) = if stores {
                (&mut counters.wide_stores, &mut counters.wide_store_sectors)
            } else {
                (&mut counters.wide_loads, &mut counters.wide_load_sectors)
            };
            *accesses += 1;
            *of_sectors += count;
            counters.wide_bytes += u64::from(WIDE * mask.count_ones());
        }
    }

    pub(super) fn refusal(
        &self,
        refusal: &Refusal,
        access: &MemoryAccess,
        address: u64,
        (thread, stores): (u32, bool),
    ) -> Failed {
        let bytes = access.ty.bytes() * u32::from(access.elements);
        let space = access.space;
        let kind = match refusal {
            Refusal::Bounds => FaultKind::Bounds { space, address, bytes },
            Refusal::Alignment => FaultKind::Alignment { address, bytes },
            Refusal::Multicast => FaultKind::Multicast { address },
            Refusal::Constant => FaultKind::ReadOnly { space, address },
            Refusal::Missing => FaultKind::Unset { what: "a store" },
            Refusal::NoValue(offset) => FaultKind::NoValue { space, address: address + *offset },
            Refusal::Unordered(found) => self.unordered(found, address, (thread, stores)),
        };
        (kind, 1 << (thread % LANES))
    }

    fn unordered(
        &self,
        found: &Unordered,
        address: u64,
        (thread, stores): (Thread, bool),
    ) -> FaultKind {
        let module = || self.launches[self.rank((thread / LANES) as usize)].module;
        let memory = match self.memory.window(address) {
            Some((of, within)) => {
                let variable =
                    (address >= VARIABLES).then(|| self.image.global_at(module(), within));
                let of = of.to_owned();
                match variable.flatten() {
                    Some((name, offset)) => {
                        AccessedMemory::Variable { name: name.to_owned(), offset, of }
                    }
                    None => AccessedMemory::Window { name: of, address, offset: within },
                }
            }
            None => AccessedMemory::Shared(address & 0xffff_ffff),
        };
        FaultKind::Unordered {
            conflict: found.conflict,
            memory,
            stores,
            other: Box::new(self.place_of(found.other)),
            other_stores: found.other_stores,
        }
    }

    /// Notes the races of an access behind which the run goes on. The one that is too many is an error.
    pub(super) fn note_races(
        &mut self,
        place: u32,
        access: &MemoryAccess,
        address: u64,
        (thread, stores): (Thread, bool),
    ) -> Result<(), Failed> {
        for found in std::mem::take(&mut self.memory.races.found) {
            let other = found.other.place;
            if !self.raced.insert((place.min(other), place.max(other))) {
                continue;
            }
            let unordered = Refusal::Unordered(found);
            let (kind, lanes) = self.refusal(&unordered, access, address, (thread, stores));
            if self.races.len() == self.limits.races {
                return Err((kind, lanes));
            }
            let at = Some(self.lanes_at((thread / LANES) as usize, lanes, place));
            self.races.push(KernelFault { kind, at, before: Vec::new() });
        }
        Ok(())
    }
}
