//! How one rank's device reaches the memory of another rank, decided once when the ranks meet.

use std::fmt;

use cudarc::driver::{CudaContext, result, sys};

use super::super::device::{Device, joined};

/// The way from a rank's device to the memory of another rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Both ranks are on one device.
    SameDevice,
    /// The devices reach each other's memory, and atomics there are whole: by `NVLink`.
    NvLink,
    /// The devices reach each other's memory, and atomics there are not whole: by PCI Express.
    Pcie,
    /// The other rank's counters, scratch and stage are in memory of the host.
    Host,
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SameDevice => "same device",
            Self::NvLink => "peer by NVLink",
            Self::Pcie => "peer by PCIe",
            Self::Host => "through the host",
        })
    }
}

/// The number of a device that is the same in every process.
pub(super) type Uuid = [u8; 16];

/// Returns the number of a context's device.
pub(super) fn uuid_of(context: &CudaContext) -> Result<Uuid, cudarc::driver::DriverError> {
    Ok(context.uuid()?.bytes.map(|byte| byte as u8))
}

/// Returns the way from `device` to a peer's memory, which it has mapped, and the reason where it may be slower than it
/// could be.
pub(super) fn way_to(device: &Device, mine: &Uuid, theirs: &Uuid) -> (Transport, Option<String>) {
    if mine == theirs {
        return (Transport::SameDevice, None);
    }
    let Some(peer) = find(theirs) else {
        let why =
            "the other device is not visible to this process, so its atomics may not be whole";
        return (Transport::Pcie, Some(why.to_owned()));
    };
    match joined(device.context.cu_device(), peer) {
        Ok(()) => (Transport::NvLink, None),
        Err(why) => (Transport::Pcie, Some(why)),
    }
}

/// Returns the device of that number, if this process sees it.
fn find(uuid: &Uuid) -> Option<sys::CUdevice> {
    let devices = 0..result::device::get_count().ok()?;
    devices.filter_map(|ordinal| result::device::get(ordinal).ok()).find(|device| {
        let found = result::device::get_uuid(*device);
        found.is_ok_and(|found| found.bytes.map(|byte| byte as u8) == *uuid)
    })
}
