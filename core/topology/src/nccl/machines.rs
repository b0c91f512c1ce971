//! Machines that have a name: their GPUs, links, network cards and PCI from published facts, from which a tree is made
//! as NCCL writes it for such a machine.

use super::gpu_links::Links;

/// A machine that has a name in texts such as `machine("dgx-h100", 2)`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct NamedMachine {
    /// The name in texts.
    pub name: &'static str,
    /// The name that its maker gives it.
    pub product: &'static str,
    /// The model of its GPUs.
    pub gpu: &'static str,
    /// The links of a GPU to other GPUs, as published.
    pub fabric: &'static str,
    /// Bytes a second that all links of a GPU to other GPUs carry in one direction, by the data sheet. NCCL counts with
    /// less of it.
    pub published: u64,
    /// Its network cards, as published.
    pub network: &'static str,
    /// The titles of the documents, each with the facts that are from it.
    pub sources: &'static [&'static str],
    /// The attribute by which a file tells the model of a GPU.
    pub(super) mark: (&'static str, &'static str),
    pub(super) links: Links,
    /// The hosts whose GPUs the links join.
    pub(super) hosts: u32,
    pub(super) cpu: &'static [(&'static str, &'static str)],
    /// The CPUs of a host.
    pub(super) cpus: u32,
    /// The PCI switches of a CPU.
    pub(super) switches: u32,
    /// The pairs of a switch, or of a CPU without any: some GPUs and a network card below one switch of the second level.
    pub(super) pairs: u32,
    /// The GPUs of a pair.
    pub(super) gpus: u32,
    /// The speed of PCI links, in the words of a file, and the lanes of a network card.
    pub(super) pci: (&'static str, &'static str),
    /// The bandwidth in GB/s of the link between a GPU and its CPU, where there is one beside PCI.
    pub(super) chip_to_chip: Option<u32>,
    /// Megabits a second of a network card.
    pub(super) port: u32,
}

const SAPPHIRE_RAPIDS: &[(&str, &str)] = &intel("143");
const EMERALD_RAPIDS: &[(&str, &str)] = &intel("207");
const BROADWELL: &[(&str, &str)] = &intel("79");
const ROME: &[(&str, &str)] = &amd("23", "49");
const GENOA: &[(&str, &str)] = &amd("25", "17");
const TURIN: &[(&str, &str)] = &amd("26", "2");
const GRACE: &[(&str, &str)] = &[("arch", "arm64")];

const fn intel(model: &'static str) -> [(&'static str, &'static str); 4] {
    [("arch", "x86_64"), ("vendor", "GenuineIntel"), ("familyid", "6"), ("modelid", model)]
}

const fn amd(family: &'static str, model: &'static str) -> [(&'static str, &'static str); 4] {
    [("arch", "x86_64"), ("vendor", "AuthenticAMD"), ("familyid", family), ("modelid", model)]
}

const PCIE3: &str = "8.0 GT/s PCIe";
const PCIE4: &str = "16.0 GT/s PCIe";
const PCIE5: &str = "32.0 GT/s PCIe";

/// A machine of eight GPUs, each with a network card of its own below one PCI switch of generation 5.
const EIGHT: NamedMachine = NamedMachine {
    name: "",
    product: "",
    gpu: "",
    fabric: "",
    published: 0,
    network: "8 x 400 Gb/s",
    sources: &[],
    mark: ("sm", "90"),
    links: Links::Switch(18),
    hosts: 1,
    cpu: SAPPHIRE_RAPIDS,
    cpus: 2,
    switches: 0,
    pairs: 4,
    gpus: 1,
    pci: (PCIE5, "16"),
    chip_to_chip: None,
    port: 400_000,
};

impl NamedMachine {
    /// All machines.
    pub const ALL: &'static [Self] = &[
        Self {
            name: "dgx-h100",
            product: "NVIDIA DGX H100",
            gpu: "H100",
            fabric: "18 NVLinks of 25 GB/s to NVSwitches",
            published: 450_000_000_000,
            sources: &[
                "NVIDIA DGX H100/H200 User Guide: 8 H100, 4 NVSwitches, 2 Xeon 8480C, 8 ConnectX-7 of 400 Gb/s; \
                table 6, the network card of each GPU",
                "NVIDIA H100 Tensor Core GPU data sheet: NVLink 900 GB/s in both directions, PCIe 5",
            ],
            ..EIGHT
        },
        Self {
            name: "dgx-b200",
            product: "NVIDIA DGX B200",
            gpu: "B200",
            fabric: "18 NVLinks of 50 GB/s to NVSwitches",
            published: 900_000_000_000,
            sources: &[
                "NVIDIA DGX B200 User Guide: 8 B200, 2 NVSwitches of 14.4 TB/s together, 2 Xeon 8570, 8 ConnectX-7 of \
                400 Gb/s. The network card of each GPU is that of the DGX H100",
            ],
            mark: ("sm", "100"),
            cpu: EMERALD_RAPIDS,
            ..EIGHT
        },
        Self {
            name: "gb200-nvl72",
            product: "NVIDIA DGX GB200 NVL72",
            gpu: "GB200",
            fabric: "18 NVLinks of 50 GB/s to NVSwitches of the rack",
            published: 900_000_000_000,
            network: "72 x 400 Gb/s",
            sources: &[
                "NVIDIA DGX GB200 User Guide, hardware: 18 trays of 2 Grace, 4 Blackwell and 4 ConnectX-7 of 400 Gb/s, 9 \
                trays of NVLink switches",
                "NVIDIA GB200 NVL72 data sheet: NVLink 130 TB/s, NVLink-C2C 900 GB/s in both directions for a Grace with \
                two GPUs",
            ],
            mark: ("sm", "100"),
            hosts: 18,
            cpu: GRACE,
            pairs: 1,
            gpus: 2,
            pci: (PCIE5, "32"),
            chip_to_chip: Some(225),
            port: 800_000,
            ..EIGHT
        },
        Self {
            name: "mi300x",
            product: "8 AMD Instinct MI300X",
            gpu: "MI300X",
            fabric: "an xGMI link of 64 GB/s to each other GPU",
            published: 448_000_000_000,
            sources: &[
                "AMD Instinct MI300X Platform data sheet: 8 GPUs, 7 links of 128 GB/s in both directions each, PCIe 5",
                "MLPerf Inference 4.1, AMD, 8xMI300X_2xEPYC-9374F: 2 EPYC 9374F",
                "Microsoft Azure, ND MI300X v5 series: 8 x 400 Gb/s. That each GPU has one card near it is assumed",
            ],
            mark: ("gcn", "gfx942"),
            links: Links::Mesh(1),
            cpu: GENOA,
            ..EIGHT
        },
        Self {
            name: "mi350x",
            product: "8 AMD Instinct MI350X",
            gpu: "MI350X",
            fabric: "an xGMI link of 76.8 GB/s to each other GPU",
            published: 537_600_000_000,
            sources: &[
                "AMD Instinct MI350X Platform data sheet: 8 GPUs, 7 links of 153.6 GB/s in both directions each, PCIe 5",
                "MLPerf Inference 6.1, AMD, 8xMI350X_2xEPYC_9575F: 2 EPYC 9575F",
                "MLPerf Inference 6.1, Crusoe, 512xMI355X: 8 x 400 Gb/s. That each GPU has one card near it is assumed",
            ],
            mark: ("gcn", "gfx950"),
            links: Links::Mesh(1),
            cpu: TURIN,
            ..EIGHT
        },
        Self {
            name: "dgx-a100",
            product: "NVIDIA DGX A100",
            gpu: "A100",
            fabric: "12 NVLinks of 25 GB/s to NVSwitches",
            published: 300_000_000_000,
            network: "8 x 200 Gb/s",
            sources: &[
                "NVIDIA DGX A100 User Guide: 8 A100, 6 NVSwitches, 2 EPYC 7742, 8 ConnectX-6 of 200 Gb/s; and its block \
                diagram: a PCI switch for two GPUs and two cards",
                "NVIDIA A100 Tensor Core GPU data sheet: NVLink 600 GB/s in both directions, PCIe 4",
            ],
            mark: ("sm", "80"),
            links: Links::Switch(12),
            cpu: ROME,
            switches: 2,
            pairs: 2,
            pci: (PCIE4, "16"),
            port: 200_000,
            ..EIGHT
        },
        Self {
            name: "dgx-1",
            product: "NVIDIA DGX-1 with V100",
            gpu: "V100",
            fabric: "6 NVLinks of 25 GB/s in a hybrid cube mesh",
            published: 150_000_000_000,
            network: "4 x 100 Gb/s",
            sources: &[
                "NVIDIA DGX-1 System Architecture, WP-08437: 8 V100, their hybrid cube mesh of 6 NVLinks of 25 GB/s in each \
                direction, PCIe 3, 2 Xeon E5-2698 v4, 4 InfiniBand cards of 100 Gb/s, each below a PCI switch with two GPUs",
            ],
            mark: ("sm", "70"),
            links: Links::Cube,
            cpu: BROADWELL,
            pairs: 2,
            gpus: 2,
            pci: (PCIE3, "16"),
            port: 100_000,
            ..EIGHT
        },
    ];

    /// The machine of that name.
    pub fn find(name: &str) -> Option<&'static Self> {
        Self::ALL.iter().find(|machine| machine.name == name)
    }

    /// The number of its GPUs.
    pub const fn ranks(&self) -> u32 {
        self.hosts * self.ports() * self.gpus
    }

    /// The network cards of a host.
    pub(super) const fn ports(&self) -> u32 {
        self.cpus * if self.switches == 0 { 1 } else { self.switches } * self.pairs
    }
}
