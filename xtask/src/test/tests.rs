//! The lists of the steps: of programs of tests, of the page, and of the files that tests read.

use super::*;
use crate::command::output;

/// Sources of tests whose steps are left out after a change of a page.
fn sources_of_other_tests(root: &Path) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> =
        ["core/tests", "core/export/tests", "tests"].map(|folder| root.join(folder)).into();
    let mut sources = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder of tests").flatten() {
            let path = entry.path();
            let module = format!("{}::", path.file_stem().expect("a name").display());
            if PAGES.contains(&&*module) {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                sources.push(path);
            }
        }
    }
    sources
}

#[test]
fn a_page_is_read_by_tests_of_pages_alone() {
    let root = root();
    let sources = sources_of_other_tests(&root);
    assert!(sources.len() > 100, "{}", sources.len());
    for path in sources {
        let text = std::fs::read_to_string(&path).expect("a source");
        for line in text.lines().filter(|line| line.contains("book/src/")) {
            let known = COSTS.iter().any(|page| line.contains(page));
            assert!(known || !line.contains(".md\""), "{}: {line}", path.display());
        }
    }
}

/// A program that the list lacks would not be run.
#[test]
fn the_list_has_every_program_of_tests() {
    let told = output(&mut cargo(&["metadata", "--no-deps", "--format-version", "1"]));
    let told: serde_json::Value = serde_json::from_str(&told.expect("cargo")).expect("JSON");
    let packages = told["packages"].as_array().expect("packages");
    let targets =
        packages.iter().flat_map(|package| package["targets"].as_array().expect("targets"));
    let programs = targets.filter(|target| target["kind"][0] == "test");
    let mut programs: Vec<&str> = programs.filter_map(|target| target["name"].as_str()).collect();
    programs.sort_unstable();
    assert_eq!(programs, PROGRAMS);
}

#[test]
fn the_page_of_the_steps_has_each_in_order() {
    let page = root().join("book/src/internals/tests.md");
    let page = std::fs::read_to_string(&page).expect("the page");
    let table = page.split("\n## ").next().expect("a first part");
    let rows = table.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    let named: Vec<&str> = rows.filter(|name| *name != "step").collect();
    let steps = STEPS.iter().chain(&SELDOM).map(|step| step.name);
    assert_eq!(named, steps.collect::<Vec<_>>());
}
