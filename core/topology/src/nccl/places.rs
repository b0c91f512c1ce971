//! The name of a device: a bus id on a host. Both are numbers, which files spell in several ways.

use super::element::Element;

/// Normalizes a bus id: `0000:AB:00.0`, `0:ab:00.0` and `AB:00.0` name one device.
pub fn bus(text: &str) -> String {
    let text = text.to_lowercase();
    let digits = text.replace([':', '.'], "");
    let id = number(&digits).filter(|_| text.contains(':')).map(|id| format!(":{id}"));
    id.unwrap_or(text)
}

/// Returns the device of a bus id, and the number of its PCI function; `None` where the text has none.
pub fn function(text: &str) -> Option<(String, u32)> {
    let (device, function) = text.rsplit_once('.')?;
    let number = function.parse().ok().filter(|_| function.len() == 1)?;
    device.contains(':').then(|| (bus(device), number))
}

/// Normalizes the hash of a CPU's host; that of a host without one is 0, as for NCCL.
pub fn host(cpu: &Element) -> String {
    let hash = cpu.get("host_hash").unwrap_or_default().to_ascii_lowercase();
    number(hash.strip_prefix("0x").unwrap_or(&hash)).map_or(hash.clone(), str::to_owned)
}

/// Returns a number of base 16 without leading zeros.
fn number(text: &str) -> Option<&str> {
    text.chars().all(|c| c.is_ascii_hexdigit()).then(|| text.trim_start_matches('0'))
}
