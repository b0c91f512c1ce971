//! Orchestrations as plain Rust: one program has those of the whole library, and runs each on threads. The bits are those
//! of the engine. A usual run has each pair of an algorithm and a rank count, and of an algorithm and a count; the values of
//! parameters turn.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use roundelay::Options;
use roundelay_export::rust::rust;

use super::super::runs::{self, Proofs};
use super::SUM;
use super::cover::rows;
use super::subjects;
use super::values::{Told, Values};

/// The source of the trait.
const LANE: &str = include_str!("../../../core/export/src/rust/lane.rs");
/// Ranks as threads, which implement the trait.
const THREADS: &str = include_str!("orchestration/threads.rs");

/// Compiles a program with these modules, as one text.
fn built(folder: &Path, modules: &str, main: &str) {
    let text = format!("{THREADS}\nmod lane {{\n{LANE}}}\n{modules}\nfn main() {{\n{main}}}\n");
    let source = folder.join("ranks.rs");
    fs::write(&source, text).expect("a source");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let made = Command::new(rustc)
        .args(["--edition", "2024", "-Copt-level=0", "-Cdebuginfo=0", "-Dwarnings", "-Adead_code"])
        .args(["-Aunused_imports", "-o"])
        .args([folder.join("ranks"), source])
        .output()
        .expect("rustc runs");
    let why = String::from_utf8_lossy(&made.stderr);
    assert!(made.status.success(), "{}", why.lines().take(60).collect::<Vec<_>>().join("\n"));
}

/// The name of a file of a case.
fn file(case: usize, rank: usize, kind: &str) -> String {
    format!("case_{case}.{rank}.{kind}")
}

#[test]
fn the_library_runs_as_plain_rust() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let subjects = subjects::all();
    let (mut modules, mut main) = (String::new(), String::new());
    let mut cases = Vec::new();
    let counts = [1, 37, 64];
    let nranks = [1, 2, 3, 4, 5, 8];
    for [at, ranks, count] in rows([subjects.len(), nranks.len(), counts.len()]) {
        let (subject, nranks, count) = (subjects[at], nranks[ranks], counts[count]);
        if !(subject.admits)(nranks) {
            continue;
        }
        let values = Values::all(subject.params, nranks);
        let values = &values[(at * 7 + ranks * 5) % values.len()];
        let told = Told(values);
        let algorithm = (subject.with)(values);
        let mut proofs = Proofs::new(&*algorithm);
        let multiple = proofs.proved(nranks).schedule().multiple;
        let plan = proofs.plan_with(nranks, count * multiple, SUM, Options::new());
        let schedule = proofs.proved(nranks).schedule();
        let text = rust(&algorithm.configured(), schedule, None, Some("crate::lane"));
        let text = text.unwrap_or_else(|why| panic!("{}: {}", subject.name, why[0].title));
        let case = cases.len();
        let (_, inputs) = runs::data(&plan, case as u64);
        let wanted = runs::run(&plan, false, &inputs);
        for (rank, (input, output)) in inputs.iter().zip(&wanted).enumerate() {
            fs::write(folder.join(file(case, rank, "in")), input).expect("an input");
            let unwritten = vec![0xA5; output.len()];
            fs::write(folder.join(file(case, rank, "out")), unwritten).expect("an output");
        }
        let _ = writeln!(modules, "mod case_{case} {{\n{text}}}");
        let sizes = format!("case_{case}::NRANKS, case_{case}::PIECES, case_{case}::SCRATCH");
        let _ = writeln!(
            main,
            "let folder = std::env::args().nth(1).expect(\"a folder\");
            run_case((folder.as_ref(), \"case_{case}\", {}), ({sizes}), case_{case}::run);",
            plan.count()
        );
        cases.push((format!("{} at {nranks}, {count} elements", subject.name), wanted));
        drop(told);
    }
    assert!(cases.len() > 250, "{} cases", cases.len());
    built(folder, &modules, &main);
    let run = Command::new(folder.join("ranks")).arg(folder).output().expect("a program");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    for (case, (told, wanted)) in cases.iter().enumerate() {
        for (rank, wanted) in wanted.iter().enumerate() {
            let got = fs::read(folder.join(file(case, rank, "out"))).expect("an output");
            assert!(got == *wanted, "{told}: rank {rank}");
        }
    }
}
