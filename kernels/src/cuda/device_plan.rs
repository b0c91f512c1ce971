//! The part of a plan on one device: the loaded kernel, its block of memory, and the arguments of its launches.

use cudarc::driver::{
    CudaFunction, CudaSlice, CudaStream, DevicePtr, DeviceRepr, LaunchConfig, PushKernelArg, result,
};
use roundelay_export::cuda::{Facts, Kernel};

use super::compile::{Compiled, Target, WALKERS, compile};
use super::control::Control;
use super::device::{Device, failed};
use super::error::Error;
use crate::grid::bound::{Addresses, BIND, BIND_TEXT, BOUND_AT_ONCE, batches};
use crate::grid::{Arena, GridLayout, Launch, Placement, RankMemory, Stage};

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
    memory: Box<dyn DeviceMemory>,
    /// By [`AddressTable`].
    launches: [Launch; Arena::TABLES],
    /// CTAs: streams on this device times parts.
    pub(super) grid: u32,
    /// Blocks of the kernel that scales: ranks on this device times parts.
    scale_grid: u32,
}

/// The addresses of the memory of all ranks, on all devices.
pub(super) type BufferTable = Vec<RankMemory>;

/// The memory of a plan on a device, which is freed with this value.
pub(super) trait DeviceMemory: Send + Sync {
    /// Returns the address of the first byte.
    fn address(&self) -> u64;
}

impl DeviceMemory for CudaSlice<u8> {
    fn address(&self) -> u64 {
        self.device_ptr(self.stream()).0
    }
}

impl DevicePlan {
    /// Has `allocate` make the memory, all zero, and copies the facts into it.
    pub(super) fn new<M: DeviceMemory + 'static>(
        (device, at): (&Device, usize),
        placement: Placement,
        functions: Functions,
        facts: &Facts,
        (layout, launch): (&GridLayout, Launch),
        allocate: impl FnOnce(&Arena) -> Result<M, Error>,
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
        let memory = allocate(&arena)?;
        let base = memory.address();
        let words: Vec<u8> = facts.words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        copy_to(device, base + arena.facts as u64, &words, "facts")?;
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
        Ok(Self { functions, arena, memory: Box::new(memory), launches, grid, scale_grid })
    }

    /// Returns the addresses of the memory of this device's ranks.
    pub(super) fn rank_memory(&self) -> impl Iterator<Item = RankMemory> {
        self.rank_memory_at(self.memory.address())
    }

    /// Returns the addresses of the memory of as many ranks in a block that is laid out as this one, and begins at
    /// `base`.
    pub(super) fn rank_memory_at(&self, base: u64) -> impl Iterator<Item = RankMemory> {
        self.arena.ranks.iter().map(move |home| RankMemory {
            scratch: base + home.scratch as u64,
            posted: base + home.posted as u64,
            waited: base + home.waited as u64,
            ..RankMemory::default()
        })
    }

    /// Fills in all tables.
    pub(super) fn fill(&self, device: &Device, buffer_table: &BufferTable) -> Result<(), Error> {
        let words = buffer_table.iter().flat_map(|rank| rank.words());
        let bytes: Vec<u8> = words.flat_map(u64::to_ne_bytes).collect();
        for table in self.arena.tables {
            copy_to(device, self.memory.address() + table as u64, &bytes, "addresses")?;
        }
        Ok(())
    }

    /// Writes the input and the output of a row behind the tables' first rows, one for each rank, which kernels that read
    /// other rows may run meanwhile.
    pub(super) fn write_buffers(
        &self,
        device: &Device,
        row: usize,
        io: [u64; 2],
    ) -> Result<(), Error> {
        let at =
            self.launches[AddressTable::Direct as usize].ranks + (row * RankMemory::BYTES) as u64;
        let bytes: Vec<u8> = io.into_iter().flat_map(u64::to_ne_bytes).collect();
        copy_to(device, at, &bytes, "addresses")
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
    /// The addresses bound to the table and those of the stage are the device's, and valid for their lengths until the stream is done; no
    /// other launch of the plan runs until then.
    pub(super) unsafe fn launch(
        &self,
        stream: &CudaStream,
        (table, stage): (AddressTable, Stage),
        grid: u32,
        what: impl Fn() -> String,
    ) -> Result<(), Error> {
        let config = |grid, threads| LaunchConfig {
            grid_dim: (grid, 1, 1),
            block_dim: (threads, 1, 1),
            shared_mem_bytes: 0,
        };
        let threads = self.functions.threads;
        let launch = &Launch { stage, ..self.launches[table as usize] };
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
        let at = self.memory.address() + begin;
        // SAFETY: the range is within the block, which no kernel uses now.
        let done = unsafe { result::memset_d8_async(at, 0, len, stream.cu_stream()) };
        done.map_err(failed(what()))
    }
}

/// Copies bytes of the host to an address of the device, and returns when they are there.
fn copy_to(device: &Device, to: u64, bytes: &[u8], what: &str) -> Result<(), Error> {
    let failed = || failed(format!("copying {what} to device {}", device.ordinal));
    device.context.bind_to_thread().map_err(failed())?;
    let stream = device.context.default_stream();
    // SAFETY: the range lies within the plan's block, which no kernel uses yet.
    unsafe { result::memcpy_htod_async(to, bytes, stream.cu_stream()) }.map_err(failed())?;
    stream.synchronize().map_err(failed())
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
