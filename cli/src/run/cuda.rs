//! `roundelay run --device cuda`: the kernel on GPUs.

use std::time::{Duration, Instant};

use roundelay_core::ids::RankId;
use roundelay_core::layout::Configured;
use roundelay_core::verify::Proved;
use roundelay_kernels::cuda::{CudaPlan, CudaWorld, Rooms};
use roundelay_kernels::grid::Buffers;

use super::{Measured, RunFlags, Stopped};

/// Runs a program's kernel on GPUs.
pub(super) fn run(
    devices: &[usize],
    algorithm: &Configured,
    proved: &Proved,
    inputs: &[Vec<u8>],
    flags: &RunFlags,
) -> Result<Measured, Stopped> {
    let nranks = proved.schedule().nranks;
    let world = CudaWorld::on_devices(devices, nranks)?;
    let options = flags.device.options(&flags.engine);
    let kind = (flags.dtype, flags.op);
    let plan = CudaPlan::new(&world, algorithm, proved, flags.count(), kind, options)?;
    let (schedule, size) = (proved.schedule(), flags.dtype.size());
    let buffers = |rank| Buffers::new(schedule, RankId(rank), flags.count(), size);
    let mut rooms = Rooms::new(&world, (0..nranks).map(buffers).collect(), inputs)?;
    rooms.clear()?;
    let (stream, mut time) = (world.stream(), Duration::ZERO);
    for iteration in 0..=flags.iterations() {
        if flags.in_place {
            rooms.enter()?;
        }
        let begun = Instant::now();
        rooms.launch(&plan, &stream, flags.in_place)?;
        plan.wait()?;
        // The first is to warm up.
        if iteration > 0 {
            time += begun.elapsed();
        }
    }
    let reduce_depth = plan.kernel().proof.reduce_depth;
    let device = Some(world.names().collect::<Vec<_>>().join(", "));
    let (outputs, seconds) = (Some(rooms.results(flags.in_place)?), Some(time.as_secs_f64()));
    Ok(Measured { outputs, seconds, reduce_depth, device, counters: None })
}
