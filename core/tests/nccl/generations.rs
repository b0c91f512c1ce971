//! Rules that depend on the words of a file, and on generations of CPUs and GPUs: those of NCCL 2.31, and of RCCL.

use roundelay_core::diagnostics::Code;
use roundelay_machines::nccl::{self, Assumption};
use roundelay_simulate::cost::Costs;
use roundelay_topology::LinkKind;

use crate::nccl::{capacity, text};

/// Two CPUs with a GPU each: of this maker, family and model.
pub(super) fn sockets(vendor: &str, family: &str, model: &str) -> String {
    let cpu = |n: u32| {
        format!(
            r#"<cpu numaid="{n}" arch="x86_64" vendor="{vendor}" {family} modelid="{model}"><pci busid="0000:0{n}:00.0"
class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16"><gpu sm="90" rank="{n}"/></pci></cpu>"#
        )
    };
    format!("<system version=\"1\">{}{}</system>", cpu(0), cpu(1))
}

/// NCCL reads all its integers by `strtol` with base 0.
#[test]
fn integers_of_every_base() {
    let xml = sockets("AuthenticAMD", "familyid=\"26\"", "17");
    let first = r#"<gpu sm="90" rank="0"/>"#;
    let other = text(&xml).unwrap().topology;
    for (from, to) in [
        ("numaid=\"1\"", "numaid=\"0x1\""),
        ("numaid=\"1\"", "numaid=\"01\""),
        ("numaid=\"1\"", "numaid=\"+1\""),
        ("link_width=\"16\"", "link_width=\"0X10\""),
        ("link_width=\"16\"", "link_width=\"020\""),
        ("sm=\"90\"", "sm=\"0x5A\""),
        ("familyid=\"26\"", "familyid=\"032\""),
    ] {
        let read = text(&xml.replace(from, to)).unwrap_or_else(|problem| panic!("{to}: {problem}"));
        assert_eq!(read.topology, other, "{to}");
    }
    // Equal numbers are equal, however they are written.
    let twice = xml.replace("numaid=\"1\"", "numaid=\"0x0\"");
    assert_eq!(text(&twice).unwrap_err().title, "two CPUs of numaid 0");
    for wrong in
        ["08", "0x", "1x", "--1", "+-1", "0x-1", "0b1", "1.0", "1e0", "0x11111111111111111"]
    {
        let problem = text(&xml.replace(first, &first.replace("90", wrong))).unwrap_err();
        assert_eq!(problem.code, Code::NotATopology, "{wrong}");
        let octal = problem.notes.iter().any(|note| note.ends_with("as octal"));
        assert_eq!(octal, wrong == "08", "{problem:?}");
    }
}

/// Two cards in four partitions each: as PCI functions, or as GPUs of one device.
fn cards(functions: bool, link: &str) -> String {
    let card = |card: u32| {
        let (bus, other) = (3 + 2 * card, 5 - 2 * card);
        let gpu = |part: u32| {
            let (rank, target) = (4 * card + part, if functions { part } else { 0 });
            let links = link.replace("TO", &format!("0000:{other:02x}:00.{target}"));
            let links = links.replace("CARD", &format!("0000:{other:02x}:00"));
            let links = links.replace("OWN", &format!("0000:{bus:02x}:00"));
            format!(r#"<gpu dev="{rank}" sm="94" gcn="gfx942" rank="{rank}">{links}</gpu>"#)
        };
        let device = |function: u32, gpus: &str| {
            format!(
                r#"<pci busid="0000:{bus:02x}:00.{function}" class="0x120000" link_speed="32.0 GT/s PCIe" link_width="16">{gpus}</pci>"#
            )
        };
        if functions {
            (0..4).map(|part| device(part, &gpu(part))).collect::<String>()
        } else {
            device(0, &(0..4).map(gpu).collect::<String>())
        }
    };
    format!(
        r#"<system version="2"><cpu numaid="0" arch="x86_64" vendor="AuthenticAMD" familyid="25">{}{}</cpu></system>"#,
        card(0),
        card(1)
    )
}

#[test]
fn partitions_by_pci_function_are_parts_of_a_card() {
    const ONE: &str = r#"<xgmi target="TO" count="1" tclass="0x120000"/>"#;
    // Each part may list all parts of the other card, and those of its own.
    const ALL: &str = r#"<xgmi target="CARD.0" count="1"/><xgmi target="CARD.1" count="1"/><xgmi target="CARD.2"
count="1"/><xgmi target="CARD.3" count="1"/><xgmi target="OWN.0" count="1"/><xgmi target="OWN.3" count="1"/>"#;
    let expected = text(&cards(false, ONE)).unwrap();
    assert!(expected.notes.is_empty());
    let note = "8 GPUs are partitions of 2 cards: the PCI functions of a card share its links, as for RCCL";
    for link in [ONE, ALL] {
        let system = text(&cards(true, link)).unwrap();
        assert_eq!(system.topology, expected.topology);
        assert_eq!(system.notes, [note]);
        let again =
            nccl::read("test.xml", nccl::write_system(&system).unwrap().as_bytes(), None).unwrap();
        assert_eq!(again.topology, expected.topology);
    }
    assert_eq!(capacity(&expected.topology, "0", "1", LinkKind::NvLink).unwrap(), "5TB/s");
    // The one link between the cards is that of all parts.
    let links = expected.topology.links().iter();
    let between = links.filter(|link| link.from.0 < 4 && (4..8).contains(&link.to.0));
    assert_eq!(between.map(|link| link.capacity.floor()).sum::<u64>(), 48_000_000_000);
    // A function that is there twice, and a count that is no number, stay errors.
    let twice = cards(true, ONE).replace("0000:03:00.3", "0000:03:00.2");
    assert_eq!(text(&twice).unwrap_err().title, "two PCI devices have the busid 0000:03:00.2");
    let count = cards(true, ONE).replacen("count=\"1\"", "count=\"one\"", 1);
    assert_eq!(text(&count).unwrap_err().code, Code::NotATopology);
    // The functions of NVIDIA's cards, and single ones, are devices of their own.
    let nvidia = cards(true, "").replace("gcn=\"gfx942\"", "");
    assert_eq!(text(&nvidia).unwrap().topology.nodes().len(), 9);
    // A file without GPUs, in which these are assumed.
    let devices = |bus: u32| {
        let device = |function| {
            format!(
                r#"<pci busid="0000:{bus:02x}:00.{function}" class="0x120000" link_speed="32.0 GT/s PCIe"/>"#
            )
        };
        (0..4).map(device).collect::<String>()
    };
    let bare = format!(
        r#"<system version="2"><cpu numaid="0" arch="x86_64" vendor="AuthenticAMD" familyid="25">{}{}</cpu></system>"#,
        devices(3),
        devices(5)
    );
    let assume = Assumption::parse("gfx942,xgmi=1").unwrap();
    let assumed = nccl::read("test.xml", bare.as_bytes(), Some(assume)).unwrap();
    assert_eq!(assumed.topology, expected.topology);
}

/// A GPU of unknown generation has the memory of no other one.
#[test]
fn memory_of_generations() {
    let of = |xml: &str| Costs::of_gpus(&text(xml).unwrap().topology, 2).unwrap();
    let two = |attribute: &str| {
        sockets("AuthenticAMD", "familyid=\"26\"", "17").replace("sm=\"90\"", attribute)
    };
    for (attribute, memory, product) in [
        ("sm=\"94\" gcn=\"gfx908\"", 1229, "MI100"),
        ("sm=\"94\" gcn=\"908\"", 1229, "MI100"),
        ("sm=\"94\" gcn=\"gfx90a\"", 1638, "MI250X, one die"),
        ("sm=\"94\" gcn=\"910\"", 1638, "MI250X, one die"),
        ("sm=\"94\" gcn=\"gfx942:sramecc+:xnack-\"", 5300, "MI300X"),
        ("sm=\"94\" gcn=\"gfx950\"", 8000, "MI350X"),
        ("sm=\"121\"", 273, "GB10"),
        ("sm=\"120\"", 1792, "RTX PRO 6000 Blackwell"),
        ("sm=\"90\"", 3350, "H100 SXM"),
    ] {
        let costs = of(&two(attribute));
        let said = format!("memory of {memory} GB/s (data sheet of {product})");
        assert!(costs.name.contains(&said), "{}", costs.name);
        assert!(costs.name.contains(" over PCI: 5.7 us a hop"), "{}", costs.name);
        assert!((costs.copy / (f64::from(memory) * 1e9 / 2.0) - 1.0).abs() < 1e-12);
    }
    for attribute in ["sm=\"94\" gcn=\"gfx1250\"", "sm=\"94\" gcn=\"?\"", "sm=\"130\"", "sm=\"87\""]
    {
        let costs = of(&two(attribute));
        let said = "memory of unknown bandwidth, so that copies take no time";
        assert!(costs.name.contains(said) && costs.copy.is_infinite(), "{}", costs.name);
    }
    // The parts of a card share its memory.
    let costs = of(&cards(true, r#"<xgmi target="TO" count="1"/>"#));
    assert!(costs.name.contains("memory of 5300 GB/s for 4 ranks"), "{}", costs.name);
    assert!((costs.copy / (5300e9 / 2.0 / 4.0) - 1.0).abs() < 1e-12);
}
