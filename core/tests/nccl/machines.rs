//! Machines that have a name, against the figures of their documents, and against the file of one of them.

use roundelay_core::collective::Collective;
use roundelay_core::diagnostics::Code;
use roundelay_core::ids::RankId;
use roundelay_core::topology::Topology;
use roundelay_machines::nccl;
use roundelay_simulate::cost::Costs;
use roundelay_topology::Fabric;
use roundelay_topology::nccl::NamedMachine;
use roundelay_topology::paths::PathType;
use roundelay_topology::search::channels::channels;
use roundelay_topology::{GpuModel, LinkKind, NodeId, NodeKind, bounds, paths};

use super::node;

const GB: u64 = 1_000_000_000;

fn machines(name: &str, count: u32) -> Fabric {
    let text = format!("machine(\"{name}\", {count})");
    text.parse::<Topology>().unwrap_or_else(|problem| panic!("{problem:?}")).into()
}

/// Bytes a second of all links of rank 0 to other GPUs.
fn to_gpus(topology: &Fabric) -> u64 {
    let out = topology.out(NodeId(0)).iter().filter(|link| link.kind == LinkKind::NvLink);
    out.map(|link| link.capacity.floor()).sum()
}

/// The name, the GPUs, GB/s of a GPU in one direction by the data sheet and, in tenths, as NCCL counts, and Gb/s of all
/// network cards.
const FIGURES: [(&str, u32, f64, u64, u64); 7] = [
    ("dgx-h100", 8, 450.0, 3708, 8 * 400),
    ("dgx-b200", 8, 900.0, 7218, 8 * 400),
    ("gb200-nvl72", 72, 900.0, 7218, 72 * 400),
    ("mi300x", 8, 7.0 * 64.0, 3360, 8 * 400),
    ("mi350x", 8, 7.0 * 76.8, 3360, 8 * 400),
    ("dgx-a100", 8, 300.0, 2400, 8 * 200),
    ("dgx-1", 8, 150.0, 1200, 4 * 100),
];

#[test]
fn figures_are_those_of_the_documents() {
    assert_eq!(
        FIGURES.map(|row| row.0).to_vec(),
        NamedMachine::ALL.iter().map(|m| m.name).collect::<Vec<_>>()
    );
    for (name, ranks, published, counted, network) in FIGURES {
        let machine = NamedMachine::find(name).unwrap();
        assert!((machine.published as f64 / 1e9 - published).abs() < 1e-9, "{name}");
        let one = machines(name, 1);
        assert_eq!((one.nranks(), machine.ranks()), (ranks, ranks), "{name}");
        assert_eq!(to_gpus(&one), counted * GB / 10, "{name}");
        assert!(to_gpus(&one) < machine.published, "{name}: NCCL counts with less");
        let ports = one.links().iter().filter(|link| {
            link.kind == LinkKind::Net && one.nodes()[link.from.index()].kind == NodeKind::Nic
        });
        let gigabits: u64 = ports.map(|port| port.capacity.floor() * 8 / GB).sum();
        assert_eq!(gigabits, network, "{name}");
        // The best ring AllReduce: each GPU sends 2 (n - 1) / n of the buffer over all its links.
        let bound = bounds::Usable::new(&one, ranks, Collective::AllReduce, RankId(0)).unwrap();
        let seconds = bound.bound.seconds(GB);
        let bus = f64::from(2 * (ranks - 1)) / f64::from(ranks) / seconds;
        assert!((bus / (counted as f64 / 10.0) - 1.0).abs() < 1e-9, "{name}: {bus}");
        assert!(Costs::of_gpus(&one, ranks).unwrap().copy.is_finite(), "{name}: known memory");
    }
}

/// The file of a machine, read again, is that machine: links, GPUs, constants, channels.
#[test]
fn a_machine_is_its_file() {
    for machine in NamedMachine::ALL {
        let system = machine.system(machine.name, 1, &[]).unwrap();
        let file = match nccl::write_system(&system) {
            Ok(file) => file,
            Err(problem) => {
                // NCCL's reader takes no file as large.
                assert_eq!((machine.name, problem.code), ("gb200-nvl72", Code::CannotWrite));
                continue;
            }
        };
        let read = nccl::read(machine.name, file.as_bytes(), None).unwrap();
        assert!(read.assumptions.is_empty() && read.notes.is_empty(), "{:?}", read.notes);
        let (one, other) = (&system.topology, &read.topology);
        assert_eq!((one.links(), one.nodes()), (other.links(), other.nodes()));
        assert_eq!((one.gpus(), system.sm), (other.gpus(), read.sm));
        assert_eq!(Costs::of_gpus(one, 8), Costs::of_gpus(other, 8));
        assert_eq!(channels(one, 8, system.sm).unwrap(), channels(other, 8, read.sm).unwrap());
    }
}

/// Between machines, data takes the network card near its GPU, and no link beside the rails.
#[test]
fn rails_join_machines() {
    for (name, ranks, _, _, network) in FIGURES {
        let two = machines(name, 2);
        let n = ranks as usize;
        assert_eq!(two.nranks(), 2 * ranks);
        assert_eq!(two.gpus(), machines(name, 1).gpus());
        let islands = two.islands();
        assert_eq!(islands.iter().map(Vec::len).collect::<Vec<_>>(), [n, n], "{name}");
        let across = paths::paths_from(&two, NodeId(0))[n + 1].clone();
        assert_eq!(across.kind, PathType::Net, "{name}");
        let kinds = across.links.iter().map(|link| two.links()[*link as usize].kind);
        assert!(kinds.clone().all(|kind| kind != LinkKind::Sys), "{name}");
        // The rank of each machine at one position: together they have the network to themselves.
        let mut load = vec![0_u64; two.links().len()];
        for rank in 0..n {
            let path = &paths::paths_from(&two, NodeId(rank as u32))[n + rank];
            path.links.iter().for_each(|link| load[*link as usize] += 1);
        }
        let shares = two.links().iter().zip(load).filter(|(_, load)| *load > 0);
        let each = shares.map(|(link, load)| link.capacity.floor() / load).min().unwrap();
        let card = network * GB / 8 / u64::from(ranks);
        assert!(each <= card && each * 25 >= card * 24, "{name}: {each} of {card}");
    }
}

#[test]
fn links_of_a_mesh_can_be_cut() {
    let cut: Topology = r#"machine("mi300x") without (0, 1)"#.parse().unwrap();
    assert_eq!(cut.name(), r#"machine("mi300x") without (0, 1)"#);
    assert_eq!(cut.gpus().unwrap().model, GpuModel::Amd(Some(0x942)));
    assert_eq!(to_gpus(&cut), 6 * 48 * GB);
    let wrong = |text: &str| text.parse::<Topology>().unwrap_err().code;
    assert_eq!(wrong(r#"machine("dgx-h100") without (0, 1)"#), Code::BadLink);
    assert_eq!(wrong(r#"machine("dgx-h100", 0)"#), Code::BadTopology);
    assert_eq!(wrong(r#"machine("dgx-h100", 8193)"#), Code::BadTopology);
    assert_eq!(wrong(r#"machine("dgx-h100", [2])"#), Code::BadTopology);
    assert_eq!(wrong(r#"machine("dgx-h200")"#), Code::UnknownName);
    assert_eq!(wrong(r#"machine()"#), Code::BadTopology);
    let rack = machines("gb200-nvl72", 1);
    assert_eq!(rack.nodes()[node(&rack, "CPU 1 of host 17").index()].group, Some(35));
}
