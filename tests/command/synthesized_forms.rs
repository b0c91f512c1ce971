//! Pages of `synthesize` in the forms of other runtimes: what fits is read back and proved, and what does not is refused
//! with its reason.

use std::fmt::Write as _;

use super::call::{TempFile, roundelay};

const CUT: &str = "full_mesh(8) without (0, 1)";
const NDV2: &str = "examples/topologies/ndv2_x2.links";
/// The forms of every page.
const FORMS: [&str; 6] = ["cuda", "steps", "mpi", "goal", "msccl", "mscclpp"];

/// Synthesizes a page, and prints it with two slices in every form that is not refused; `refused` are forms with a part
/// of their error.
fn forms(args: &[&str], nranks: &str, refused: &[(&str, &str)]) {
    let text = roundelay(&[&["synthesize"], args].concat()).ends(0).out;
    let page = TempFile::new("page.coll", text.as_bytes());
    let mut wrong = String::new();
    for form in FORMS {
        let call = roundelay(&["emit", form, page.path(), "-n", nranks, "--set", "slices=2"]);
        let why = refused.iter().find(|(name, _)| *name == form).map_or("", |(_, why)| why);
        let fits = match why {
            "" => call.code == 0 && !call.out.is_empty(),
            why => call.code == 1 && call.err.contains("E0704") && call.err.contains(why),
        };
        if !fits {
            let _ = writeln!(wrong, "{form}: {} {}", call.code, call.err);
            continue;
        }
        let named = match form {
            "msccl" if why.is_empty() => "back.xml",
            "mscclpp" if why.is_empty() => "back.json",
            _ => continue,
        };
        let back = TempFile::new(named, call.out.as_bytes());
        let proved = roundelay(&["check", back.path()]);
        let told = format!("proved Packed{} ({}, {nranks} ranks, Simple)", args[0], args[0]);
        if proved.code != 0 || !proved.out.contains(&told) {
            let _ = writeln!(wrong, "{form}, read back: {} {}", proved.out, proved.err);
        }
    }
    let sizes = ["--count", "1000", "--iterations", "1"];
    let run = roundelay(&[&["run", page.path(), "-n", nranks], &sizes[..]].concat()).ends(0);
    assert!(run.out.contains("\n0 of "), "{args:?}: {}", run.out);
    assert!(wrong.is_empty(), "{args:?}\n{wrong}");
}

#[test]
fn trees_of_an_all_gather() {
    let all = ["AllGather", "--topology", CUT, "--bytes", "64K"];
    forms(&all, "8", &[("msccl", "it needs 84 thread blocks of a rank, and RCCL has 64")]);
    forms(&[&all[..], &["--trees", "2"]].concat(), "8", &[]);
    forms(&["AllGather", "--topology", NDV2, "--bytes", "64K"], "16", &[]);
}

#[test]
fn trees_of_an_all_reduce() {
    let all = ["AllReduce", "--topology", CUT, "--bytes", "64K"];
    forms(&all, "8", &[("msccl", "thread blocks of a rank")]);
    forms(&[&all[..], &["--trees", "1"]].concat(), "8", &[]);
}

/// Many slices are more steps than a block of MSCCL has.
#[test]
fn many_slices_do_not_fit() {
    let args = ["synthesize", "AllGather", "--topology", CUT, "--bytes", "64K", "--trees", "1"];
    let text = roundelay(&args).ends(0).out;
    let page = TempFile::new("page.coll", text.as_bytes());
    let set = ["-n", "8", "--set", "slices=65"];
    let call = roundelay(&[&["emit", "msccl", page.path()], &set[..]].concat());
    let call = call.refused(1, "E0704");
    assert!(
        call.err.contains("it needs 65 steps of a block or more, and RCCL has 64"),
        "{}",
        call.err
    );
}
