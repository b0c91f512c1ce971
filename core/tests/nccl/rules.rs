//! Channels of machines, as NCCL's rules for its search give them.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use roundelay_core::units::rate_text;
use roundelay_topology::search::channels::channels;

use crate::nccl::text;

/// Returns `gpus` GPUs of capability `sm` with `nvlinks` `NVLinks` each to one switch, eight on each host, each below a
/// PCI switch with the elements `beside` it.
fn machine(gpus: u32, sm: u32, nvlinks: u32, beside: &str) -> String {
    let mut xml = String::from("<system version=\"1\">");
    for gpu in 0..gpus {
        let pci = r#"link_speed="32.0 GT/s PCIe" link_width="16""#;
        let _ = write!(
            xml,
            r#"<cpu host_hash="0x{}" numaid="{}" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
<pci busid="a{gpu:x}" class="0x060400" {pci}><pci busid="b{gpu:x}" class="0x030200" {pci}>
<gpu dev="{gpu}" sm="{sm}" rank="{gpu}"><nvlink target="f" count="{nvlinks}" tclass="0x068000"/></gpu></pci>
{}</pci></cpu>"#,
            gpu / 8,
            gpu % 8,
            beside.replace("ID", &format!("c{gpu:x}"))
        );
    }
    xml + "</system>"
}

const CARD: &str =
    r#"<pci busid="ID" class="0x020700"><nic><net name="ID" speed="400000"/></nic></pci>"#;

/// `16 x 45GB/s NVL`
fn found(xml: &str) -> String {
    let system = text(xml).unwrap();
    let found = channels(&system.topology, system.topology.nranks(), system.sm).unwrap();
    let fallback = if found.fallback { ", a last resort" } else { "" };
    let (many, speed) = (found.orders.len(), rate_text(found.speed.floor()));
    format!("{many} x {speed} {}{fallback}", found.kind)
}

/// Ranks on other machines are not in the file, so the speeds for several machines are not NCCL's here.
#[test]
fn network_cards_do_not_change_the_speeds() {
    for (sm, nvlinks, expected) in [
        (70, 6, "6 x 20GB/s NVL"),
        (80, 12, "12 x 20GB/s NVL"),
        (90, 18, "12 x 30GB/s NVL"),
        (100, 18, "16 x 45GB/s NVL"),
        (103, 18, "16 x 45GB/s NVL"),
    ] {
        for gpus in [2, 4, 8] {
            for beside in ["", CARD] {
                let xml = machine(gpus, sm, nvlinks, beside);
                assert_eq!(found(&xml), expected, "sm {sm}, {gpus} GPUs, {beside}");
            }
        }
    }
}

/// More than four channels of less than 50 GB/s are not doubled on GPUs newer than sm 80; and there are never more than
/// 32.
#[test]
fn what_is_doubled() {
    assert_eq!(found(&machine(4, 100, 11, "")), "11 x 40GB/s NVL");
    assert_eq!(found(&machine(4, 80, 11, "")), "11 x 20GB/s NVL");
    assert_eq!(found(&machine(4, 100, 4, "")), "4 x 40GB/s NVL");
    assert_eq!(found(&machine(4, 100, 2, "")), "2 x 40GB/s NVL");
    assert_eq!(found(&machine(4, 90, 9, "")), "6 x 30GB/s NVL");
    assert_eq!(found(&machine(4, 107, 36, "")), "32 x 45GB/s NVL");
}

/// Ranks on one switch need no search, however many there are.
#[test]
fn hundreds_of_ranks_on_one_switch() {
    for gpus in [65, 72, 256, 576] {
        let started = Instant::now();
        assert_eq!(found(&machine(gpus, 100, 18, "")), "16 x 45GB/s NVL", "{gpus}");
        assert!(started.elapsed() < Duration::from_secs(60), "{gpus}: {:?}", started.elapsed());
    }
}

/// The narrowest of the GPUs sets the rate of all; a GPU without any `NVLink` leaves a last resort.
#[test]
fn unequal_links() {
    let narrow = machine(72, 100, 18, "").replacen("count=\"18\"", "count=\"9\"", 1);
    assert_eq!(found(&narrow), "4 x 90GB/s NVL".replace("4 x 90", "8 x 45"));
    let without = machine(72, 100, 18, "").replacen("count=\"18\"", "count=\"0\"", 1);
    assert!(found(&without).ends_with(", a last resort"), "{}", found(&without));
}
