//! A fault that the executor refuses, or would run without a check, is an error at its exact place; a fault that it
//! ignores is a warning.

use serde_json::{Value as Json, json};

use super::{read, says, two_ranks};
use crate::cases;

#[test]
fn what_is_refused_and_what_is_passed_over() {
    let mut long: Json = serde_json::from_str(&two_ranks()).expect("it is JSON");
    let ops = long["gpus"][0]["threadblocks"][0]["ops"].as_array_mut().expect("a list");
    ops.resize(64, json!({"name": "nop"}));
    let texts = [
        ("two", two_ranks()),
        ("64 ops", long.to_string()),
        ("lists", "[".repeat(1 << 20)),
        ("objects", "{\"a\":".repeat(1 << 18)),
        ("open list", format!("[{}", "0,".repeat(1 << 20))),
        ("open name", format!("{{\"name\": \"{}", "x".repeat(1 << 22))),
        ("numbers", format!("[{}]", vec!["1"; 1 << 10].join(","))),
    ];
    cases::check("mscclpp/bad.txt", &texts, |text| says(text.as_bytes()).1);
    assert_eq!(says(b"{\"name\": \"\xff\"}").1, "E0801 1:11 the file is not UTF-8 text");
    let help = read(&two_ranks().replacen("\"nop\"", "\"nopp\"", 1));
    let help = roundelay_core::render::render(&help.errors[0], &help.source, false);
    assert!(help.contains("did you mean `nop`?"), "{help}");
}
