//! `roundelay select`: which algorithm for which sizes, and what it writes.

use roundelay::Collective;

use super::call::{TempFile, roundelay, with_input};

const MACHINE: [&str; 4] =
    ["--topology", "tests/topo/aws-p4d-8a100-vm.xml", "--assume", "sm=80,nvlinks=12"];

fn json(args: &[&str]) -> serde_json::Value {
    roundelay(&[&["select"], args, &["--format", "json"]].concat()).ends(0).json()
}

/// Each row is the result of `list --why` at both its ends, and another algorithm is the best beyond.
#[test]
fn ranges_end_where_another_algorithm_is_faster() {
    let topology = ["--topology", "full_mesh(8, 25GB/s, 2us)"];
    let found = json(&[&["AllReduce"], &topology[..]].concat());
    let ranges = found["ranges"].as_array().unwrap();
    assert!(ranges.len() > 1, "{found:#}");
    let mut expected = 1024;
    for range in ranges {
        let ends = ["from", "to"].map(|key| range[key].as_u64().unwrap());
        assert_eq!(ends[0], expected, "{found:#}");
        expected = ends[1] + 1;
        let bytes = ends[0].to_string();
        let list = ["list", "AllReduce", "--why", "--bytes", &bytes, "--format", "json"];
        let list = roundelay(&[&list[..], &topology].concat()).ends(0).json();
        assert_eq!(list["best"], range["algorithm"], "at {bytes}");
        assert_eq!(list["ranked"][0]["seconds"], range["seconds"][0], "at {bytes}");
        let share = range["share"].as_f64().unwrap();
        assert!(share > 0.0 && share <= 1.0, "{range:#}");
    }
    assert_eq!(expected, (1 << 30) + 1, "the last range ends at 1 GiB");
}

/// Time and bound are those of one size, so no algorithm is faster than the bound: at sizes that are no whole number of
/// elements or blocks, and at the ends of ranges, which are found by search.
#[test]
fn no_share_of_a_bound_is_more_than_all_of_it() {
    let topologies = [
        "full_mesh(3, 25GB/s)",
        "full_mesh(8, 25GB/s, 2us) without (0, 1)",
        "ring(6, 10GB/s)",
        "islands(2, 4, 200GB/s, 1us, 25GB/s, 5us)",
        "groups([5, 3], 25GB/s, 2us, 5GB/s, 7us)",
        "tests/topo/aws-p4d-8a100-vm.xml",
    ];
    // Links without latency and engines that cost nothing leave the bandwidth alone.
    let free = "latency = 0us\nmessage = 0us\nbandwidth = 25GB/s\nreduce = 1000000GB/s\ncopy = 1000000GB/s\n";
    let free = TempFile::new("free.costs", free.as_bytes());
    let costs = [&[][..], &["--costs", free.path()]];
    let (mut shares, mut reached) = (0, 0);
    let mut hold = |report: &serde_json::Value, of: &str| {
        for range in report["ranges"].as_array().unwrap() {
            let Some(share) = range["share"].as_f64() else { continue };
            assert!(share > 0.0 && share <= 1.0 + 1e-9, "{of}: {range:#}");
            shares += 1;
            reached += usize::from(share > 0.999);
        }
    };
    for (at, topology) in topologies.into_iter().enumerate() {
        let machine = ["--topology", topology];
        let machine = if topology.starts_with("tests") { &MACHINE[..] } else { &machine };
        for collective in Collective::ALL.map(Collective::name) {
            let sizes = ["--bytes", "97,65537,1073741827", "--format", "json"];
            let flags = [machine, costs[at % 2], &sizes].concat();
            let call = roundelay(&[&["select", collective], &flags[..]].concat());
            // Every algorithm may need links that are not there.
            if call.code != 2 || !call.err.contains("no algorithm of the library takes") {
                hold(&call.ends(0).json(), topology);
            }
        }
        let ranges = [&["AllReduce"], machine, costs[1]].concat();
        hold(&json(&ranges), topology);
    }
    assert!(shares > 100 && reached > 10, "{reached} of {shares}");
}

#[test]
fn a_file_that_was_written_has_no_gap() {
    let write = ["select", "AllReduce", "--topology", "full_mesh(8, 25GB/s, 2us)", "--write", "-"];
    let file = roundelay(&write).ends(0).out;
    assert!(file.contains("AllReduce nranks 8 bytes 0..="), "{file}");
    let checked = with_input(&["select", "-"], file.as_bytes()).ends(0).out;
    assert!(checked.contains("no gap and no overlap"), "{checked}");
}
