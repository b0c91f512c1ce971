//! The speeds of links that NCCL and RCCL assume: bytes a second, all exact.

use super::xml::Element;

/// The most megabytes a second of a chip-to-chip link; also the most megabits of a network port.
pub(super) const MEGA: i64 = 1_000_000_000;

/// Bytes a second of a link inside a device.
pub(super) const LOCAL: u64 = 5_000_000_000_000;

/// Returns the speed of an `NVLink` of a GPU of capability `sm`, in one direction.
pub(super) const fn nvlink(sm: i64) -> u64 {
    match sm {
        100.. => 40_100_000_000,
        90.. => 20_600_000_000,
        86 => 12_000_000_000,
        60..=69 => 18_000_000_000,
        _ => 20_000_000_000,
    }
}

/// Returns the speed of an xGMI link of an AMD GPU; `None` where RCCL has no speed of its own for it.
pub(super) fn xgmi(gcn: &str) -> Option<u64> {
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

/// The speed of an xGMI link of an unknown GPU.
pub(super) const XGMI: u64 = 24_000_000_000;

/// Returns the speed of a PCI link of `width` lanes, 0 for 16, and whether its rate was known.
pub(super) fn pci(speed: Option<&str>, width: u64) -> (u64, bool) {
    let rate = speed.and_then(|speed| {
        let (rate, _) = speed.split_once("GT/s")?;
        match rate.trim().trim_end_matches(".0") {
            "2.5" => Some(15),
            "5" => Some(30),
            "8" => Some(60),
            "16" => Some(120),
            "32" => Some(240),
            "64" => Some(480),
            _ => None,
        }
    });
    let width = if width == 0 { 16 } else { width };
    (rate.unwrap_or(60) * width * (1_000_000_000 / 80), rate.is_some())
}

/// Returns the speed from one CPU to another; `None` where the CPU is not known.
pub(super) fn between_cpus(cpu: &Element) -> Option<u64> {
    let number = |name: &str| cpu.get(name).and_then(|text| text.parse::<i64>().ok());
    let gigabytes = match (cpu.get("arch")?, cpu.get("vendor")) {
        ("arm64", _) => 6,
        ("ppc64", _) => 32,
        ("x86_64", Some("AuthenticAMD")) => 16,
        ("x86_64", Some("GenuineIntel")) => match number("modelid").unwrap_or(0) {
            _ if number("familyid") != Some(6) => 6,
            0xcf.. => 40,
            0x8f.. => 22,
            0x55.. => 10,
            _ => 6,
        },
        _ => return None,
    };
    Some(gigabytes * 1_000_000_000)
}

/// The speed between unknown CPUs.
pub(super) const CPUS: u64 = 6_000_000_000;

/// Returns the speed of a network port of `megabits` a second; an unknown one has 10 Gb/s.
pub(super) const fn network(megabits: i64) -> u64 {
    (if megabits <= 0 { 10_000 } else { megabits as u64 }) * 125_000
}
