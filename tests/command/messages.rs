//! `emit mpi` of sources whose words C would take amiss.

use super::call::{TempFile, roundelay};

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
