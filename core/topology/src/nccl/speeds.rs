//! The speeds of links that NCCL and RCCL assume: bytes a second, all exact.

use super::element::Element;
use crate::file::File;
use crate::{GpuModel, Problem};

/// The version of NCCL whose speeds and rules these are.
pub const RULES: &str = "NCCL 2.31";

/// Bytes a second of a core to its cache or memory, in one direction: what a rank of the host engine moves, rounded. No
/// file of the system has it.
pub const CORE: u64 = 24_000_000_000;

/// The distance of two memory nodes at which their link has the speed that NCCL assumes: what Linux takes where the
/// firmware tells none.
pub const DISTANCE: u64 = 20;

/// The most megabytes a second of a chip-to-chip link; also the most megabits of a network port.
pub const MEGA: i64 = 1_000_000_000;

/// Bytes a second of a link inside a device.
pub const LOCAL: u64 = 5_000_000_000_000;

/// Returns the speed of an `NVLink` of a GPU of capability `sm`, in one direction.
pub const fn nvlink(sm: i64) -> u64 {
    match sm {
        100.. => 40_100_000_000,
        90.. => 20_600_000_000,
        86 => 12_000_000_000,
        60..=69 => 18_000_000_000,
        _ => 20_000_000_000,
    }
}

/// Returns the speed of an xGMI link of an AMD GPU; `None` where RCCL has no speed of its own for it.
pub fn xgmi(gcn: &str) -> Option<u64> {
    let model = gcn.strip_prefix("gfx").unwrap_or(gcn);
    let known = |list: &[&str]| list.iter().any(|known| model.starts_with(known));
    if known(&["94", "95"]) {
        Some(48_000_000_000)
    } else if known(&["910", "90a"]) {
        Some(36_000_000_000)
    } else {
        known(&["900", "906", "908"]).then_some(XGMI)
    }
}

/// Returns the speed of one link of a GPU to another, in one direction.
pub fn link_rate(model: GpuModel) -> u64 {
    match model {
        GpuModel::Cuda(sm) => nvlink(sm.into()),
        GpuModel::Amd(model) => model.and_then(|of| xgmi(&format!("{of:x}"))).unwrap_or(XGMI),
    }
}

/// The speed of an xGMI link of an unknown GPU.
pub const XGMI: u64 = 24_000_000_000;

/// The speeds of PCI links as NCCL compares them, from their start, and a lane of each in units of 100 Mb/s.
const PCI: [(&str, u64); 11] = [
    ("2.5 GT/s", 15),
    ("5 GT/s", 30),
    ("8 GT/s", 60),
    ("16 GT/s", 120),
    ("32 GT/s", 240),
    ("2.5 GT/s PCIe", 15),
    ("5.0 GT/s PCIe", 30),
    ("8.0 GT/s PCIe", 60),
    ("16.0 GT/s PCIe", 120),
    ("32.0 GT/s PCIe", 240),
    ("64.0 GT/s PCIe", 480),
];

/// Returns the speed of a PCI link of `width` lanes, 0 for 16, and whether NCCL knows the word for its rate.
pub fn pci(speed: Option<&str>, width: u64) -> (u64, bool) {
    let begins = |speed: &str| PCI.into_iter().find(|(word, _)| speed.starts_with(word));
    let rate = speed.and_then(begins).map(|(_, rate)| rate);
    let width = if width == 0 { 16 } else { width };
    (rate.unwrap_or(60) * width * (1_000_000_000 / 80), rate.is_some())
}

/// Whether the speed from one CPU to another depends on a family that the CPU does not tell.
pub fn lacks_family(cpu: &Element) -> bool {
    cpu.get("arch") == Some("x86_64")
        && cpu.get("vendor").is_some()
        && cpu.get("familyid").is_none()
}

/// Returns the speed from one CPU to another; `None` where the CPU is not known. Files of NCCL up to 2.30 write the
/// families of AMD as 143, 175 and 191.
pub fn between_cpus(file: File, cpu: &Element) -> Result<Option<u64>, Problem> {
    let number = |name| file.number(cpu, name, 0..=i64::from(i32::MAX));
    let (family, model) = (number("familyid")?, number("modelid")?.unwrap_or(0));
    let gigabytes = match (cpu.get("arch"), cpu.get("vendor")) {
        (Some("arm64"), _) => 6,
        (Some("ppc64"), _) => 32,
        (Some("x86_64"), Some("AuthenticAMD")) => match family {
            Some(26 | 191) => 32,
            Some(25 | 175) => 24,
            _ => 16,
        },
        (Some("x86_64"), Some("GenuineIntel")) => match model {
            _ if family != Some(6) => 6,
            // Granite Rapids and Sierra Forest are newer than their numbers.
            0xcf.. | 0xad..=0xaf => 40,
            0x8f.. => 22,
            0x55.. => 10,
            _ => 6,
        },
        (Some("x86_64"), Some("CentaurHauls" | "Shanghai")) => match (family, model) {
            (Some(7), 0x5b) => 9,
            _ => 6,
        },
        _ => return Ok(None),
    };
    Ok(Some(gigabytes * 1_000_000_000))
}

/// The speed between unknown CPUs.
pub const CPUS: u64 = 6_000_000_000;

/// Returns the speed of a network port of `megabits` a second; an unknown one has 10 Gb/s.
pub const fn network(megabits: i64) -> u64 {
    (if megabits <= 0 { 10_000 } else { megabits as u64 }) * 125_000
}
