//! One time for a machine: the commands that predict take one set of constants, and say where it comes from.

use serde_json::Value;

use super::call::{TempFile, roundelay};

const PARTIAL: &str = "tests/topo/azure-ndv4-8a100-vm.xml";

fn json(args: &[&str]) -> Value {
    roundelay(&[args, &["--format", "json"]].concat()).ends(0).json()
}

fn seconds(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no time"))
}

/// Every command has the time of `simulate`, for whole elements of every block.
#[test]
fn a_run_has_one_time() {
    let links = "examples/topologies/a100_x1.links";
    let mut compared = 0;
    for (topology, flags, origin) in [
        ("full_mesh(8, 25GB/s, 2us)", &[][..], "assumed"),
        ("full_mesh(8, 25GB/s, 2us)", &["--costs", "messages"], "given"),
        (
            "crossbar(8)",
            &["--bandwidth", "40GB/s", "--copy", "30GB/s", "--piece", "1us"],
            "assumed",
        ),
        ("crossbar(8, 370.8GB/s, gpus(sm=90))", &[], "published"),
        ("islands(2, 4, 450GB/s, 1us, 50GB/s, 5us)", &["--assume", "gfx942"], "published"),
        (links, &["--assume", "sm=80"], "published"),
        (PARTIAL, &["--assume", "sm=80,nvlinks=12"], "published"),
    ] {
        let on = [&["--topology", topology], flags].concat();
        for bytes in ["64K", "32M"] {
            let on = [&on[..], &["--bytes", bytes]].concat();
            let why = json(&[&["list", "AllReduce", "--why"], &on[..]].concat());
            assert_eq!(why["constants"]["origin"], origin, "{why}");
            let ranked = why["ranked"].as_array().expect("a ranking");
            for row in [&ranked[0], &ranked[ranked.len() / 2], &ranked[ranked.len() - 1]] {
                let name = row["algorithm"].as_str().expect("a name");
                // `list` and `select` count bytes.
                let run = [&["simulate", name, "--dtype", "u8"], &on[..]].concat();
                let found = json(&run);
                assert_eq!(found["constants"], why["constants"], "{name} on {topology}");
                let [one, other] = [&found, row].map(|of| seconds(&of["seconds"]));
                assert!((one / other - 1.0).abs() < 1e-12, "{name} on {topology}: {one}, {other}");
                let curve = json(&[&run[..], &["-n", "4,8"]].concat());
                assert_eq!(curve["constants"], why["constants"], "{name} on {topology}");
                assert_eq!(curve["algorithms"][0]["runs"][1]["seconds"], found["seconds"]);
                compared += 1;
            }
            let select = json(&[&["select", "AllReduce"], &on[..]].concat());
            assert_eq!(select["constants"], why["constants"], "on {topology}");
            assert_eq!(select["ranges"][0]["seconds"][0], ranked[0]["seconds"], "on {topology}");
            let trees = json(&[&["synthesize", "AllGather", "--trees", "1"], &on[..]].concat());
            assert_eq!(trees["constants"], why["constants"], "on {topology}");
            let page =
                TempFile::new("one.coll", trees["page"].as_str().expect("a page").as_bytes());
            let found = json(&[&["simulate", page.path()], &on[..]].concat());
            assert_eq!(found["seconds"], trees["simulated"]["seconds"], "on {topology}");
        }
    }
    assert_eq!(compared, 42);
}

/// A text with the links of a file, and no latencies, has the choice and the times of the file.
#[test]
fn a_text_has_the_times_of_the_file_of_its_machine() {
    let h100 = roundelay(&["topo", "crossbar(8, 370.8GB/s, gpus(sm=90))", "--format", "xml"]);
    let h100 = TempFile::new("h100.xml", h100.ends(0).out.as_bytes());
    for (file, assume, text) in [
        (h100.path(), &[][..], "crossbar(8, 370.8GB/s, gpus(sm=90))"),
        (PARTIAL, &["--assume", "sm=80,nvlinks=12"], "crossbar(8, 240GB/s, gpus(sm=80))"),
    ] {
        for collective in ["AllReduce", "AllGather"] {
            let select = ["select", collective, "--bytes", "1K,64K,4M,256M"];
            let of_file = json(&[&select, &["--topology", file][..], assume].concat());
            let of_text = json(&[&select, &["--topology", text][..]].concat());
            assert_eq!(of_file["constants"], of_text["constants"]);
            let [file, text] =
                [&of_file, &of_text].map(|of| of["ranges"].as_array().expect("rows"));
            assert_eq!(file.len(), 4);
            for (file, text) in file.iter().zip(text) {
                assert_eq!(file["algorithm"], text["algorithm"], "{file}, {text}");
                let [file, text] = [file, text].map(|of| seconds(&of["seconds"][0]));
                assert!((file / text - 1.0).abs() < 0.02, "{file}, {text}");
            }
        }
    }
}

/// Links that are faster than the copies of a processor are told once, with the remedies.
#[test]
fn links_that_are_faster_than_copies_are_told() {
    let fast = ["--topology", "crossbar(8, 450GB/s, 1us)"];
    let commands: [&[&str]; 5] = [
        &["simulate", "RingAllReduce", "--bytes", "1M"],
        &["simulate", "RingAllReduce", "--bytes", "1M", "-n", "4,8"],
        &["list", "AllReduce", "--why"],
        &["select", "AllReduce", "--bytes", "1M"],
        &["synthesize", "AllGather", "--bytes", "1M"],
    ];
    for command in commands {
        let call = roundelay(&[command, &fast].concat()).ends(0);
        assert_eq!(call.err.matches("note: links of ").count(), 1, "{command:?}: {}", call.err);
        for remedy in ["--assume sm=90", "gpus(sm=90)", "--copy"] {
            assert!(call.err.contains(remedy), "{command:?}: {}", call.err);
        }
        assert!(json(&[command, &fast].concat())["constants"]["note"].is_string(), "{command:?}");
        for given in [["--assume", "sm=90"], ["--costs", "messages"], ["--copy", "900GB/s"]] {
            let call = roundelay(&[command, &fast, &given].concat()).ends(0);
            assert!(!call.err.contains("note: links"), "{command:?} {given:?}: {}", call.err);
        }
    }
    let call = roundelay(&["topo", fast[1]]).ends(0);
    assert!(call.out.contains("constants of predictions: assumed, of the host engine"));
    assert_eq!(call.err.matches("note: links of ").count(), 1, "{}", call.err);
}
