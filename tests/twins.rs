//! No two files of the sources are one thing written twice: a twin has the function names of the first. Names that a
//! trait asks for are not counted, nor are those of tests.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use roundelay_tests::{files, root};
use syn::{ImplItem, Item};

/// The folders of sources.
const FOLDERS: [&str; 7] = ["core", "macros", "stdlib", "kernels", "cli", "capi", "xtask"];

/// The most names of functions that two files share without a reason.
const MOST: usize = 6;

/// Pairs of files that share more, with the reason.
const KNOWN: &[(&str, &str, &str)] = &[
    (
        "kernels/src/shared_memory/meet/other_systems.rs",
        "kernels/src/shared_memory/meet/system.rs",
        "the same questions on systems without ranks as processes, which have no answers",
    ),
    (
        "kernels/src/shared_memory/world/mod.rs",
        "stdlib/world/mod.rs",
        "a handle, and the world below it",
    ),
    (
        "kernels/src/cuda/launch.rs",
        "kernels/src/cuda/rank_plan.rs",
        "plans of two roads to GPUs have one interface",
    ),
];

/// The names of a file's functions, but for those of traits and of tests.
fn names(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    add(&mut names, &syn::parse_file(text).expect("Rust").items);
    // Each type has them.
    for name in ["new", "main"] {
        names.remove(name);
    }
    names
}

fn add(names: &mut BTreeSet<String>, items: &[Item]) {
    for item in items {
        match item {
            Item::Fn(function) => _ = names.insert(function.sig.ident.to_string()),
            Item::Impl(block) if block.trait_.is_none() => {
                names.extend(block.items.iter().filter_map(|item| match item {
                    ImplItem::Fn(function) => Some(function.sig.ident.to_string()),
                    _ => None,
                }));
            }
            Item::Mod(module) if module.ident != "tests" => {
                add(names, module.content.as_ref().map_or(&[], |(_, items)| items));
            }
            _ => {}
        }
    }
}

/// Whether a file is a source that was written, and no test.
fn is_source(path: &Path) -> bool {
    let path = path.to_string_lossy();
    let tests = path.contains("/tests/") || path.ends_with("/tests.rs");
    !tests && !path.contains("/target/") && !path.ends_with("grammar.rs")
}

#[test]
fn no_two_files_share_the_names_of_their_functions() {
    let root = root().canonicalize().expect("the root");
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for folder in FOLDERS {
        let paths: Vec<PathBuf> = files(&root.join(folder), "rs");
        for path in paths.iter().filter(|path| is_source(path)) {
            let text = fs::read_to_string(path).expect("a source");
            let name = path.strip_prefix(&root).expect("a file below the root");
            all.insert(name.to_string_lossy().into_owned(), names(&text));
        }
    }
    assert!(all.len() > 500, "{} files", all.len());
    let mut wrong = Vec::new();
    let mut known: BTreeSet<_> = KNOWN.iter().map(|(a, b, _)| (*a, *b)).collect();
    for (at, (a, own)) in all.iter().enumerate() {
        for (b, other) in all.iter().skip(at + 1) {
            let shared: Vec<_> = own.intersection(other).map(String::as_str).collect();
            if shared.len() > MOST && !known.remove(&(&**a, &**b)) {
                wrong.push(format!("{a} and {b} share {}", shared.join(", ")));
            }
        }
    }
    assert!(wrong.is_empty(), "one thing is written twice:\n{}", wrong.join("\n"));
    assert!(known.is_empty(), "no twins any more, so they leave the list: {known:?}");
}

#[test]
fn names_of_traits_and_tests_are_not_counted() {
    let text =
        "fn own() {} impl A { fn new() {} fn inherent() {} } impl T for A { fn of_trait() {} }
        mod inner { fn inside() {} } mod tests { fn test() {} } trait T { fn asked(); }";
    assert_eq!(names(text).into_iter().collect::<Vec<_>>(), ["inherent", "inside", "own"]);
}
