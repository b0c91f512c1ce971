//! The part of a plan on one device: the loaded kernel, its block of memory, and the arguments of its launches.

use std::sync::Arc;

use cudarc::driver::{
    CudaFunction, CudaSlice, CudaStream, DevicePtr, DeviceRepr, LaunchConfig, PushKernelArg, result,
};
use roundelay_export::cuda::{Facts, Kernel};

use super::compile::{Compiled, Target, WALKERS, compile};
use super::control::Control;
use super::device::{Device, failed};
use super::error::Error;
use crate::grid::bound::{Addresses, BIND, BIND_TEXT, BOUND_AT_ONCE, batches};
use crate::grid::{Arena, GridLayout, Launch, Placement, RankMemory};

// SAFETY: words without padding, as the kernel's text has them.
unsafe impl DeviceRepr for Addresses {}
// SAFETY: words without padding, as the kernel's text has them.
unsafe impl DeviceRepr for Launch {}

/// The table of addresses that a launch uses: that of launches made one by one, that of launches which graphs of the
/// callers replay, or that of a graph of the plan's own. The last is filled once, and not at each launch.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AddressTable {
    Direct = 0,
    Captured = 1,
    Replayed = 2,
}

/// A plan's functions on one device.
pub(super) struct Functions {
    kernel: CudaFunction,
    scale: Option<CudaFunction>,
    bind: CudaFunction,
    threads: u32,
}

impl Functions {
    /// Loads a compiled kernel with the kernels that scale and bind.
    pub(super) fn load(
        device: &Device,
        kernel: &Kernel,
        compiled: &Compiled,
        scale: bool,
        threads: u32,
    ) -> Result<Self, Error> {
        let bind = compile(BIND_TEXT, BIND, &Target::new(device.arch))?;
        let [bind] = device.load(&bind, [BIND])?;
        let (name, scales) = (kernel.name.as_str(), format!("{}_scale", kernel.name));
        let (kernel, scale) = if scale {
            let [kernel, scale] = device.load(compiled, [name, &scales])?;
            (kernel, Some(scale))
        } else {
            let [kernel] = device.load(compiled, [name])?;
            (kernel, None)
        };
        Ok(Self { kernel, scale, bind, threads })
    }

    /// Returns the number of CTAs of the kernel that the device holds at once.
    pub(super) fn resident(&self, device: &Device) -> Result<u64, Error> {
        device.holds(&self.kernel, self.threads)
    }
}

/// The part of a plan on one device.
pub(super) struct DevicePlan {
    functions: Functions,
    arena: Arena,
    memory: CudaSlice<u8>,
    /// By [`AddressTable`].
    launches: [Launch; Arena::TABLES],
    /// CTAs: streams on this device times parts.
    pub(super) grid: u32,
    /// Blocks of the kernel that scales: ranks on this device times parts.
    scale_grid: u32,
}

/// The addresses of the memory of all ranks, on all devices, without the callers' buffers.
pub(super) type BufferTable = Vec<RankMemory>;

impl DevicePlan {
    /// Allocates the memory, and copies the facts into it.
    pub(super) fn new(
        (device, at): (&Device, usize),
        placement: Placement,
        functions: Functions,
        facts: &Facts,
        (layout, launch): (&GridLayout, Launch),
    ) -> Result<Self, Error> {
        let groups = placement.groups(at, &facts.groups);
        let ranks = placement.ranks(at);
        let (here, nranks) = (ranks.len(), placement.nranks as usize);
        let too_large = |_| {
            let what = format!("the plan's memory on device {}", device.ordinal);
            Error::from(crate::Error::TooLarge { what })
        };
        let arena = Arena::new(layout, facts.words.len(), nranks, here);
        let arena = arena.map_err(too_large)?;
        let mut memory = device.zeros("facts, counters and scratch of the plan", arena.bytes)?;
        let words: Vec<u8> = facts.words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let stream = device.context.default_stream();
        let mut place = memory.slice_mut(arena.facts..arena.facts + words.len());
        let copied = stream.memcpy_htod(&words, &mut place);
        copied.map_err(failed(format!("copying facts to device {}", device.ordinal)))?;
        let base = address(&memory, &stream);
        let on_device = |offset: usize| base + offset as u64;
        let launch = Launch {
            facts: on_device(arena.facts),
            launches: on_device(arena.launches),
            first_group: groups.start as u64,
            ..launch
        };
        let launches = arena.tables.map(|table| Launch { ranks: on_device(table), ..launch });
        let blocks = |count: usize| u32::try_from(count * layout.parts).unwrap_or(u32::MAX);
        let (grid, scale_grid) = (blocks(groups.len()), blocks(here));
        Ok(Self { functions, arena, memory, launches, grid, scale_grid })
    }

    /// Returns the addresses of the memory of this device's ranks.
    pub(super) fn rank_memory(&self, device: &Device) -> impl Iterator<Item = RankMemory> {
        let base = address(&self.memory, &device.context.default_stream());
        self.arena.ranks.iter().map(move |home| RankMemory {
            scratch: base + home.scratch as u64,
            posted: base + home.posted as u64,
            waited: base + home.waited as u64,
            ..RankMemory::default()
        })
    }

    /// Fills in all tables, except for the callers' buffers.
    pub(super) fn fill(
        &mut self,
        device: &Device,
        buffer_table: &BufferTable,
    ) -> Result<(), Error> {
        let words = buffer_table.iter().flat_map(|rank| rank.words());
        let bytes: Vec<u8> = words.flat_map(u64::to_ne_bytes).collect();
        let stream = device.context.default_stream();
        for table in self.arena.tables {
            let mut place = self.memory.slice_mut(table..table + bytes.len());
            let copied = stream.memcpy_htod(&bytes, &mut place);
            copied.map_err(failed(format!("copying addresses to device {}", device.ordinal)))?;
        }
        Ok(())
    }

    /// Writes the callers' buffers, input and output of each rank, into a table.
    pub(super) fn bind(
        &self,
        stream: &CudaStream,
        table: AddressTable,
        io: &[[u64; 2]],
    ) -> Result<(), Error> {
        for addresses in batches(self.launches[table as usize].ranks, io) {
            let config = LaunchConfig {
                grid_dim: (1, 1, 1),
                block_dim: (BOUND_AT_ONCE as u32, 1, 1),
                shared_mem_bytes: 0,
            };
            let mut builder = stream.launch_builder(&self.functions.bind);
            builder.arg(&addresses);
            // SAFETY: the kernel takes this argument, and writes only entries that the table has.
            unsafe { builder.launch(config) }.map_err(failed("binding buffers"))?;
        }
        Ok(())
    }

    /// Launches the kernel with `grid` CTAs, then the kernel that scales, on the buffers that are bound to `table`.
    ///
    /// # Safety
    /// The addresses bound to the table are the device's, and valid for their lengths until the stream is done; no
    /// other launch of the plan runs until then.
    pub(super) unsafe fn launch(
        &self,
        stream: &CudaStream,
        table: AddressTable,
        grid: u32,
        what: impl Fn() -> String,
    ) -> Result<(), Error> {
        let config = |grid, threads| LaunchConfig {
            grid_dim: (grid, 1, 1),
            block_dim: (threads, 1, 1),
            shared_mem_bytes: 0,
        };
        let threads = self.functions.threads;
        let launch = &self.launches[table as usize];
        if grid > 0 {
            let mut builder = stream.launch_builder(&self.functions.kernel);
            builder.arg(launch);
            // SAFETY: the kernel takes this argument; the schedule was proved, so it keeps to the buffers.
            unsafe { builder.launch_cooperative(config(grid, threads)) }.map_err(failed(what()))?;
        }
        if let Some(scale) = self.functions.scale.as_ref().filter(|_| self.scale_grid > 0) {
            let mut builder = stream.launch_builder(scale);
            builder.arg(launch);
            // The kernel that scales has no warp that walks.
            let config = config(self.scale_grid, threads - WALKERS);
            // SAFETY: the kernel takes this argument, and writes only outputs of this device's ranks.
            unsafe { builder.launch(config) }.map_err(failed(what()))?;
        }
        Ok(())
    }

    /// Sets the whole block except for facts and addresses to zero, as it was at first; call it only when no kernel
    /// runs.
    pub(super) fn clear(&self, device: &Device) -> Result<(), Error> {
        let what = || format!("clearing counters of device {}", device.ordinal);
        device.context.bind_to_thread().map_err(failed(what()))?;
        let stream = device.context.default_stream();
        let (begin, len) = (self.arena.cleared.start as u64, self.arena.cleared.len());
        let at = address(&self.memory, &stream) + begin;
        // SAFETY: the range is within the block, which no kernel uses now.
        let done = unsafe { result::memset_d8_async(at, 0, len, stream.cu_stream()) };
        done.map_err(failed(what()))
    }
}

/// Returns the address of a slice's first byte.
fn address(memory: &CudaSlice<u8>, stream: &Arc<CudaStream>) -> u64 {
    memory.device_ptr(stream).0
}

/// Returns the argument of launches, without the fields that differ between devices.
pub(super) fn launch(
    device: &Device,
    control: &Control,
    (count, parts): (u64, u32),
    poll_limit_ns: u64,
    scale: bool,
) -> Result<Launch, Error> {
    Ok(Launch {
        control: control.address(device)?,
        count,
        parts: parts.into(),
        poll_limit_ns,
        finish_scale: scale.into(),
        ..Launch::default()
    })
}

#[cfg(test)]
mod tests {
    use super::super::compile::{HEADERS, tests::compiled};
    use super::*;

    #[test]
    fn what_binds_compiles_and_has_its_name_and_its_number() {
        for arch in ["sm_80", "sm_90", "sm_100"] {
            let compiled = compiled(BIND_TEXT, BIND, arch);
            assert!(compiled.ptx.contains(&format!(".entry {BIND}(")), "{}", compiled.ptx);
        }
        let (_, text) = HEADERS.iter().find(|(name, _)| *name == "bind.cuh").expect("embedded");
        assert!(text.contains(&format!("BOUND_AT_ONCE = {BOUND_AT_ONCE};")));
    }
}
