//! `--format json`: values that follow from each other.

use serde_json::Value;

use super::call::roundelay;

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

/// nccl-tests: algbw = bytes / time, busbw = algbw * 2 * (n - 1) / n.
#[test]
fn times_and_bandwidths_of_a_run() {
    let args = ["run", "RingAllReduce", "--nranks", "3", "--count", "100", "--dtype", "bf16"];
    let json = roundelay(&[&args[..], &["--format", "json"]].concat()).ends(0).json();
    let number = |key: &str| json[key].as_f64().unwrap();
    assert!(number("time_us") > 0.0);
    assert!((number("algbw_gbps") - 200.0 / number("time_us") / 1e3).abs() < 1e-9);
    assert!((number("busbw_gbps") - number("algbw_gbps") * 4.0 / 3.0).abs() < 1e-9);
}
