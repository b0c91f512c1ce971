//! Tables of `nvidia-smi topo -m`.

use std::fmt::Write as _;

use roundelay_machines::nccl::{self, Assumption};
use roundelay_machines::{self as files, TopologyFile};
use roundelay_topology::{LinkKind, NodeKind, Problem};

use crate::cases;
use crate::nccl::{capacity, says};

fn read(text: &str, assume: Option<&str>) -> Result<TopologyFile, Problem> {
    let assume = assume.map(|text| Assumption::parse(text).unwrap());
    files::read("smi.txt", text.as_bytes(), false, assume)
}

/// A table of `joints`, a row on each line, with these NUMA nodes.
fn table(joints: &str, numa: &[&str]) -> String {
    let rows: Vec<&str> = joints.lines().collect();
    let heads: Vec<String> = (0..rows.len()).map(|gpu| format!("\tGPU{gpu}")).collect();
    let mut text = heads.concat() + "\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\n";
    for (gpu, (row, numa)) in rows.iter().zip(numa.iter().cycle()).enumerate() {
        let row = row.replace(' ', "\t");
        let _ = writeln!(text, "GPU{gpu}\t{row}\t0-15,32-47\t{numa}\t\tN/A");
    }
    text + "\nLegend:\n\n  X    = Self\n  SYS  = Connection traversing PCIe\n"
}

fn lines(problem: &Problem) -> String {
    format!("{} {} | {}", problem.code, problem.title, problem.notes.join(" | "))
}

/// Four A100 of a board without a switch: the report's own file.
#[test]
fn direct_nvlinks() {
    let text = "\
        \x1b[4mGPU0    GPU1    GPU2    GPU3    CPU Affinity    NUMA Affinity\x1b[0m
GPU0     X      NV4     NV4     NV4     0-15    0
GPU1    NV4      X      NV4     NV4     0-15    0
GPU2    NV4     NV4      X      NV4     16-31   1
GPU3    NV4     NV4     NV4      X      16-31   1
";
    let file = read(text, None).unwrap();
    let system = file.system.unwrap();
    assert!(file.is_sketch && !system.nvswitch && system.sm == Some(80));
    assert_eq!(
        system.assumptions,
        [
            "The GPUs are of sm 80, which the table does not say: `--assume sm=90` names others.",
            "NV# are # NVLinks of 20GB/s from one GPU to the other.",
            "PCI links of unknown speed are 8 GT/s per lane (4).",
            "CPUs of unknown make reach others at 6 GB/s (2).",
        ]
    );
    let topology = &system.topology;
    assert_eq!(capacity(topology, "0", "3", LinkKind::NvLink).unwrap(), "80GB/s");
    assert_eq!(says(topology, "0", "CPU 1"), "SYS 6GB/s");
    let newer = read(text, Some("sm=100")).unwrap().system.unwrap();
    assert_eq!(capacity(&newer.topology, "3", "0", LinkKind::NvLink).unwrap(), "160.4GB/s");
    assert_eq!((newer.sm, &*newer.assumptions[0]), (Some(100), "The GPUs are of sm 100."));
    for wrong in ["sm=80,nvlinks=4", "gfx942", "nvlinks=4"] {
        let problem = read(text, Some(wrong)).unwrap_err();
        assert_eq!(problem.code.as_str(), "E0608", "{wrong}");
    }
    // What is written for NCCL is read back.
    let again =
        files::read("again.xml", nccl::write_system(&system).unwrap().as_bytes(), true, None)
            .unwrap();
    assert_eq!(again.topology.links(), topology.links());
}

/// More links than a GPU has are links to a switch.
#[test]
fn nvlinks_to_a_switch() {
    let row = |own: usize| {
        let cell = |gpu: usize| if gpu == own { "X" } else { "NV18" };
        (0..8).map(cell).collect::<Vec<_>>().join(" ")
    };
    let joints = (0..8).map(row).collect::<Vec<_>>().join("\n");
    let system = read(&table(&joints, &["0", "1"]), None).unwrap().system.unwrap();
    assert!(system.nvswitch && system.sm == Some(90), "{:?}", system.assumptions);
    assert_eq!(says(&system.topology, "0", "7"), "NVL 370.8GB/s");
    let unlike = joints.replacen("NV18", "NV12", 1).replacen("NV18 X", "NV12 X", 1);
    assert_eq!(
        lines(&read(&table(&unlike, &["0"]), None).unwrap_err()),
        "E0601 a GPU with 120 NVLinks to others, and it has at most 18 | line 2, column 13 of smi.txt | \
        with an NVSwitch, all GPUs are joined by the same number of NVLinks"
    );
}

/// PCI switches, a switch of switches, host bridges and NUMA nodes.
#[test]
fn pci_of_every_distance() {
    let joints = "X PIX PXB NODE SYS SYS\nPIX X PXB NODE SYS SYS\nPXB PXB X NODE SYS SYS\n\
        NODE NODE NODE X SYS SYS\nSYS SYS SYS SYS X PHB\nSYS SYS SYS SYS PHB X";
    for numa in [&["N/A"][..], &["3", "3", "3", "3", "1", "1"]] {
        let file = read(&table(joints, numa), None).unwrap();
        let topology = file.topology;
        for (from, to, expected) in [
            ("0", "1", "PIX 12GB/s"),
            ("0", "2", "PXB 12GB/s"),
            ("1", "3", "PHB 12GB/s"),
            ("4", "5", "PHB 12GB/s"),
            ("0", "5", "SYS 6GB/s"),
        ] {
            assert_eq!(says(&topology, from, to), expected, "{from} to {to}");
            assert_eq!(says(&topology, to, from), expected, "{to} to {from}");
        }
        let cpus = topology.nodes().iter().filter(|node| node.kind == NodeKind::Cpu);
        let names: Vec<_> = cpus.map(|cpu| &*cpu.name).collect();
        assert_eq!(names, if numa.len() == 1 { ["CPU 0", "CPU 1"] } else { ["CPU 3", "CPU 1"] });
    }
}

/// Network cards, which have no bandwidths in the table, and their legend.
#[test]
fn cards_are_left_out() {
    let text = "$ nvidia-smi topo -m
\tGPU0\tGPU1\tNIC0\tmlx5_1\tCPU Affinity
GPU0\t X \tPHB\tPIX\tSYS\t0-15
NIC0\tPIX\tPHB\t X \tSYS
GPU1\tPHB\t X \tPHB\tSYS\t0-15
mlx5_1\tSYS\tSYS\tSYS\t X

NIC Legend:
  NIC0: mlx5_0
";
    let system = read(text, None).unwrap().system.unwrap();
    assert_eq!(
        system.notes,
        ["the table has no bandwidths of network cards, which are left out (2)"]
    );
    assert_eq!(says(&system.topology, "0", "1"), "PHB 12GB/s");
}

#[test]
fn tables_that_are_wrong() {
    let good = table("X NV4 SYS\nNV4 X PHB\nSYS PHB X", &["0", "0", "1"]);
    cases::check("nccl/matrix.txt", &[("table", good)], |text| {
        lines(&read(text, None).unwrap_err())
    });
    // No part of a table passes for a machine of fewer GPUs, and none of them is a panic.
    let whole = table("X NV4 SYS\nNV4 X SYS\nSYS SYS X", &["0", "0", "1"]);
    let rows = whole.find("\t0-15,32-47\t1").unwrap();
    for length in 0..rows - 1 {
        let problem = read(&whole[..length], None).unwrap_err();
        assert!(problem.code.as_str().starts_with("E06"), "{length}: {problem:?}");
    }
    read(&whole, None).unwrap();
}
