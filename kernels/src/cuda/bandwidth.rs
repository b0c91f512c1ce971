//! The speed at which a device copies its own memory, the measure for collectives on it.

use std::time::Instant;

use cudarc::driver::{DevicePtr, result};

use super::device::failed;
use super::error::Error;
use super::world::CudaWorld;

/// Far more bytes than any cache holds; a quarter of the free memory where that is less.
const BYTES: usize = 256 << 20;
/// Copies in a row.
const COPIES: u32 = 20;
/// Rows, of which the fastest counts: other work of the device only adds time.
const ROWS: u32 = 5;

impl CudaWorld {
    /// Bytes a second that copies within the first device read and write, both counted.
    pub fn copy_bandwidth(&self) -> Result<f64, Error> {
        let device = &self.devices[0];
        let what = || failed(format!("copying within device {}", device.ordinal));
        let (free, _) = device.context.mem_get_info().map_err(what())?;
        let bytes = BYTES.min(free / 4);
        let (from, to) = (device.zeros("a copy", bytes)?, device.zeros("a copy", bytes)?);
        let stream = device.context.default_stream();
        let (source, target) = (from.device_ptr(&stream).0, to.device_ptr(&stream).0);
        let mut best = f64::INFINITY;
        // The first row warms up.
        for row in 0..=ROWS {
            stream.synchronize().map_err(what())?;
            let begun = Instant::now();
            for _ in 0..COPIES {
                // SAFETY: both slices have `bytes` bytes, and live until the stream was waited for.
                let copied =
                    unsafe { result::memcpy_dtod_async(target, source, bytes, stream.cu_stream()) };
                copied.map_err(what())?;
            }
            stream.synchronize().map_err(what())?;
            if row > 0 {
                best = best.min(begun.elapsed().as_secs_f64() / f64::from(COPIES));
            }
        }
        Ok(2.0 * bytes as f64 / best)
    }
}
