//! Files of other programs as topologies: links for ns-3, and files that are none.

use std::time::{Duration, Instant};

use roundelay_core::topology::files::{self, TopologyFile};
use roundelay_core::topology::nccl::Assumption;
use roundelay_core::topology::{LinkKind, NodeKind, Problem};
use roundelay_core::units::{rate_text, time_text};

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
    let link = |l: &roundelay_core::topology::Link| {
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
    let two = |line: &str| format!("2 0 1\n{line}\n");
    for (text, expected) in [
        ("-2 0 1", "E0601 `-2` is no number of nodes | line 1, column 1 of links.txt"),
        ("2 0 -1", "E0601 `-1` is no number of links | line 1, column 5 of links.txt"),
        ("2 -1 1", "E0601 `-1` is no number of switches | line 1, column 3 of links.txt"),
        (
            "2 3 1",
            "E0601 3 switches of 2 nodes; the most are 65536 | line 1, column 3 of links.txt",
        ),
        (
            "2 2 1",
            "E0601 a topology of 0 ranks; it takes 1..=65536 | line 1, column 1 of links.txt",
        ),
        (
            "99999999999 0 1",
            "E0601 a topology of 99999999999 ranks; it takes 1..=65536 | line 1, column 1 of links.txt",
        ),
        (
            "99999999999 99999999998 1",
            "E0601 99999999998 switches of 99999999999 nodes; the most are 65536 | line 1, column 13 of links.txt",
        ),
        (
            "99999999999999999999 0 1",
            "E0601 `99999999999999999999` is no number of nodes | line 1, column 1 of links.txt",
        ),
        (
            "2 0 9999999999",
            "E0601 9999999999 links; the most are 2097152 | line 1, column 5 of links.txt",
        ),
        (
            "6 2 18446744073709551615 18446744073709551615 1 H100",
            "E0601 18446744073709551615 switches of 6 nodes; the most are 65536 | line 1, column 26 of links.txt",
        ),
        (
            "2 0 1",
            "E0601 the file ends after 0 of 1 links | line 1, column 6 of links.txt | 1 of the first line is their number",
        ),
        ("4 2 1\n2", "E0601 the file ends after 1 of 2 switches | line 2, column 2 of links.txt"),
        (
            "4 2 1\n2 3 1",
            "E0601 `1` is a switch more than the first line says | line 2, column 5 of links.txt",
        ),
        (
            "4 2 1\n2 2",
            "E0601 `2` is a switch that is named before | line 2, column 3 of links.txt",
        ),
        (
            "4 2 1\n2 4",
            "E0602 there is no node `4` | line 2, column 3 of links.txt | the nodes are 0..4",
        ),
        (
            &two("0 1 1Gbps 1us 0\n0 1 1Gbps 1us 0"),
            "E0601 the first line says 1 links, and this is one more | line 3, column 1 of links.txt",
        ),
        (
            "2 0 2\n0 1 1Gbps 1us 0\n1 0 1Gbps 1us 0",
            "E0602 the link 1 - 0 is named twice | line 3, column 1 of links.txt",
        ),
        (
            &two("0 2 1Gbps 1us 0"),
            "E0602 there is no node `2` | line 2, column 3 of links.txt | the nodes are 0..2",
        ),
        (
            &two("0 -1 1Gbps 1us 0"),
            "E0602 there is no node `-1` | line 2, column 3 of links.txt | the nodes are 0..2",
        ),
        (
            &two("1 1 1Gbps 1us 0"),
            "E0602 rank 1 is linked to itself | line 2, column 3 of links.txt",
        ),
        (&two("0 1 1Gbps 1us"), "E0601 a link has five words | line 2, column 14 of links.txt"),
        (&two("0 1 1Gbps 1us 0 0"), "E0601 a link has five words | line 2, column 17 of links.txt"),
        (
            &two("0 1 -1Gbps 1us 0"),
            "E0601 `-1Gbps` is no bandwidth | line 2, column 5 of links.txt",
        ),
        (&two("0 1 1G 1us 0"), "E0601 `1G` is no bandwidth | line 2, column 5 of links.txt"),
        (
            &two("0 1 0Gbps 1us 0"),
            "E0601 link rank 0 -> rank 1 carries 0 bytes/s | line 2, column 5 of links.txt",
        ),
        (&two("0 1 1Gbps 0.5ns 0"), "E0601 `0.5ns` is no delay | line 2, column 11 of links.txt"),
        (&two("0 1 1Gbps -1us 0"), "E0601 `-1us` is no delay | line 2, column 11 of links.txt"),
        (
            &two("0 1 1Gbps 1us -1"),
            "E0601 `-1` is no rate of errors | line 2, column 15 of links.txt",
        ),
        (
            &two("0 1 1Gbps 1us nan"),
            "E0601 `nan` is no rate of errors | line 2, column 15 of links.txt",
        ),
        (
            "3 0 1\n0 1 1Gbps 1us 0",
            "E0603 the topology falls into 2 parts that cannot reach each other | a part: ranks 0, 1 | a part: rank 2",
        ),
    ] {
        assert_eq!(told(text), expected, "{text}");
    }
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
    for (text, what) in [
        (
            "topology: [ Ring, Switch ]\nnpus_count: [ 8, 4 ]\nbandwidth: [ 50.0, 50.0 ]  # GB/s\n",
            "the dimensions of a network for ASTRA-sim's analytical model",
        ),
        ("{\"scheduling-policy\": \"LIFO\"}", "the configuration of a system for ASTRA-sim"),
        ("{\"logical-dims\": [\"8\"]}", "the logical dimensions of a network for ASTRA-sim"),
        (
            "{\"name\": \"a\", \"collective\": \"allreduce\", \"gpus\": []}",
            "an execution plan for MSCCL++",
        ),
        ("[1, 2]", "JSON"),
        (
            "# collective,min_bytes\nallreduce,0,65536,tree,ll,2,1,8,-1,-1\n",
            "a table of choices for NCCL's tuner plugin",
        ),
        ("// a schedule\nnum_ranks 2\n\nrank 0 {\n}\n", "a schedule in GOAL, for LogGOPSim"),
    ] {
        let problem = read(text).unwrap_err();
        assert_eq!(problem.code.as_str(), "E0610", "{text}");
        assert_eq!(problem.title, format!("the file is {what}, and no topology"));
        assert_eq!(problem.help.as_deref(), Some(help));
    }
    for (root, what) in [
        ("Algo", "the file is trees that ForestColl computed for a topology"),
        ("algo", "the file is a program for MSCCL"),
        (
            "sccl_algos",
            "the file is a list of programs for MSCCL: each <load> names one by its path",
        ),
        (
            "graphs",
            "the file is an NCCL graph: channels that were found, not the topology they were found on",
        ),
        ("svg", "the file begins with <svg>, not with <system>"),
    ] {
        let expected = format!("E0607 {what} | line 1, column 1 of links.txt");
        let problem = told(&format!("<{root} nchunkspernode=\"1\"></{root}>"));
        assert!(problem.starts_with(&expected), "{problem}");
    }
    // A list of links stays one, and its errors too.
    assert_eq!(read("ranks 2\n0 -- 1 1").unwrap().topology.nranks(), 2);
    assert!(told("0 -- 1 5").starts_with("E0601 line 1: a list of links begins with"));
    let assume = Assumption::parse("sm=90").unwrap();
    let read = files::read("links.txt", DGX1.as_bytes(), false, Some(assume)).unwrap();
    assert!(read.topology.gpus().is_some(), "what the ranks are");
}
