//! `synthesize`: pages that are proved and as fast as they say, and all errors of the call.

use super::call::{TempFile, roundelay};

const CUT: &str = "full_mesh(8) without (0, 1)";

/// Synthesizes, and returns the page.
fn page(args: &[&str]) -> String {
    roundelay(&[&["synthesize"], args].concat()).ends(0).out
}

#[test]
fn few_trees_are_compared_with_the_optimum() {
    let text = page(&["AllGather", "--topology", CUT, "--trees", "1..=3", "--bytes", "16M"]);
    for line in [
        "// AllGather of 8 ranks on full_mesh(8) without (0, 1).",
        "// 1 tree of a root: 58.3 % of the bound;",
        "// 2 trees of a root: 77.7 % of the bound;",
        "// 3 trees of a root: 87.5 % of the bound;",
        "// 6 trees of a root, the optimum: 100 % of the bound;",
        "#[topology(full_mesh(8) without (0, 1))]",
        "    TreesAllGather(trees, slices) on (input, output);",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
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

/// A line about the library's fastest algorithm where no page is faster, and none where the page is.
#[test]
fn an_algorithm_of_the_library_that_is_as_fast_is_named() {
    let of = |topology: &str| page(&["AllReduce", "--topology", topology, "--bytes", "64M"]);
    let even = of("machine(\"dgx-h100\")");
    assert!(even.contains("NcclRingAllReduce of the library is faster than this page"), "{even}");
    assert!(even.contains("--topology 'machine(\"dgx-h100\")'`"), "{even}");
    let odd = of("full_mesh(6) without (0, 1) without (2, 3)");
    assert!(!odd.contains("of the library"), "{odd}");
}

/// Links in one direction alone: an AllReduce goes up other trees than it comes down.
#[test]
fn an_all_reduce_over_links_of_one_direction_has_other_trees_up_than_down() {
    let topology = "examples/topologies/ndv2_x2.links";
    for trees in [&[][..], &["--trees", "1"]] {
        let call = ["AllReduce", "--topology", topology, "--bytes", "1M"];
        let text = page(&[&call[..], trees].concat());
        let call = "TreesAllReduce(trees: up_trees, down: down_trees, slices, at_once: true)";
        assert!(text.contains(call), "{text}");
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

/// A switch that sends more than it receives.
#[test]
fn one_way_links_of_a_switch_have_trees() {
    let text = b"ranks 2\nswitch s0\ns0 -> 1 10\n0 -- s0 1\n1 -> 0 1\n";
    let links = TempFile::new("switch.links", text);
    for collective in ["AllGather", "ReduceScatter", "AllReduce", "Broadcast", "Reduce"] {
        let text = page(&[collective, "--topology", links.path(), "--bytes", "1M"]);
        assert!(text.contains("the optimum: 100 % of the bound"), "{text}");
    }
    let call = ["synthesize", "AllGather", "--topology", links.path(), "--trees", "1"];
    let call = roundelay(&call).refused(2, "E0603");
    assert!(call.err.contains("s0 sends more or less than it receives"), "{}", call.err);
}

#[test]
fn wrong_calls() {
    let refused = |args: &[&str], exit, code: &str| {
        roundelay(&[&["synthesize"], args].concat()).refused(exit, code);
    };
    refused(&["AllToAll", "--topology", CUT], 2, "E0211");
    refused(&["AllGather", "--topology", CUT, "-n", "9"], 2, "E0604");
    refused(&["Broadcast", "--topology", CUT, "--root", "8"], 2, "E0204");
    refused(&["AllGather", "--topology", CUT, "--trees", "0"], 2, "E0501");
    let island = TempFile::new("island.links", b"ranks 3\n0 -- 1 25GB/s\n1 -> 2 25GB/s\n");
    refused(&["AllGather", "--topology", island.path()], 2, "E0603");
    let line = TempFile::new("line.links", b"ranks 2\n0 -- 1 fast\n");
    refused(&["AllGather", "--topology", line.path()], 2, "E0601");
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
    let none = ["synthesize", "AllGather", "--topology", dgx1, "--exact", "3,2,4"];
    let call = roundelay(&none).refused(2, "E0211");
    assert!(
        call.err.contains("there is no AllGather of 3 pieces, 2 steps and 4 rounds"),
        "{}",
        call.err
    );
    roundelay(&["synthesize", "AllGather", "--topology", CUT, "--exact", "1,2"])
        .refused(2, "E0501");
}
