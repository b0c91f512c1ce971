//! The kernel of a rank in a world of processes, its memory, and the memory of the other ranks.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use cudarc::driver::{CudaStream, result};
use roundelay_core::ids::RankId;
use roundelay_export::cuda::{Facts, Kernel};

use super::super::control::Control;
use super::super::device::failed;
use super::super::device_plan::{AddressTable, BufferTable, DeviceMemory, DevicePlan, launch};
use super::super::device_rank::DeviceRank;
use super::super::error::Error;
use super::super::multicast::Multicast;
use super::super::options::CudaOptions;
use super::super::rank_plan::PartOfRank;
use super::super::shared_block::{BlockKind, SharedBlock, Ticket, whole};
use super::agreement::agree;
use super::groups::reach_groups;
use super::loaded_kernel::{LoadedKernel, agreed_parts};
use super::rank::CudaRank;
use super::registry::{PlanParts, Registry, TABLES};
use crate::grid::layout::{CONTROL_GROUP, CONTROL_HEAD};
use crate::grid::{self, Arena, GridLayout, Placement, RankMemory, Stage};
use crate::lowering::plan_call::PlannedCall;
use crate::shared_memory::observe::launches::Outline;

/// The alignment of the stage of a buffer.
const ALIGN: usize = 256;

/// The kernel of a rank and its memory.
pub struct KernelPart {
    rank: CudaRank,
    kernel: Kernel,
    facts: Facts,
    options: CudaOptions,
    control: Arc<Control>,
    /// The memory of the groups of ranks that a switch reaches, of which this rank is one. It goes before the block.
    _groups: Vec<Option<Multicast>>,
    device_plan: DevicePlan,
    /// The stage of the rank's output, in its own block.
    output_stage: u64,
    /// The buffers of callers that all ranks have mapped, or the reason why there are none.
    registry: Result<Registry, String>,
    /// The blocks of the other ranks.
    _peers: Vec<(RankId, SharedBlock)>,
}

impl DeviceMemory for SharedBlock {
    fn address(&self) -> u64 {
        Self::address(self)
    }
}

/// The bytes of the parts of a rank's block.
struct BlockLayout {
    input: usize,
    output: usize,
    bytes: usize,
}

impl BlockLayout {
    fn new(arena: &Arena, [input, output]: [usize; 2]) -> Option<Self> {
        let input_at = arena.bytes.checked_next_multiple_of(ALIGN)?;
        let output_at = input_at.checked_add(input)?.checked_next_multiple_of(ALIGN)?;
        let bytes = output_at.checked_add(output)?;
        Some(Self { input: input_at, output: output_at, bytes })
    }
}

impl KernelPart {
    /// Makes the part of a kernel for `count` elements a unit; all ranks call it, and return together.
    pub(super) fn of_kernel(
        rank: &CudaRank,
        kernel: Result<Kernel, Error>,
        count: u64,
        options: CudaOptions,
    ) -> Result<(Self, PlannedCall), Error> {
        let shared = rank.shared();
        let world = &*shared.world;
        world.intact()?;
        let loaded = kernel.and_then(|kernel| LoadedKernel::new(rank, kernel, count, options));
        let (loaded, told) = agree(world, loaded, |loaded| {
            [&loaded.digest[..], &loaded.parts.to_le_bytes()].concat()
        })?;
        let LoadedKernel { kernel, call, facts, functions, registry, digest, .. } = loaded;
        let parts = agreed_parts(rank, &kernel, count, &digest, &told)?;
        let dtype = call.dtype;
        let mine = rank.rank();
        let nranks = rank.nranks();
        let too_large = || {
            let what = format!("the memory of rank {mine} for {count} elements a unit");
            Error::from(crate::Error::TooLarge { what })
        };

        // The counters and the scratch of all ranks are laid out alike; stages have the sizes of their buffers.
        let layout = GridLayout::new(&facts, parts, dtype.size());
        let layout = match &registry {
            Ok(_) => layout.and_then(|layout| layout.with_tables(TABLES, nranks as usize)),
            Err(_) => layout,
        };
        let layout = layout.map_err(|_| too_large())?;
        let arena = Arena::new(&layout, facts.words.len(), nranks as usize, 1);
        let arena = arena.map_err(|_| too_large())?;
        // One address of a switch stands for one place in the blocks of all ranks, which are laid out alike then.
        let most = |side: usize| call.ranks().map(|rank| call.bytes(rank)[side]).max().unwrap_or(0);
        let alike = (!facts.switches.is_empty()).then(|| [most(0), most(1)]);
        let layouts: Option<Vec<BlockLayout>> = call
            .ranks()
            .map(|rank| BlockLayout::new(&arena, alike.unwrap_or_else(|| call.bytes(rank))))
            .collect();
        let mut layouts = layouts.ok_or_else(too_large)?;
        if alike.is_some() {
            let granule = Multicast::granule(&rank.device, nranks as usize);
            let (granule, _) = agree(world, granule, |_| Vec::new())?;
            for layout in &mut layouts {
                layout.bytes = whole(layout.bytes, granule)?;
            }
        }
        let words = CONTROL_HEAD + CONTROL_GROUP * facts.groups.len();
        let outline = Outline::new(world.arena_id(), &call.name(), &call.schedule, &facts.groups);
        let made = Self::allocate(rank, layouts[mine.index()].bytes, &outline);
        let ((block, control), told) = agree(world, made, |(block, _)| block.ticket().to_bytes())?;
        let control_file = control.as_ref().and_then(SharedBlock::descriptor);
        let files: Vec<_> = block.descriptor().into_iter().chain(control_file).collect();
        let mut files = world.exchange_descriptors(&files)?;
        let control_file = files[0].pop_if(|_| control.is_none());
        let mapped = call.ranks().filter(|rank| *rank != mine).map(|peer| {
            let at = peer.index();
            let ticket = Ticket::read(&told[at]).filter(|it| it.bytes >= layouts[at].bytes);
            let ticket = ticket.ok_or_else(too_large)?;
            Ok((peer, SharedBlock::import(&rank.device, &ticket, files[at].pop())?))
        });
        let mapped: Result<Vec<(RankId, SharedBlock)>, Error> = mapped.collect();
        let control = match control {
            Some(control) => Ok(control),
            None => {
                let ticket = Ticket::of_file(BlockKind::Host, outline.bytes());
                SharedBlock::import(&rank.device, &ticket, control_file)
            }
        };
        let groups = reach_groups(rank, &facts.switches, &block, layouts[mine.index()].bytes)?;
        let prepared = mapped.and_then(|peers| {
            let control = Control::shared(control?, words, nranks);
            let poll_limit = options.poll_limit();
            let launch =
                launch(&rank.device, &control, (count, parts), poll_limit, facts.scale_outputs)?;
            let base = block.address();
            let placement = Placement { devices: nranks as usize, nranks };
            let device_plan = DevicePlan::new(
                (&rank.device, mine.index()),
                placement,
                functions,
                &facts,
                (&layout, launch),
                |_| Ok(block),
            )?;
            let mut bases: Vec<u64> = vec![base; nranks as usize];
            for (peer, block) in &peers {
                bases[peer.index()] = block.address();
            }
            let mut table = BufferTable::new();
            for (base, BlockLayout { input, output, .. }) in bases.iter().zip(&layouts) {
                let [input, output] = [input, output].map(|at| base + *at as u64);
                let memory = device_plan.rank_memory_at(*base);
                table.extend(memory.map(|memory| RankMemory { input, output, ..memory }));
            }
            for of_all in &groups {
                let base = of_all.as_ref().and_then(Multicast::address);
                let BlockLayout { input, output, .. } = &layouts[mine.index()];
                let memory = device_plan.rank_memory_at(base.unwrap_or(0));
                table.extend(memory.map(|RankMemory { scratch, .. }| match base {
                    Some(base) => {
                        let [input, output] = [input, output].map(|at| base + *at as u64);
                        RankMemory { input, output, scratch, ..RankMemory::default() }
                    }
                    None => RankMemory::default(),
                }));
            }
            device_plan.fill(&rank.device, &table)?;
            let output_stage = base + layouts[mine.index()].output as u64;
            Ok((peers, Arc::new(control), device_plan, output_stage))
        });
        let ((peers, control, device_plan, output_stage), _) =
            agree(world, prepared, |_| Vec::new())?;
        shared.watcher.add(&control);
        let rank = rank.clone();
        let part = KernelPart {
            rank,
            kernel,
            facts,
            options,
            control,
            device_plan,
            output_stage,
            registry,
            _groups: groups,
            _peers: peers,
        };
        Ok((part, call))
    }

    /// Allocates the block of this rank; on rank 0, the control block of all, too.
    fn allocate(
        rank: &CudaRank,
        bytes: usize,
        outline: &Outline,
    ) -> Result<(SharedBlock, Option<SharedBlock>), Error> {
        let shared = rank.shared();
        let what = format!("counters, scratch and stage of rank {}", rank.rank());
        let kind = shared.kinds[rank.rank().index()];
        let block = SharedBlock::own(&rank.device, kind, &what, bytes)?;
        let control = (rank.rank() == RankId(0)).then(|| {
            let kind = BlockKind::Host;
            let block = SharedBlock::own(&rank.device, kind, "words of control", outline.bytes())?;
            let written = block.file().map_or(Ok(()), |file| outline.write(file));
            written.map_err(|error| {
                let what = format!("the system refuses a write to words of control: {error}");
                Error::from(crate::Error::SystemRefused { what })
            })?;
            Ok::<_, Error>(block)
        });
        Ok((block, control.transpose()?))
    }
}

impl KernelPart {
    pub(super) fn reason_for_copies(&self) -> Option<String> {
        match &self.registry {
            Ok(registry) => registry.reason(),
            Err(why) => Some(why.clone()),
        }
    }

    pub(super) fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    pub(super) fn control(&self) -> &Arc<Control> {
        &self.control
    }

    /// Returns the error of a launch that gave up, and has all ranks reset the plan where they can go on.
    fn verdict(&self, call: &PlannedCall) -> Result<(), Error> {
        if !self.control.gave_up() {
            return Ok(());
        }
        let shared = self.rank.shared();
        // All other waits of that launch and of later launches end at once.
        self.rank.device.finish(&self.kernel.name)?;
        let mut words = self.control.read();
        if words[0] == u64::MAX {
            // The host ended the kernels: any wait that one of them recorded says more than none.
            let states = words[CONTROL_HEAD..].iter().step_by(CONTROL_GROUP);
            words[0] = states.clone().position(|state| *state != 0).map_or(0, |at| at as u64 + 1);
        }
        let after = self.options.common.deadline;
        let stuck = grid::stuck(&call.schedule, &self.facts.groups, &words, after);
        if let Some((rank, how)) = shared.world.find_lost() {
            let mut wanted = format!("was done with {}", call.name());
            if let Some(stuck) = &stuck {
                wanted = format!(
                    "{wanted}: rank {} waited for {} in step {} ({}:{})",
                    stuck.rank, stuck.waiting_on, stuck.step, stuck.file, stuck.line
                );
            }
            return Err(shared.world.lost_beside(rank, &how, &wanted).into());
        }
        shared.world.intact()?;
        // Where not all ranks come to the reset, the world fails, and later calls say so: this one has the first cause.
        let reset = self.reset();
        Err(match stuck {
            Some(stuck) => crate::Error::Timeout(Box::new(stuck)).into(),
            None => reset.err().unwrap_or_else(|| Error::KernelFailed {
                what: self.kernel.name.clone(),
                why: "its control block holds no wait of its schedule".into(),
            }),
        })
    }

    /// Brings the plan of all ranks to its state before the first launch.
    fn reset(&self) -> Result<(), Error> {
        let shared = self.rank.shared();
        shared.world.meet()?;
        self.device_plan.clear(&self.rank.device)?;
        if let Ok(registry) = &self.registry {
            registry.reset();
        }
        self.rank.device.finish("clearing counters")?;
        if self.rank.rank() == RankId(0) {
            self.control.clear();
        }
        Ok(shared.world.meet()?)
    }
}

impl PartOfRank for KernelPart {
    fn device_rank(&self) -> &DeviceRank {
        &self.rank
    }

    unsafe fn issue(
        &self,
        call: &PlannedCall,
        (stream, captures): (&Arc<CudaStream>, bool),
        [input, output]: [u64; 2],
    ) -> Result<(), Error> {
        self.rank.shared().world.intact()?;
        self.verdict(call)?;
        let rank = self.rank.rank();
        let what = || format!("launching {} of rank {rank}", self.kernel.name);
        let table = match &self.registry {
            Ok(registry) => {
                let Self { rank, device_plan, .. } = self;
                registry.table(&PlanParts { rank, call, device_plan }, captures, [input, output])?
            }
            Err(_) => 0,
        };
        // Where a second kernel divides the output on its stage, the output is copied after it.
        let (output_len, late) = (call.output_len(rank), self.facts.scale_outputs);
        let stage = Stage {
            input,
            input_length: call.input_len(rank) as u64,
            output,
            output_length: if late { 0 } else { output_len as u64 },
            table,
        };
        let grid = self.device_plan.grid;
        if !captures {
            self.control.count_launch(rank);
        }
        // SAFETY: the tables hold the blocks of all ranks, which this plan keeps mapped; launches are ordered after one
        // another; the caller lends its buffers.
        unsafe { self.device_plan.launch(stream, (AddressTable::Direct, stage), grid, what) }?;
        let [_, bytes] = call.bytes(rank);
        if !late || bytes == 0 || table != 0 {
            return Ok(());
        }
        // SAFETY: the stage has the length of the output, which the caller lends until the stream is done.
        let copied = unsafe {
            result::memcpy_dtod_async(output, self.output_stage, bytes, stream.cu_stream())
        };
        copied.map_err(failed(format!("copying the output of rank {rank}")))
    }

    fn check(&self, call: &PlannedCall, waited: Option<Duration>) -> Result<(), Error> {
        let Some(waited) = waited else { return self.verdict(call) };
        let deadline = self.options.common.deadline;
        // The waits of the kernel end at the deadline; what comes later is a kernel that never began.
        if waited > deadline.saturating_mul(2).saturating_add(Duration::from_secs(5)) {
            self.control.abort();
            let what =
                format!("waited {waited:?} for {} of rank {}", call.name(), self.rank.rank());
            return Err(crate::Error::Late { what }.into());
        }
        Ok(())
    }

    fn give_up(&self) {
        self.control.abort();
    }

    fn describe(&self, text: &mut fmt::DebugStruct<'_, '_>) {
        text.field("rank", &self.rank).field("spec", &self.kernel.spec);
    }
}
