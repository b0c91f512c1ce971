//! The modules of every crate depend on each other in one direction: no folder's modules need each other in a circle.
//!
//! A module needs the paths in its tokens: those that begin with `crate`, `super` or a name that a `use` brings in. So
//! tokens in a macro's arguments count, and modules for tests do not. A child needs its parent and may be needed by it:
//! only siblings are compared.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::slice;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use roundelay_tests::{files, root};

/// The crates whose graph is drawn, by the folder of their sources and the file of their root.
const CRATES: [(&str, &str); 26] = [
    ("core/base/src", "lib.rs"),
    ("core/topology/src", "lib.rs"),
    ("core/machines/src", "lib.rs"),
    ("core/src", "lib.rs"),
    ("core/simulate/src", "lib.rs"),
    ("core/exchange/src", "lib.rs"),
    ("core/export/src", "lib.rs"),
    ("core/pictures/src", "lib.rs"),
    ("core/synthesis/src", "lib.rs"),
    ("macros/src", "lib.rs"),
    ("kernels/src", "lib.rs"),
    ("kernels/arithmetic/src", "lib.rs"),
    ("kernels/ptx/src", "lib.rs"),
    ("kernels/limit/src", "lib.rs"),
    ("kernels/check/src", "lib.rs"),
    ("stdlib", "lib.rs"),
    ("cli/src", "lib.rs"),
    ("cli/runner/src", "lib.rs"),
    ("cli/ide/src", "lib.rs"),
    ("capi/src", "lib.rs"),
    ("capi/command/src", "lib.rs"),
    ("capi/interposer/src", "lib.rs"),
    ("capi/mpi/src", "lib.rs"),
    ("capi/nccl/src", "lib.rs"),
    ("capi/tuner/src", "lib.rs"),
    ("xtask/src", "main.rs"),
];

/// The path of a module from the root of its crate.
type Name = Vec<String>;

/// The facts of a module's tokens.
#[derive(Default)]
struct Module {
    /// The paths in it, from the root of the crate.
    paths: BTreeSet<Name>,
    /// The paths that its `use`s give names to.
    names: BTreeMap<String, Name>,
}

/// A crate's modules.
type Modules = BTreeMap<Name, Module>;

#[test]
fn no_modules_depend_on_each_other_in_a_circle() {
    let mut circles = Vec::new();
    for (folder, file) in CRATES {
        let mut modules = Modules::new();
        let path = root().join(folder).join(file);
        assert!(path.is_file(), "{} is the root of a crate", path.display());
        read(&path, &root().join(folder), Name::new(), &mut modules);
        // A root that only calls another crate would hide all others.
        let tests = |path: &&PathBuf| path.with_extension("").to_string_lossy().ends_with("tests");
        let files = files(&root().join(folder), "rs");
        let files = files.iter().filter(|path| !tests(path)).count();
        assert!(2 * modules.len() > files, "{folder}: {} modules of {files} files", modules.len());
        for (parent, edges) in siblings(&modules) {
            let place = [&[folder.to_owned()][..], &parent].concat().join("/");
            circles
                .extend(circle(&edges).map(|circle| format!("{place}: {}", told(&circle, &edges))));
        }
    }
    assert!(circles.is_empty(), "modules depend on each other:\n{}", circles.join("\n"));
}

/// Reads the module of a file, and the modules that it declares; their files lie in `folder`.
fn read(file: &Path, folder: &Path, name: Name, modules: &mut Modules) {
    let text = fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let tokens = text.parse().expect("a module's file is Rust");
    add(tokens, folder, name, modules);
}

/// Adds a module by its tokens, and the modules that it declares.
fn add(tokens: TokenStream, folder: &Path, name: Name, modules: &mut Modules) {
    let mut own = Module::default();
    let mut declared = Vec::new();
    look(tokens, &name, &mut own, &mut declared);
    for (child, body) in declared {
        let (folder, path) = (folder.join(&child), below(&name, &child));
        if let Some(body) = body {
            add(body, &folder, path, modules);
            continue;
        }
        let files = [folder.with_extension("rs"), folder.join("mod.rs")];
        match files.iter().find(|file| file.is_file()) {
            Some(file) => read(file, &folder, path, modules),
            // An attribute takes it from another crate.
            None => drop(modules.insert(path, Module::default())),
        }
    }
    modules.insert(name, own);
}

/// The path of something in the module `name`.
fn below(name: &[String], word: &String) -> Name {
    [name, slice::from_ref(word)].concat()
}

/// Takes down the paths in tokens, and the modules that are declared, those for tests left out: their names, and their
/// bodies where these stand here.
fn look(
    tokens: TokenStream,
    name: &Name,
    own: &mut Module,
    declared: &mut Vec<(String, Option<TokenStream>)>,
) {
    let tokens: Vec<_> = tokens.into_iter().collect();
    let mut at = 0;
    // Whether the next item is only there for tests.
    let mut for_tests = false;
    while let Some(token) = tokens.get(at) {
        at += 1;
        match token {
            TokenTree::Group(group) if at > 1 && is_punct(tokens.get(at - 2), '#') => {
                let attribute = group.stream().to_string().replace(' ', "");
                for_tests |=
                    ["cfg(test", "cfg(all(test"].iter().any(|cfg| attribute.starts_with(cfg));
            }
            TokenTree::Group(group) => {
                let braces = group.delimiter() == Delimiter::Brace;
                if !(for_tests && braces) {
                    look(group.stream(), name, own, &mut Vec::new());
                }
                for_tests &= !braces;
            }
            TokenTree::Ident(word) if word == "mod" => {
                let Some(TokenTree::Ident(child)) = tokens.get(at) else { continue };
                let body = match tokens.get(at + 1) {
                    Some(TokenTree::Group(group)) => Some(group.stream()),
                    _ => None,
                };
                if !for_tests {
                    declared.push((child.to_string(), body));
                }
                for_tests = false;
                at += 2;
            }
            TokenTree::Ident(word) if word == "use" => {
                let end = tokens[at..].iter().position(|token| is_punct(Some(token), ';'));
                let end = end.map_or(tokens.len(), |end| at + end);
                if !for_tests {
                    bring_in(&tokens[at..end], &[], name, own);
                }
                at = end;
            }
            TokenTree::Ident(_) if !goes_on(&tokens[..at - 1]) => {
                let (path, len) = words(&tokens[at - 1..]);
                own.paths.insert(absolute(&path, name, own));
                at += len - 1;
            }
            other => for_tests &= !is_punct(Some(other), ';'),
        }
    }
}

fn is_punct(token: Option<&TokenTree>, wanted: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == wanted)
}

/// Whether a path goes on behind these tokens: the last of them is `::`, or a dot.
fn goes_on(before: &[TokenTree]) -> bool {
    match before {
        [.., a, b] if is_punct(Some(a), ':') && is_punct(Some(b), ':') => true,
        [.., dot] => is_punct(Some(dot), '.'),
        [] => false,
    }
}

/// The words of the path that tokens begin with, and how many tokens it takes.
fn words(tokens: &[TokenTree]) -> (Name, usize) {
    let (mut path, mut at) = (Name::new(), 0);
    while let Some(TokenTree::Ident(word)) = tokens.get(at) {
        path.push(word.to_string());
        at += 1;
        if !(is_punct(tokens.get(at), ':') && is_punct(tokens.get(at + 1), ':')) {
            break;
        }
        at += 2;
    }
    (path, at)
}

/// Records the names that a `use` of `tokens` brings in, whose paths go on from `before`.
fn bring_in(tokens: &[TokenTree], before: &[String], name: &Name, own: &mut Module) {
    for branch in tokens.split(|token| is_punct(Some(token), ',')) {
        let (path, len) = words(branch);
        let mut path = [before, &path].concat();
        if let Some(TokenTree::Group(group)) = branch.get(len) {
            let branches: Vec<_> = group.stream().into_iter().collect();
            bring_in(&branches, &path, name, own);
            continue;
        }
        path.pop_if(|last| last == "self");
        let Some(last) = path.last() else { continue };
        let called = match &branch[len..] {
            [TokenTree::Ident(word), TokenTree::Ident(new)] if word == "as" => new.to_string(),
            _ => last.clone(),
        };
        let path = absolute(&path, name, own);
        own.paths.insert(path.clone());
        own.names.insert(called, path);
    }
}

/// A path from the root of the crate.
fn absolute(path: &[String], name: &Name, own: &Module) -> Name {
    let (mut from, mut rest) = (name.clone(), path);
    match path.first().map(String::as_str) {
        Some("crate") => (from, rest) = (Name::new(), &path[1..]),
        Some("self") => rest = &path[1..],
        Some(first) => {
            if let Some(known) = own.names.get(first) {
                return [known, &path[1..]].concat();
            }
        }
        None => {}
    }
    while let ["super", ..] = rest.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        from.pop();
        rest = &rest[1..];
    }
    [&from, rest].concat()
}

/// The module that a path leads to, also where a module on its way only passes a name on: `more` times at most.
fn resolve(path: &[String], modules: &Modules, more: usize) -> Name {
    let mut at = Name::new();
    for (index, word) in path.iter().enumerate() {
        let next = below(&at, word);
        if modules.contains_key(&next) {
            at = next;
            continue;
        }
        let passed_on = modules[&at].names.get(word).filter(|known| **known != path && more > 0);
        let passed_on = passed_on.map(|known| [known, &path[index + 1..]].concat());
        let found = passed_on.map(|path| resolve(&path, modules, more - 1));
        // An item of another crate leads to none of these modules.
        return found.filter(|found| !found.is_empty()).unwrap_or(at);
    }
    at
}

/// Which child of a module needs which other, and one place where it does.
type Edges = BTreeMap<String, BTreeMap<String, String>>;

/// For every module with children, the dependencies among them.
fn siblings(modules: &Modules) -> BTreeMap<Name, Edges> {
    let mut all: BTreeMap<Name, Edges> = BTreeMap::new();
    for (name, module) in modules {
        for path in &module.paths {
            let target = resolve(path, modules, 4);
            let shared = name.iter().zip(&target).take_while(|(a, b)| a == b).count();
            if let (Some(from), Some(to)) = (name.get(shared), target.get(shared)) {
                let edges = all.entry(name[..shared].to_vec()).or_default();
                let place = format!("{} needs {}", name.join("::"), path.join("::"));
                edges.entry(from.clone()).or_default().entry(to.clone()).or_insert(place);
            }
        }
    }
    all
}

/// A shortest circle, if there is one.
fn circle(edges: &Edges) -> Option<Name> {
    let around = |start: &String| {
        let mut seen = BTreeSet::new();
        let mut ways = VecDeque::from([vec![start.clone()]]);
        while let Some(way) = ways.pop_front() {
            let needed = way.last().and_then(|last| edges.get(last)).into_iter();
            for next in needed.flat_map(BTreeMap::keys) {
                let way = below(&way, next);
                if next == start {
                    return Some(way);
                }
                if seen.insert(next) {
                    ways.push_back(way);
                }
            }
        }
        None
    };
    edges.keys().filter_map(around).min_by_key(Vec::len)
}

/// Describes a circle, with a place for each of its steps.
fn told(circle: &[String], edges: &Edges) -> String {
    let links: Vec<_> =
        circle.windows(2).map(|pair| format!("\n    {}", edges[&pair[0]][&pair[1]])).collect();
    format!("{}{}", circle.join(" -> "), links.concat())
}

#[test]
fn a_circle_is_seen() {
    let text = "
        mod a { pub use super::b::B as C; }
        mod b { fn f() { vec![super::c::D::new()] } pub struct B; }
        mod c { use crate::a::C; struct D(C); #[cfg(test)] fn g() { crate::d::g() } }
        mod d { use super::c::{self as other, D}; #[cfg(test)] mod tests { use super::super::c; } }";
    let mut modules = Modules::new();
    add(text.parse().expect("this is Rust"), Path::new(""), Name::new(), &mut modules);
    let edges = siblings(&modules).remove(&Name::new()).expect("they need each other");
    // The item that `a` calls `C` belongs to `b`: so `c` needs `b`, and `b` needs `c`.
    assert_eq!(circle(&edges).expect("a circle"), ["b", "c", "b"]);
    assert_eq!(edges["b"]["c"], "b needs c::D::new");
    assert!(edges["d"].contains_key("c") && !edges["c"].contains_key("d"), "{edges:?}");
}
