//! The contents of the real files: all of it as goldens, and the values that were computed by hand.

use expect_test::expect_file;
use roundelay_topology::LinkKind;

use crate::nccl::{FULL, PARTIAL, capacity, describe, load, says};

#[test]
fn every_file() {
    for name in FULL.into_iter().chain(PARTIAL) {
        let golden = format!("golden/{}", name.replace(".xml", ".txt"));
        expect_file![golden].assert_eq(&describe(&load(name)));
    }
}

#[test]
fn an_a100_reaches_its_switch_at_240() {
    let topology = load("simccl-8a100-nvswitch-5nic.xml").topology;
    for rank in 0..8 {
        let rank = rank.to_string();
        let there = capacity(&topology, &rank, "NVSwitch", LinkKind::NvLink);
        let back = capacity(&topology, "NVSwitch", &rank, LinkKind::NvLink);
        assert_eq!([there, back].map(Option::unwrap), ["240GB/s", "240GB/s"]);
    }
    assert_eq!(says(&topology, "0", "7"), "NVL 240GB/s");
}

#[test]
fn pci_of_sixteen_lanes() {
    let topology = load("simccl-8a100-nvswitch-5nic.xml").topology;
    let found = capacity(&topology, "PCI 0000:11:00.0", "0", LinkKind::Pci);
    assert_eq!(found.unwrap(), "24GB/s");
}

/// Network cards hang on the network, and yet no path to another rank leaves the machine.
#[test]
fn a_machine_is_one_island() {
    for name in FULL {
        let topology = load(name).topology;
        assert_eq!(topology.islands(), [topology.ranks().collect::<Vec<_>>()], "{name}");
    }
}

/// One machine spells one speed in two ways.
#[test]
fn speeds_are_spelt_in_two_ways() {
    let topology = load("rccl-8p90a-partial-mesh.xml").topology;
    assert_eq!(capacity(&topology, "CPU 0", "0", LinkKind::Pci).unwrap(), "24GB/s");
    let found = capacity(&topology, "PCI 0000:91:00.0", "NIC eth0", LinkKind::Pci);
    assert_eq!(found.unwrap(), "187.5MB/s");
}

#[test]
fn the_partial_mesh_is_cubic_and_has_no_triangle() {
    let topology = load("rccl-8p90a-partial-mesh.xml").topology;
    let linked = |a: u32, b: u32| {
        let (a, b) = (a.to_string(), b.to_string());
        a != b && capacity(&topology, &a, &b, LinkKind::NvLink).is_some()
    };
    for a in 0..8 {
        assert_eq!((0..8).filter(|b| linked(a, *b)).count(), 3, "links of {a}");
        for b in 0..8 {
            assert_eq!(linked(a, b), linked(b, a));
            assert!(!(0..8).any(|c| linked(a, b) && linked(b, c) && linked(c, a)));
        }
    }
    assert!(
        [(0, 1), (1, 3), (3, 2), (2, 4), (4, 5), (5, 7), (7, 6), (6, 0)]
            .into_iter()
            .all(|(a, b)| linked(a, b))
    );
}

#[test]
fn a_link_to_itself_is_none() {
    let topology = load("azure-ncv4-4a100-pcie.xml").topology;
    assert!(topology.links().iter().all(|link| link.kind != LinkKind::NvLink));
    assert_eq!(says(&topology, "0", "1"), "SYS 12GB/s");
}
