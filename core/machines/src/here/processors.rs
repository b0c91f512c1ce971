//! The make of the processors, and the processors of each memory node, in NCCL's words.

use roundelay_topology::host::{NODES, Root};
use roundelay_topology::nccl::element::Element;

/// The attributes that all CPUs of a host have in common.
pub(super) struct Processors {
    attributes: Vec<(&'static str, String)>,
}

impl Processors {
    /// Reads the make as the system tells it, in NCCL's words.
    pub(super) fn read(root: &Root) -> Self {
        let text = root.text("proc/cpuinfo").unwrap_or_default();
        let value = |name: &str| {
            let mut lines = text.lines().filter_map(|line| line.split_once(':'));
            lines.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim().to_owned())
        };
        let mut attributes = Vec::new();
        if let Some(vendor) = value("vendor_id") {
            attributes.push(("arch", "x86_64".to_owned()));
            attributes.push(("vendor", vendor));
            attributes.extend(value("cpu family").map(|family| ("familyid", family)));
            attributes.extend(value("model").map(|model| ("modelid", model)));
        } else if value("CPU implementer").is_some() {
            attributes.push(("arch", "arm64".to_owned()));
        } else if value("cpu").is_some_and(|cpu| cpu.starts_with("POWER")) {
            attributes.push(("arch", "ppc64".to_owned()));
        }
        // A text that a file of NCCL's cannot hold is as if it were not told.
        let plain = |value: &String| value.len() < 64 && !value.contains(|c| "\"&<>".contains(c));
        attributes.retain(|(_, value)| plain(value) && !value.chars().any(char::is_control));
        attributes.extend(host_hash(root).map(|hash| ("host_hash", hash)));
        Self { attributes }
    }

    /// Returns the element of a memory node, with the processors that it has.
    pub(super) fn node(&self, root: &Root, numaid: i64) -> Element {
        let affinity = root.text(&format!("{NODES}/node{numaid}/cpumap")).unwrap_or_default();
        let is_mask =
            affinity.len() < 256 && affinity.bytes().all(|b| b.is_ascii_hexdigit() || b == b',');
        let affinity = if is_mask { affinity } else { String::new() };
        let mut cpu =
            Element::new("cpu", &[("numaid", &*numaid.to_string()), ("affinity", &*affinity)]);
        cpu.attributes.extend(self.attributes.iter().cloned());
        cpu
    }
}

/// Returns the hash of the host of a root, as NCCL tells hosts apart: of its name and of its boot.
fn host_hash(root: &Root) -> Option<String> {
    let name = root.text("proc/sys/kernel/hostname")?;
    let boot = root.text("proc/sys/kernel/random/boot_id")?;
    // FNV-1a.
    let hash = (name + &boot).bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    Some(format!("0x{hash:016x}"))
}
