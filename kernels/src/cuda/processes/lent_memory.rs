//! Memory of a caller, as other processes can map it: the allocation around an address.

use std::ffi::c_void;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use cudarc::driver::DriverError;
use cudarc::driver::sys::{self, CUpointer_attribute};

use super::super::device::Device;
use super::super::options::Registration;
use super::super::shared_block::{BlockKind, Ticket, export, legacy_handle};

/// An allocation, and the place of a buffer in it.
pub(super) struct LentMemory {
    /// The bytes from the beginning of the allocation to the buffer.
    pub(super) offset: u64,
    pub(super) ticket: Ticket,
    descriptor: Option<OwnedFd>,
}

/// Returns the number of the allocation in which an address lies: another allocation at the same address has another one.
pub(super) fn buffer_id(address: u64) -> Result<u64, DriverError> {
    attribute(CUpointer_attribute::CU_POINTER_ATTRIBUTE_BUFFER_ID, address)
}

/// Returns an attribute of 8 bytes of an address.
fn attribute(attribute: CUpointer_attribute, address: u64) -> Result<u64, DriverError> {
    let mut value = 0_u64;
    // SAFETY: the value has room for each attribute that this module asks for, of 4 or 8 bytes.
    let asked = unsafe {
        sys::cuPointerGetAttribute((&raw mut value).cast::<c_void>(), attribute, address)
    };
    asked.result().map(|()| value)
}

impl LentMemory {
    /// The memory of `bytes` bytes from `address` on.
    ///
    /// # Errors
    /// The reason why other processes cannot map it.
    pub(super) fn new(
        device: &Device,
        address: u64,
        bytes: usize,
        registration: Registration,
    ) -> Result<Self, String> {
        use CUpointer_attribute::{
            CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES as HANDLES,
            CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL as ORDINAL,
            CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE as LEGACY,
            CU_POINTER_ATTRIBUTE_RANGE_SIZE as SIZE,
            CU_POINTER_ATTRIBUTE_RANGE_START_ADDR as START,
        };
        let ask = |what| {
            attribute(what, address)
                .map_err(|error| format!("the driver does not know it: {error}"))
        };
        if ask(ORDINAL)? != device.ordinal as u64 {
            return Err(format!("it is not memory of device {}", device.ordinal));
        }
        let (start, size) = (ask(START)?, ask(SIZE)?);
        let offset = address.saturating_sub(start);
        if address < start || offset.saturating_add(bytes as u64) > size {
            return Err("it lies in several allocations".to_owned());
        }
        let size = usize::try_from(size).map_err(|_| "it is too large".to_owned())?;
        if ask(HANDLES)? & 1 == 1 {
            let ticket = Ticket::of_file(BlockKind::Virtual, size);
            return Ok(Self { offset, ticket, descriptor: Some(descriptor(address)?) });
        }
        if ask(LEGACY)? == 0 {
            return Err("its allocator gives no handles of it".to_owned());
        }
        if registration != Registration::All {
            let why =
                "a plain allocation must outlive the plan, which `Registration::All` promises";
            return Err(why.to_owned());
        }
        let handle =
            legacy_handle(start).map_err(|error| format!("the driver refuses: {error}"))?;
        let ticket = Ticket::of_handle(handle, size);
        Ok(Self { offset, ticket, descriptor: None })
    }

    /// The descriptor of the allocation, where it has one.
    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.descriptor.as_ref().map(|descriptor| descriptor.as_fd())
    }
}

/// Returns a descriptor of the allocation with virtual addresses that has this address.
fn descriptor(address: u64) -> Result<OwnedFd, String> {
    let refused = |error: DriverError| format!("the driver refuses a descriptor: {error}");
    let mut handle = 0;
    // SAFETY: the driver looks the address up, and writes a handle.
    let retained = unsafe {
        sys::cuMemRetainAllocationHandle(
            &raw mut handle,
            std::ptr::without_provenance_mut(address as usize),
        )
    };
    retained.result().map_err(refused)?;
    let exported = export(handle).map_err(refused);
    // SAFETY: the handle was retained above, and goes back once.
    let _ = unsafe { sys::cuMemRelease(handle) };
    exported
}
