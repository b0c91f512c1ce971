//! Kinds and bandwidths of paths, on machines small enough to follow by hand.

use roundelay_core::rational::Rat;
use roundelay_core::topology::paths::{PathType, p2p_allowed, p2p_limit};
use roundelay_core::topology::shape::ShapeKind;
use roundelay_core::topology::{LinkKind, NodeId, Topology};

use crate::nccl::{load, path, says, shape, text};

fn made_up(kind: ShapeKind, sizes: &[i64]) -> Topology {
    shape(kind, sizes, Some(20_000_000_000)).build().unwrap()
}

#[test]
fn made_up_topologies() {
    assert_eq!(says(&made_up(ShapeKind::FullMesh, &[4]), "0", "3"), "NVL 20GB/s");
    assert_eq!(says(&made_up(ShapeKind::Crossbar, &[4]), "0", "3"), "NVL 20GB/s");
    assert_eq!(says(&made_up(ShapeKind::SpineLeaf, &[2, 2, 2]), "0", "3"), "NET 20GB/s");
    let ring = made_up(ShapeKind::Ring, &[6]);
    assert_eq!(says(&ring, "0", "1"), "NVL 20GB/s");
    assert_eq!(says(&ring, "0", "2"), "NVB 20GB/s");
    // One hop through a rank, not two.
    assert_eq!(says(&ring, "0", "3"), "DIS 0B/s");
    assert_eq!(says(&ring, "0", "0"), "LOC 5TB/s");
    let islands = made_up(ShapeKind::Islands, &[2, 2]);
    assert_eq!(says(&islands, "0", "2"), "NET 20GB/s");
    // Its peer in the other island hangs on another rail, and no rank forwards data from a network.
    assert_eq!(says(&islands, "0", "3"), "DIS 0B/s");
}

/// Two sockets; on the first a switch with a GPU and a card, and a second switch below the first.
fn machine(vendor: &str, more: &str) -> Topology {
    let xml = format!(
        r#"<system version="1">
<cpu numaid="0" arch="x86_64" vendor="{vendor}" familyid="6" modelid="85">
  <pci busid="a" class="0x060400" link_speed="16 GT/s" link_width="16">
    <pci busid="g0" class="0x03" link_speed="16 GT/s" link_width="16"><gpu sm="80" rank="0">{more}</gpu></pci>
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
    );
    text(&xml).unwrap().topology
}

#[test]
fn kinds_over_pci() {
    let amd = machine("AuthenticAMD", "");
    assert_eq!(says(&amd, "0", "1"), "PIX 24GB/s");
    assert_eq!(says(&amd, "0", "2"), "PXB 12GB/s");
    assert_eq!(says(&amd, "0", "3"), "PHB 24GB/s");
    assert_eq!(says(&amd, "0", "4"), "SYS 16GB/s");
    assert_eq!(says(&amd, "2", "NIC n"), "PIX 24GB/s");
    assert_eq!(says(&amd, "0", "NIC n"), "PXB 12GB/s");
    assert_eq!(says(&amd, "3", "NIC n"), "PHB 12GB/s");
    assert_eq!(says(&amd, "3", "NET n"), "NET 12GB/s");
    assert_eq!(says(&amd, "0", "CPU 0"), "PHB 24GB/s");
}

#[test]
fn the_host_bridge_of_intel_costs_a_sixth() {
    let intel = machine("GenuineIntel", "");
    assert_eq!(says(&intel, "0", "3"), "PHB 20GB/s");
    assert_eq!(says(&intel, "0", "1"), "PIX 24GB/s");
    assert_eq!(says(&intel, "0", "CPU 0"), "PHB 24GB/s");
    // The link between the sockets is the narrow one, and no PCI.
    assert_eq!(says(&intel, "0", "4"), "SYS 10GB/s");
    let path = path(&intel, "0", "4");
    let loads: Vec<_> =
        path.links.iter().map(|l| path.load(&intel, &intel.links()[*l as usize])).collect();
    let (one, more) = (Rat::ONE, Rat::new(6, 5).unwrap());
    assert_eq!(loads, [more, more, one, more]);
}

#[test]
fn a_card_near_an_nvlink_neighbor() {
    let amd = machine("AuthenticAMD", "");
    // 4 has a path of its own, SYS; through rank 2, over NVLink, it is PXN.
    assert_eq!(says(&amd, "4", "NIC n"), "PXN 24GB/s");
    assert_eq!(says(&amd, "4", "NET n"), "NET 12.5GB/s");
    let links = path(&amd, "4", "NET n").links;
    let via: Vec<_> = links.iter().map(|l| amd.links()[*l as usize].from).collect();
    assert_eq!(via[..2], [NodeId(4), NodeId(2)]);
    // Rank 2 has a link in one direction only: the other direction is its own path.
    assert_eq!(says(&amd, "2", "4"), "SYS 12GB/s");
}

#[test]
fn chip_to_chip() {
    let grace = text(
        r#"<system version="1"><cpu numaid="0" arch="arm64">
<pci busid="g0" class="0x03"><gpu sm="90" rank="0"><c2c bw="44712" count="10"/></gpu></pci>
<pci busid="g1" class="0x03"><gpu sm="90" rank="1"><c2c bw="44712" count="10"/></gpu></pci>
<pci busid="n" class="0x02" link_speed="32 GT/s" link_width="16"><nic><net name="n"/></nic></pci>
</cpu></system>"#,
    )
    .unwrap()
    .topology;
    assert_eq!(says(&grace, "0", "1"), "C2C 447.12GB/s");
    assert_eq!(says(&grace, "0", "NIC n"), "P2C 48GB/s");
    assert!(path(&grace, "0", "NIC n").kind.is_gdr());
}

#[test]
fn who_reaches_into_whose_memory() {
    let amd = machine("AuthenticAMD", "");
    let allowed = |t: &Topology, a: &str, b: &str| p2p_allowed(t, &path(t, a, b));
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
    assert_eq!(p2p_limit(&made_up(ShapeKind::FullMesh, &[2])), PathType::Pxb);
}

/// Broadcom's two levels are one switch: the GPUs below them meet at the first.
#[test]
fn two_levels_of_broadcom() {
    let topology = load("simccl-8a100-nvswitch-5nic.xml").topology;
    assert!(topology.nodes().iter().all(|node| node.name != "PCI 0000:0e:00.0"));
    assert_eq!(says(&topology, "1", "NIC mlx5_bond_1"), "PXB 24GB/s");
    assert_eq!(path(&topology, "1", "NIC mlx5_bond_1").links.len(), 3);
}

#[test]
fn names_in_order() {
    let names: Vec<_> = PathType::ALL.iter().map(|kind| kind.name()).collect();
    assert_eq!(names.join(" "), "LOC NVL NVB C2C PIX PXB P2C PXN PHB SYS NET DIS");
    assert!(PathType::ALL.is_sorted());
}

/// A short cut between two switches below one CPU, which a file names at one end.
#[test]
fn short_cuts_between_switches() {
    let system = |link: &str| {
        text(&format!(
            r#"<system version="1"><cpu numaid="0" arch="x86_64" vendor="AuthenticAMD">
<pci busid="a" class="0x060400">{link}
<pci busid="g0" class="0x03"><gpu sm="80" rank="0"/></pci></pci>
<pci busid="b" class="0x060400"><pci busid="g1" class="0x03"><gpu sm="80" rank="1"/></pci></pci>
</cpu></system>"#
        ))
    };
    assert_eq!(says(&system("").unwrap().topology, "0", "1"), "PHB 12GB/s");
    let cut = system(r#"<pcilink target="b"/>"#).unwrap().topology;
    assert_eq!([says(&cut, "0", "1"), says(&cut, "1", "0")], ["PXB 12GB/s", "PHB 12GB/s"]);
    assert!(system(r#"<pcilink target="c"/>"#).is_err());
}

/// Two ranks on a switch, a third on a cable to the second: two hops have reached the second by then.
#[test]
fn no_relay_behind_a_switch() {
    let links = |target: &str, class: &str| {
        format!(r#"<nvlink target="{target}" count="1" tclass="{class}"/>"#)
    };
    let switch = links("s", "0x068000");
    let topology = text(&format!(
        r#"<system version="1"><cpu numaid="0" arch="x86_64" vendor="AuthenticAMD">
<pci busid="g0" class="0x03"><gpu sm="80" rank="0">{switch}</gpu></pci>
<pci busid="g1" class="0x03"><gpu sm="80" rank="1">{switch}{}</gpu></pci>
<pci busid="g2" class="0x03"><gpu sm="80" rank="2"/></pci></cpu></system>"#,
        links("g2", "0x03")
    ))
    .unwrap()
    .topology;
    assert_eq!(says(&topology, "0", "1"), "NVL 20GB/s");
    assert_eq!(says(&topology, "1", "2"), "NVL 20GB/s");
    assert_eq!(says(&topology, "0", "2"), "PHB 12GB/s");
}

/// Of two paths of one kind the wider is taken, though it is found last.
#[test]
fn the_wider_of_two_relays() {
    let links = |list: &[(&str, u32)]| -> String {
        let link = |(to, count): &(&str, u32)| {
            format!(r#"<nvlink target="{to}" count="{count}" tclass="0x03"/>"#)
        };
        list.iter().map(link).collect()
    };
    let topology = text(&format!(
        r#"<system version="1"><cpu numaid="0" arch="x86_64" vendor="AuthenticAMD">
<pci busid="g0" class="0x03"><gpu sm="80" rank="0">{}</gpu></pci>
<pci busid="g1" class="0x03"><gpu sm="80" rank="1">{}</gpu></pci>
<pci busid="g2" class="0x03"><gpu sm="80" rank="2">{}</gpu></pci>
<pci busid="g3" class="0x03"><gpu sm="80" rank="3"/></pci></cpu></system>"#,
        links(&[("g1", 1), ("g2", 3)]),
        links(&[("g3", 3)]),
        links(&[("g3", 2)])
    ))
    .unwrap()
    .topology;
    assert_eq!(says(&topology, "0", "3"), "NVB 40GB/s");
}

#[test]
fn a_port_has_its_latency_in_both_directions() {
    let topology = machine("AuthenticAMD", "");
    let net = topology.links().iter().filter(|link| link.kind == LinkKind::Net);
    assert_eq!(net.map(|link| link.latency).collect::<Vec<_>>(), [1500, 1500]);
}
