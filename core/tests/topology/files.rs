//! Files of other programs as topologies: links for ns-3, and files that are none.

use std::time::{Duration, Instant};

use roundelay_core::units::{rate_text, time_text};
use roundelay_machines::nccl::Assumption;
use roundelay_machines::{self as files, TopologyFile};
use roundelay_topology::{LinkKind, NodeKind, Problem};

use crate::cases;

fn read(text: &str) -> Result<TopologyFile, Problem> {
    files::read("links.txt", text.as_bytes(), false, None)
}

/// The code, the title and the place of the problem of a text.
fn told(text: &str) -> String {
    let problem = read(text).expect_err(text);
    assert!(problem.code.as_str().starts_with("E06"), "{problem:?}");
    format!("{} {} | {}", problem.code, problem.title, problem.notes.join(" | "))
}

/// Links in one direction: `0>4 360GB/s 25ns`.
fn links(file: &TopologyFile) -> Vec<String> {
    let link = |l: &roundelay_topology::Link| {
        let rate = rate_text(l.capacity.floor());
        format!("{}>{} {rate} {}", l.from.0, l.to.0, time_text(l.latency))
    };
    file.topology.links().iter().map(link).collect()
}

/// The form of ASTRA-sim: the eight GPUs of a DGX-1 (no switches, so that their line is empty).
const DGX1: &str = "8 0 16\n
0 1 200Gbps 0.005ms 0\n0 2 200Gbps 0.005ms 0\n0 3 400Gbps 0.005ms 0\n0 4 400Gbps 0.005ms 0
1 2 400Gbps 0.005ms 0\n1 3 200Gbps 0.005ms 0\n1 5 400Gbps 0.005ms 0\n2 3 400Gbps 0.005ms 0
2 6 200Gbps 0.005ms 0\n3 7 200Gbps 0.005ms 0\n4 5 200Gbps 0.005ms 0\n4 6 200Gbps 0.005ms 0
4 7 400Gbps 0.005ms 0\n5 6 400Gbps 0.005ms 0\n5 7 200Gbps 0.005ms 0\n6 7 400Gbps 0.005ms 0\n";

/// The form of `SimAI`: two servers of two GPUs, each with an `NVSwitch`.
const SIMAI: &str = "6 2 2 0 6 H100\n4 5\n0 4 2880Gbps 0.000025ms 0\n1 4 2880Gbps 0.000025ms 0
2 5 2880Gbps 0.000025ms 0\n3 5 2880Gbps 0.000025ms 0\n0 2 400Gbps 0.0005ms 0\n1 3 400Gbps 0.0005ms 0\n";

#[test]
fn links_for_ns3() {
    let file = read(DGX1).unwrap();
    assert_eq!((file.topology.nranks(), file.topology.links().len()), (8, 32));
    assert_eq!(links(&file)[..2], ["0>1 25GB/s 5us", "0>2 25GB/s 5us"]);
    assert!(!file.topology.is_relative() && file.notes.is_empty() && file.system.is_none());
    let file = read(SIMAI).unwrap();
    assert_eq!(file.topology.nranks(), 4);
    assert_eq!(links(&file)[..2], ["0>2 50GB/s 500ns", "0>4 360GB/s 25ns"]);
    let switches: Vec<_> = file.topology.nodes()[4..].iter().map(|n| (n.kind, &*n.name)).collect();
    assert_eq!(switches, [(NodeKind::NvSwitch, "NVSwitch 4"), (NodeKind::NvSwitch, "NVSwitch 5")]);
    // A switch of the network; it has a lower number than a rank, and a link loses packets.
    let file = read("3 1 2\r\n0\r\n0 2 1GBps 1us 0.01\r\n1 0 8Gb/s 1000ns 0\r\n").unwrap();
    assert_eq!(links(&file), ["0>2 1GB/s 1us", "1>2 1GB/s 1us", "2>0 1GB/s 1us", "2>1 1GB/s 1us"]);
    assert!(file.topology.links().iter().all(|link| link.kind == LinkKind::Net));
    assert_eq!(
        file.notes,
        [
            "switches have lower numbers than other nodes: the ranks are the other nodes in their order",
            "links lose packets, which no time takes into account (1)"
        ]
    );
}

#[test]
fn wrong_links_for_ns3() {
    cases::check("topology/files.txt", &[], told);
    for whole in [DGX1, SIMAI] {
        for length in 0..whole.trim_end().len() - 1 {
            told(&whole[..length]);
        }
    }
}

/// The most ranks and links, without a link too many being needed: each answer takes moments.
#[test]
fn the_largest_files() {
    let begun = Instant::now();
    assert!(
        told("65536 0 1\n0 1 1Gbps 1us 0").starts_with("E0603 the topology falls into 65535 parts")
    );
    let links: Vec<_> = (1..65536).map(|node| format!("0 {node} 1Gbps 1us 0")).collect();
    let links = links.join("\n");
    let star = read(&format!("65536 1 65535\n0\n{links}")).unwrap().topology;
    assert_eq!(star.nranks(), 65535);
    let switches = (1..=65535).map(|node| node.to_string()).collect::<Vec<_>>().join(" ");
    let chain: Vec<_> = (0..65535).map(|n| format!("{n} {} 1Gbps 1us 0", n + 1)).collect();
    let chain = chain.join("\n");
    assert_eq!(
        read(&format!("65536 65535 65535\n{switches}\n{chain}")).unwrap().topology.nranks(),
        1
    );
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
}

#[test]
fn files_of_other_programs_are_named() {
    let help = "a topology is a file of NCCL's, the table of `nvidia-smi topo -m`, links for ns-3, a list of links that \
        begins with `ranks 8`, or a text such as `full_mesh(8, 25GB/s, 2us)`";
    let problem = read("[1, 2]").unwrap_err();
    assert_eq!(problem.help.as_deref(), Some(help));
    // A list of links stays one.
    assert_eq!(read("ranks 2\n0 -- 1 1").unwrap().topology.nranks(), 2);
    let assume = Assumption::parse("sm=90").unwrap();
    let read = files::read("links.txt", DGX1.as_bytes(), false, Some(assume)).unwrap();
    assert!(read.topology.gpus().is_some(), "what the ranks are");
}
