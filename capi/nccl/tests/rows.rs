//! Every function without a GPU: the same answers through the library as from the real NCCL, and what the table of
//! codes says.

use std::path::PathBuf;

use roundelay_nccl::Name;

use crate::made::{folder, library, program, real, run};

/// What the real NCCL answers, by the beginnings of rows.
const KNOWN: [(&str, &str); 22] = [
    ("version()", "23203"),
    ("unique_ids_differ()", "1"),
    ("CODE(GetVersion, null)", "4"),
    ("0: TEXT(GetErrorString, code)", "no error"),
    ("9: TEXT(GetErrorString, code)", "unknown result code"),
    ("CODE(CommInitRank, &comm, 1, no_id, 0)", "1"),
    ("CODE(CommFinalize, null)", "0"),
    ("CODE(CommDestroy, null)", "0"),
    ("CODE(CommAbort, null)", "0"),
    ("CODE(CommRevoke, null, 0)", "0"),
    ("CODE(CommCount, null, &word)", "4"),
    ("CODE(CommUserRank, null, &word)", "4"),
    ("CODE(CommGetAsyncError, null, &word)", "4"),
    ("CODE(AllReduce, null, null, (size_t)1", "4"),
    ("CODE(Send, null, (size_t)1", "4"),
    ("CODE(GroupStart)", "0"),
    ("CODE(GroupEnd)", "5"),
    ("grouped(1, 0, 1)", "0"),
    ("grouped(3, 0, 3)", "0"),
    ("grouped(1, 0, 2)", "5"),
    ("grouped(1, 1, 1)", "44"),
    ("grouped(2, 1, 2)", "404"),
];

/// Returns the answer of the row that begins so.
fn answer<'t>(text: &'t str, row: &str) -> &'t str {
    let line = text.lines().find(|line| line.starts_with(row));
    let line = line.unwrap_or_else(|| panic!("no row {row} in\n{text}"));
    line.rsplit(" = ").next().unwrap_or_default()
}

#[test]
fn every_function_answers_as_the_real_nccl_does() {
    let folder = folder();
    let rows = program("rows", folder.path());
    let (library, real) = (library(), real());
    let theirs = run::<&str>(&rows, &[real.as_os_str()], &[]).out;
    let ours = run(&rows, &[library.as_os_str()], &[("ROUNDELAY_NCCL", &real)]).out;
    for (theirs, ours) in theirs.lines().zip(ours.lines()) {
        assert_eq!(theirs, ours);
    }
    assert_eq!(theirs.lines().count(), ours.lines().count(), "{ours}");
    for (row, known) in KNOWN {
        assert_eq!(answer(&ours, row), known, "{row}");
    }
    for name in Name::ALL.iter().filter(|name| **name != Name::ResetDebugInitInternal) {
        let name = name.to_string();
        let short = name.trim_start_matches("nccl");
        let row = ours.lines().any(|line| {
            let called = |end: &str| line.contains(&format!("({short}{end}"));
            called(",") || called(")")
        });
        assert!(row || ["GetUniqueId"].contains(&short), "no row of {name}");
    }
}

#[test]
fn without_a_real_nccl_every_function_is_refused_with_a_text() {
    let folder = folder();
    let rows = program("rows", folder.path());
    let nowhere = PathBuf::from("/nowhere/libnccl.so.2");
    let said = run(&rows, &[library().as_os_str()], &[("ROUNDELAY_NCCL", &nowhere)]);
    for line in said.out.lines() {
        let (call, answer) = line.split_once(" = ").unwrap_or_else(|| panic!("{line}"));
        let known: &[&str] = match call {
            "version()" => &["-1"],
            "unique_ids_differ()" | "CODE(LLA2ACalcSlots, 16, 8)" => &["0", "-1"],
            _ if call.contains("TEXT(GetLastError, null), \"Roundelay\"") => &["1"],
            _ if call.contains("NONE(") || call.starts_with("TEAM(") => &["0"],
            _ if call.starts_with("CODE(TeamRank") => &["-1"],
            _ if call.contains("TEXT(") => continue,
            _ => {
                assert!(answer.chars().all(|code| code == '5'), "{line}");
                continue;
            }
        };
        assert!(known.contains(&answer), "{line}");
    }
    // Processes that run one after another say it each; those of a launcher once.
    let lines = said.err.lines().filter(|line| line.contains("does not exist")).count();
    assert!(lines >= 1, "{}", said.err);
    let why = "every call of NCCL answers 5: there is no NCCL behind this library: ROUNDELAY_NCCL is set, and /nowhere/libnccl.so.2 does not exist";
    assert!(said.err.contains(why), "{}", said.err);
}
