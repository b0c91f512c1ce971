//! The memory of a launch: address spaces, bounds and alignment, and the order of accesses by PTX's memory model.
//!
//! The model is an operational form of the axioms of the PTX ISA, of the chapter on the memory consistency model. Each
//! location has its strong stores in coherence order. A strong load reads one of them that is not older than any store
//! or load of the location that happened before it. Knowledge of what happened before travels by release and acquire
//! patterns, whose scopes include each other's threads, and by barriers. A plain access must be ordered with all
//! conflicting ones, so it has one value; otherwise it is a race, which is an error. A vector's elements are accesses
//! of their own: no order of them shows, since nothing orders strong accesses of a thread to different locations.
//!
//! A load reads a store that was executed before it. So an outcome in which loads read later stores of the other
//! thread, in a circle (load buffering), is allowed by the axioms but is not shown.

mod atomic;
mod cells;
mod clock;
mod history;
mod private;
mod reads;
mod region;

pub(crate) use atomic::{Atomic, reduced};
pub(crate) use clock::{Clock, Clocks, Home, LANES, Release, Stamp, Thread};
use private::Private;
pub use region::Conflict;
pub(crate) use region::{Races, Region, Unordered};

use std::rc::Rc;

use crate::assumptions::{Assumption, Assumptions};
use crate::choices::Choices;
use crate::program::{MemoryAccess, Scope, Semantics, Space};
use history::Strong;

/// The generic address of offset 0 of shared memory, local memory, parameter space and constant memory. Windows of
/// global memory are below them.
const SHARED: u64 = 0x7f01_0000_0000;
/// The distance of the shared memories of the blocks of a cluster: the first one is that of the thread's own block.
const SHARED_EACH: u64 = 1 << 24;
const LOCAL: u64 = 0x7f02_0000_0000;
const PARAM: u64 = 0x7f03_0000_0000;
const CONST: u64 = 0x7f04_0000_0000;
/// The address of the first module's variables on a device in global memory, and the distance to the next ones.
pub(crate) const VARIABLES: u64 = 0x7f10_0000_0000;
const VARIABLES_EACH: u64 = 1 << 32;
/// The end of the addresses that windows may have.
pub(crate) const END_OF_WINDOWS: u64 = SHARED;

/// A range of global memory, such as a buffer of a rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// The name that errors give it.
    pub name: String,
    /// The address of its first byte.
    pub address: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Other addresses of windows: those at which a device reaches the memory of a peer, or all of several devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alias {
    /// The name that errors give it.
    pub name: String,
    /// The address of its first byte.
    pub address: u64,
    /// Its bytes.
    pub bytes: u64,
    /// The addresses of the bytes that it stands for, each in a window.
    pub of: Vec<u64>,
    /// Whether it is a multicast address, which `multimem` alone may access: a store goes to all of these bytes, and a
    /// load is of their reduction. Otherwise it stands for one range of bytes.
    pub multicast: bool,
}

/// A window while the launch runs.
#[derive(Debug)]
pub(crate) struct Global {
    name: String,
    address: u64,
    end: u64,
    region: Region,
    /// Whether plain accesses are relaxed ones.
    weak_is_relaxed: bool,
}

/// An access that is not possible.
#[derive(Clone, Debug)]
pub(crate) enum Refusal {
    /// No memory is there, or not all of the bytes.
    Bounds,
    /// The address is not a multiple of the size.
    Alignment,
    /// The memory cannot be stored to.
    Constant,
    /// A byte was loaded that nothing has stored, at this offset from the address.
    NoValue(u64),
    /// A byte without a value was to be stored where other threads may load it.
    Missing,
    /// The address is a multicast one, or is not one and is to be.
    Multicast,
    /// The access is not ordered with another one.
    Unordered(Unordered),
}

/// The memory of a launch.
#[derive(Debug)]
pub(crate) struct Memory {
    /// The order of events.
    pub(crate) clocks: Clocks,
    /// The windows, by rising addresses.
    globals: Vec<Global>,
    /// Other addresses of them.
    aliases: Vec<Alias>,
    last_global: usize,
    /// The shared memory of each block.
    shared: Vec<Region>,
    /// The constant memory of each rank.
    constants: Vec<Rc<[u8]>>,
    /// The private memory: local memory, and behind it parameter space.
    private: Private,
    local_bytes: u64,
    param_bytes: u64,
    /// Accesses that are not ordered.
    pub(crate) races: Races,
    rules: Rules,
    /// The number of vector stores that are performed as one.
    wholes: u64,
}

/// The bits of the assumptions, which change accesses.
#[derive(Debug)]
struct Rules(u32);

/// The sizes of the memory that a launch needs beside its windows.
#[derive(Debug)]
pub(crate) struct Sizes {
    /// The most warps at a time.
    pub(crate) warps: usize,
    /// The number of blocks of all launches.
    pub(crate) blocks: usize,
    /// The constant memory of each rank.
    pub(crate) constants: Vec<Rc<[u8]>>,
    /// Bytes of local memory of a thread.
    pub(crate) local_bytes: u64,
    /// Bytes of parameter space of a thread.
    pub(crate) param_bytes: u64,
}

/// The place of an access after its space is known.
#[derive(Clone, Copy)]
enum Target {
    Global(usize, u64),
    Shared(usize, u64),
    Private(u64),
    Const(u64),
}

impl Memory {
    /// Memory with windows, of which no two may overlap.
    pub(crate) fn new(
        (mut windows, aliases): (Vec<Window>, Vec<Alias>),
        sizes: Sizes,
        assumptions: &Assumptions,
        races: Races,
    ) -> Self {
        windows.sort_by_key(|window| window.address);
        let global = |window: Window| Global {
            weak_is_relaxed: assumptions.iter().any(|a| a.is_of_window(&window.name)),
            name: window.name,
            address: window.address,
            end: window.address + window.bytes.len() as u64,
            region: Region::new(window.address, window.bytes),
        };
        let local_bytes = sizes.local_bytes.next_multiple_of(64);
        let has = |assumption| assumptions.has(&assumption);
        Self {
            clocks: Clocks::new(sizes.warps, has(Assumption::LoadsBeforeFlag)),
            globals: windows.into_iter().map(global).collect(),
            aliases,
            last_global: 0,
            shared: (0..sizes.blocks).map(|_| Region::without_values(0)).collect(),
            constants: sizes.constants,
            private: Private::new(sizes.warps * LANES as usize, local_bytes + sizes.param_bytes),
            local_bytes,
            param_bytes: sizes.param_bytes,
            races,
            rules: Rules(assumptions.bits()),
            wholes: 0,
        }
    }

    /// Begins a block, with so many bytes of shared memory.
    pub(crate) fn begin_block(&mut self, block: u32, shared: u64) {
        self.shared[block as usize] = Region::without_values(shared);
    }

    /// Ends a block, whose shared memory is gone.
    pub(crate) fn end_block(&mut self, block: u32) {
        self.begin_block(block, 0);
    }

    /// Begins a thread, with the parameters of its kernel and no other values.
    pub(crate) fn begin_thread(&mut self, thread: Thread, parameters: &[u8]) {
        self.private.clear(thread, 0, self.local_bytes + self.param_bytes);
        self.private.store_bytes(thread, self.local_bytes, parameters);
    }

    /// The windows, with their bytes of now.
    pub(crate) fn into_windows(self) -> Vec<Window> {
        let window = |global: Global| Window {
            name: global.name,
            address: global.address,
            bytes: global.region.into_bytes(),
        };
        self.globals.into_iter().map(window).collect()
    }

    /// Takes the values of a range of a thread's local memory away.
    pub(crate) fn clear_local(&mut self, thread: Thread, offset: u64, bytes: u64) {
        self.private.clear(thread, offset, bytes);
    }

    /// Takes the values of a range of a thread's parameter space away.
    pub(crate) fn clear_param(&mut self, thread: Thread, offset: u64, bytes: u64) {
        self.private.clear(thread, self.local_bytes + offset, bytes);
    }

    /// Copies a range of a thread's parameter space.
    pub(crate) fn copy_param(&mut self, thread: Thread, from: u64, to: u64, bytes: u64) {
        self.private.copy(thread, self.local_bytes + from, self.local_bytes + to, bytes);
    }

    /// The bytes at an address of global or constant memory, up to the first zero, as they are now.
    pub(crate) fn text(&self, rank: u32, address: u64) -> String {
        let (space, first) = space_of(address);
        let bytes = match space {
            Space::Const => &self.constants[rank as usize][..],
            _ => {
                let global = self.globals.iter().find(|g| (g.address..g.end).contains(&address));
                global.map_or(&[][..], |global| global.region.bytes())
            }
        };
        let first = if space == Space::Const { first } else { self.start_of(address) };
        let text = bytes.get((address - first) as usize..).unwrap_or_default();
        let text = text.split(|&byte| byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(text).into_owned()
    }

    fn start_of(&self, address: u64) -> u64 {
        let global = self.globals.iter().find(|g| (g.address..g.end).contains(&address));
        global.map_or(address, |global| global.address)
    }

    /// The value of bytes of a thread's parameter space.
    pub(crate) fn param(&self, thread: Thread, offset: u64, size: u64) -> u64 {
        self.private.load(thread, self.local_bytes + offset, size)
    }

    /// Whether an address is in global memory.
    pub(crate) fn is_global(space: Space, address: u64) -> bool {
        space == Space::Global || space == Space::Generic && space_of(address).0 == Space::Global
    }

    /// Returns the name of the window at an address, and the offset in it.
    pub(crate) fn window(&self, address: u64) -> Option<(&str, u64)> {
        let global = self.globals.iter().find(|g| (g.address..g.end).contains(&address))?;
        Some((&global.name, address - global.address))
    }

    fn target(
        &mut self,
        thread: Thread,
        space: Space,
        address: u64,
        size: u64,
    ) -> Result<Target, Refusal> {
        if !address.is_multiple_of(size) {
            return Err(Refusal::Alignment);
        }
        let end = address.checked_add(size).ok_or(Refusal::Bounds)?;
        let within =
            |bytes: u64, target| if end <= bytes { Ok(target) } else { Err(Refusal::Bounds) };
        match space {
            Space::Generic => {
                let (space, start) = space_of(address);
                if space != Space::Global {
                    return self.target(thread, space, address - start, size);
                }
                self.global(address, end)
            }
            Space::Global => self.global(address, end),
            Space::Shared => {
                let Home { block, cluster, in_cluster, .. } = self.clocks.home(thread);
                let (block, address) = match (address / SHARED_EACH).checked_sub(1) {
                    None => (block, address),
                    Some(rank) if rank < in_cluster.into() => {
                        (cluster + rank as u32, address % SHARED_EACH)
                    }
                    Some(_) => return Err(Refusal::Bounds),
                };
                let bytes = self.shared[block as usize].bytes().len() as u64;
                let within = address + size <= bytes;
                within.then_some(Target::Shared(block as usize, address)).ok_or(Refusal::Bounds)
            }
            Space::Local => within(self.local_bytes, Target::Private(address)),
            Space::Param => within(self.param_bytes, Target::Private(self.local_bytes + address)),
            Space::Const => {
                let rank = self.clocks.home(thread).rank as usize;
                within(self.constants[rank].len() as u64, Target::Const(address))
            }
        }
    }

    fn global(&mut self, address: u64, end: u64) -> Result<Target, Refusal> {
        let has = |global: &Global| global.address <= address && end <= global.end;
        if !self.globals.get(self.last_global).is_some_and(has) {
            self.last_global =
                self.globals.partition_point(|g| g.address <= address).wrapping_sub(1);
        }
        if let Some(global) = self.globals.get(self.last_global).filter(|&g| has(g)) {
            return Ok(Target::Global(self.last_global, address - global.address));
        }
        let alias = self.alias(address, end - address).ok_or(Refusal::Bounds)?;
        match alias.of.first() {
            Some(of) if !alias.multicast => {
                let of = of + (address - alias.address);
                self.global(of, of + (end - address))
            }
            _ => Err(Refusal::Multicast),
        }
    }

    fn alias(&self, address: u64, size: u64) -> Option<&Alias> {
        self.aliases.iter().find(|alias| {
            let within = address.checked_sub(alias.address);
            within.is_some_and(|within| within + size <= alias.bytes)
        })
    }

    /// The addresses that a multicast address stands for.
    pub(crate) fn multicast(&self, address: u64, size: u64) -> Result<Vec<u64>, Refusal> {
        if !address.is_multiple_of(size) {
            return Err(Refusal::Alignment);
        }
        let alias = self.alias(address, size).filter(|alias| alias.multicast);
        let alias = alias.ok_or(Refusal::Multicast)?;
        Ok(alias.of.iter().map(|of| of + (address - alias.address)).collect())
    }

    /// Loads the elements of an access into `values`. Returns the bytes of private memory that nothing has stored, the first
    /// byte at bit 0.
    pub(crate) fn load(
        &mut self,
        choices: &mut Choices,
        access: &MemoryAccess,
        (thread, place): (Thread, u32),
        address: u64,
        values: &mut [u64],
    ) -> Result<u32, Refusal> {
        let each = u64::from(access.ty.bytes());
        let elements = u64::from(access.elements);
        let target = self.target(thread, access.space, address, each * elements)?;
        let used = u64::from(access.used_bytes) & (u64::MAX >> (64 - each * elements));
        let is_used = |element: u64| used >> (element * each) & (u64::MAX >> (64 - each)) != 0;
        let clocks = &mut self.clocks;
        let waits = choices.waiting_load().is_some();
        let mut relaxed = false;
        let region = match target {
            Target::Private(offset) => {
                for (element, value) in (0..elements).zip(values) {
                    *value = self.private.load(thread, offset + element * each, each);
                }
                return Ok(self.private.without_value(thread, offset, used) as u32);
            }
            Target::Const(offset) => {
                let rank = clocks.home(thread).rank as usize;
                for (element, value) in (0..elements).zip(values) {
                    let at = (offset + element * each) as usize;
                    let bytes = &self.constants[rank][at..at + each as usize];
                    *value = bytes.iter().rev().fold(0, |value, &b| value << 8 | u64::from(b));
                }
                return Ok(0);
            }
            Target::Global(global, _) => {
                let Global { region, weak_is_relaxed, .. } = &mut self.globals[global];
                relaxed = *weak_is_relaxed;
                region
            }
            Target::Shared(block, _) => &mut self.shared[block],
        };
        let (Target::Global(_, first) | Target::Shared(_, first)) = target else { return Ok(0) };
        for element in (0..elements).filter(|&element| is_used(element)) {
            if !region.has_value(first + element * each, each) {
                return Err(Refusal::NoValue(element * each));
            }
        }
        let scope = strength(access).or_else(|| relaxed.then_some(Scope::Sys));
        let strong = scope.map(|scope| Strong {
            stamp: clocks.stamp(thread, place),
            scope,
            acquires: access.semantics == Semantics::Acquire
                || self.rules.has(Assumption::PollsAcquire),
            acquires_counts: self.rules.has(Assumption::CountedBlocks),
            releases: false,
            whole: 0,
        });
        let together = if waits || scope.is_none() { 1 } else { self.rules.together(access) };
        for (at, values) in
            (0..).step_by(together).zip(values[..elements as usize].chunks_mut(together))
        {
            let offset = first + at * each;
            let range = (offset, each);
            let by = (&mut *choices, &mut self.races);
            let loaded = match &strong {
                _ if !(at..at + together as u64).any(is_used) => continue,
                None => {
                    let stamp = clocks.stamp(thread, place);
                    if access.non_coherent && !self.rules.has(Assumption::NcOnPeers) {
                        region.load_constant(clocks, by.1, stamp, offset, each)
                    } else {
                        region.load(clocks, by.1, stamp, offset, each)
                    }
                }
                Some(strong) if values.len() > 1 => {
                    let loaded = region.load_whole(clocks, by, strong, range, values);
                    loaded.map(|()| values[0])
                }
                Some(strong) => region.load_strong(clocks, by, strong, offset, each),
            };
            values[0] = loaded.map_err(Refusal::Unordered)?;
        }
        Ok(0)
    }

    /// Whether all stores have come that a waiting strong load of that number reads; or the load is an error.
    pub(crate) fn has_come(
        &mut self,
        access: &MemoryAccess,
        thread: Thread,
        address: u64,
        load: u64,
    ) -> bool {
        let each = u64::from(access.ty.bytes());
        let elements = u64::from(access.elements);
        let (region, first) = match self.target(thread, access.space, address, each * elements) {
            Ok(Target::Global(global, offset)) => (&mut self.globals[global].region, offset),
            Ok(Target::Shared(block, offset)) => (&mut self.shared[block], offset),
            _ => return true,
        };
        let mut places = (0..elements).map(|element| (first + element * each, each));
        places.all(|place| region.has_come(&self.clocks, thread, place, load))
    }

    /// Stores the elements of an access. In private memory the bytes of `missing`, the first one at bit 0, have no value then.
    pub(crate) fn store(
        &mut self,
        choices: &mut Choices,
        access: &MemoryAccess,
        (thread, place): (Thread, u32),
        address: u64,
        (values, missing): (&[u64], u32),
    ) -> Result<(), Refusal> {
        let each = u64::from(access.ty.bytes());
        let elements = u64::from(access.elements);
        let target = self.target(thread, access.space, address, each * elements)?;
        let clocks = &mut self.clocks;
        let waits = choices.waiting_load().is_some();
        let mut relaxed = false;
        let region = match target {
            Target::Private(offset) => {
                for (element, &value) in (0..elements).zip(values) {
                    self.private.store(thread, offset + element * each, each, value);
                }
                for byte in (0..each * elements).filter(|byte| missing >> byte & 1 == 1) {
                    self.private.clear(thread, offset + byte, 1);
                }
                return Ok(());
            }
            Target::Const(_) => return Err(Refusal::Constant),
            Target::Global(..) | Target::Shared(..) if missing != 0 => {
                return Err(Refusal::Missing);
            }
            Target::Global(global, _) => {
                let Global { region, weak_is_relaxed, .. } = &mut self.globals[global];
                relaxed = *weak_is_relaxed;
                region
            }
            Target::Shared(block, _) => &mut self.shared[block],
        };
        let (Target::Global(_, first) | Target::Shared(_, first)) = target else { return Ok(()) };
        let scope = strength(access).or_else(|| relaxed.then_some(Scope::Sys));
        let together = if waits { 1 } else { self.rules.together(access) };
        let all = values[..elements as usize].chunks(together);
        for (at, values) in (0..).step_by(together).zip(all) {
            let range = (first + at * each, each);
            let by = (&mut *choices, &mut self.races);
            let stamp = clocks.stamp(thread, place);
            self.wholes += u64::from(values.len() > 1);
            let strong = scope.map(|scope| Strong {
                stamp,
                scope,
                acquires: false,
                acquires_counts: false,
                releases: access.semantics == Semantics::Release
                    || self.rules.has(Assumption::FlagsRelease),
                whole: if values.len() > 1 { self.wholes } else { 0 },
            });
            let stored = match &strong {
                None => values.iter().zip((range.0..).step_by(each as usize)).try_for_each(
                    |(&value, offset)| region.store(clocks, by.1, stamp, (offset, each), value),
                ),
                Some(strong) if values.len() > 1 => {
                    region.store_whole(clocks, by, strong, range, values)
                }
                Some(strong) => region.store_strong(clocks, by, strong, range, values[0]),
            };
            stored.map_err(Refusal::Unordered)?;
        }
        Ok(())
    }
}

impl Rules {
    #[expect(clippy::needless_pass_by_value, reason = "the names alone are given")]
    fn has(&self, assumption: Assumption) -> bool {
        self.0 & assumption.bit() != 0
    }

    /// The number of elements of an access that are performed as one.
    fn together(&self, access: &MemoryAccess) -> usize {
        let (each, elements) = (access.ty.bytes(), usize::from(access.elements));
        match each * u32::from(access.elements) {
            16 if self.has(Assumption::Vec16) => elements,
            8.. if self.has(Assumption::Vec8) && each == 4 => 2,
            _ => 1,
        }
    }
}

/// The scope of a strong access; none of a plain one.
pub(crate) fn strength(access: &MemoryAccess) -> Option<Scope> {
    match access.semantics {
        Semantics::Weak => None,
        Semantics::Volatile => Some(Scope::Sys),
        _ => Some(access.scope.unwrap_or(Scope::Gpu)),
    }
}

/// The address in shared memory, generic or not, of what is at an address, in the block of a cluster with that number.
pub(crate) fn shared_of(address: u64, rank: u32) -> u64 {
    let space = address & !(u64::from(u32::MAX));
    space
        + u64::from(rank).wrapping_add(1).wrapping_mul(SHARED_EACH) % (1 << 32)
        + address % SHARED_EACH
}

/// The number of the block in a cluster that has an address of shared memory; none for the thread's own block.
pub(crate) fn rank_of_shared(address: u64) -> Option<u32> {
    ((address & u64::from(u32::MAX)) / SHARED_EACH).checked_sub(1).map(|rank| rank as u32)
}

/// The space of a generic address, and the generic address of its offset 0.
pub(crate) fn space_of(address: u64) -> (Space, u64) {
    match address {
        ..SHARED | VARIABLES.. => (Space::Global, 0),
        SHARED..LOCAL => (Space::Shared, SHARED),
        LOCAL..PARAM => (Space::Local, LOCAL),
        PARAM..CONST => (Space::Param, PARAM),
        CONST..VARIABLES => (Space::Const, CONST),
    }
}

/// The address of the variables of a module on a device in global memory, by their number.
pub(crate) fn variables_at(number: u32) -> u64 {
    VARIABLES + u64::from(number) * VARIABLES_EACH
}

/// The generic address of offset 0 of a space.
pub(crate) fn generic(space: Space) -> u64 {
    match space {
        Space::Generic | Space::Global => 0,
        Space::Shared => SHARED,
        Space::Local => LOCAL,
        Space::Param => PARAM,
        Space::Const => CONST,
    }
}
