//! Network cards, as NCCL's own plugins see them: InfiniBand and RoCE if there is a port, else the interfaces of the
//! system.

use roundelay_base::units::count;
use roundelay_topology::host::Root;
use roundelay_topology::nccl::element::Element;
use roundelay_topology::nccl::graph::Completed;

use super::pci::{Tree, is_address};
use super::source;

const VERBS: &str = "sys/class/infiniband";
const INTERFACES: &str = "sys/class/net";
/// Interfaces that NCCL takes only where there are no others.
const LAST: [&str; 3] = ["docker", "lo", "virbr"];
/// The speed of a port that tells none, in megabits.
const USUAL: u64 = 10_000;
/// The most ports that are looked for.
const PORTS: usize = 64;

/// A port of a card.
struct Port {
    name: String,
    number: u32,
    speed: Option<u64>,
    guid: String,
    /// The folder of the device.
    device: String,
}

/// Adds the network cards.
pub(super) fn cards(tree: &mut Tree, facts: &mut Completed) {
    let verbs = verbs(tree.root);
    let (ports, from) = if verbs.is_empty() {
        (interfaces(tree.root), "/sys/class/net")
    } else {
        (verbs, "/sys/class/infiniband")
    };
    let speedless: Vec<_> =
        ports.iter().filter(|port| port.speed.is_none()).map(|port| port.name.clone()).collect();
    let names: Vec<_> = ports.iter().map(|port| port.name.clone()).collect();
    for (dev, port) in ports.iter().enumerate() {
        let (dev, speed) = (dev.to_string(), port.speed.unwrap_or(USUAL).to_string());
        let number = port.number.to_string();
        let net = Element::new(
            "net",
            &[
                ("name", &*port.name),
                ("dev", &*dev),
                ("speed", &*speed),
                ("port", &*number),
                ("latency", "0.000000"),
                ("guid", &*port.guid),
                ("maxconn", "65536"),
                ("gdr", "0"),
            ],
        );
        let above = place(tree, &port.device);
        match above.children.iter_mut().find(|child| child.tag == "nic") {
            Some(nic) => nic.children.push(net),
            None => {
                let mut nic = Element::new("nic", &[]);
                nic.children.push(net);
                above.children.push(nic);
            }
        }
    }
    if ports.is_empty() {
        facts.notes.push("no network card is up".to_owned());
        return;
    }
    let what = format!("{}: {}", count(ports.len(), "network port"), names.join(", "));
    facts.sources.push(source(from, what));
    if !speedless.is_empty() {
        let ports = speedless.join(", ");
        facts.assumptions.push(format!("Network ports that tell no speed have 10 Gb/s ({ports})."));
    }
}

/// Returns the element below which the card of a device hangs: all functions of a PCI device are one card, and a device
/// of another bus hangs below the first CPU.
fn place<'t>(tree: &'t mut Tree<'_>, device: &str) -> &'t mut Element {
    let bus = tree.root.real(&format!("{device}/subsystem"));
    let is_pci = bus.is_some_and(|bus| bus.ends_with("/pci"));
    let real = tree.root.real(device).filter(|_| is_pci);
    let id = real.as_deref().and_then(|path| path.rsplit('/').next()).filter(|id| is_address(id));
    match id {
        Some(id) => {
            let first = format!("{}0", &id[..id.len() - 1]);
            tree.device(&first, "0x02")
        }
        None => tree.first_cpu(),
    }
}

/// Returns the ports of InfiniBand and RoCE that are active.
fn verbs(root: &Root) -> Vec<Port> {
    let mut ports = Vec::new();
    for name in root.list(VERBS).into_iter().filter(|name| is_plain(name)) {
        let guid = root.text(&format!("{VERBS}/{name}/node_guid")).unwrap_or_default();
        let guid = u64::from_str_radix(&guid.replace(':', ""), 16).unwrap_or(0);
        for port in root.list(&format!("{VERBS}/{name}/ports")) {
            let folder = format!("{VERBS}/{name}/ports/{port}");
            let active =
                root.text(&format!("{folder}/state")).is_some_and(|s| s.contains("ACTIVE"));
            let Some(number) = port.parse().ok().filter(|_| active && ports.len() < PORTS) else {
                continue;
            };
            // Such as `200 Gb/sec (4X HDR)`.
            let rate = root.text(&format!("{folder}/rate"));
            let rate = rate.and_then(|rate| rate.split(' ').next()?.parse::<f64>().ok());
            let speed = rate.map(|gigabits| (gigabits * 1000.0) as u64);
            let speed = speed.filter(|speed| is_speed(*speed));
            let device = format!("{VERBS}/{name}/device");
            let (name, guid) = (name.clone(), format!("0x{guid:x}"));
            ports.push(Port { name, number, speed, guid, device });
        }
    }
    ports
}

/// Returns the interfaces that are up: those of which NCCL would take some.
fn interfaces(root: &Root) -> Vec<Port> {
    let is_up = |name: &String| {
        let flags = root.text(&format!("{INTERFACES}/{name}/flags"))?;
        Some(u32::from_str_radix(flags.strip_prefix("0x")?, 16).ok()? & 1 == 1)
    };
    let mut all = root.list(INTERFACES);
    all.retain(|name| is_plain(name) && is_up(name) == Some(true));
    let chosen = |prefix: &dyn Fn(&str) -> bool| {
        all.iter().filter(|name| prefix(name)).take(PORTS).cloned().collect::<Vec<_>>()
    };
    let is_last = |name: &str| LAST.iter().any(|last| name.starts_with(last));
    let first = chosen(&|name| name.starts_with("ib"));
    let names = if first.is_empty() { chosen(&|name| !is_last(name)) } else { first };
    let port = |name: String| {
        let speed = root.text(&format!("{INTERFACES}/{name}/speed"));
        let speed = speed.and_then(|text| text.parse().ok()).filter(|speed| is_speed(*speed));
        let device = format!("{INTERFACES}/{name}/device");
        Port { name, number: 0, speed, guid: "0x0".to_owned(), device }
    };
    names.into_iter().map(port).collect()
}

fn is_speed(megabits: u64) -> bool {
    (1..=1_000_000_000).contains(&megabits)
}

/// Whether a name can stand in a file of NCCL's.
fn is_plain(name: &str) -> bool {
    name.len() < 64 && !name.contains(|c: char| c.is_control() || "\"&<>".contains(c))
}
