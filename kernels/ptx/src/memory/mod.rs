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

mod access;
mod atomic;
mod cells;
mod clock;
mod epochs;
mod history;
mod private;
mod reads;
mod region;
mod sides;
mod space;

pub(crate) use access::strength;
pub(crate) use atomic::{Atomic, reduced};
pub(crate) use clock::{Clocks, Home, LANES, Release, Stamp, Thread};
pub(crate) use epochs::Clock;
use private::Private;
pub use region::Conflict;
pub(crate) use region::{Races, Region, Unordered};
pub(crate) use sides::Side;
use sides::Sides;
use space::SHARED_EACH;
pub(crate) use space::{
    END_OF_WINDOWS, VARIABLES, generic, rank_of_shared, shared_of, space_of, variables_at,
};

use std::rc::Rc;

use crate::assumptions::{Assumption, Assumptions};
use crate::program::Space;

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
    /// The bytes for which multicast addresses stand, where accesses by both addresses must have fences between them.
    sides: Vec<Sides>,
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
        let sides = if has(Assumption::MulticastAlias) { Vec::new() } else { Sides::of(&aliases) };
        Self {
            clocks: Clocks::new(sizes.warps, has(Assumption::LoadsBeforeFlag), !sides.is_empty()),
            sides,
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

    /// Begins a block, with that number of bytes of shared memory.
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

    /// Returns the name of the window or of the alias at an address, and the offset in it.
    pub(crate) fn window(&self, address: u64) -> Option<(&str, u64)> {
        if let Some(alias) = self.alias(address, 1) {
            return Some((&alias.name, address - alias.address));
        }
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
}
