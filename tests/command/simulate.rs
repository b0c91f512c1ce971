//! `simulate`: times that can be computed by hand, and its refusals.

use super::call::{Call, TempFile, roundelay};

const CUT: &str = "full_mesh(8, 25GB/s, 2us) without (0, 1)";

fn simulate(args: &[&str]) -> Call {
    roundelay(&[&["simulate"], args].concat())
}

/// Runs by the latencies and bandwidths of the links alone, which are computed by hand.
const MESSAGES: [&str; 2] = ["--costs", "messages"];

fn json(args: &[&str]) -> serde_json::Value {
    simulate(&[args, &MESSAGES, &["--format", "json"]].concat()).ends(0).json()
}

fn near(value: &serde_json::Value, wanted: f64) {
    let value = value.as_f64().expect("a number");
    assert!((value / wanted - 1.0).abs() < 1e-3, "{value}, not {wanted}");
}

#[test]
fn a_ring_takes_what_its_form_says() {
    let json = json(&["RingAllReduce", "--topology", "crossbar(8, 25GB/s, 1us)", "--bytes", "64M"]);
    near(&json["seconds"], 4725.629e-6);
    near(&json["closed_form_seconds"], 4725.629e-6);
    near(&json["bound"]["share"], 0.99407);
    near(&json["busbw"], json["algbw"].as_f64().unwrap() * 1.75);
    assert_eq!(json["bytes"], 64 << 20);
    assert_eq!(json["count"], 16 << 20);
    assert_eq!(json["messages"], 14 * 8);
    assert_eq!(json["links"].as_array().unwrap().len(), 16);
    near(&json["links"][0]["bytes"], 1.75 * 64.0 * 1024.0 * 1024.0);
    near(&json["ports"][7]["receiving"], 0.99407);
    let critical = json["critical"].as_array().unwrap();
    let transfers: Vec<_> = critical.iter().filter(|step| step["task"] == "transfer").collect();
    assert_eq!(transfers.len(), 14);
    assert_eq!((&transfers[0]["line"], &transfers[13]["line"]), (&27.into(), &35.into()));
    near(&transfers[0]["transfer"]["latency"], 2e-6);
}

#[test]
fn people_are_told_where_the_time_goes() {
    let args = ["TwistedRingAllReduce", "--topology", CUT, "--set", "ring=around(topology)"];
    let args = [&args[..], &MESSAGES].concat();
    let call = simulate(&[&args[..], &["--bytes", "1G"]].concat()).ends(0);
    assert!(call.out.contains("29.6 % of the bandwidth bound"), "{}", call.out);
    assert!(call.out.contains("links: 16 of 54 used"), "{}", call.out);
    assert!(call.out.contains("copy(from.block[b], local.block[b]);"), "{}", call.out);
    assert!(!call.out.contains("closed form"), "{}", call.out);
    let steps = simulate(&[&args[..], &["--path"]].concat()).ends(0).out;
    assert!(steps.contains("waits for TxAck of rank"), "{steps}");
    assert!(steps.contains("pulls from 0: 2 us of latency"), "{steps}");
}

/// The direct exchange: two steps of seven messages where streams go by data, fourteen messages one after another in
/// order; and NHR's slices are pieces of a step's message.
#[test]
fn streams_and_pieces_are_flags() {
    let of = |more: &[&str]| {
        let mesh = ["--topology", "full_mesh(8, 25GB/s, 2us)", "--bytes", "0"];
        let json = json(&[more, &mesh].concat());
        let time = json["seconds"].as_f64().expect("a time");
        (time, json["steps"].clone(), json["messages"].clone(), json["pieces"].clone())
    };
    let exchange = |time: f64| (time, 2.into(), 112.into(), 112.into());
    assert_eq!(of(&["MeshAllReduce"]), exchange(4e-6));
    let (time, ..) = of(&["MeshAllReduce", "--streams", "in-order"]);
    assert!((time - 28e-6).abs() < 1e-12, "{time}");
    let nhr = |time: f64| (time, 6.into(), 48.into(), 112.into());
    assert_eq!(of(&["NhrAllReduce"]), nhr(12e-6));
    let (time, ..) = of(&["NhrAllReduce", "--piece", "1us"]);
    assert!((time - 20e-6).abs() < 1e-12, "4, 2 and 1 slices, twice: {time}");
    let out = simulate(&["NhrAllReduce", "--topology", "full_mesh(8, 25GB/s, 2us)"]).ends(0).out;
    assert!(out.contains("6 steps, 48 messages of 112 pieces; streams go by data"), "{out}");
}

/// Costs that can be computed by hand: 14 steps of a ring, or a half to the other rank.
#[test]
fn costs_are_flags() {
    let args = [
        "RingAllReduce",
        "--topology",
        "full_mesh(8)",
        "--bandwidth",
        "25GB/s",
        "--latency",
        "2us",
        "--bytes",
        "32",
    ];
    let seconds = |more: &[&str]| json(&[&args[..], more].concat())["seconds"].clone();
    near(&seconds(&[]), 28e-6);
    near(&seconds(&["--straggler", "3=3"]), 3.0 * 28e-6);
    assert!(seconds(&["--signals", "messages"]).as_f64().unwrap() > 80e-6);
    let args = ["RingAllReduce", "--topology", "full_mesh(8, 1GB/s)", "--bytes", "8MB"];
    let seconds = |more: &[&str]| json(&[&args[..], more].concat())["seconds"].clone();
    near(&seconds(&[]), 14e-3);
    near(&seconds(&["--degrade", "3-4=0.5"]), 28e-3);
    near(&seconds(&["--reduce", "1GB/s"]), 21e-3);
    near(&seconds(&["--copy", "8GB/s"]), 15e-3);
    let leaves =
        ["RingAllGather", "--topology", "spine_leaf(2, 1, 2, 10GB/s, 1GB/s)", "--bytes", "16MB"];
    let seconds = |more: &[&str]| json(&[&leaves[..], more].concat())["seconds"].clone();
    near(&seconds(&[]), 4e-3);
    near(&seconds(&["--routing", "d-mod-k"]), 8e-3);
    near(&seconds(&["--degrade", "leaf 0-spine 1=0.25"]), 16e-3);
}

#[test]
fn calls_that_make_no_sense() {
    let mesh = ["RingAllReduce", "--topology", "full_mesh(8, 25GB/s, 2us)"];
    let with = |more: &[&str]| simulate(&[&mesh[..], more].concat());
    simulate(&["RingAllReduce"]).refused(2, "E0501");
    let relative = ["RingAllReduce", "--topology", "full_mesh(8)"];
    simulate(&[&relative[..], &MESSAGES].concat()).refused(2, "--bandwidth");
    simulate(&relative).ends(0);
    with(&["--bandwidth", "1GB/s"]).refused(2, "E0501");
    with(&["--latency", "1us"]).refused(2, "E0501");
    with(&["--reduce", "0GB/s"]).refused(2, "E0501");
    with(&["--piece=-1us"]).refused(2, "E0501");
    with(&["--piece", "1"]).refused(2, "E0501");
    with(&["--streams", "at-once"]).refused(2, "E0501");
    with(&["--straggler", "3"]).refused(2, "E0501");
    with(&["--straggler", "x=2"]).refused(2, "E0501");
    with(&["--straggler", "8=2"]).refused(2, "E0204");
    with(&["--straggler", "1=0.5"]).refused(2, "E0601");
    with(&["--straggler", "1=inf"]).refused(2, "E0501");
    with(&["--degrade", "0=0.5"]).refused(2, "E0501");
    with(&["--degrade", "0-9=0.5"]).refused(2, "E0501");
    with(&["--degrade", "0-0=0.5"]).refused(2, "E0602");
    with(&["--degrade", "0-1=0"]).refused(2, "E0601");
    with(&["--nranks", "9"]).refused(2, "E0604");
    with(&["--nranks", "0"]).refused(2, "E0409");
    with(&["--count", "18446744073709551615"]).refused(1, "E0407");
    with(&["--bytes", "1", "--count", "1"]).ends(2);
    simulate(&["stdlib/library/ring.coll", "--topology", "full_mesh(4, 1GB/s)"])
        .refused(2, "E0503");
}

#[test]
fn programs_that_do_not_end() {
    simulate(&["RingAllReduce", "--topology", CUT]).refused(1, "E0313");
    let mesh = ["--topology", "full_mesh(4, 25GB/s, 2us)"];
    for (file, code) in [
        ("tests/wrong/E0301_deadlock.coll", "E0301"),
        ("tests/wrong/E0302_unmatched_wait.coll", "E0302"),
        ("tests/wrong/E0303_left_over_signal.coll", "E0303"),
    ] {
        simulate(&[&[file], &mesh[..]].concat()).refused(1, code);
        let json = simulate(&[&[file], &mesh[..], &["--format", "json"]].concat()).ends(1).json();
        assert_eq!(json["diagnostics"][0]["code"], code);
        assert!(json["diagnostics"][0]["line"].as_u64().unwrap() > 0);
    }
    let file = TempFile::new("simulated.coll", b"pub algorithm A(");
    simulate(&[&[file.path()], &mesh[..]].concat()).refused(1, "E0007");
}

/// Fewer elements than ranks, no elements, and a single rank.
#[test]
fn next_to_nothing() {
    for count in ["0", "1", "3"] {
        let args = ["RingAllReduce", "--topology", "full_mesh(8, 25GB/s, 2us)", "--count", count];
        near(&json(&args)["seconds"], 28e-6);
    }
    let call = simulate(&["RingAllReduce", "--topology", "full_mesh(1, 25GB/s)"]).ends(0);
    assert!(call.out.contains("0 messages in a row"), "{}", call.out);
}

/// Flags choose the content of a picture; names that do not exist are refused.
#[test]
fn pictures_of_a_part() {
    let mesh =
        ["RingAllReduce", "--topology", "full_mesh(64, 25GB/s, 2us)", MESSAGES[0], MESSAGES[1]];
    let with = |more: &[&str]| simulate(&[&mesh[..], more].concat());
    let (svg, html) = (TempFile::new("run.svg", b""), TempFile::new("run.html", b""));
    let read = |file: &TempFile| std::fs::read_to_string(file.path()).expect("a picture");

    let call = with(&["--bytes", "64MiB", "--svg", svg.path()]).ends(0);
    let picture = read(&svg);
    assert!(
        picture
            .contains(">RingAllReduce, 64 ranks, 64 MiB on full_mesh(64, 25GB/s, 2us); messages")
    );
    assert!(picture.contains("class=\"flow\""), "64 ranks are a matrix");
    assert!(call.err.contains("8064 messages are too many for arrows"), "{}", call.err);

    for flag in [["--ranks", "0..8"], ["--rounds", "1"], ["--width", "900"], ["--view", "arrows"]] {
        with(&flag).refused(2, "E0501");
        with(&flag).refused(2, &format!("{} is for a picture, and none is drawn", flag[0]));
    }
    let part = ["--ranks", "0..8", "--rounds", "1..=4", "--width", "900", "--bytes", "64MB"];
    let call = with(&[&part[..], &["--svg", svg.path(), "--html", html.path()]].concat()).ends(0);
    assert!(!call.err.contains("note:"), "{}", call.err);
    assert!(call.out.contains("of 64 MB on 64 ranks"), "{}", call.out);
    let (picture, page) = (read(&svg), read(&html));
    assert!(
        picture.contains(">RingAllReduce, 64 ranks, 64 MB on full_mesh(64, 25GB/s, 2us); messages")
    );
    assert!(picture.contains(">8 of 64 ranks, rounds 1 to 4 of 126, 28 messages, "));
    assert!(picture.contains(" width=\"900\" "));
    assert!(page.contains("<code>reduce(left.block[b], local.block[b]);</code>"));
    assert!(page.contains(">ring.coll:27<") && page.contains("id=\"fit\""));

    let call = with(&["--view", "arrows", "--svg", svg.path()]).ends(0);
    assert!(!call.err.contains("note:") && !read(&svg).contains("class=\"flow\""), "{}", call.err);

    let drawn = |more: &[&str]| with(&[more, &["--svg", svg.path()]].concat());
    drawn(&["--ranks", "0..65"]).refused(2, "E0501");
    drawn(&["--ranks", "3,64"]).refused(2, "--ranks names rank 64, and the run has 64 ranks");
    drawn(&["--ranks", "8..8"]).refused(2, "E0501");
    drawn(&["--rounds", "0..4"]).refused(2, "E0501");
    drawn(&["--rounds", "120..=127"]).refused(2, "E0501");
    drawn(&["--rounds", "127"]).refused(2, "--rounds names round 127, and the run has 126 rounds");
    drawn(&["--width", "0"]).refused(2, "E0501");
}
