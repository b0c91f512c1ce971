//! Programs that are right without us are right with us.

use crate::launched::{compiled, row, taken};

const ALL: (&str, &str) = ("ROUNDELAY_MPI_TAKE", "all");

#[test]
fn all_collectives_are_right_to_the_last_bit() {
    for program in compiled("collectives") {
        for (nranks, mode) in [(2, "on"), (3, "verify")] {
            let text = program.taken(nranks, &[ALL, ("ROUNDELAY_MPI", mode)]);
            assert!(text.contains("OK: "), "{}:\n{text}", program.name());
            for what in [
                "Allreduce",
                "Allgather",
                "Reduce_scatter_block",
                "Bcast",
                "Reduce",
                "Scatter",
                "Gather",
                "Alltoall",
                "Barrier",
            ] {
                assert!(taken(row(&text, what)) > 0, "{}: {}", program.name(), row(&text, what));
            }
        }
        // A library that is switched off prints nothing.
        let text = program.taken(2, &[("ROUNDELAY_MPI", "off"), ("ROUNDELAY_REPORT", "0")]);
        assert!(!text.contains("roundelay"), "{text}");
    }
}

#[test]
fn blocks_with_a_count_each_are_those_of_mpi() {
    let of_blocks = ["Allgatherv", "Reduce_scatter", "Gatherv", "Scatterv", "Alltoallv"];
    for program in compiled("blocks") {
        for (nranks, mode) in [(1, "on"), (2, "on"), (3, "verify"), (4, "on")] {
            let text = program.taken(nranks, &[ALL, ("ROUNDELAY_MPI", mode)]);
            assert!(text.contains("OK: "), "{}:\n{text}", program.name());
            for what in of_blocks.iter().filter(|_| nranks > 1) {
                assert!(taken(row(&text, what)) > 0, "{}: {}", program.name(), row(&text, what));
            }
        }
    }
}

/// Where the table decides, all ranks pass on calls whose counts no rank knows.
#[test]
fn blocks_whose_counts_no_rank_knows_are_passed_on() {
    for program in compiled("blocks") {
        let text = program.taken(3, &[]);
        assert!(text.contains("OK: ") && taken(row(&text, "Alltoallv")) == 0, "{text}");
        assert!(row(&text, "Gatherv").contains("no rank knows the counts"), "{text}");
    }
}

#[test]
fn mpi_goes_on_while_a_rank_waits() {
    for program in compiled("progress") {
        let text = program.taken(2, &[ALL]);
        assert!(text.contains("OK: ") && taken(row(&text, "Allreduce")) > 0, "{text}");
    }
}

#[test]
fn threads_call_at_once_on_communicators_of_their_own() {
    for program in compiled("threads") {
        let text = program.taken(2, &[ALL]);
        assert!(text.contains("OK: ") && taken(row(&text, "Allreduce")) > 0, "{text}");
    }
}

#[test]
#[ignore = "it copies gigabytes: it needs 9 GiB of memory and a minute"]
fn a_value_that_no_int_counts_is_right() {
    for program in compiled("long_type") {
        let text = program.taken(2, &[ALL]);
        assert!(text.contains("OK: ") && taken(row(&text, "Bcast")) == 1, "{text}");
    }
}

#[test]
fn an_algorithm_of_the_user_runs_where_it_can() {
    for program in compiled("collectives") {
        let own = ("ROUNDELAY_ALGORITHM", "Allreduce ..1M: HalvingDoublingAllReduce");
        let text = program.taken(2, &[own]);
        let line = row(&text, "Allreduce");
        assert!(taken(line) > 0 && line.contains("by HalvingDoublingAllReduce"), "{line}");
        // The algorithm is for powers of two. All ranks know that, and none waits for another.
        let text = program.taken(3, &[own]);
        let line = row(&text, "Allreduce");
        assert!(
            line.contains("HalvingDoublingAllReduce cannot run it") && text.contains("OK: "),
            "{line}"
        );
    }
}

#[test]
fn a_promised_order_is_kept_in_messages_of_any_length() {
    for program in compiled("order") {
        for nranks in [2, 3, 5] {
            let text = program.taken(nranks, &[("ROUNDELAY_ORDER", "all")]);
            assert!(text.contains("OK: "), "{}:\n{text}", program.name());
            for what in ["Allreduce", "Reduce", "Reduce_scatter_block"] {
                let line = row(&text, what);
                assert!(taken(line) > 0 && line.contains("Ordered"), "{}: {line}", program.name());
            }
        }
        // An algorithm of the user that breaks a promise is refused, for MPI would break the promise, too.
        let own = ("ROUNDELAY_ALGORITHM", "Allreduce ..1G: RingAllReduce");
        let (well, text) = program.launched(3, &[("ROUNDELAY_ORDER", "all"), own]);
        assert!(!well && text.contains("E0317"), "{}:\n{text}", program.name());
        let (_, text) = program.launched(2, &[("ROUNDELAY_ORDER", "alphabetical")]);
        let wrong = "ROUNDELAY_ORDER: `alphabetical` is no promise";
        assert!(text.contains(wrong), "{}:\n{text}", program.name());
    }
}

#[test]
fn ways_are_in_the_report() {
    for program in compiled("contest") {
        let text = program.taken(2, &[ALL]);
        let start = "roundelay: on 2 ranks, ";
        let way = |line: &&str| line.starts_with(start) && line.contains(": tiles of ");
        let call = "AllReduce of 4096 i32, sum";
        let found = text.lines().filter(way).any(|line| line.contains(call));
        assert!(found, "{}:\n{text}", program.name());
        let text = program.taken(2, &[ALL, ("ROUNDELAY_WAYS", "usual")]);
        assert!(text.contains("OK: ") && !text.contains(start), "{}:\n{text}", program.name());
    }
}

#[test]
fn contests_end_alike_on_all_ranks() {
    for program in compiled("contest") {
        for nranks in [2, 4] {
            let text = program.taken(nranks, &[]);
            assert!(text.contains("OK: "), "{}:\n{text}", program.name());
            for what in ["Allreduce", "Bcast"] {
                for shape in ["16 KB to 32 KB", "2 MB to 4 MB"] {
                    let start = format!("roundelay: {what} of {shape}: ");
                    let line = text.lines().find(|line| line.starts_with(&start));
                    let line =
                        line.unwrap_or_else(|| panic!("{}: {start}\n{text}", program.name()));
                    assert!(line.ends_with(": taken") || line.ends_with(": passed on"), "{line}");
                }
                assert!(row(&text, what).contains("a trial of MPI's speed"), "{text}");
            }
            // 55 calls are not enough for a contest.
            assert!(!text.contains("Bcast of 32 B"), "{text}");
            // By the table alone there is none.
            let text = program.taken(nranks, &[("ROUNDELAY_MPI_TAKE", "table")]);
            assert!(text.contains("OK: ") && !text.contains("us by MPI"), "{text}");
        }
    }
}
