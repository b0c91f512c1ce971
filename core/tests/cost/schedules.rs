//! The forms against the schedules of the library's algorithms, whose numbers are counted op by op.

use roundelay_core::check::Frontend;
use roundelay_core::check::dependencies::Dependencies;
use roundelay_core::compile_with;
use roundelay_core::cost::{self, Counter, FORMS, Term};
use roundelay_core::program::Configured;
use roundelay_core::schedule::Algorithm as _;
use roundelay_core::syntax::Source;
use roundelay_core::topology::Topology;

use roundelay_library::SOURCES as LIBRARY;

/// Every algorithm of the library, its parameters at their defaults.
fn library() -> Vec<Configured> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../stdlib/library");
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

fn value(term: Term, n: u32) -> f64 {
    let value = term.value(n).expect("small numbers");
    value.num() as f64 / value.den() as f64
}

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
            let counts = Counter::new(&schedule).expect("no deadlock").counts();
            let by_form = form.counts(n).expect("the form holds");
            assert_eq!(counts.steps, by_form.steps, "steps of {name} at {n}");
            for (what, counted, term) in [
                ("messages", counts.messages, by_form.messages),
                ("volume", counts.volume, by_form.volume),
                ("reduced", counts.reduced, by_form.reduced),
                ("copied", counts.copied, by_form.copied),
            ] {
                let (in_a_row, by_form) = (counted.in_a_row, term.in_a_row);
                assert!(near(in_a_row, by_form), "{what} of {name} at {n}: {in_a_row}, {by_form}");
                assert!(counted.total <= term.total + 1e-9, "{what} of {name} at {n} in all");
            }
            met += 1;
        }
    }
    assert!(met > 850, "{met} schedules");
}

/// Where a stream deals with all peers in turn it cannot use their links at once; several rings may be fewer
/// than the form hopes.
#[test]
fn volumes_over_own_links_are_those_of_the_full_mesh() {
    for algorithm in library() {
        let name = algorithm.name();
        for n in 2..=17 {
            let Some(form) = cost::of_algorithm(name, n) else { continue };
            let mesh: Topology = format!("full_mesh({n}, 1GB/s, 3ns)").parse().expect("a mesh");
            let schedule = algorithm.schedule(n).expect("the form holds");
            let links = Counter::new(&schedule).expect("no deadlock").on_links(&mesh);
            let volume = match form.family {
                "multi-ring" => {
                    assert!(links.per_byte * 1e9 >= value(form.volume, n) - 1e-9, "{name} at {n}");
                    continue;
                }
                "mesh, two-shot" | "mesh, one-shot" => value(form.port, n),
                "mesh" if form.messages != Term::Int(1) => value(form.port, n),
                _ => value(form.volume, n),
            };
            let per_byte = links.per_byte * 1e9;
            assert!(near(per_byte, volume), "{name} at {n}: {per_byte}, {volume}");
            let latency = value(form.steps, n) * 3e-9;
            assert!(near(links.latency * 1e9, latency * 1e9), "latency of {name} at {n}");
        }
    }
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
