//! `list`: the parameters of each algorithm, and `--why`, the algorithm to run.

use roundelay::Algorithm as _;
use roundelay::library;
use roundelay::select::library as algorithms;
use serde_json::Value;

use super::call::{TempFile, roundelay};

fn named<'j>(list: &'j Value, name: &str) -> &'j Value {
    let found = list.as_array().expect("a list").iter().find(|a| a["name"] == name);
    found.unwrap_or_else(|| panic!("{name} is not listed"))
}

#[test]
fn every_algorithm_is_listed() {
    let out = roundelay(&["list"]).ends(0).out;
    for algorithm in algorithms() {
        assert!(out.contains(&format!("{}(", algorithm.name())), "{}", algorithm.name());
    }
}

#[test]
fn what_an_algorithm_takes() {
    let json = roundelay(&["list", "--format", "json"]).ends(0).json();
    let listed: usize = json.as_array().expect("a list").len();
    assert_eq!(listed, algorithms().len());
    assert!(library::SOURCES.len() < listed);
    let ring = named(&json, "RingAllReduce");
    assert_eq!(ring["collective"], "AllReduce");
    assert_eq!(ring["admitted"], "1..=33");
    assert_eq!(ring["admits"].as_array().unwrap().len(), 33);
    assert_eq!(ring["file"], "ring.coll");
    let default = serde_json::json!([{ "name": "ring", "type": "Ring", "default": "natural" }]);
    assert_eq!(ring["parameters"], default);
    let shown = &ring["shown"];
    assert_eq!((&shown["steps"], &shown["volume"]), (&14.into(), &1.75.into()));
    assert_eq!((&shown["streams"], &shown["scratch_units"]), (&1.into(), &0.0.into()));
    // Block b starts at another rank for every b, and all ranks copy one result.
    assert_eq!(shown["order"], "depends_on_piece");
    let order = |name: &str| named(&json, name)["shown"]["order"].clone();
    assert_eq!(order("OneShotMeshAllReduce"), "rank_order");
    assert_eq!(order("RecursiveDoublingAllReduce"), "same");
    assert_eq!(order("OrderedAllReduce"), "rank_order");
    assert_eq!(order("BruckAllGather"), "copies");
    let near = serde_json::json!([{ "name": "near_first", "type": "bool", "default": "false" }]);
    assert_eq!(named(&json, "HalvingDoublingAllReduce")["parameters"], near);
    let rings = &named(&json, "MultiRingAllReduce")["parameters"];
    assert_eq!(rings[0]["default"], "natural");
    assert_eq!(rings[1]["default"], "Rings::channels(topology)");
}

/// Constants of a network: ranks that work by themselves, and bytes that are dear.
const NETWORK: &str = "# a network
latency = 5us      # a step
message = 200ns
bandwidth = 10GB/s
reduce = 50GB/s
copy = 100GB/s
";

fn why(args: &[&str]) -> Value {
    let costs = TempFile::new("network.costs", NETWORK.as_bytes());
    let all = [&["list", "--why", "--costs", costs.path(), "--format", "json"], args].concat();
    roundelay(&all).ends(0).json()
}

#[test]
fn small_messages_take_few_steps_and_large_ones_little_volume() {
    let best = |bytes: &str| {
        let json = why(&["--collective", "AllReduce", "--nranks", "8", "--bytes", bytes]);
        json["best"].as_str().expect("a best").to_owned()
    };
    assert_eq!(best("64"), "OneShotAround");
    assert_eq!(best("256K"), "TreesAllReduce");
    let json = why(&["--collective", "AllReduce", "--nranks", "8", "--bytes", "1G"]);
    // Slices are counted one by one, and floats add up with errors.
    let volume = json["ranked"][0]["volume"]["busiest"].as_f64().expect("a volume");
    assert!((volume - 1.75).abs() < 1e-9, "{volume} of {}", json["best"]);
    let large = json["best"].as_str().expect("a best").to_owned();
    // Rings with handshakes move as little as halving and doubling, and lose only by their steps.
    let time = |name: &str| {
        let row = json["ranked"].as_array().unwrap().iter().find(|row| row["algorithm"] == name);
        row.expect("ranked")["seconds"].as_f64().unwrap()
    };
    assert!(time("RingAllReduce") < 1.01 * time("HalvingDoublingAllReduce"));
    assert!(time("OneShotMeshAllReduce") > 3.0 * time(&large));
}

/// The parts of a time add up to it, and follow from the counts where these are all there is: a ring's steps.
#[test]
fn predictions_follow_from_the_numbers_beside_them() {
    let json = why(&["reducescatter", "--nranks", "12", "--bytes", "1536K"]);
    assert_eq!(json["bytes"], 1536 << 10);
    let get = |value: &Value, key: &str| value[key].as_f64().unwrap_or_else(|| panic!("{key}"));
    let constants = &json["constants"];
    let mut last = 0.0;
    let rows = json["ranked"].as_array().unwrap();
    assert!(rows.len() >= 5, "{json}");
    for row in rows {
        let seconds = get(row, "seconds");
        let parts = ["latency", "pieces", "bytes", "reducing", "copying"];
        let sum: f64 = parts.into_iter().map(|part| get(&row["parts"], part)).sum();
        assert!((seconds - sum).abs() < 1e-12, "{row}");
        assert!(seconds >= last - 1e-12, "the order of {row}");
        assert_eq!(row["by"], "simulation", "{row}");
        last = seconds;
    }
    assert_eq!(json["best"], rows[0]["algorithm"]);
    let ring = rows.iter().find(|row| row["algorithm"] == "RingReduceScatter").expect("ranked");
    let near = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-9, "{a}, not {b}: {ring}");
    near(get(&ring["parts"], "latency"), get(ring, "steps") * get(constants, "latency_seconds"));
    let bytes = get(&json, "bytes") / get(constants, "bandwidth");
    near(get(&ring["parts"], "bytes"), get(&ring["volume"], "busiest") * bytes);
}

#[test]
fn the_table_says_what_is_refused_and_why() {
    // Every link counts, and every algorithm is somewhere.
    let mesh = "full_mesh(8, 25GB/s, 2us) without (0, 1)";
    let json = why(&["AllReduce", "--topology", mesh]);
    let names = |key: &str| {
        let rows = json[key].as_array().unwrap().iter();
        rows.map(|row| row["algorithm"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(json["nranks"], 8);
    let ranked = ["MultiRingAllReduce", "TwoShotAround", "MeshAround", "OneShotAround"];
    assert_eq!(names("ranked"), ranked);
    let (mut all, mut library) = (names("refused"), Vec::new());
    all.extend(names("ranked"));
    let reduces =
        algorithms().iter().filter(|a| a.collective() == roundelay::Collective::AllReduce);
    library.extend(reduces.map(|a| a.name().to_owned()));
    all.sort();
    library.sort();
    assert_eq!(all, library);
    for row in json["refused"].as_array().unwrap() {
        let name = row["algorithm"].as_str().unwrap();
        if name.contains("Switch") || name == "CollNetAllReduce" {
            assert_eq!(row["code"], "E0423", "{row}");
            continue;
        }
        assert_eq!(row["code"], "E0313", "{row}");
        assert!(row["reason"].as_str().unwrap().contains("there is no link"), "{row}");
        let ring = row["algorithm"].as_str().unwrap().contains("Ring");
        let helps = if ring { "a ring that uses only links" } else { "of `topology.relays(" };
        assert!(row["help"].as_str().unwrap().contains(helps), "{row}");
    }
    // 14 latencies of 2 us are the topology's.
    assert_eq!(json["constants"]["latency_seconds"], Value::Null);
    assert!((json["ranked"][0]["parts"]["latency"].as_f64().unwrap() - 28e-6).abs() < 1e-12);
}

#[test]
fn a_wrong_file_of_constants_is_named_with_its_line() {
    let wrong = [
        ("latency 5us", ":2: `latency 5us` is no `key = value`"),
        ("latency = 5", ":2: `latency` is a time such as 2us, not `5`"),
        ("latency = 5GB/s", ":2: `latency` is a time"),
        ("delay = 5us", ":2: `delay` is no constant; the constants are latency, message"),
        ("latncy = 5us", "  = help: did you mean `latency`?"),
        ("alpha = 5us", ":2: `alpha` is no constant; the constants are latency, message"),
        ("alpha = 5us", "  = help: did you mean `latency`?"),
        ("beta = 5GB/s", "  = help: did you mean `bandwidth`?"),
        ("gamma = 5GB/s", "  = help: did you mean `reduce`?"),
        ("latency = 5us\nlatency = 5us", ":3: `latency` is given twice"),
        ("latency = 5us\ncores = 0", ":3: `cores` is a number of 1 or more"),
        ("latency = 5us\nbandwidth = 0GB/s", ":3: `bandwidth` is a bandwidth such as"),
        ("", ": `latency` is missing"),
    ];
    for (line, message) in wrong {
        let text = NETWORK.replace("latency = 5us      # a step", line);
        let file = TempFile::new("wrong.costs", text.as_bytes());
        let args = ["list", "AllReduce", "--why", "--costs", file.path()];
        let call = roundelay(&args).refused(2, "E0501");
        assert!(call.err.contains(message), "`{message}` is not in\n{}", call.err);
    }
}

/// The test does not check the quality of the constants, which depends on the machine, but that they exist and are
/// used.
#[test]
fn calibrate_writes_constants_that_list_reads() {
    let file = TempFile::new("own.costs", b"");
    let json =
        roundelay(&["calibrate", "--workers", "2", "--write", file.path(), "--format", "json"])
            .ends(0)
            .json();
    assert!(json["samples"].as_u64().unwrap() > 50 && json["r2"].as_f64().unwrap() <= 1.0);
    let names: Vec<_> =
        json["constants"].as_array().unwrap().iter().map(|c| c["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["latency", "message", "bandwidth", "reduce", "copy", "cores"]);
    assert_eq!(json["build"], if cfg!(debug_assertions) { "dev" } else { "release" });
    let text = std::fs::read_to_string(file.path()).unwrap();
    assert!(text.contains("# build: "), "{text}");
    assert!(text.contains("cores = 2\n") && text.contains("samples: R^2"), "{text}");
    let out = roundelay(&["list", "AllReduce", "--why", "--costs", file.path()]).ends(0).out;
    assert!(out.contains("own.costs\n2 cores do the work of all ranks"), "{out}");
}

/// The algorithms of a source are ranked beside the library's, once each, after their proof.
#[test]
fn own_algorithms_are_ranked_beside_the_library() {
    let own = "book/src/listings/two_directions/two_ways.coll";
    let json = why(&[own, "--nranks", "8", "--bytes", "64M"]);
    let ranked = json["ranked"].as_array().expect("a list");
    let own: Vec<_> = ranked.iter().filter(|row| row["own"] == true).collect();
    assert_eq!(own.len(), 1, "{json}");
    assert_eq!(own[0]["algorithm"], "TwoWays");
    let of = |name: &str| ranked.iter().find(|row| row["algorithm"] == name).expect("ranked");
    // The algorithm equals the library's, which copies its halves on two streams at once.
    let ratio = own[0]["seconds"].as_f64().unwrap()
        / of("TwistedRingAllReduce")["seconds"].as_f64().unwrap();
    assert!((1.0..1.05).contains(&ratio), "{ratio}");

    // An algorithm that is wrong at a rank count is refused with the reason of the proof, and the library is ranked all
    // the same.
    let wrong = "book/src/listings/breaking_it/off_by_one.coll";
    let json = why(&[wrong, "--nranks", "3"]);
    let refused = json["refused"].as_array().expect("a list");
    assert!(refused.iter().any(|row| row["algorithm"] == "FirstRing" && row["code"] == "E0304"));
    assert_eq!(json["ranked"][0]["own"], false);

    // A name of the library stands for its collective.
    let json = why(&["RingAllReduce", "--nranks", "4"]);
    assert_eq!(json["collective"], "AllReduce");
    assert!(json["ranked"].as_array().expect("a list").iter().all(|row| row["own"] == false));
}
