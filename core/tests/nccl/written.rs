//! Written files: read again they give an equal graph, and NCCL's reader would accept them.

use roundelay_core::diagnostics::Code;
use roundelay_machines::nccl::{self, write};
use roundelay_topology::Fabric;
use roundelay_topology::LinkKind;
use roundelay_topology::shape::ShapeKind;

use crate::nccl::{FULL, PARTIAL, load, shape, text};

/// Checks the demands of NCCL's reader on a file.
fn inside_the_limits(written: &str) {
    let tags: Vec<_> = written.lines().filter(|line| !line.starts_with("<!--")).collect();
    assert!(tags.iter().all(|line| line.ends_with('>') && line.matches('<').count() == 1));
    assert!(tags.iter().filter(|line| !line.contains("</")).count() <= 256);
    assert!(tags.iter().all(|line| line.matches("=\"").count() <= 16));
    assert!(!written.contains("<?xml") && !written.contains('&'));
}

#[test]
fn what_was_read_reads_the_same_again() {
    for name in FULL.into_iter().chain(PARTIAL) {
        let system = load(name);
        let written = nccl::write_system(&system).unwrap();
        inside_the_limits(&written);
        let again = nccl::read(name, written.as_bytes(), None).unwrap();
        assert_eq!(again.topology, system.topology, "{name}");
        assert_eq!((again.sm, again.nvswitch), (system.sm, system.nvswitch));
        assert_eq!(again.cpus, system.cpus);
        assert!(system.assumptions.iter().all(|sentence| written.contains(sentence.as_str())));
    }
}

fn made_up(kind: ShapeKind, sizes: &[i64], rate: Option<u64>) -> Fabric {
    shape(kind, sizes, rate).build().unwrap()
}

/// Checks that both have equal `NVLinks`; the file has a CPU and PCI links besides.
fn same_links(topology: &Fabric) {
    let written = write(topology).unwrap();
    inside_the_limits(&written);
    let again = text(&written).unwrap().topology;
    let links = |topology: &Fabric| -> Vec<_> {
        let name = |node: u32| topology.nodes()[node as usize].kind;
        let links = topology.links().iter().filter(|link| link.kind == LinkKind::NvLink);
        let end = |node: u32| (name(node), (node < topology.nranks()).then_some(node));
        links.map(|link| (end(link.from.0), end(link.to.0), link.capacity)).collect()
    };
    assert_eq!(links(&again), links(topology), "{written}");
    assert!(!links(topology).is_empty());
}

#[test]
fn meshes_and_crossbars() {
    let gb = 1_000_000_000;
    same_links(&shape(ShapeKind::FullMesh, &[8], Some(20 * gb)).without(0, 1).build().unwrap());
    same_links(&made_up(ShapeKind::Crossbar, &[8], Some(240 * gb)));
    same_links(&made_up(ShapeKind::Crossbar, &[8], Some(20_600_000_000 * 18)));
    same_links(&made_up(ShapeKind::Ring, &[4], Some(12 * gb)));
}

#[test]
fn what_the_format_cannot_say() {
    let gb = 1_000_000_000;
    let says = |topology: &Fabric| {
        let problem = write(topology).unwrap_err();
        assert_eq!(problem.code, Code::CannotWrite);
        problem.title
    };
    let cases = [
        (made_up(ShapeKind::FullMesh, &[8], None), "no bandwidth in bytes"),
        (made_up(ShapeKind::FullMesh, &[8], Some(25 * gb)), "whole number of NVLinks"),
        (made_up(ShapeKind::Crossbar, &[8], Some(20 * gb * 5000)), "whole number of NVLinks"),
        (made_up(ShapeKind::SpineLeaf, &[2, 2, 2], Some(20 * gb)), "no place for `leaf 0`"),
        (made_up(ShapeKind::Islands, &[2, 2], Some(20 * gb)), "no place for `rail 0`"),
        (made_up(ShapeKind::FullMesh, &[16], Some(20 * gb)), "274 elements"),
    ];
    for (topology, expected) in cases {
        let title = says(&topology);
        assert!(title.contains(expected), "{}: {title}", topology.name());
    }
}

#[test]
fn values_that_its_reader_would_break() {
    let with = |vendor: &str| {
        let system = text(&format!(
            r#"<system version="1"><cpu numaid="0" vendor="{vendor}">
<pci busid="g" class="0x03"><gpu sm="80" rank="0"/></pci></cpu></system>"#
        ));
        nccl::write_system(&system.unwrap())
    };
    assert!(with("plain").is_ok());
    for bad in ["a&quot;b", "a&amp;b", "a&lt;b", "a>b", &"v".repeat(256)] {
        assert_eq!(with(bad).unwrap_err().code, Code::CannotWrite, "{bad}");
    }
}
