//! `emit mpi` and `emit goal`: their output, and all errors of the call.

use super::call::{TempFile, roundelay};

#[test]
fn a_c_file_says_what_was_proved_and_how_it_was_made() {
    let call = ["emit", "mpi", "RingBroadcast", "--nranks", "3", "--set", "root=2"];
    let out = roundelay(&call).ends(0).out;
    let flat = out.replace("\n *", "");
    assert!(
        flat.contains("Written by `roundelay emit mpi RingBroadcast --set root=2 --nranks 3`."),
        "{out}"
    );
    assert!(
        out.contains("ring_broadcast: RingBroadcast, Broadcast of 3 ranks with root 2"),
        "{out}"
    );
    assert!(out.contains("no deadlock, no data race"), "{out}");
    assert!(out.contains("    ROOT = 2,\n"), "{out}");
    assert!(out.contains("\nint ring_broadcast(const void *in, void *out, int count,"), "{out}");
}

/// Without a flag the output is for as many ranks as other forms.
#[test]
fn there_are_four_ranks_by_default() {
    assert!(roundelay(&["emit", "mpi", "RingAllReduce"]).ends(0).out.contains("    RANKS = 4,\n"));
    let goal = roundelay(&["emit", "goal", "RingAllReduce"]).ends(0).out;
    assert!(goal.contains("\nnum_ranks 4\n"), "{goal}");
    // 64 MiB of floats.
    assert!(goal.contains(", 16777216 elements of 4 bytes."), "{goal}");
}

#[test]
fn sizes_and_rates_are_those_of_other_commands() {
    let goal = |args: &[&str]| {
        let call = [&["emit", "goal", "RingAllReduce", "--nranks", "2"], args].concat();
        roundelay(&call).ends(0).out
    };
    let kib = goal(&["--bytes", "1K"]);
    assert_eq!(kib, goal(&["--count", "256"]));
    assert_eq!(kib, goal(&["--count", "256", "--dtype", "f32"]));
    assert!(kib.contains("send 512b to 1 tag 0"), "{kib}");
    let wide = goal(&["--count", "256", "--dtype", "f64"]);
    assert!(wide.contains("send 1024b to 1 tag 0"), "{wide}");
    let slow = goal(&["--count", "256", "--reduce", "1GB/s", "--copy", "512MB/s"]);
    // 512 bytes are reduced, 1024 are copied.
    assert!(slow.contains(": calc 512\n") && slow.contains(": calc 2000\n"), "{slow}");
    // Empty messages are left out.
    let empty = goal(&["--count", "0"]);
    assert!(!empty.contains("send") && !empty.contains("calc"), "{empty}");
}

#[test]
fn wrong_calls() {
    let refused = |args: &[&str], code: u8, error: &str, word: &str| {
        let call = roundelay(&[&["emit"], args].concat()).refused(i32::from(code), error);
        assert!(call.err.contains(word), "{}", call.err);
    };
    refused(&["mpi", "RingAllReduce", "-n", "2,4"], 2, "E0501", "several rank counts");
    refused(&["goal", "RingAllReduce", "-n", "2..=4"], 2, "E0501", "several rank counts");
    refused(&["mpi", "RingAllReduce", "-n", "0"], 2, "E0409", "--nranks 0");
    refused(&["mpi", "RingAllReduce", "--count", "5"], 2, "E0507", "`roundelay emit goal` ha");
    refused(
        &["cuda", "RingAllReduce", "--reduce", "1GB/s"],
        2,
        "E0507",
        "`roundelay emit goal` ha",
    );
    refused(&["goal", "RingAllReduce", "--count", "5", "--bytes", "5"], 2, "E0507", "--bytes");
    refused(&["goal", "RingAllReduce", "--count", "-5"], 2, "E05", "");
    refused(&["goal", "RingAllReduce", "--reduce", "fast"], 2, "E0501", "bandwidth");
    refused(&["goal", "RingAllReduce", "--count", "1e19"], 1, "E0704", "64 bits");
    refused(&["mpi", "RingAllReduced"], 2, "E0502", "RingAllReduce");
    refused(&["mpi", "HalvingDoublingAllReduce", "-n", "3"], 1, "E0205", "");
    refused(&["mpi", "RingBroadcast", "--set", "root=4"], 1, "E02", "");
}

/// A file computes with 64 bits, for every count.
#[test]
fn what_is_cut_too_finely_is_refused() {
    let text = "algorithm Fine() -> AllReduce {
        copy(local.input, local.output);
        copy(local.input.split(40009)[0].split(40013)[1], local.output.split(40009)[0].split(40013)[1]);
    }";
    let file = TempFile::new("fine.coll", text.as_bytes());
    let call = roundelay(&["emit", "mpi", file.path(), "-n", "1"]).refused(1, "E0704");
    assert!(call.err.contains("pieces"), "{}", call.err);
}

/// The text of a comment ends no comment, and names are valid in C.
#[test]
fn docs_and_names_are_harmless() {
    let text = "
        /// It ends */ here, and begins /* there.
        algorithm Reduce() -> AllReduce {
            require nranks == 2, \"two ranks\";
            scratch int: like output;
            let other = peer(1 - rank);
            copy(local.input, local.output); // a comment ends in a backslash \\
            other.TxAck();
            other.RxAck();
            copy(other.output, local.int);
            other.TxDataSignal();
            other.RxDataSignal();
            reduce(local.int, local.output);
        }";
    let file = TempFile::new("harmless.coll", text.as_bytes());
    let out = roundelay(&["emit", "mpi", file.path(), "-n", "2"]).ends(0).out;
    let comment = out.split("*/").next().unwrap_or_default();
    assert!(comment.contains("It ends * / here, and begins / * there."), "{out}");
    assert!(out.contains("\nint reduce_(const void *in"), "{out}");
    let joined = |line: &str| line.contains("//") && line.ends_with('\\');
    assert!(!out.lines().any(joined), "{out}");
}

/// A rank alone: of few ranks it is cut from the form of all, of many it is made from the rank that stands for all.
#[test]
fn one_rank_of_few_and_of_many() {
    for ranks in ["8", "300", "4096"] {
        let emit = |form: &str, rank: &str| {
            roundelay(&["emit", form, "RingAllReduce", "--nranks", ranks, "--rank", rank])
        };
        let goal = emit("goal", "5").ends(0).out;
        assert!(goal.contains(&format!("num_ranks {ranks}\n")), "{goal}");
        assert_eq!(goal.matches("\nrank ").count(), 1, "{ranks}");
        assert!(goal.contains("send ") && goal.contains("b to 6 tag 0"), "{ranks}");
        let file = emit("mpi", "5").ends(0).out;
        assert!(file.contains("    if (r->rank != 5) {\n        return MPI_ERR_RANK;"), "{file}");
        assert!(file.contains("/* What rank 5 does. */"), "{file}");
        emit("mpi", ranks).refused(2, "E0501");
    }
}
