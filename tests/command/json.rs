//! `--format json`: the fields that programs rely on, by name and type.

use serde_json::Value;

use super::call::{TempFile, roundelay};

/// The keys of an object, sorted.
fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<_> =
        value.as_object().expect("an object").keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

fn has_all(value: &Value, wanted: &[&str]) {
    let keys = keys(value);
    for key in wanted {
        assert!(keys.contains(key), "no `{key}` among {keys:?}");
    }
}

#[test]
fn check_of_a_right_program() {
    let json =
        roundelay(&["check", "stdlib/library/ring.coll", "--nranks", "2..=4", "--format", "json"])
            .ends(0)
            .json();
    has_all(&json, &["ok", "file", "algorithms", "diagnostics"]);
    assert_eq!(json["ok"], true);
    assert_eq!(json["diagnostics"], serde_json::json!([]));
    let algorithm = &json["algorithms"][0];
    has_all(algorithm, &["name", "collective", "ok", "seconds", "ops"]);
    assert_eq!(algorithm["nranks"], serde_json::json!([2, 3, 4]));
    assert_eq!(algorithm["proved"], serde_json::json!([2, 3, 4]));
    assert_eq!(algorithm["certificates"].as_array().unwrap().len(), 3);
    assert_eq!(algorithm["name"], "RingAllReduce");
    assert_eq!(algorithm["collective"], "AllReduce");
    assert_eq!(algorithm["ok"], true);
    assert!(algorithm["seconds"].as_f64().unwrap() > 0.0);
    // Each rank: the copy, and 2 * (n - 1) rounds of five ops.
    let ops = |n: u64| n * (1 + 10 * (n - 1));
    assert_eq!(algorithm["ops"].as_u64().unwrap(), ops(2) + ops(3) + ops(4));
}

#[test]
fn check_of_a_wrong_program() {
    let file = "tests/wrong/E0301_deadlock.coll";
    let json = roundelay(&["check", file, "--nranks", "3", "--format", "json"]).ends(1).json();
    assert_eq!(json["ok"], false);
    assert_eq!(json["algorithms"][0]["ok"], false);
    let diagnostic = &json["diagnostics"][0];
    has_all(
        diagnostic,
        &["code", "severity", "title", "file", "line", "column", "nranks", "notes"],
    );
    assert_eq!(diagnostic["code"], "E0301");
    assert_eq!(diagnostic["severity"], "error");
    assert_eq!(diagnostic["file"], file);
    assert_eq!((&diagnostic["line"], &diagnostic["column"]), (&10.into(), &9.into()));
    assert_eq!(diagnostic["nranks"], 3);
    let waits = diagnostic["notes"][0].as_str().unwrap();
    assert!(waits.starts_with("who waits for whom:") && waits.lines().count() == 4, "{waits}");
    let other = &diagnostic["others"][0];
    assert_eq!((&other["line"], &other["column"]), (&11.into(), &9.into()));
    assert!(other["label"].as_str().unwrap().contains("posts it only here"));
}

#[test]
fn check_of_a_text_that_does_not_parse() {
    let file = TempFile::new("syntax.coll", b"algorithm A() -> AllReduce { let = 3; }\n");
    let json = roundelay(&["check", file.path(), "--format", "json"]).ends(1).json();
    assert_eq!(json["ok"], false);
    assert_eq!(json["algorithms"], serde_json::json!([]));
    assert_eq!(json["diagnostics"][0]["code"], "E0003");
    assert_eq!(json["diagnostics"][0]["nranks"], Value::Null);
}

#[test]
fn signals_that_are_needed() {
    let args = ["signals", "RingAllReduce", "--nranks", "3,5", "--format", "json"];
    let json = roundelay(&args).ends(0).json();
    has_all(&json, &["ok", "algorithm", "results", "diagnostics"]);
    assert_eq!((&json["ok"], &json["algorithm"]), (&true.into(), &"RingAllReduce".into()));
    for (result, n) in json["results"].as_array().unwrap().iter().zip([3, 5]) {
        has_all(result, &["nranks", "callers", "signals", "kept", "least", "unchanged", "reasons"]);
        assert_eq!((&result["nranks"], &result["callers"]), (&n.into(), &"each".into()));
        let (all, kept) = (n * 4 * (n - 1), n * (2 * (n - 1) + 1));
        assert_eq!((&result["signals"], &result["kept"]), (&all.into(), &kept.into()));
        assert_eq!((&result["least"], &result["unchanged"]), (&true.into(), &Value::Null));
        let reasons = result["reasons"].as_array().unwrap();
        has_all(&reasons[0], &["line", "signal", "times", "why"]);
        let times: u64 = reasons.iter().map(|r| r["times"].as_u64().unwrap()).sum();
        assert_eq!(times, kept, "every signal that is kept has its reason");
        let done: Vec<_> = reasons.iter().filter(|r| r["signal"] == "TxDataSignal").collect();
        assert_eq!((done.len(), &done[0]["times"]), (1, &n.into()));
    }
    let one = roundelay(&[&args[..], &["--callers", "one"]].concat()).ends(0).json();
    assert_eq!(
        (&one["results"][1]["kept"], &one["results"][1]["callers"]),
        (&40.into(), &"one".into())
    );
    let wrong = ["signals", "tests/wrong/E0301_deadlock.coll", "--nranks", "3", "--format", "json"];
    let json = roundelay(&wrong).ends(1).json();
    assert_eq!((&json["ok"], &json["results"]), (&false.into(), &serde_json::json!([])));
    assert_eq!(json["diagnostics"][0]["code"], "E0301");
}

#[test]
fn run() {
    let json = roundelay(&[
        "run",
        "RingAllReduce",
        "--nranks",
        "3",
        "--count",
        "100",
        "--dtype",
        "bf16",
        "--op",
        "avg",
        "--in-place",
        "--seed",
        "7",
        "--iterations",
        "2",
        "--format",
        "json",
    ])
    .ends(0)
    .json();
    let wanted = [
        "ok",
        "algorithm",
        "nranks",
        "count",
        "dtype",
        "op",
        "wrong",
        "time_us",
        "algbw_gbps",
        "busbw_gbps",
    ];
    has_all(&json, &wanted);
    assert_eq!(json["ok"], true);
    assert_eq!(json["algorithm"], "RingAllReduce");
    assert_eq!(
        (&json["nranks"], &json["count"], &json["wrong"]),
        (&3.into(), &100.into(), &0.into())
    );
    assert_eq!((&json["dtype"], &json["op"]), (&"bf16".into(), &"avg".into()));
    let number = |key: &str| json[key].as_f64().unwrap();
    assert!(number("time_us") > 0.0);
    // nccl-tests: algbw = bytes / time, busbw = algbw * 2 * (n - 1) / n.
    assert!((number("algbw_gbps") - 200.0 / number("time_us") / 1e3).abs() < 1e-9);
    assert!((number("busbw_gbps") - number("algbw_gbps") * 4.0 / 3.0).abs() < 1e-9);
}

#[test]
fn list() {
    let json = roundelay(&["list", "--format", "json"]).ends(0).json();
    let names: Vec<_> =
        json.as_array().unwrap().iter().map(|a| a["name"].as_str().unwrap()).collect();
    for name in ["RingAllReduce", "TwistedRingAllReduce", "HalvingDoublingAllReduce"] {
        assert!(names.contains(&name), "{names:?}");
    }
}
