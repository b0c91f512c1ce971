//! A module of PTX that a device has loaded, for comparisons of the device with what is known of it.

use std::sync::Arc;

use cudarc::driver::{CudaModule, CudaSlice, DevicePtr, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;

use super::device::failed;
use super::error::Error;
use super::world::CudaWorld;

/// A module of PTX on the first device of a world.
pub struct LoadedPtx {
    world: CudaWorld,
    module: Arc<CudaModule>,
}

impl LoadedPtx {
    /// Has the driver assemble a text.
    ///
    /// # Errors
    /// E0421 where the driver refuses the text.
    pub fn new(world: &CudaWorld, text: &str) -> Result<Self, Error> {
        let device = &world.devices[0];
        let what = format!("loading PTX on device {}", device.ordinal);
        let module = device.context.load_module(Ptx::from_src(text)).map_err(failed(what))?;
        Ok(Self { world: world.clone(), module })
    }

    /// Runs a kernel of the module to its end, in a grid of `blocks` blocks of `threads` threads. Its parameters are of 64
    /// bits: the addresses of the buffers, and then the numbers. The kernel keeps to the bytes of the buffers. Returns
    /// the bytes of the buffers after the run.
    ///
    /// # Errors
    /// E0419 where the device has no room, E0421 where the driver reports an error.
    pub fn run(
        &self,
        kernel: &str,
        (blocks, threads): (u32, u32),
        mut buffers: Vec<Vec<u8>>,
        numbers: &[u64],
    ) -> Result<Vec<Vec<u8>>, Error> {
        let device = &self.world.devices[0];
        let stream = device.context.default_stream();
        let what = || failed(format!("running {kernel} on device {}", device.ordinal));
        let function = self.module.load_function(kernel).map_err(what())?;
        let mut slices: Vec<CudaSlice<u8>> = Vec::new();
        for bytes in &buffers {
            let mut slice = device.zeros("a buffer", bytes.len())?;
            let mut place = slice.slice_mut(..bytes.len());
            stream.memcpy_htod(bytes, &mut place).map_err(what())?;
            slices.push(slice);
        }
        let addresses = slices.iter().map(|slice| slice.device_ptr(&stream).0);
        let parameters: Vec<u64> = addresses.chain(numbers.iter().copied()).collect();
        let mut builder = stream.launch_builder(&function);
        for parameter in &parameters {
            builder.arg(parameter);
        }
        let config = LaunchConfig {
            grid_dim: (blocks, 1, 1),
            block_dim: (threads, 1, 1),
            shared_mem_bytes: 0,
        };
        // SAFETY: the caller's kernel takes these parameters and keeps to the buffers, which live until the stream is done.
        unsafe { builder.launch(config) }.map_err(what())?;
        device.finish(&format!("running {kernel}"))?;
        for (slice, bytes) in slices.iter().zip(&mut buffers) {
            let place = slice.slice(..bytes.len());
            stream.memcpy_dtoh(&place, bytes.as_mut_slice()).map_err(what())?;
        }
        device.finish(&format!("running {kernel}"))?;
        Ok(buffers)
    }
}
