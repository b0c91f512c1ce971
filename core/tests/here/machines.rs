//! Machines with GPUs and network cards: places, links, numbers that stand for a kind, oddities of real systems.

use roundelay_machines::here::{self, DriverGpu};
use roundelay_machines::nccl::{self, Assumption};
use roundelay_topology::LinkKind;
use roundelay_topology::nccl::element::Element;

use super::files::Files;
use super::{NONE, read};

const COMPLEX: &str = "sys/devices/pci0000:00";

/// The files of a GPU's device: an H100 by its number.
const H100: [(&str, &str); 6] = [
    ("class", "0x030200"),
    ("vendor", "0x10de"),
    ("device", "0x2330"),
    ("numa_node", "0"),
    ("max_link_speed", "32.0 GT/s PCIe"),
    ("max_link_width", "16"),
];

/// Returns the bus ids from a CPU down to each GPU and card, with the number of the CPU.
fn places(element: &Element) -> Vec<String> {
    let own = element.get("busid").or(element.get("numaid")).or(element.get("name"));
    let below = element.children.iter().flat_map(places);
    let named = |below: String| format!("{}>{below}", own.unwrap_or(element.tag));
    let below: Vec<_> = below.map(named).collect();
    if below.is_empty() { vec![own.unwrap_or(element.tag).to_owned()] } else { below }
}

#[test]
fn a_switch_is_two_devices_of_a_path() {
    let files = Files::new();
    // Below a port of the CPU, and below a switch, and below a domain of a controller for disks.
    files.pci(&format!("{COMPLEX}/0000:00:01.0"), "0000:01:00.0", &H100);
    let above = format!("{COMPLEX}/0000:00:02.0/0000:02:00.0");
    files.pci(&format!("{COMPLEX}/0000:00:02.0"), "0000:02:00.0", &[("numa_node", "1")]);
    files.pci(&format!("{above}/0000:03:08.0"), "0000:04:00.0", &H100);
    files.pci(&format!("{COMPLEX}/0000:00:0e.0/pci10000:e0/10000:e0:06.0"), "10000:e1:00.0", &H100);
    let system = read(&files, NONE).unwrap();
    let expected = [
        "system>0>0000:01:00.0>gpu",
        "system>0>10000:e1:00.0>gpu",
        "system>1>0000:02:00.0>0000:04:00.0>gpu",
    ];
    assert_eq!(places(&system.root), expected);
}

#[test]
fn links_are_as_their_slower_end_and_a_trained_down_one_is_named() {
    let files = Files::new();
    let port = format!("{COMPLEX}/0000:00:01.0");
    files.line(format!("{port}/max_link_speed"), "16.0 GT/s PCIe");
    files.line(format!("{port}/max_link_width"), "16");
    let gpu = files.pci(&port, "0000:01:00.0", &H100);
    let speed = |files: &Files| {
        let system = read(files, NONE).unwrap();
        let link = system.topology.links().iter().find(|link| link.kind == LinkKind::Pci);
        (link.unwrap().capacity.floor(), system.notes.join("; "))
    };
    files.line(format!("{gpu}/current_link_speed"), "16.0 GT/s PCIe");
    files.line(format!("{gpu}/current_link_width"), "16");
    let (capacity, notes) = speed(&files);
    assert_eq!(capacity, 24_000_000_000);
    assert!(!notes.contains("runs with"), "{notes}");
    files.line(format!("{gpu}/current_link_width"), "8");
    let (capacity, notes) = speed(&files);
    // NCCL reckons with what the link can do.
    assert_eq!(capacity, 24_000_000_000);
    assert!(notes.contains("0000:01:00.0 runs with 8 of its 16 lanes: a bad"), "{notes}");
    files.line(format!("{gpu}/current_link_width"), "16");
    files.line(format!("{gpu}/current_link_speed"), "2.5 GT/s PCIe");
    let (_, notes) = speed(&files);
    assert!(notes.contains("2.5 GT/s PCIe of 16.0 GT/s PCIe; a GPU that is idle"), "{notes}");
}

/// What no file tells is told by the driver, or assumed and said.
#[test]
fn the_kind_of_a_gpu() {
    let files = Files::new();
    for gpu in 1..=2 {
        files.pci(&format!("{COMPLEX}/0000:00:0{gpu}.0"), &format!("0000:0{gpu}:00.0"), &H100);
    }
    let by_number = read(&files, NONE).unwrap();
    assert_eq!((by_number.sm, by_number.nvswitch), (Some(90), false));
    assert!(by_number.assumptions[0].contains("2 GPUs is that which their PCI numbers stand for"));
    let notes = by_number.notes.join("; ");
    assert!(notes.contains("was not asked") && notes.contains("mostly has 18"), "{notes}");
    let assume = Assumption::parse("nvlinks=18").unwrap();
    let joined = here::read("here", &files.root(), Err("this is a test"), Some(assume)).unwrap();
    assert!(joined.nvswitch);
    // The driver writes domains of eight digits and capital letters.
    let gpu = |busid: &str, other: &str| DriverGpu {
        busid: busid.to_owned(),
        sm: 90,
        nvlinks: vec![other.to_owned(); 4],
        c2c: vec![56_376; 2],
    };
    let driver = [gpu("00000000:01:00.0", "0000:02:00.0"), gpu("00000000:02:00.0", "0000:01:00.0")];
    let told = read(&files, Ok(&driver)).unwrap();
    let links = |kind| {
        let links = told.topology.links().iter().filter(move |link| link.kind == kind);
        links.map(|link| link.capacity.floor()).collect::<Vec<_>>()
    };
    assert_eq!(links(LinkKind::NvLink), [4 * 20_600_000_000; 2]);
    assert_eq!(links(LinkKind::C2c), [112_752_000_000; 4]);
    assert!(told.assumptions.is_empty(), "{:?}", told.assumptions);
    // A virtual machine hides the other ends: they are one NVSwitch.
    const HIDDEN: &str = "fffffff:ffff:ff";
    let hidden = [gpu("0000:01:00.0", HIDDEN), gpu("0000:02:00.0", HIDDEN)];
    assert!(read(&files, Ok(&hidden)).unwrap().nvswitch);
    // A container sees the devices of all GPUs, and those of its own in the folder of the driver.
    files.line("proc/driver/nvidia/gpus/0000:02:00.0/information", "Model: \t\t NVIDIA H100");
    let own = read(&files, Ok(&driver[1..])).unwrap_err();
    assert!(own.title.contains("0000:01:00.0, which is not in the file"), "{own:?}");
    assert_eq!(read(&files, NONE).unwrap().topology.nranks(), 1);
    // A display of another maker is no GPU.
    files.line("sys/bus/pci/devices/0000:02:00.0/vendor", "0x1a03");
    assert!(read(&files, NONE).unwrap_err().title.contains("no GPU and no core"));
}

#[test]
fn cards_hang_where_nccl_hangs_them() {
    let files = Files::new();
    files.cores([2, 1, 1], 1, &["10"]);
    let port = format!("{COMPLEX}/0000:00:03.0");
    let card = [("class", "0x020000"), ("numa_node", "-1")];
    let second = files.pci(&port, "0000:05:00.1", &card);
    files.pci(&port, "0000:05:00.0", &card);
    files.interface("eth1", "100000", Some(&second));
    // A card of a virtual machine is no PCI device, and tells no speed.
    let own = files.pci(COMPLEX, "0000:00:04.0", &card);
    files.line(format!("{own}/virtio2/uevent"), "DRIVER=virtio_net");
    files.link(&format!("{own}/virtio2/subsystem"), "sys/bus/virtio");
    files.line("sys/bus/virtio/uevent", "");
    files.interface("eth0", "-1", Some(&format!("{own}/virtio2")));
    files.interface("lo", "-1", None);
    files.interface("docker0", "10000", None);
    files.interface("down", "10000", None);
    files.line("sys/class/net/down/flags", "0x1002");
    let system = read(&files, NONE).unwrap();
    let mut found = places(&system.root);
    found.retain(|place| place.contains("eth"));
    assert_eq!(found, ["system>-1>0000:05:00.0>nic>eth1", "system>0>nic>eth0"]);
    let said = [system.assumptions, system.notes].concat().join("; ");
    assert!(said.contains("10 Gb/s (eth0)"), "{said}");
    assert!(said.contains("the memory node of 1 PCI device (0000:05:00.0)"), "{said}");
    // With a port of InfiniBand that is active, NCCL takes no other.
    files.line("sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE");
    files.line("sys/class/infiniband/mlx5_0/ports/1/rate", "400 Gb/sec (4X NDR)");
    files.line("sys/class/infiniband/mlx5_0/ports/2/state", "1: DOWN");
    files.link("sys/class/infiniband/mlx5_0/device", &second);
    let system = read(&files, NONE).unwrap();
    let net = system.root.children[0].children[0].children[0].children[0].clone();
    assert_eq!((net.get("name"), net.get("speed")), (Some("mlx5_0"), Some("400000")));
    let ports = places(&system.root).into_iter().filter(|place| place.contains("mlx5_0"));
    assert_eq!(ports.count(), 1);
}

/// The links between two of AMD's GPUs are as many as the bandwidth of one goes into that of all.
#[test]
fn links_of_amds_gpus() {
    let files = Files::new();
    for gpu in 1..=2 {
        let above = format!("{COMPLEX}/0000:00:0{gpu}.0");
        files.pci(&above, &format!("0000:c{gpu}:00.0"), &[("class", "0x038000")]);
        let node = format!("sys/class/kfd/kfd/topology/nodes/{gpu}");
        let text = format!("location_id {}\ngfx_target_version 90010\n", (0xc0 + gpu) << 8);
        files.write(format!("{node}/properties"), text);
        let other = format!("node_to {}\nmin_bandwidth 50000\nmax_bandwidth 150000\n", 3 - gpu);
        files.write(format!("{node}/io_links/0/properties"), format!("type 11\n{other}"));
        files.write(format!("{node}/io_links/1/properties"), format!("type 2\n{other}"));
    }
    let topology = read(&files, NONE).unwrap().topology;
    let links = topology.links().iter().filter(|link| link.kind == LinkKind::NvLink);
    let links: Vec<_> = links.map(|link| link.capacity.floor()).collect();
    assert_eq!(links, [3 * 36_000_000_000; 2]);
}

/// The parts of a card of AMD's are functions of its device, for RCCL and for us.
#[test]
fn partitions_of_amds_cards() {
    let files = Files::new();
    files.pci(&format!("{COMPLEX}/0000:00:01.0"), "0000:c1:00.0", &[("class", "0x120000")]);
    for part in 0..3_u32 {
        let node = format!("sys/class/kfd/kfd/topology/nodes/{}", part + 1);
        let place = part << 28 | 0xc1 << 8;
        let text =
            format!("location_id {place}\ndomain 0\ngfx_target_version 90402\nsimd_count 152\n");
        files.write(format!("{node}/properties"), text);
    }
    files.line("sys/class/kfd/kfd/topology/nodes/0/properties", "cpu_cores_count 96");
    // A device that the container may not use.
    files.line("sys/class/kfd/kfd/topology/nodes/4/properties", "");
    let system = read(&files, NONE).unwrap();
    assert_eq!(system.topology.nranks(), 3);
    assert_eq!(system.topology.gpus().map(|gpus| gpus.parts), Some(3));
    assert_eq!(system.topology.gpus().unwrap().model.to_string(), "gfx942");
}

#[test]
fn machines_of_several_hosts() {
    let host = |name: &str, speed: &str| {
        let files = Files::new();
        files.line("proc/sys/kernel/hostname", name);
        files.line("proc/sys/kernel/random/boot_id", "c2c3dd66-f8c5-4c15-91db-750d41000000");
        files.cores([2, 1, 1], 1, &["10"]);
        files.interface("eth0", speed, None);
        read(&files, NONE).unwrap()
    };
    let hosts = [host("a", "25000"), host("b", "10000")];
    let both = nccl::fuse("both", &hosts).unwrap();
    assert_eq!(both.topology.nranks(), 4);
    let islands = both.topology.islands();
    assert_eq!(islands.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2]);
    assert!(both.assumptions.iter().any(|text| text.contains("network cards of the 2 hosts")));
    assert!(both.notes.iter().any(|text| text.contains("numbered by host")), "{:?}", both.notes);
    let written = nccl::write_system(&both).unwrap();
    let again = nccl::read("both", written.as_bytes(), None).unwrap();
    assert_eq!(again.topology, both.topology.clone());
    // A host beside itself is one host, as the ranks of a host are for NCCL.
    let same = nccl::fuse("same", &[hosts[0].clone(), hosts[0].clone()]).unwrap();
    assert_eq!(same.topology.nranks(), 2);
    // GPUs whose files give ranks of one job keep them; those of one host meet.
    let whole = crate::nccl::load("simccl-8a100-nvswitch-5nic.xml");
    let mut parts = [whole.clone(), whole.clone()];
    for (at, part) in parts.iter_mut().enumerate() {
        part.root.children.iter_mut().for_each(|cpu| cpu.set("host_hash", "0x7".to_owned()));
        keep(&mut part.root, &|rank| rank % 2 == at);
    }
    let fused = nccl::fuse("simccl", &parts).unwrap();
    assert_eq!(fused.topology.nranks(), 8);
    assert_eq!(fused.topology.links().len(), whole.topology.links().len());
    // Two hosts of which each sees its own NVSwitches are joined by their cards.
    let two = nccl::fuse("two", &[whole.clone(), whole.clone()]).unwrap();
    assert_eq!((two.topology.nranks(), two.topology.islands().len()), (16, 2));
    let mixed = nccl::fuse("mixed", &[whole, hosts[0].clone()]).unwrap_err();
    assert!(mixed.title.contains("some have none"));
}

/// Keeps the GPUs of some ranks, as a process of NCCL's has its own alone.
fn keep(element: &mut Element, wanted: &dyn Fn(usize) -> bool) {
    let is_other =
        |gpu: &Element| gpu.tag == "gpu" && !wanted(gpu.get("rank").unwrap().parse().unwrap());
    element.children.retain(|child| !is_other(child));
    element.children.iter_mut().for_each(|child| keep(child, wanted));
}
