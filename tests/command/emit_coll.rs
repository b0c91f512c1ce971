//! `emit coll`: an algorithm's source is a file of its own.

use roundelay::library;
use roundelay_core::check::Frontend;
use roundelay_core::syntax::Source;
use roundelay_tests::compile;

use super::call::{roundelay, with_input};

#[test]
fn every_algorithm_of_the_library_is_a_file_that_check_accepts() {
    let mut met = 0;
    for (file, text) in library::SOURCES {
        let program =
            compile(&Source::from_text(*file, text), Frontend::File).expect("it is right");
        for algorithm in program.algorithms {
            let name = algorithm.name.as_str();
            let out = roundelay(&["emit", "coll", name]).ends(0).out;
            // The text that the language server, `fmt` and readers see has the docs and the comments, and no others.
            for doc in &algorithm.declaration.docs {
                assert!(out.contains(&format!("///{doc}")), "{name} lacks `{doc}`:\n{out}");
            }
            assert_eq!(out.matches("algorithm ").count(), 1 + docs_that_say_algorithm(&out));
            let own = Source::from_text("own.coll", &out);
            let again = compile(&own, Frontend::File).unwrap_or_else(|e| panic!("{name}: {e:?}"));
            assert_eq!(again.algorithms.len(), 1, "{name}");
            assert_eq!(
                again.algorithms[0].declaration.source, algorithm.declaration.source,
                "{name}"
            );
            assert_eq!(with_input(&["fmt", "-"], out.as_bytes()).ends(0).out, out, "{name}");
            with_input(&["check", "-", "--nranks", "4"], out.as_bytes()).ends(0);
            met += 1;
        }
    }
    assert!(met >= 36, "{met} algorithms");
}

fn docs_that_say_algorithm(text: &str) -> usize {
    let comments = text.lines().filter(|line| line.trim_start().starts_with("//"));
    comments.map(|line| line.matches("algorithm ").count()).sum()
}
