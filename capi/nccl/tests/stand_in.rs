//! Calls through the library to a stand-in of NCCL: what it sees, what its users get, and the report.

use std::path::PathBuf;

use tempfile::TempDir;

use crate::made::{Said, compile_library, folder, library, program, run, source};

/// Returns a folder with the stand-in.
pub(crate) fn stand_in(flags: &[&str]) -> (TempDir, PathBuf) {
    let folder = folder();
    let flags = [&["-Wno-unused-function"], flags].concat();
    let real = compile_library(&source("programs/stand_in.c"), &folder.path().join("real"), &flags);
    (folder, real)
}

/// Runs a part of the program of groups.
fn group(what: &str, flags: &[&str]) -> Said {
    let (folder, real) = stand_in(flags);
    let program = program("group", folder.path());
    let library = library();
    let variables = [("ROUNDELAY_NCCL", real.as_os_str()), ("ROUNDELAY_REPORT", "1".as_ref())];
    run(&program, &[library.as_os_str(), real.as_os_str(), what.as_ref()], &variables)
}

/// Returns the codes of the lines.
fn codes(said: &Said) -> Vec<i32> {
    let code = |line: &str| line.rsplit_once(" = ").and_then(|(_, code)| code.parse().ok());
    said.out.lines().filter_map(code).collect()
}

const PASSED: &str = "this version takes no operation";

#[test]
fn a_group_is_passed_on_in_the_order_of_its_calls() {
    let said = group("order", &[]);
    let calls = said.out.lines().last().expect("the calls");
    assert_eq!(
        calls,
        "init 0 of 1 blocking -1 max -1 name -;start;all_reduce 1;start;broadcast 2;end;op made;all_reduce 3;op 5 gone;end;\
         all_reduce 0;start;all_reduce 4;simulate;end;"
    );
    // The last end has no start.
    let codes = codes(&said);
    assert!(codes[..codes.len() - 1].iter().all(|code| *code == 0), "{}", said.out);
    assert_eq!(codes.last(), Some(&5));
    let report = format!(
        "roundelay: ncclAllReduce 4 calls, 0 taken, 4 passed on ({PASSED} 4)\n\
         roundelay: ncclBroadcast 1 calls, 0 taken, 1 passed on ({PASSED} 1)\n\
         roundelay: behind the library is NCCL 2.30.4 of "
    );
    assert!(said.err.starts_with(&report), "{}", said.err);
}

#[test]
fn errors_are_those_of_the_real_library_and_a_missing_function_is_told() {
    let said = group("errors", &[]);
    // All codes reach the program as they are.
    assert_eq!(
        codes(&said),
        [0, 0, 4, 4, 0, 0, 5, 5, 5, 0, 4, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
        "{}",
        said.out
    );
    let lines: Vec<_> = said.out.lines().filter(|line| !line.contains(" = ")).collect();
    assert!(lines[0].contains("type 77"), "{}", lines[0]);
    assert!(
        lines[1].starts_with(
            "Roundelay: ncclAlltoAll came with NCCL 2.28.3 or earlier, and NCCL 2.30.4 of "
        ) && lines[1].ends_with("real/libnccl.so.2 has no such function"),
        "{}",
        lines[1]
    );
    assert!(
        lines[2].starts_with("Roundelay: ncclCommRevoke came with NCCL 2.28.7"),
        "{}",
        lines[2]
    );
    // An error of the real library is the last one then.
    assert_eq!(lines[3], "no communicator");
    assert!(
        said.err.contains("roundelay: ncclAlltoAll 1 calls, 0 taken, 0 passed on, 1 failed\n"),
        "{}",
        said.err
    );
    // The group with the refused call started nothing: the stand-in was told of an error in it.
    assert!(lines[4].ends_with("start;all_reduce 5;refused;end;all_reduce 0;"), "{}", lines[4]);
}

#[test]
fn a_thread_asks_and_aborts_while_another_is_inside() {
    let said = group("states", &[]);
    assert!(
        said.out.contains("state 7\n") && said.out.contains("the thread got 6\n"),
        "{}",
        said.out
    );
    assert_eq!(codes(&said), [0, 0]);
}

/// The rank of the first communicator counts.
#[test]
fn a_rank_that_is_not_the_first_reports_nothing() {
    for (what, rank) in [("second", 1), ("scalable", 1), ("order", 0)] {
        let said = group(what, &[]);
        assert_eq!(said.err.is_empty(), rank > 0, "{what}: {}", said.err);
    }
}

#[test]
fn ranks_of_eight_threads_reduce_through_the_library() {
    let said = group("threads", &[]);
    let right = (0..8).all(|rank| said.out.contains(&format!("rank {rank}: 0\n")));
    assert!(right, "{}", said.out);
}

#[test]
fn a_configuration_of_every_version_is_passed_on_untouched() {
    let said = group("configs", &[]);
    for (version, seen) in [
        (21_400, "max -1 name -"),
        (21_700, "max 7 name -"),
        (21_805, "max 7 name -"),
        (22_601, "max 7 name name"),
        (23_100, "max 7 name name"),
        (23_800, "max 7 name name"),
    ] {
        assert!(said.out.contains(&format!("{version}: 0\n")), "{}", said.out);
        assert!(said.out.contains(&format!("blocking 1 {seen};")), "{seen}: {}", said.out);
    }
    for words in
        ["magic: 4", "size: 4", "does not wait: 7, 0 with state 7", "the last: 0, 0 with state 0"]
    {
        assert!(said.out.contains(words), "{words}: {}", said.out);
    }
}

/// NCCL calls public functions of its own. A call that comes here from inside is neither counted nor part of a group.
#[test]
fn a_call_from_inside_the_real_library_is_its_own() {
    let said = group("again", &[]);
    let calls = said.out.lines().last().expect("the calls");
    assert_eq!(
        calls,
        "init 0 of 1 blocking -1 max -1 name -;bcast;broadcast 9;resume;broadcast 9;state;"
    );
    assert_eq!(codes(&said), [0, 0, 0, 0, 0]);
    assert!(said.err.contains("roundelay: ncclBcast 1 calls"), "{}", said.err);
    assert!(!said.err.contains("ncclBroadcast"), "{}", said.err);
}

#[test]
fn an_old_library_has_its_own_version_and_what_it_lacks_is_refused() {
    let said = group("old", &["-DOLD"]);
    assert_eq!(codes(&said), [0, 5, 0, 5, 5, 0, 0], "{}", said.out);
    assert!(said.out.contains("version 23004\n"), "{}", said.out);
    assert!(
        said.out.contains("Roundelay: ncclCommCount came with NCCL 2.14.0 or earlier"),
        "{}",
        said.out
    );
    assert!(
        said.out.contains("Roundelay: ncclAllReduceConfig came with NCCL 2.32.0 or earlier"),
        "{}",
        said.out
    );
}
