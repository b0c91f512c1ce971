//! Kinds and bandwidths of paths, on machines small enough to follow by hand, and links by the words of a file.

use roundelay_core::rational::Rat;
use roundelay_core::topology::Topology;
use roundelay_topology::Fabric;
use roundelay_topology::paths::{PathType, p2p_allowed, p2p_limit};
use roundelay_topology::{LinkKind, NodeId};

use crate::cases;
use crate::nccl::generations::sockets;
use crate::nccl::{bytes, capacity, load, path, says, text};

/// What is told of a text whose first line asks: `0 to NIC n` for a path, `CPU 0 to CPU 1 by sys` for a link.
fn told(asked: &str) -> String {
    let (asks, machine) = asked.split_once('\n').expect("a line that asks");
    let (topology, said) = if machine.starts_with('<') {
        match text(machine) {
            Ok(system) => (system.topology, [system.assumptions, system.notes].concat()),
            Err(problem) => return problem.title,
        }
    } else {
        (machine.parse::<Topology>().expect("a topology").into(), Vec::new())
    };
    let mut lines = Vec::new();
    for ask in asks.split(", ") {
        let (from, to) = ask.split_once(" to ").expect("two ends");
        lines.push(match to.split_once(" by ") {
            Some((to, "sys")) => capacity(&topology, from, to, LinkKind::Sys).expect(ask),
            Some((to, _)) => capacity(&topology, from, to, LinkKind::Pci).expect(ask),
            None => says(&topology, from, to),
        });
    }
    lines.extend(said);
    lines.join("\n")
}

/// Two sockets; on the first a switch with a GPU and a card, and a second switch below the first.
fn machine(vendor: &str) -> String {
    format!(
        r#"<system version="1">
<cpu numaid="0" arch="x86_64" vendor="{vendor}" familyid="6" modelid="85">
  <pci busid="a" class="0x060400" link_speed="16 GT/s" link_width="16">
    <pci busid="g0" class="0x03" link_speed="16 GT/s" link_width="16"><gpu sm="80" rank="0"></gpu></pci>
    <pci busid="g1" class="0x03" link_speed="16 GT/s" link_width="16"><gpu sm="80" rank="1"/></pci>
    <pci busid="b" class="0x060400" link_speed="16 GT/s" link_width="8">
      <pci busid="g2" class="0x03" link_speed="16 GT/s" link_width="16"><gpu sm="80" rank="2"/></pci>
      <pci busid="n" class="0x02" link_speed="16 GT/s" link_width="16">
        <nic><net name="n" speed="100000" latency="1.5"/></nic>
      </pci>
    </pci>
  </pci>
  <pci busid="g3" class="0x03" link_speed="16 GT/s" link_width="16"><gpu sm="80" rank="3"/></pci>
</cpu>
<cpu numaid="1" arch="x86_64" vendor="{vendor}" familyid="6" modelid="85">
  <pci busid="g4" class="0x03" link_speed="16 GT/s" link_width="16"><gpu sm="80" rank="4">
    <nvlink target="g2" count="2" tclass="0x03"/></gpu></pci>
</cpu></system>"#
    )
}

#[test]
fn who_reaches_into_whose_memory() {
    let amd = text(&machine("AuthenticAMD")).unwrap().topology;
    let allowed = |t: &Fabric, a: &str, b: &str| p2p_allowed(t, &path(t, a, b));
    assert!(allowed(&amd, "0", "2") && !allowed(&amd, "0", "3"));
    let two = |vendor: &str| {
        text(&format!(
            r#"<system version="1"><cpu numaid="0" arch="x86_64" vendor="{vendor}">
<pci busid="g0" class="0x03"><gpu sm="80" rank="0"/></pci></cpu>
<cpu numaid="1" arch="x86_64" vendor="{vendor}">
<pci busid="g1" class="0x03"><gpu sm="80" rank="1"/></pci></cpu></system>"#
        ))
        .unwrap()
        .topology
    };
    assert!(allowed(&two("AuthenticAMD"), "0", "1"));
    assert!(!allowed(&two("GenuineIntel"), "0", "1"));
    assert_eq!(p2p_limit(&"full_mesh(2, 20GB/s)".parse::<Topology>().unwrap()), PathType::Pxb);
}

#[test]
fn names_in_order() {
    let names: Vec<_> = PathType::ALL.iter().map(|kind| kind.name()).collect();
    assert_eq!(names.join(" "), "LOC NVL NVB C2C PIX PXB P2C PXN PHB SYS NET DIS");
    assert!(PathType::ALL.is_sorted());
}

#[test]
fn a_port_has_its_latency_in_both_directions() {
    let topology = text(&machine("AuthenticAMD")).unwrap().topology;
    let net = topology.links().iter().filter(|link| link.kind == LinkKind::Net);
    assert_eq!(net.map(|link| link.latency).collect::<Vec<_>>(), [1500, 1500]);
}

/// Two GPUs with elements of their own, below one CPU.
fn below_one_cpu(devices: &str) -> String {
    let cpu = r#"<cpu numaid="0" arch="x86_64" vendor="AuthenticAMD">"#;
    format!("ASK\n<system version=\"1\">{cpu}{devices}</cpu></system>")
}

fn gpu(rank: u32, links: &[(&str, u32, &str)]) -> String {
    let link = |(to, count, class): &(&str, u32, &str)| {
        format!(r#"<nvlink target="{to}" count="{count}" tclass="{class}"/>"#)
    };
    let links: String = links.iter().map(link).collect();
    format!(r#"<pci busid="g{rank}" class="0x03"><gpu sm="80" rank="{rank}">{links}</gpu></pci>"#)
}

#[test]
fn paths_and_links() {
    let c2c = |rank| {
        format!(
            r#"<pci busid="g{rank}" class="0x03"><gpu sm="90" rank="{rank}"><c2c bw="44712" count="10"/></gpu></pci>"#
        )
    };
    let nic = r#"<pci busid="n" class="0x02" link_speed="32 GT/s" link_width="16"><nic><net name="n"/></nic></pci>"#;
    let grace = format!(
        "ASK\n<system version=\"1\"><cpu numaid=\"0\" arch=\"arm64\">{}{}{nic}</cpu></system>",
        c2c(0),
        c2c(1)
    );
    let switches = format!(
        r#"<pci busid="a" class="0x060400">LINK{}</pci><pci busid="b" class="0x060400">{}</pci>"#,
        gpu(0, &[]),
        gpu(1, &[])
    );
    let switch = ("s", 1, "0x068000");
    let three = [gpu(0, &[switch]), gpu(1, &[switch, ("g2", 1, "0x03")]), gpu(2, &[])];
    let relays = [
        gpu(0, &[("g1", 1, "0x03"), ("g2", 3, "0x03")]),
        gpu(1, &[("g3", 3, "0x03")]),
        gpu(2, &[("g3", 2, "0x03")]),
        gpu(3, &[]),
    ];
    let simccl = String::from_utf8(bytes("simccl-8a100-nvswitch-5nic.xml")).unwrap();
    let simccl = &simccl[simccl.find("<system").unwrap()..];
    let sockets = sockets("AuthenticAMD", "familyid=\"26\"", "17");
    let texts = [
        ("amd", format!("ASK\n{}", machine("AuthenticAMD"))),
        ("intel", format!("ASK\n{}", machine("GenuineIntel"))),
        ("grace", grace),
        ("simccl", format!("ASK\n{simccl}")),
        ("switches", below_one_cpu(&switches)),
        ("three", below_one_cpu(&three.concat())),
        ("relays", below_one_cpu(&relays.concat())),
        ("amd sockets", format!("ASK\n{}", sockets.replace("sm=\"90\"", "sm=\"86\""))),
    ];
    cases::check("nccl/routes.txt", &texts, told);
}

/// The host bridge of Intel costs a sixth, and the link between the sockets is no PCI.
#[test]
fn loads_of_the_links_of_a_path() {
    let intel = text(&machine("GenuineIntel")).unwrap().topology;
    let path = path(&intel, "0", "4");
    let loads: Vec<_> =
        path.links.iter().map(|l| path.load(&intel, &intel.links()[*l as usize])).collect();
    let (one, more) = (Rat::ONE, Rat::new(6, 5).unwrap());
    assert_eq!(loads, [more, more, one, more]);
}

#[test]
fn the_nodes_of_paths() {
    let amd = text(&machine("AuthenticAMD")).unwrap().topology;
    let links = path(&amd, "4", "NET n").links;
    let via: Vec<_> = links.iter().map(|l| amd.links()[*l as usize].from).collect();
    assert_eq!(via[..2], [NodeId(4), NodeId(2)]);
    let simccl = load("simccl-8a100-nvswitch-5nic.xml").topology;
    assert!(simccl.nodes().iter().all(|node| node.name != "PCI 0000:0e:00.0"));
    assert_eq!(path(&simccl, "1", "NIC mlx5_bond_1").links.len(), 3);
    assert!(PathType::P2c.is_gdr());
}
