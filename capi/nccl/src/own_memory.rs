//! Memory of GPUs for `ncclMemAlloc` without an NCCL: plain allocations, which operations copy as any other's.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use roundelay::cuda::CudaRank;
use roundelay::cuda::cudarc::driver::{CudaContext, result};

use crate::call_errors::{Refusal, wrong};
use crate::stream_order::in_own_context;
use crate::types::Out;

/// The blocks by their addresses, with the contexts of their devices.
static BLOCKS: LazyLock<Mutex<HashMap<usize, Arc<CudaContext>>>> = LazyLock::new(Mutex::default);

/// Allocates bytes on the device that is current in this thread; null for none.
///
/// # Errors
/// The driver refuses.
pub(crate) fn allocate(bytes: usize) -> Result<Out, Refusal> {
    if bytes == 0 {
        return Ok(std::ptr::null_mut());
    }
    let device = CudaRank::current_device()?;
    in_own_context(|| {
        let context = CudaContext::new(device)?;
        context.bind_to_thread()?;
        // SAFETY: the context is current, and the memory stays until it is freed by its address.
        let at = unsafe { result::malloc_sync(bytes) }?;
        BLOCKS.lock().unwrap_or_else(PoisonError::into_inner).insert(at as usize, context);
        Ok(std::ptr::without_provenance_mut(at as usize))
    })
}

/// Frees a block.
///
/// # Errors
/// The address is none of a block; the driver refuses.
pub(crate) fn free(at: Out) -> Result<(), Refusal> {
    if at.is_null() {
        return Ok(());
    }
    let context = BLOCKS.lock().unwrap_or_else(PoisonError::into_inner).remove(&at.addr());
    let context = context.ok_or_else(|| wrong("the address is none of ncclMemAlloc's"))?;
    in_own_context(|| {
        context.bind_to_thread()?;
        // SAFETY: the block was allocated, and is freed once.
        Ok(unsafe { result::free_sync(at.addr() as u64) }?)
    })
}
