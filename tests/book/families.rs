//! The library's families as tables: the facts that `roundelay list` reads from their schedules, as Markdown.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use roundelay_tests::root;
use serde_json::Value;

use crate::book::console;

/// File stem and table, for each file of the library.
pub(crate) fn tables() -> BTreeMap<String, String> {
    let printed = console::transcript("$ roundelay list --format json", &root());
    let (_, json) = printed.split_once('\n').expect("a command and what it prints");
    let listed: Vec<Value> = serde_json::from_str(json).expect("JSON");
    let mut tables: BTreeMap<String, String> = BTreeMap::new();
    for algorithm in &listed {
        let text = |key: &str| algorithm[key].as_str().expect("text").to_owned();
        let file = text("file");
        let table = tables.entry(file.trim_end_matches(".coll").to_owned()).or_insert_with(|| {
            "| algorithm | collective | ranks | steps | volume | scratch |\n|---|---|---|---|---|---|\n".to_owned()
        });
        let (name, collective) = (text("name"), text("collective"));
        let shown = &algorithm["shown"];
        let number = |key: &str| shown[key].as_f64().expect("a number");
        let rounded =
            |x: f64| format!("{x:.3}").trim_end_matches('0').trim_end_matches('.').to_owned();
        writeln!(
            table,
            "| `{name}` | {collective} | {} | {} | {} | {} |",
            if text("admitted") == "1..=33" { "any".to_owned() } else { text("admitted") },
            number("steps"),
            rounded(number("volume")),
            rounded(number("scratch_units")),
        )
        .expect("a string grows");
    }
    tables
}
