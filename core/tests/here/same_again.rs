//! The six public topology files as trees of files and back.

use roundelay_core::diagnostics::Code;
use roundelay_machines::nccl::{self, Assumption};
use roundelay_topology::nccl::element::Element;

use super::files::{Files, family};
use crate::nccl::{FULL, PARTIAL, load};

/// Returns an element as a text that does not depend on the order of attributes and elements, without what no file of
/// the system can tell: the settings of NCCL's plugins, the flags of RCCL, and the number of the host.
fn canonical(element: &Element, partial: bool) -> String {
    let unknown = |tag: &str, name: &str| match tag {
        "net" => ["latency", "maxconn", "gdr", "guid", "coll"].contains(&name),
        "gpu" => ["arch", "gdr"].contains(&name),
        "cpu" => name == "host_hash",
        _ => false,
    };
    let value = |name: &str, value: &str| match (name, value) {
        ("familyid", text) => family(text),
        ("gcn", "910") => "gfx90a".to_owned(),
        ("gcn", text) => format!("gfx{}", text.trim_start_matches("gfx")),
        ("link_width", "0") => String::new(),
        (_, text) => text.to_lowercase(),
    };
    let of = element.attributes.iter().filter(|(name, _)| !unknown(element.tag, name));
    let of = of.map(|(name, text)| (name, value(name, text))).filter(|(_, text)| !text.is_empty());
    let mut of: Vec<_> = of.map(|(name, text)| format!("{name}={text}")).collect();
    of.sort_unstable();
    let known = element.children.iter().filter(|c| !partial || !["gpu", "nic"].contains(&c.tag));
    let mut children: Vec<_> = known.map(|child| canonical(child, partial)).collect();
    children.sort_unstable();
    format!("<{} {}>{}</>\n", element.tag, of.join(" "), children.concat())
}

#[test]
fn the_public_files() {
    for name in FULL {
        let expected = load(name);
        let (files, driver) = Files::of(&expected.root);
        files.join();
        let found = super::read(&files, Ok(&driver)).unwrap();
        assert_eq!(canonical(&found.root, false), canonical(&expected.root, false), "{name}");
        assert_eq!((found.sm, found.nvswitch), (expected.sm, expected.nvswitch), "{name}");
        assert_eq!(found.topology.nranks(), expected.topology.nranks());
        // What is written is read as the same machine.
        let written = nccl::write_system(&found).unwrap();
        let again = nccl::read("here", written.as_bytes(), None).unwrap();
        assert_eq!(again.topology, found.topology, "{name}");
    }
}

/// Files without GPUs describe machines whose devices NCCL finds: here they have a maker, and cards a port.
#[test]
fn the_files_without_gpus() {
    for name in PARTIAL {
        let expected = load(name);
        let (files, _) = Files::of(&expected.root);
        for (at, device) in devices(&expected.root).into_iter().enumerate() {
            let busid = device.get("busid").unwrap();
            let folder = format!("sys/bus/pci/devices/{busid}");
            if device.is_class("0x03") && device.get("vendor").is_none() {
                files.line(format!("{folder}/vendor"), "0x10de");
            } else if device.is_class("0x02") {
                let device = files.root().real(&folder).unwrap();
                files.interface(&format!("ens{at}"), "100000", Some(&device));
            }
        }
        let assume = Assumption::parse("sm=80,nvlinks=12").unwrap();
        let root = files.root();
        let found =
            roundelay_machines::here::read("here", &root, Err("this is a test"), Some(assume))
                .unwrap();
        let text = canonical(&found.root, true).replace(" vendor=0x10de", "");
        let wanted = canonical(&expected.root, true).replace(" vendor=0x10de", "");
        assert_eq!(text, wanted, "{name}");
        assert_eq!(found.topology.nranks(), expected.topology.nranks(), "{name}");
        assert!(found.nvswitch && found.sm == Some(80));
        assert!(found.notes.iter().any(|note| note.contains("NVML")), "{:?}", found.notes);
        if name.starts_with("azure") {
            // Nothing tells what the GPUs are, and nothing is assumed in silence.
            let problem = super::read(&files, super::NONE).unwrap_err();
            assert_eq!(problem.code, Code::PartialTopology);
        }
    }
}

fn devices(element: &Element) -> Vec<&Element> {
    let below = element.children.iter().flat_map(devices);
    element.children.iter().filter(|child| child.tag == "pci").chain(below).collect()
}
