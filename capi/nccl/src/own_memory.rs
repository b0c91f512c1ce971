//! Memory of GPUs for `ncclMemAlloc` without an NCCL, which other ranks map: operations use it where it is.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use roundelay::cuda::CudaRank;
use roundelay_kernels::cuda::MappableMemory;

use crate::call_errors::{Refusal, wrong};
use crate::stream_order::in_own_context;
use crate::types::Out;

/// The blocks by their addresses.
static BLOCKS: LazyLock<Mutex<HashMap<usize, MappableMemory>>> = LazyLock::new(Mutex::default);

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
        let made = MappableMemory::new(device, bytes)?;
        let at = made.address() as usize;
        BLOCKS.lock().unwrap_or_else(PoisonError::into_inner).insert(at, made);
        Ok(std::ptr::without_provenance_mut(at))
    })
}

/// Frees a block.
///
/// # Errors
/// The address is none of a block.
pub(crate) fn free(at: Out) -> Result<(), Refusal> {
    if at.is_null() {
        return Ok(());
    }
    let block = BLOCKS.lock().unwrap_or_else(PoisonError::into_inner).remove(&at.addr());
    let block = block.ok_or_else(|| wrong("the address is none of ncclMemAlloc's"))?;
    in_own_context(|| drop(block));
    Ok(())
}
