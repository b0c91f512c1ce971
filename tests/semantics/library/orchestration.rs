//! Orchestrations as plain Rust: one program has those of the whole library, and runs each on threads. The bits are those
//! of the engine. A usual run has each pair of an algorithm and a rank count, and of an algorithm and a count; the values of
//! parameters turn.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use roundelay::{Algorithm, Options};
use roundelay_core::check::Frontend;
use roundelay_core::layout::Configured;
use roundelay_core::syntax::Source;
use roundelay_export::rust::rust;
use roundelay_tests::compile;

use super::super::runs::{self, Proofs};
use super::SUM;
use super::cover::rows;
use super::subjects;
use super::values::{Told, Values};

/// The source of the trait.
const LANE: &str = include_str!("../../../core/export/src/rust/lane.rs");
/// Ranks as threads, which implement the trait.
const THREADS: &str = include_str!("orchestration/threads.rs");

/// Orchestrations, each with the outputs that the engine has.
struct Cases {
    folder: tempfile::TempDir,
    modules: String,
    main: String,
    told: Vec<(String, Vec<Vec<u8>>)>,
}

impl Cases {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        Self { folder, modules: String::new(), main: String::new(), told: Vec::new() }
    }

    /// Returns the file of a case for a rank.
    fn file(&self, case: usize, rank: usize, kind: &str) -> PathBuf {
        self.folder.path().join(format!("case_{case}.{rank}.{kind}"))
    }

    fn add(&mut self, algorithm: &dyn Algorithm, nranks: u32, count: u64) {
        let mut proofs = Proofs::new(algorithm);
        let count = count * proofs.proved(nranks).schedule().multiple;
        let plan = proofs.plan_with(nranks, count, SUM, Options::new());
        let schedule = proofs.proved(nranks).schedule();
        let text = rust(&algorithm.configured(), schedule, None, Some("crate::lane"));
        let text = text.unwrap_or_else(|why| panic!("{}: {}", algorithm.name(), why[0].title));
        let case = self.told.len();
        let (_, inputs) = runs::data(&plan, case as u64);
        let wanted = runs::run(&plan, false, &inputs);
        for (rank, (input, output)) in inputs.iter().zip(&wanted).enumerate() {
            fs::write(self.file(case, rank, "in"), input).expect("an input");
            let unwritten = vec![0xA5; output.len()];
            fs::write(self.file(case, rank, "out"), unwritten).expect("an output");
        }
        let _ = writeln!(self.modules, "mod case_{case} {{\n{text}}}");
        let sizes = format!("case_{case}::NRANKS, case_{case}::PIECES, case_{case}::SCRATCH");
        let _ = writeln!(
            self.main,
            "run_case((&folder, \"case_{case}\", {count}), ({sizes}), case_{case}::run);"
        );
        self.told.push((format!("{} at {nranks}, {count} elements", algorithm.name()), wanted));
    }

    /// Compiles all cases as one program, runs it, and compares every output.
    fn run(&self) {
        let Self { modules, main, told, .. } = self;
        let folder = self.folder.path();
        let text = format!(
            "{THREADS}\nmod lane {{\n{LANE}}}\n{modules}\nfn main() {{\nlet folder = \
            std::path::PathBuf::from(std::env::args().nth(1).expect(\"a folder\"));\n{main}}}\n"
        );
        let (source, program) = (folder.join("ranks.rs"), folder.join("ranks"));
        fs::write(&source, text).expect("a source");
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let made = Command::new(rustc)
            .args(["--edition", "2024", "-Copt-level=0", "-Dwarnings", "-Adead_code", "-o"])
            .args([&program, &source])
            .output()
            .expect("rustc runs");
        let why = String::from_utf8_lossy(&made.stderr);
        assert!(made.status.success(), "{}", why.lines().take(60).collect::<Vec<_>>().join("\n"));
        let run = Command::new(program).arg(folder).output().expect("a program");
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        for (case, (told, wanted)) in told.iter().enumerate() {
            for (rank, wanted) in wanted.iter().enumerate() {
                let got = fs::read(self.file(case, rank, "out")).expect("an output");
                assert!(got == *wanted, "{told}: rank {rank}");
            }
        }
    }
}

#[test]
fn the_library_runs_as_plain_rust() {
    let subjects = subjects::all();
    let (counts, nranks) = ([1, 37, 64], [1, 2, 3, 4, 5, 8]);
    let mut cases = Cases::new();
    for [at, ranks, count] in rows([subjects.len(), nranks.len(), counts.len()]) {
        let (subject, nranks) = (subjects[at], nranks[ranks]);
        if !(subject.admits)(nranks) {
            continue;
        }
        let values = Values::all(subject.params, nranks);
        let values = &values[(at * 7 + ranks * 5) % values.len()];
        let _told = Told(values);
        cases.add(&*(subject.with)(values), nranks, counts[count]);
    }
    assert!(cases.told.len() > 250, "{} cases", cases.told.len());
    cases.run();
}

/// Names that Rust keeps for itself, numbers that are truth values, remainders of negative numbers, and choices of
/// literals.
const HOSTILE: &str = include_str!("../../data/kept_names.coll");

/// Pages that the library does not lead to; those that a text refuses have no proof at that rank count.
#[test]
fn the_corners_of_the_language_run_as_plain_rust() {
    let mut cases = Cases::new();
    for text in [HOSTILE, include_str!("../../cuda/walks.coll")] {
        let source = Source::from_text("corners.coll", text);
        let program = compile(&source, Frontend::File).expect("they are right");
        for algorithm in program.algorithms {
            // The cuts of `Fine` need too many pieces.
            if !algorithm.declaration.public || algorithm.name == "Fine" {
                continue;
            }
            let algorithm = Configured::new(algorithm, &source);
            for nranks in [3, 4, 8] {
                match roundelay_core::prove(&algorithm, nranks) {
                    Ok(_) => cases.add(&algorithm, nranks, 37),
                    Err(findings) => {
                        assert!(findings.iter().all(|found| found.code.refuses()), "{findings:?}");
                    }
                }
            }
        }
    }
    assert!(cases.told.len() > 25, "{} cases", cases.told.len());
    cases.run();
}
