//! The forms against the schedules of the library's algorithms, whose numbers are counted op by op.

use roundelay_core::check::Frontend;
use roundelay_core::check::dependencies::Dependencies;
use roundelay_core::compile_with;
use roundelay_core::layout::{Algorithm as _, Configured};
use roundelay_core::syntax::Source;
use roundelay_simulate::cost::{self, Counts, FORMS};

use roundelay_library::SOURCES as LIBRARY;

/// Every algorithm of the library, its parameters at their defaults.
fn library() -> Vec<Configured> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../stdlib/library");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("the library")
        .map(|entry| entry.expect("a readable folder").path())
        .filter(|path| path.extension().is_some_and(|e| e == "coll"))
        .collect();
    files.sort();
    let read = |path: &std::path::PathBuf| {
        let text = std::fs::read_to_string(path).expect("sources are text");
        let source = Source::from_text(path.display().to_string(), &text);
        let program = compile_with(&source, Frontend::File, &Dependencies::library(LIBRARY))
            .expect("the library is right");
        program.algorithms.into_iter().map(|a| Configured::new(a, &source)).collect::<Vec<_>>()
    };
    files.iter().flat_map(read).collect()
}

/// Families in which ranks take part in different consecutive steps, or where a form gives the possible maximum.
const CHAINS: [&str; 9] = [
    "MultiRing",
    "NhrBroadcast",
    "NhrOneShot",
    "NhrScatter",
    "Pairwise",
    "RecursiveHalvingDoubling",
    "RingBroadcast",
    "RingReduce",
    "MeshGather",
];

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}

#[test]
fn forms_are_what_the_schedules_take() {
    let mut met = 0;
    for algorithm in library() {
        let name = algorithm.name();
        // The search for many rings takes its time.
        let most = if name.starts_with("MultiRing") { 13 } else { 33 };
        for n in 2..=most {
            let Some(form) = cost::of_algorithm(name, n) else { continue };
            assert_eq!(form.collective, algorithm.collective(), "{name}");
            let schedule = algorithm.schedule(n).unwrap_or_else(|e| panic!("{name} at {n}: {e:?}"));
            let counts = Counts::from_schedule(&schedule).expect("no deadlock");
            let by_form = form.counts(n).expect("the form holds");
            assert_eq!(counts.steps, by_form.steps, "steps of {name} at {n}");
            for (what, counted, by_form) in [
                ("messages", counts.messages, by_form.messages),
                ("pieces", counts.pieces, by_form.pieces),
                ("volume", counts.volume, by_form.volume),
                ("reduced", counts.reduced, by_form.reduced),
                ("copied", counts.copied, by_form.copied),
            ] {
                let all = (counted.total, by_form.total);
                assert!(all.0 <= all.1 + 1e-9, "{what} of {name} at {n} in all: {all:?}");
                let busiest = (counted.busiest, by_form.busiest);
                assert!(busiest.0 <= busiest.1 + 1e-9, "{what} of {name} at {n}: {busiest:?}");
                // Where not all ranks take part in all consecutive steps, the busiest rank does less.
                let by_all =
                    what != "pieces" && !CHAINS.iter().any(|chain| name.starts_with(chain));
                assert!(
                    !by_all || near(busiest.0, busiest.1),
                    "{what} of {name} at {n}: {busiest:?}"
                );
            }
            met += 1;
        }
    }
    assert!(met > 850, "{met} schedules");
}

/// An algorithm that has a form has one for every rank count that it admits.
#[test]
fn forms_name_algorithms_that_are_there() {
    let library = library();
    for form in FORMS {
        let Some(name) = form.algorithm else { continue };
        let algorithm = library.iter().find(|a| a.name() == name);
        let algorithm = algorithm.unwrap_or_else(|| panic!("there is no {name}"));
        for n in 3..=17 {
            let admitted = algorithm.schedule(n).is_ok();
            assert_eq!(admitted, cost::of_algorithm(name, n).is_some(), "{name} at {n}");
        }
    }
}
