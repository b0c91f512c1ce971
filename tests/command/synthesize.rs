//! `synthesize`: pages that are proved and as fast as they say.

use super::call::{TempFile, roundelay};

const CUT: &str = "full_mesh(8) without (0, 1)";

/// Synthesizes, and returns the page.
fn page(args: &[&str]) -> String {
    roundelay(&[&["synthesize"], args].concat()).ends(0).out
}

/// Each collective has a page, which the other commands take.
#[test]
fn pages_are_algorithms() {
    for collective in ["AllGather", "ReduceScatter", "AllReduce", "Broadcast", "Reduce"] {
        let args = [collective, "--topology", CUT, "--bytes", "16M", "--trees", "2"];
        let file = TempFile::new("page.coll", page(&args).as_bytes());
        roundelay(&["check", file.path(), "-n", "8"]).ends(0);
        let run = ["simulate", file.path(), "--topology", CUT, "--bandwidth", "25GB/s"];
        roundelay(&run).ends(0);
        roundelay(&["run", file.path(), "-n", "8", "--count", "1000"]).ends(0);
    }
}

/// Machines of the examples reach their bound, by the load of links and in a simulated run.
#[test]
fn machines_reach_their_bound() {
    for (machine, trees) in [("ndv2_x2", 1), ("a100_x1", 1), ("mi250_x1", 3)] {
        let topology = format!("examples/topologies/{machine}.links");
        let call = ["synthesize", "AllGather", "--topology", &topology, "--format", "json"];
        let json = roundelay(&[&call[..], &["--costs", "messages"]].concat()).ends(0).json();
        assert_eq!(json["found"][0]["share_of_the_bound"], 1.0, "{machine}: {json}");
        assert_eq!(json["found"][0]["trees_of_a_root"], trees, "{machine}");
        let simulated = json["simulated"]["share_of_the_bound"].as_f64().unwrap();
        assert!((0.98..=1.0).contains(&simulated), "{machine}: {simulated}");
    }
}

/// GPUs of a machine: trees take the `NVLinks` alone, as every runtime does, and reach their bound.
#[test]
fn trees_of_a_machine_take_its_nvlinks() {
    let file = ["tests/topo/azure-ndv4-8a100-vm.xml", "--assume", "sm=90,nvlinks=18"];
    let machines = ["dgx-h100", "dgx-1", "mi300x"].map(|name| format!("machine(\"{name}\")"));
    let named = machines.iter().map(|text| vec![text.as_str()]);
    for topology in named.chain([file.to_vec()]) {
        for collective in ["AllReduce", "AllGather"] {
            let call = ["synthesize", collective, "--bytes", "1GiB", "--format", "json"];
            let json = roundelay(&[&call[..], &["--topology"], &topology].concat()).ends(0).json();
            let page = json["page"].as_str().unwrap();
            let reached = json["simulated"]["share_of_the_bound"].as_f64().unwrap();
            assert!((0.99..=1.0).contains(&reached), "{topology:?}: {reached}: {page}");
            assert!(!page.contains("PCI"), "{page}");
        }
    }
}

/// Slow ranks around a fast one: a link that is free while data goes up carries data down.
#[test]
fn only_what_no_all_reduce_exceeds_is_an_optimum() {
    let slow = TempFile::new("slow.links", b"ranks 4\n0 -- 1 1\n0 -- 3 3\n1 -- 3 2\n2 -- 3 3\n");
    let args = ["AllReduce", "--topology", slow.path(), "--bytes", "1GB", "--format", "json"];
    let costs = ["--costs", "messages", "--bandwidth", "25GB/s"];
    let json = roundelay(&[&["synthesize"], &args[..], &costs].concat()).ends(0).json();
    let text = json["page"].as_str().unwrap();
    for line in [
        "5 trees of all roots, up and then down: 83.3 % of the bound, the best that goes up trees",
        "3 trees of all roots, up and down at once, the optimum: 100 % of the bound;",
        "TreesAllReduce(trees, slices, at_once: true)",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert!(json["simulated"]["share_of_the_bound"].as_f64().unwrap() > 0.99, "{text}");
    let file = TempFile::new("page.coll", text.as_bytes());
    roundelay(&["run", file.path(), "-n", "4", "--count", "1000"]).ends(0);
}

/// Small sizes: schedules in rounds, found or shown not to exist.
#[test]
fn schedules_in_rounds() {
    let dgx1 = "examples/topologies/dgx1.links";
    let exact = ["AllGather", "--topology", dgx1, "--exact", "1,2,2", "--bytes", "1K"];
    let matched =
        ["AllReduce", "--topology", CUT, "--matching", "1", "--seeds", "2", "--bytes", "1K"];
    for args in [&exact[..], &matched] {
        let text = page(args);
        let file = TempFile::new("rounds.coll", text.as_bytes());
        roundelay(&["check", file.path(), "-n", "8"]).ends(0);
        roundelay(&["run", file.path(), "-n", "8", "--count", "100"]).ends(0);
    }
}
