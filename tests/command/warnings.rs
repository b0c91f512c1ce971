//! Warnings that are many.

use super::call::with_input;

#[test]
fn many_warnings_are_given_in_time() {
    let lets: Vec<_> = (0..2_000).map(|i| format!("let unused{i} = rank;")).collect();
    let source = format!("algorithm Many() -> AllReduce {{ {} }}", lets.join("\n"));
    let call = with_input(&["emit", "schedule", "-", "--nranks", "1"], source.as_bytes()).ends(0);
    assert_eq!(call.err.matches("warning[W0003]").count(), 2_000);
    assert!(call.took.as_secs() < 60, "{:?}", call.took);
}
