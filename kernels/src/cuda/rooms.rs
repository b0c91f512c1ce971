//! The buffers of all ranks of a world, made once and used by launches in both forms: for tests and measurements.

use std::sync::Arc;

use cudarc::driver::{CudaSlice, CudaStream, DevicePtr, DevicePtrMut, result};
use roundelay_core::ids::RankId;

use super::device::failed;
use super::error::Error;
use super::plan::CudaPlan;
use super::world::CudaWorld;
use crate::grid::Buffers;

/// The byte that fills a result buffer before a launch.
const UNTOUCHED: u8 = 0xA5;

/// The buffers of all ranks on the devices of a world: inputs, and room for results in place and out of place.
pub struct Rooms {
    world: CudaWorld,
    buffers: Vec<Buffers>,
    inputs: Vec<CudaSlice<u8>>,
    shared: Vec<CudaSlice<u8>>,
}

impl Rooms {
    /// Allocates the buffers of each rank, and copies `data` into the inputs, in rank order.
    ///
    /// # Errors
    /// E0419 where a device is full.
    pub fn new(world: &CudaWorld, buffers: Vec<Buffers>, data: &[Vec<u8>]) -> Result<Self, Error> {
        let take = |what: &str, len: fn(&Buffers) -> usize| -> Result<Vec<_>, Error> {
            let ranks = (0..).map(RankId).zip(&buffers);
            ranks.map(|(rank, of_rank)| world.buffer(what, rank, len(of_rank))).collect()
        };
        let mut inputs = take("input", |of_rank| of_rank.input)?;
        let shared = take("output", |of_rank| of_rank.shared)?;
        for (slice, bytes) in inputs.iter_mut().zip(data) {
            let stream = slice.stream().clone();
            let mut place = slice.slice_mut(..bytes.len());
            stream.memcpy_htod(bytes, &mut place).map_err(failed("copying inputs"))?;
        }
        let all = Self { world: world.clone(), buffers, inputs, shared };
        all.settle()?;
        Ok(all)
    }

    fn settle(&self) -> Result<(), Error> {
        self.world.devices.iter().try_for_each(|device| device.finish("preparing buffers"))
    }

    /// Overwrites the room for results, so that nothing of an earlier result is taken for a new one.
    pub fn clear(&mut self) -> Result<(), Error> {
        self.fill()?;
        self.settle()
    }

    fn fill(&mut self) -> Result<(), Error> {
        for room in &mut self.shared {
            let (stream, len) = (room.stream().clone(), room.num_bytes());
            let what = || failed("clearing buffers");
            stream.context().bind_to_thread().map_err(what())?;
            let (at, _used) = room.device_ptr_mut(&stream);
            // SAFETY: the slice has `len` bytes, and is borrowed for this.
            let done = unsafe { result::memset_d8_async(at, UNTOUCHED, len, stream.cu_stream()) };
            done.map_err(what())?;
        }
        Ok(())
    }

    /// Overwrites the room for results, and copies the inputs into it, where a launch in place reads them.
    pub fn enter(&mut self) -> Result<(), Error> {
        self.fill()?;
        for ((room, input), of_rank) in self.shared.iter_mut().zip(&self.inputs).zip(&self.buffers)
        {
            if of_rank.input > 0 {
                let stream = input.stream();
                let mut place = room.slice_mut(of_rank.input_at..of_rank.input_at + of_rank.input);
                let copied = stream.memcpy_dtod(&input.slice(..of_rank.input), &mut place);
                copied.map_err(failed("copying inputs"))?;
            }
        }
        self.settle()
    }

    /// Launches a plan on these buffers, in place or out of place, and does not wait.
    pub fn launch(
        &mut self,
        plan: &CudaPlan,
        stream: &Arc<CudaStream>,
        in_place: bool,
    ) -> Result<(), Error> {
        let rooms = self.shared.iter_mut().zip(&self.buffers);
        if in_place {
            let mut all: Vec<_> = rooms.map(|(room, b)| room.slice_mut(..b.shared)).collect();
            return plan.launch_bytes_in_place(stream, &mut all);
        }
        let mut outputs: Vec<_> = rooms.map(|(room, b)| room.slice_mut(..b.output)).collect();
        let inputs = self.inputs.iter().zip(&self.buffers);
        let inputs: Vec<_> = inputs.map(|(input, b)| input.slice(..b.input)).collect();
        plan.launch_bytes(stream, &inputs, &mut outputs)
    }

    /// Returns the addresses of input and output of each rank, for schedules that the host drives.
    pub(super) fn addresses(&self, in_place: bool) -> Vec<[u64; 2]> {
        let at = |slice: &CudaSlice<u8>| slice.device_ptr(slice.stream()).0;
        let ranks = self.inputs.iter().zip(&self.shared).zip(&self.buffers);
        let addresses = ranks.map(|((input, room), b)| {
            let room = at(room);
            if in_place {
                [room + b.input_at as u64, room + b.output_at as u64]
            } else {
                [at(input), room]
            }
        });
        addresses.collect()
    }

    /// Waits for all devices, and copies the bytes of all ranks' outputs to the host.
    pub fn results(&self, in_place: bool) -> Result<Vec<Vec<u8>>, Error> {
        self.settle()?;
        let ranks = self.shared.iter().zip(&self.buffers);
        let result = |(room, of_rank): (&CudaSlice<u8>, &Buffers)| {
            let at = if in_place { of_rank.output_at } else { 0 };
            let stream = room.stream();
            let mut bytes = vec![0; of_rank.output];
            if !bytes.is_empty() {
                let place = room.slice(at..at + of_rank.output);
                stream.memcpy_dtoh(&place, &mut bytes).map_err(failed("copying outputs"))?;
                stream.synchronize().map_err(failed("copying outputs"))?;
            }
            Ok(bytes)
        };
        ranks.map(result).collect()
    }
}
