//! The tree of a machine that has a name, as NCCL writes it to a file: CPUs, PCI switches, GPUs and network cards.

use super::element::Element;
use super::machines::NamedMachine;

/// The classes of a GPU, of a network card and of a PCI switch.
const GPU: &str = "0x030200";
const CARD: &str = "0x020700";
const SWITCH: &str = "0x060400";
/// The lanes of all links but those of network cards.
const LANES: &str = "16";
/// The parts in which the bandwidth of a chip-to-chip link is written.
const PARTS: u32 = 5;

/// Returns the tree, without the links between GPUs.
pub(super) fn of(machine: &NamedMachine) -> Element {
    let mut root = Element::new("system", &[("version", "1")]);
    let mut ranks = 0;
    for host in 0..machine.hosts {
        let mut parts = Host { machine, devices: 0, gpus: 0, cards: 0, ranks };
        for numaid in 0..machine.cpus {
            let mut cpu = parts.cpu(numaid);
            if machine.hosts > 1 {
                cpu.set("host_hash", format!("0x{:x}", host + 1));
            }
            root.children.push(cpu);
        }
        ranks = parts.ranks;
    }
    root
}

/// The parts of a host that there are so far, and the ranks of all hosts.
struct Host<'m> {
    machine: &'m NamedMachine,
    devices: u32,
    gpus: u32,
    cards: u32,
    ranks: u32,
}

impl Host<'_> {
    fn cpu(&mut self, numaid: u32) -> Element {
        let numaid = numaid.to_string();
        let mut cpu = Element::new("cpu", &[&[("numaid", &*numaid)], self.machine.cpu].concat());
        if self.machine.switches == 0 {
            self.pairs(&mut cpu);
        }
        for _ in 0..self.machine.switches {
            let mut switch = self.device(SWITCH, LANES);
            self.pairs(&mut switch);
            cpu.children.push(switch);
        }
        cpu
    }

    /// Adds GPUs, each some with a network card below a switch; below the CPU itself where GPUs have a link of their own
    /// to it.
    fn pairs(&mut self, above: &mut Element) {
        for _ in 0..self.machine.pairs {
            if self.machine.chip_to_chip.is_some() {
                self.pair(above);
            } else {
                let mut switch = self.device(SWITCH, LANES);
                self.pair(&mut switch);
                above.children.push(switch);
            }
        }
    }

    fn pair(&mut self, above: &mut Element) {
        for _ in 0..self.machine.gpus {
            let mut device = self.device(GPU, LANES);
            device.children.push(self.gpu());
            above.children.push(device);
        }
        let mut device = self.device(CARD, self.machine.pci.1);
        device.children.push(self.card());
        above.children.push(device);
    }

    fn device(&mut self, class: &str, lanes: &str) -> Element {
        self.devices += 1;
        let busid = format!("0000:{:02x}:00.0", self.devices);
        let attributes = [
            ("busid", &*busid),
            ("class", class),
            ("link_speed", self.machine.pci.0),
            ("link_width", lanes),
        ];
        Element::new("pci", &attributes)
    }

    fn gpu(&mut self) -> Element {
        let (dev, rank) = (self.gpus.to_string(), self.ranks.to_string());
        (self.gpus, self.ranks) = (self.gpus + 1, self.ranks + 1);
        let attributes = [("dev", &*dev), self.machine.mark, ("rank", &*rank), ("gdr", "1")];
        let mut gpu = Element::new("gpu", &attributes);
        if let Some(gigabytes) = self.machine.chip_to_chip {
            let (each, count) = ((gigabytes * 1000 / PARTS).to_string(), PARTS.to_string());
            gpu.children.push(Element::new("c2c", &[("bw", &each), ("count", &count)]));
        }
        gpu
    }

    fn card(&mut self) -> Element {
        let (name, speed) = (self.cards.to_string(), self.machine.port.to_string());
        self.cards += 1;
        let attributes = [("name", &*name), ("dev", &*name), ("speed", &*speed), ("gdr", "1")];
        let mut card = Element::new("nic", &[]);
        card.children.push(Element::new("net", &attributes));
        card
    }
}
