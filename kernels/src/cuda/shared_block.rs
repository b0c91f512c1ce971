//! A block of memory that one rank allocates and the processes of all ranks map.

use std::fs::File;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::sync::Arc;

use cudarc::driver::sys::{
    self, CUdevice_attribute, CUipcMem_flags, CUmemAccess_flags, CUmemAccessDesc,
    CUmemAllocationHandleType, CUmemAllocationProp, CUmemAllocationType, CUmemLocation,
    CUmemLocationType, CUresult,
};
use cudarc::driver::{CudaContext, DriverError};
use rustix::fs::{MemfdFlags, memfd_create};

use super::device::{Device, failed};
use super::error::Error;
use crate::shared_memory::Mapping;
use crate::shared_memory::observe::GPU;

/// The kind of memory of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum BlockKind {
    /// Memory of the device with a descriptor: it lives as long as any process holds it.
    Virtual,
    /// Memory of the device with a legacy handle: it goes with its owner.
    Legacy,
    /// Memory of the host that the device maps.
    Host,
}

/// The bytes of a legacy handle.
const HANDLE: usize = 64;
/// The granule of device memory, where the driver names none: small allocations share such a block.
const GRANULE: usize = 2 << 20;

impl BlockKind {
    /// Returns the kind of device memory that `device` can share between processes.
    pub(super) fn of_device(device: &Device) -> Result<Self, Error> {
        use CUdevice_attribute::{
            CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED as DESCRIPTORS,
            CU_DEVICE_ATTRIBUTE_VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED as VIRTUAL,
        };
        for needed in [VIRTUAL, DESCRIPTORS] {
            let has = device.context.attribute(needed);
            if has.map_err(failed(format!("asking device {}", device.ordinal)))? == 0 {
                return Ok(Self::Legacy);
            }
        }
        Ok(Self::Virtual)
    }
}

/// The words by which a process maps a block of another, beside the descriptor of one that has one.
pub(super) struct Ticket {
    pub(super) kind: BlockKind,
    /// Zeros where the block has a descriptor.
    legacy: [u8; HANDLE],
    pub(super) bytes: usize,
}

impl Ticket {
    /// The bytes of the words.
    pub(super) const BYTES: usize = 1 + HANDLE + 8;

    /// Returns the ticket of a plain allocation.
    pub(super) fn of_handle(legacy: [u8; HANDLE], bytes: usize) -> Self {
        Self { kind: BlockKind::Legacy, legacy, bytes }
    }

    /// Returns the ticket of a block with a descriptor, of at least `bytes` bytes.
    pub(super) fn of_file(kind: BlockKind, bytes: usize) -> Self {
        Self { kind, legacy: [0; HANDLE], bytes }
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let bytes = (self.bytes as u64).to_le_bytes();
        [&[self.kind as u8], &self.legacy[..], &bytes].concat()
    }

    /// Reads the words of another rank.
    pub(super) fn read(told: &[u8]) -> Option<Self> {
        let (kind, told) = told.split_first()?;
        let kinds = [BlockKind::Virtual, BlockKind::Legacy, BlockKind::Host];
        let kind = kinds.into_iter().find(|known| *known as u8 == *kind)?;
        let (legacy, bytes) = told.split_first_chunk()?;
        let bytes = u64::from_le_bytes(bytes.try_into().ok()?);
        Some(Self { kind, legacy: *legacy, bytes: usize::try_from(bytes).ok()? })
    }
}

/// A block that this process has mapped.
pub(super) struct SharedBlock {
    context: Arc<CudaContext>,
    address: u64,
    bytes: usize,
    hold: Hold,
}

// SAFETY: the block is an address, and descriptors and mappings that this process only gives back.
unsafe impl Send for SharedBlock {}
// SAFETY: shared references only read the fields.
unsafe impl Sync for SharedBlock {}

/// The hold of a process on the memory.
enum Hold {
    Virtual { handle: u64, descriptor: Option<OwnedFd> },
    Allocated { legacy: [u8; HANDLE] },
    Opened,
    Host { file: File, mapping: Mapping },
}

impl SharedBlock {
    /// Allocates at least `bytes` bytes, all zero.
    pub(super) fn own(
        device: &Device,
        kind: BlockKind,
        what: &str,
        bytes: usize,
    ) -> Result<Self, Error> {
        let doing = format!("allocating {what} on device {}", device.ordinal);
        let full = |error: DriverError| match error {
            DriverError(CUresult::CUDA_ERROR_OUT_OF_MEMORY) => Error::DeviceMemory {
                what: what.to_owned(),
                device: device.ordinal,
                asked: bytes as u64,
                free: device.context.mem_get_info().map_or(0, |(free, _)| free as u64),
            },
            other => failed(doing.clone())(other),
        };
        bind(device)?;
        match kind {
            BlockKind::Virtual => {
                let place = place_of(device);
                let mut granule = 0;
                // SAFETY: both arguments outlive the call.
                let asked = unsafe {
                    sys::cuMemGetAllocationGranularity(
                        &raw mut granule,
                        &raw const place,
                        sys::CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_RECOMMENDED,
                    )
                };
                asked.result().map_err(failed(doing.clone()))?;
                let bytes = whole(bytes, granule.max(1))?;
                let mut handle = 0;
                // SAFETY: the arguments outlive the call.
                let made = unsafe { sys::cuMemCreate(&raw mut handle, bytes, &raw const place, 0) };
                made.result().map_err(full)?;
                let mut block = Self::map(device, handle, bytes).map_err(failed(doing.clone()))?;
                let descriptor = export(handle).map_err(failed(doing))?;
                block.hold = Hold::Virtual { handle, descriptor: Some(descriptor) };
                block.zero(device)?;
                Ok(block)
            }
            BlockKind::Legacy => {
                let bytes = whole(bytes, GRANULE)?;
                let mut address = 0;
                // SAFETY: the argument outlives the call.
                let made = unsafe { sys::cuMemAlloc_v2(&raw mut address, bytes) };
                made.result().map_err(full)?;
                let hold = Hold::Allocated { legacy: [0; HANDLE] };
                let mut block = Self { context: device.context.clone(), address, bytes, hold };
                block.zero(device)?;
                let legacy = legacy_handle(address);
                let legacy = legacy.map_err(failed("making a handle of device memory"))?;
                block.hold = Hold::Allocated { legacy };
                Ok(block)
            }
            BlockKind::Host => {
                let bytes = whole(bytes, GRANULE)?;
                let refused = |errno: rustix::io::Errno| {
                    let what = format!("the system refuses {bytes} bytes for {what}: {errno}");
                    Error::from(crate::Error::SystemRefused { what })
                };
                let file = memfd_create(GPU, MemfdFlags::CLOEXEC).map_err(refused)?;
                rustix::fs::ftruncate(&file, bytes as u64).map_err(refused)?;
                Self::of_file(device, file.into(), bytes)
            }
        }
    }

    /// Maps a block that another process owns.
    pub(super) fn import(
        device: &Device,
        Ticket { kind, legacy, bytes }: &Ticket,
        descriptor: Option<OwnedFd>,
    ) -> Result<Self, Error> {
        let bytes = *bytes;
        let doing = format!("mapping another rank's memory into device {}", device.ordinal);
        bind(device)?;
        match *kind {
            BlockKind::Virtual => {
                let handle = import_handle(descriptor, doing.clone())?;
                Self::map(device, handle, bytes).map_err(failed(doing))
            }
            BlockKind::Legacy => {
                let handle = sys::CUipcMemHandle { reserved: legacy.map(|byte| byte as _) };
                let mut address = 0;
                let flag = CUipcMem_flags::CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS as u32;
                // SAFETY: the driver checks the handle.
                let opened = unsafe { sys::cuIpcOpenMemHandle_v2(&raw mut address, handle, flag) };
                opened.result().map_err(failed(doing))?;
                let context = device.context.clone();
                Ok(Self { context, address, bytes, hold: Hold::Opened })
            }
            BlockKind::Host => {
                let descriptor = descriptor.ok_or_else(|| lacks_descriptor(doing))?;
                Self::of_file(device, descriptor.into(), bytes)
            }
        }
    }

    /// Maps an allocation into the addresses of this process and lets the device use it. The handle is released if that
    /// fails.
    pub(super) fn map(device: &Device, handle: u64, bytes: usize) -> Result<Self, DriverError> {
        let mut block = Self {
            context: device.context.clone(),
            address: 0,
            bytes,
            hold: Hold::Virtual { handle, descriptor: None },
        };
        // SAFETY: a new range of addresses.
        unsafe { sys::cuMemAddressReserve(&raw mut block.address, bytes, 0, 0, 0) }.result()?;
        // SAFETY: the range was just reserved, and has the size of the allocation.
        unsafe { sys::cuMemMap(block.address, bytes, 0, handle, 0) }.result()?;
        let access = CUmemAccessDesc {
            location: location_of(device),
            flags: CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
        };
        // SAFETY: the range is mapped, and the argument outlives the call.
        unsafe { sys::cuMemSetAccess(block.address, bytes, &raw const access, 1) }.result()?;
        Ok(block)
    }

    fn of_file(device: &Device, file: File, bytes: usize) -> Result<Self, Error> {
        let doing = format!("registering memory of the host with device {}", device.ordinal);
        let mapping = Mapping::new(&file, bytes)?;
        let place = mapping.base().cast();
        let flags = sys::CU_MEMHOSTREGISTER_PORTABLE | sys::CU_MEMHOSTREGISTER_DEVICEMAP;
        // SAFETY: the mapping has these bytes, and `Drop` unregisters it before it goes.
        let registered = unsafe { sys::cuMemHostRegister_v2(place, bytes, flags) };
        registered.result().map_err(failed(doing.clone()))?;
        let hold = Hold::Host { file, mapping };
        let mut block = Self { context: device.context.clone(), address: 0, bytes, hold };
        // SAFETY: the memory is registered, and the address outlives the call.
        let asked = unsafe { sys::cuMemHostGetDevicePointer_v2(&raw mut block.address, place, 0) };
        asked.result().map_err(failed(doing))?;
        Ok(block)
    }

    fn zero(&self, device: &Device) -> Result<(), Error> {
        let what = || failed(format!("clearing memory of device {}", device.ordinal));
        let stream = device.context.default_stream();
        // SAFETY: the block is ours, and no other process has it yet.
        unsafe {
            cudarc::driver::result::memset_d8_async(self.address, 0, self.bytes, stream.cu_stream())
        }
        .map_err(what())?;
        stream.synchronize().map_err(what())
    }

    /// Waits for all work of the block's device.
    pub(super) fn finish(&self) -> Result<(), DriverError> {
        self.context.synchronize()
    }

    /// Returns the address of the block on the device of this process.
    pub(super) fn address(&self) -> u64 {
        self.address
    }

    /// Returns the handle of a block with virtual addresses.
    pub(super) fn handle(&self) -> Option<u64> {
        match self.hold {
            Hold::Virtual { handle, .. } => Some(handle),
            Hold::Allocated { .. } | Hold::Opened | Hold::Host { .. } => None,
        }
    }

    /// Returns the bytes of the block.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the address of a block of host memory for the host.
    pub(super) fn host_address(&self) -> Option<*mut u8> {
        match &self.hold {
            Hold::Host { mapping, .. } => Some(mapping.base()),
            _ => None,
        }
    }

    /// Returns the file of a block of host memory.
    pub(super) fn file(&self) -> Option<&File> {
        match &self.hold {
            Hold::Host { file, .. } => Some(file),
            _ => None,
        }
    }

    /// Returns the descriptor by which other processes map the block.
    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match &self.hold {
            Hold::Virtual { descriptor, .. } => descriptor.as_ref().map(|fd| fd.as_fd()),
            Hold::Host { file, .. } => Some(file.as_fd()),
            Hold::Allocated { .. } | Hold::Opened => None,
        }
    }

    /// Returns the words with which other processes map the block.
    pub(super) fn ticket(&self) -> Ticket {
        match self.hold {
            Hold::Allocated { legacy } => Ticket::of_handle(legacy, self.bytes),
            Hold::Host { .. } => Ticket::of_file(BlockKind::Host, self.bytes),
            // No rank tells others of a block that it has opened itself.
            Hold::Virtual { .. } | Hold::Opened => Ticket::of_file(BlockKind::Virtual, self.bytes),
        }
    }
}

/// Returns the handle of an object of another process, whose descriptor it sent.
pub(super) fn import_handle(descriptor: Option<OwnedFd>, doing: String) -> Result<u64, Error> {
    let descriptor = descriptor.ok_or_else(|| lacks_descriptor(doing.clone()))?;
    let mut handle = 0;
    // SAFETY: the driver takes the number of an open descriptor in place of a pointer.
    let imported = unsafe {
        sys::cuMemImportFromShareableHandle(
            &raw mut handle,
            std::ptr::without_provenance_mut(descriptor.as_raw_fd() as usize),
            CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        )
    };
    imported.result().map_err(failed(doing))?;
    Ok(handle)
}

/// Returns a descriptor of an allocation with virtual addresses.
pub(super) fn export(handle: u64) -> Result<OwnedFd, DriverError> {
    let mut descriptor = -1;
    // SAFETY: the driver looks the handle up, and writes one descriptor.
    let exported = unsafe {
        sys::cuMemExportToShareableHandle(
            (&raw mut descriptor).cast(),
            handle,
            CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
            0,
        )
    };
    exported.result()?;
    // SAFETY: the driver has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Returns the handle of the plain allocation that begins at an address.
pub(super) fn legacy_handle(address: u64) -> Result<[u8; HANDLE], DriverError> {
    let mut handle = sys::CUipcMemHandle { reserved: [0; HANDLE] };
    // SAFETY: the driver looks the address up, and writes the handle.
    unsafe { sys::cuIpcGetMemHandle(&raw mut handle, address) }.result()?;
    Ok(handle.reserved.map(|byte| byte as _))
}

fn bind(device: &Device) -> Result<(), Error> {
    let what = format!("opening device {}", device.ordinal);
    device.context.bind_to_thread().map_err(failed(what))
}

fn lacks_descriptor(what: String) -> Error {
    Error::KernelFailed { what, why: "its owner sent no descriptor".to_owned() }
}

fn location_of(device: &Device) -> CUmemLocation {
    CUmemLocation {
        type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
        id: device.context.cu_device(),
    }
}

fn place_of(device: &Device) -> CUmemAllocationProp {
    CUmemAllocationProp {
        type_: CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        requestedHandleTypes: CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        location: location_of(device),
        win32HandleMetaData: std::ptr::null_mut(),
        allocFlags: sys::CUmemAllocationProp_st__bindgen_ty_1 {
            compressionType: 0,
            gpuDirectRDMACapable: 0,
            usage: 0,
            reserved: [0; 4],
        },
    }
}

/// Returns the least multiple of `granule` that is at least `bytes`, and not 0.
pub(super) fn whole(bytes: usize, granule: usize) -> Result<usize, Error> {
    bytes.max(1).checked_next_multiple_of(granule).ok_or_else(|| {
        let what = format!("{bytes} bytes of device memory");
        crate::Error::TooLarge { what }.into()
    })
}

impl Drop for SharedBlock {
    fn drop(&mut self) {
        if self.context.bind_to_thread().is_err() {
            return;
        }
        // A lost context has nothing to give back, so errors have no remedy.
        // SAFETY: each call gives back what this block took, once; no kernel of this process uses it any more, as plans
        // wait for their launches.
        unsafe {
            match &self.hold {
                Hold::Virtual { handle, .. } => {
                    if self.address != 0 {
                        let _ = sys::cuMemUnmap(self.address, self.bytes);
                        let _ = sys::cuMemAddressFree(self.address, self.bytes);
                    }
                    let _ = sys::cuMemRelease(*handle);
                }
                Hold::Allocated { .. } => {
                    let _ = sys::cuMemFree_v2(self.address);
                }
                Hold::Opened => {
                    let _ = sys::cuIpcCloseMemHandle(self.address);
                }
                Hold::Host { mapping, .. } => {
                    let _ = sys::cuMemHostUnregister(mapping.base().cast());
                }
            }
        }
    }
}
