//! A proved algorithm as a kernel on a world's devices, ready to be launched.

use std::fmt;
use std::sync::Mutex;

use roundelay_core::diagnostics::{Code, Diagnostic};
use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_core::ids::RankId;
use roundelay_core::layout::Configured;
use roundelay_core::source::Span;
use roundelay_core::verify::Callers;
use roundelay_core::verify::Proved;
use roundelay_export::cuda::{Facts, Form, Kernel, NEEDS_WHOLE_LINES, Protocol, Spec};

use super::compile::{Fitted, Target, WALKERS, fit};
use super::control::Control;
use super::device::Device;
use super::device_plan::{BufferTable, DevicePlan, Functions, launch};
use super::error::Error;
use super::options::CudaOptions;
use super::state::{LastLaunch, StreamOrder};
use super::world::CudaWorld;
use crate::grid::{self, Crowded, GridLayout};
use crate::lowering::plan_call::{PlannedCall, check_multiple};
use crate::options::Check;

const MOST_THREADS: u32 = 1024;
/// The macro of kernels whose signals order several devices.
pub(super) const SCOPE_SYS: &str = "ROUNDELAY_SCOPE_SYS";

/// A proved algorithm, compiled for the devices of a [`CudaWorld`], for one count, element type and reduce op.
///
/// The count is NCCL's: the elements of one unit of the collective. [`Self::input_len`], [`Self::output_len`] and
/// [`Self::in_place_len`] give the length of each rank's slices in elements. The trait `OnDevice` of the crate
/// `roundelay` makes such plans of algorithms.
///
/// Launches of one plan are ordered after one another, whatever streams they are on. A graph that replays a launch
/// must be ordered by its owner, and not outlive the plan.
pub struct CudaPlan {
    pub(super) world: CudaWorld,
    pub(super) call: PlannedCall,
    pub(super) kernel: Kernel,
    pub(super) facts: Facts,
    pub(super) options: CudaOptions,
    pub(super) parts: u32,
    /// Bytes that the loads of one CTA have under way at once, on the device where they are fewest.
    pub(super) in_flight: u32,
    pub(super) control: Control,
    /// By device.
    pub(super) device_plans: Vec<DevicePlan>,
    pub(super) stream_order: StreamOrder,
    /// Locked during a launch: the counters and the scratch belong to one launch at a time.
    pub(super) last: Mutex<LastLaunch>,
    /// Whether the last rank never runs, for tests.
    pub(super) absent: bool,
}

impl fmt::Debug for CudaPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CudaPlan")
            .field("algorithm", &self.kernel.name)
            .field("form", &self.kernel.form)
            .field("nranks", &self.call.schedule.nranks)
            .field("count", &self.call.count)
            .field("spec", &self.kernel.spec)
            .field("parts", &self.parts)
            .finish_non_exhaustive()
    }
}

impl CudaPlan {
    /// A plan for an algorithm that was proved for the ranks of `world`, and for `count` elements a unit. The kernel
    /// is made in the form and with the protocol that `options` name, and compiled now.
    ///
    /// # Errors
    /// E0401 where the proof is for another number of ranks; E0407 for scratch with more bytes than addresses; E0415
    /// without NVRTC; E0417 where NVRTC refuses the kernel; E0418 where a device does not hold all CTAs at once; E0419
    /// where a device's memory does not suffice; E0423 where the algorithm does not fit the form, a link between the
    /// devices does not keep the lines of LL128 together, or a CTA cannot have that number of threads; E0425 for a fault of
    /// the optimizer; E0431 where the elements do not have the op; E0433 where `options` ask for a check, and the kernel
    /// gives wrong data.
    pub fn new(
        world: &CudaWorld,
        algorithm: &Configured,
        proved: &Proved,
        count: u64,
        (dtype, op): (DType, ReduceOp),
        options: CudaOptions,
    ) -> Result<Self, Error> {
        let callers = if world.devices.len() == 1 { Callers::One } else { Callers::Each };
        let kernel = options.kernel(algorithm, proved, (dtype, op), callers)?;
        Self::of_kernel(world, kernel, count, options)
    }

    /// A plan that launches `kernel`, which was made for the number of ranks of `world`, for `count` elements a unit.
    /// The plan takes the threads, the parts and the deadline from `options`; form and protocol are the kernel's.
    ///
    /// # Errors
    /// The errors of [`Self::new`].
    pub fn of_kernel(
        world: &CudaWorld,
        kernel: Kernel,
        count: u64,
        options: CudaOptions,
    ) -> Result<Self, Error> {
        let call = call_of(&kernel, world.nranks(), count)?;
        keeps_lines(&kernel, || world.torn())?;
        has_switch(&kernel, || Some("its ranks have no processes of their own".to_owned()))?;
        let threads = check_threads(options.threads)?;
        let facts = kernel.facts(count);
        let (functions, in_flight) = Self::functions(world, &kernel, &facts, threads)?;
        let parts = Self::parts(world, &kernel, &facts, &functions, count, options)?;
        let layout = GridLayout::new(&facts, parts, call.dtype.size()).map_err(|_| {
            let what = format!("scratch for {count} elements a unit has more bytes than addresses");
            Error::from(crate::Error::TooLarge { what })
        })?;
        let control = Control::new(&world.devices[0], layout.control_words)?;
        let mut device_plans = Vec::new();
        let mut buffer_table = BufferTable::new();
        for (at, (device, functions)) in world.devices.iter().zip(functions).enumerate() {
            let poll_limit = options.poll_limit();
            let launch = launch(device, &control, (count, parts), poll_limit, facts.scale_outputs)?;
            let placement = world.placement;
            let device_plan = DevicePlan::new(
                (device, at),
                placement,
                functions,
                &facts,
                (&layout, launch),
                |arena| device.zeros("facts, counters and scratch of the plan", arena.bytes),
            )?;
            buffer_table.extend(device_plan.rank_memory());
            device_plans.push(device_plan);
        }
        for (device, device_plan) in world.devices.iter().zip(&device_plans) {
            device_plan.fill(device, &buffer_table)?;
            device.finish("preparing the plan")?;
        }
        let plan = Self {
            world: world.clone(),
            call,
            kernel,
            facts,
            options,
            parts,
            in_flight,
            control,
            device_plans,
            stream_order: StreamOrder::new(&world.devices)?,
            last: Mutex::default(),
            absent: false,
        };
        if options.common.checks()? == Check::First {
            plan.check_first()?;
        }
        Ok(plan)
    }

    /// Returns the functions of each device, and the fewest bytes that the loads of one CTA have under way at once.
    fn functions(
        world: &CudaWorld,
        kernel: &Kernel,
        facts: &Facts,
        threads: u32,
    ) -> Result<(Vec<Functions>, u32), Error> {
        let (mut all, mut in_flight) = (Vec::new(), u32::MAX);
        for device in world.devices.iter() {
            let defines: &[&str] = if world.devices.len() > 1 { &[SCOPE_SYS] } else { &[] };
            let Fitted { compiled, target } = fitted(kernel, device, defines, threads)?;
            all.push(Functions::load(device, kernel, &compiled, facts.scale_outputs, threads)?);
            in_flight = in_flight.min(target.block_in_flight());
        }
        Ok((all, in_flight))
    }

    fn parts(
        world: &CudaWorld,
        kernel: &Kernel,
        facts: &Facts,
        functions: &[Functions],
        count: u64,
        options: CudaOptions,
    ) -> Result<u32, Error> {
        let mut rooms = Vec::new();
        for (at, (device, functions)) in world.devices.iter().zip(functions).enumerate() {
            let streams = world.placement.groups(at, &facts.groups).len() as u64;
            rooms.push((streams, functions.resident(device)?));
        }
        let ranks = |device| world.placement.ranks(device).len() as u32;
        resident_parts(kernel, count, options, &rooms, ranks)
    }

    /// The number of CTAs that share the work of each stream of a rank.
    pub fn parts_per_stream(&self) -> u32 {
        self.parts
    }

    /// The plan's count: elements of one unit of the collective, as NCCL counts.
    pub fn count(&self) -> u64 {
        self.call.count
    }

    /// The kernel that is launched, with its text and its schedule.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// The length of the input of `rank` in elements; 0 where the rank has no input.
    pub fn input_len(&self, rank: impl Into<RankId>) -> usize {
        self.call.input_len(rank.into())
    }

    /// The length of the output of `rank` in elements; 0 where the rank has no output.
    pub fn output_len(&self, rank: impl Into<RankId>) -> usize {
        self.call.output_len(rank.into())
    }

    /// The length in elements of the one buffer that `rank` has in place: the length of the larger of its two buffers.
    pub fn in_place_len(&self, rank: impl Into<RankId>) -> usize {
        self.call.in_place_len(rank.into())
    }

    /// Sets whether the last rank never runs, so that the other ranks must give up.
    #[doc(hidden)]
    pub fn leave_out_last_rank(&mut self, absent: bool) {
        self.absent = absent;
    }
}

/// Returns the call of a kernel by `given` ranks, for `count` elements a unit.
pub(super) fn call_of(kernel: &Kernel, given: u32, count: u64) -> Result<PlannedCall, Error> {
    let (schedule, proof) = (kernel.schedule.clone(), kernel.proof.clone());
    let nranks = schedule.nranks;
    if nranks != given {
        let (what, given) = ("ranks of the world", given as usize);
        return Err(crate::Error::WrongBufferCount { what, given, nranks }.into());
    }
    check_multiple(&schedule, count)?;
    let Spec { element: dtype, op, .. } = kernel.spec;
    Ok(PlannedCall { schedule, proof, count, dtype, op, even: None })
}

/// Refuses a kernel of LL128 where ranks are joined by a link that does not keep its lines together, which `torn` names.
pub(super) fn keeps_lines(
    kernel: &Kernel,
    torn: impl FnOnce() -> Option<String>,
) -> Result<(), Error> {
    let lines = kernel.spec.protocol == Protocol::Ll128;
    match lines.then(torn).flatten() {
        Some(why) => Err(refused(kernel, ("of protocol ll128", &why), NEEDS_WHOLE_LINES)),
        None => Ok(()),
    }
}

/// Refuses a kernel whose moves a switch makes where no switch reaches the memory of all ranks, for a reason.
pub(super) fn has_switch(
    kernel: &Kernel,
    reason: impl FnOnce() -> Option<String>,
) -> Result<(), Error> {
    match (kernel.form == Form::Switch).then(reason).flatten() {
        Some(why) => Err(refused(kernel, ("by a switch", &why), NEEDS_SWITCH)),
        None => Ok(()),
    }
}

/// The advice where no switch reaches the memory of all ranks.
const NEEDS_SWITCH: &str = "take the form table, in which the ranks move the data; a switch needs a process and a device with \
                            multicast for each rank, all joined by NVLink";

/// Returns the error of a kernel that does not run here.
fn refused(kernel: &Kernel, (kind, why): (&str, &str), help: &str) -> Error {
    let title = format!("{} has no kernel {kind} here: {why}", kernel.name);
    let refused = Diagnostic::new(Code::NoSuchKernel, Span::default(), title);
    Error::NoKernel(vec![refused.help(help)])
}

/// Returns `given` if a CTA can have that number of threads: threads that move, beside the warp that walks.
pub(super) fn check_threads(given: u32) -> Result<u32, Error> {
    let can_be = given > WALKERS && given <= MOST_THREADS && given.is_multiple_of(32);
    if can_be { Ok(given) } else { Err(Error::BadThreads { given }) }
}

/// Returns the number of CTAs that share a stream: the number in `options`, or the most that all devices hold and the
/// data is worth. `rooms` has the streams of each device and the CTAs that it holds, `ranks` returns the number of
/// ranks on a device.
pub(super) fn resident_parts(
    kernel: &Kernel,
    count: u64,
    options: CudaOptions,
    rooms: &[(u64, u64)],
    ranks: impl Fn(usize) -> u32,
) -> Result<u32, Error> {
    let worth = grid::worth(&kernel.schedule, count, kernel.spec.element.size());
    let wanted = options.parts.map(std::num::NonZeroU32::get);
    grid::parts(rooms, wanted, worth).map_err(|Crowded { device, streams, ctas, holds }| {
        let (kernel, ranks) = (kernel.name.clone(), ranks(device));
        Error::NotResident { kernel, ranks, streams, ctas, holds }
    })
}

/// Compiles a kernel for a device, with these macros set.
pub(super) fn fitted(
    kernel: &Kernel,
    device: &Device,
    defines: &[&str],
    threads: u32,
) -> Result<Fitted, Error> {
    let mut target = Target { threads, ..Target::new(device.arch) };
    target.defines.extend(defines.iter().map(|define| ((*define).into(), "1".into())));
    fit(&kernel.text, &kernel.name, &target)
}

impl Drop for CudaPlan {
    /// Waits, because kernels under way use the plan's memory.
    fn drop(&mut self) {
        for device in self.world.devices.iter() {
            // A lost context runs nothing any more.
            let _ = device.finish("ending the plan");
        }
    }
}
