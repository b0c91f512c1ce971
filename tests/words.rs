//! Words: a type's name has few meanings, and a comment names its subject.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use roundelay_tests::root;

/// The most modules that define a type of one name.
const MOST: usize = 4;

/// Pronouns and quantities that stand in place of a noun. A comment that has one of them has a sentence whose subject the
/// reader must guess.
const RIDDLES: [&str; 7] =
    ["whoever", "nobody", "somebody", "everybody", "so many", "so much", "as above"];

/// Beginnings of a first sentence that has no noun for its subject.
const OPENINGS: [&str; 5] = ["What ", "Who ", "Whose ", "The same.", "As above"];

/// The project's own sources: no generated code, and no tests.
fn sources() -> Vec<PathBuf> {
    let folders =
        ["capi", "cli", "core", "kernels", "macros/src", "stdlib", "xtask/src", "examples"];
    let all = folders.iter().flat_map(|folder| roundelay_tests::files(&root().join(folder), "rs"));
    let own = |path: &PathBuf| {
        let path = path.strip_prefix(root()).expect("in the project").to_string_lossy();
        let apart = ["/tests/", "tests.rs", "_tests.rs", "grammar.rs", "_generated.rs", "/target/"];
        !apart.iter().any(|part| path.contains(part))
    };
    all.filter(own).collect()
}

/// The comment of a line, without its marks.
fn comment(line: &str) -> Option<&str> {
    let line = line.trim_start();
    line.strip_prefix("///")
        .or_else(|| line.strip_prefix("//!"))
        .or_else(|| line.strip_prefix("//"))
        .map(str::trim)
}

/// The name of the type that a line defines.
fn defined(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace().skip_while(|word| word.starts_with("pub"));
    let mut kind = words.next()?;
    if kind.starts_with("in") || kind.ends_with(')') {
        kind = words.next()?;
    }
    let name = words.next().filter(|_| ["struct", "enum", "trait", "union"].contains(&kind))?;
    let end = name.find(|c: char| !c.is_alphanumeric()).unwrap_or(name.len());
    Some(&name[..end]).filter(|name| !name.is_empty())
}

#[test]
fn a_type_name_has_few_meanings() {
    let mut modules: BTreeMap<String, BTreeSet<PathBuf>> = BTreeMap::new();
    for path in sources() {
        let text = fs::read_to_string(&path).expect("a source");
        for name in text.lines().filter_map(defined) {
            modules.entry(name.to_owned()).or_default().insert(path.clone());
        }
    }
    assert!(modules.len() > 500, "{} type names alone", modules.len());
    modules.retain(|_, places| places.len() > MOST);
    assert!(modules.is_empty(), "each of these names stands for too many types: {modules:#?}");
}

/// Words that are no name of a function, a module or a file when they stand alone: prepositions, and past participles that
/// do not end in `ed`.
const NO_NAMES: &str = "of at in on by from to with within over under into for beside around between per via told made \
    known seen held given found taken met built begun done gone got kept left lent lost meant paid said sent shown spent \
    stood thought understood won written drawn chosen";

/// Functions that keep a participle or a preposition as their name: words of the language, which pages write
/// (`Ring::twisted()`), and a word of the macro's expansion.
const KEPT: [(&str, &[&str]); 4] = [
    ("core/src/values", &["of", "balanced", "twisted", "around", "turned"]),
    ("core/src/expansion/read.rs", &["configured"]),
    ("stdlib/expand.rs", &["at"]),
    // Each count with its name; the function is made by a macro for a struct of any counts.
    ("kernels/ptx/src/machine/counters.rs", &["named"]),
];

/// The most files of one name, apart from those that cargo and rustc name.
const MOST_FILES: usize = 4;

/// Whether a word is a past participle or a preposition, and so names nothing alone.
fn is_no_name(word: &str) -> bool {
    let participle = word.len() > 4 && word.ends_with("ed") && !word.ends_with("eed");
    (participle && !word.contains('_')) || NO_NAMES.split_whitespace().any(|no| no == word)
}

/// The name of the public function that a line defines.
fn public_function(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub ")?;
    let (before, after) = rest.split_once("fn ")?;
    let modifiers = ["const", "unsafe", "async", "extern", "\"C\""];
    let end = after.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(after.len());
    before.split_whitespace().all(|word| modifiers.contains(&word)).then_some(&after[..end])
}

#[test]
fn a_function_and_a_file_are_named_by_a_noun_or_a_verb() {
    let mut wrong = Vec::new();
    let mut files: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for path in sources() {
        let short = path.strip_prefix(root()).expect("in the project").to_path_buf();
        let kept = KEPT.iter().filter(|(place, _)| short.starts_with(place));
        let kept: Vec<&str> = kept.flat_map(|(_, names)| names.iter().copied()).collect();
        let text = fs::read_to_string(&path).expect("a source");
        let names = text.lines().filter_map(public_function);
        let names = names.filter(|name| is_no_name(name) && !kept.contains(name));
        wrong.extend(names.map(|name| format!("{}: fn {name}", short.display())));
        let module = if path.ends_with("mod.rs") { short.parent() } else { Some(short.as_path()) };
        let module = module.and_then(Path::file_stem).expect("a name").to_string_lossy();
        if is_no_name(&module) {
            wrong.push(format!("{}: a module", short.display()));
        }
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if !["mod.rs", "lib.rs", "main.rs", "build.rs"].contains(&name.as_str()) {
            files.entry(name).or_default().push(short);
        }
    }
    for (name, places) in files.iter().filter(|(_, places)| places.len() > MOST_FILES) {
        wrong.push(format!("{name} is the name of {} files: {places:?}", places.len()));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_comment_names_its_subject() {
    let mut found = Vec::new();
    for path in sources() {
        let text = fs::read_to_string(&path).expect("a source");
        let mut before = None;
        for (number, line) in (1..).zip(text.lines()) {
            let comment = comment(line);
            let begins = before.is_none();
            before = comment;
            let Some(comment) = comment else { continue };
            // Between backticks is code.
            let prose: String = comment.split('`').step_by(2).collect();
            let words = prose.to_lowercase();
            let words: Vec<&str> = words
                .split(|c: char| !c.is_alphanumeric())
                .filter(|word| !word.is_empty())
                .collect();
            let spaced = format!(" {} ", words.join(" "));
            let riddle = RIDDLES.iter().find(|riddle| spaced.contains(&format!(" {riddle} ")));
            let opening = OPENINGS.iter().find(|opening| begins && comment.starts_with(**opening));
            if let Some(word) = riddle.or(opening) {
                found.push(format!("{}:{number}: `{word}` in: {comment}", path.display()));
            }
        }
    }
    assert!(found.is_empty(), "{} comments have no subject:\n{}", found.len(), found.join("\n"));
}

#[test]
fn definitions_and_comments_are_seen() {
    let lines = [
        ("pub(crate) struct Visit<'w> {", Some("Visit")),
        ("    pub(in crate::shared_memory) enum Kind {", Some("Kind")),
        ("trait Words: Sized {", Some("Words")),
        ("    struct_of(Place),", None),
        ("pub struct Options;", Some("Options")),
    ];
    for (line, name) in lines {
        assert_eq!(defined(line), name, "{line}");
    }
    assert_eq!(comment("    /// Who waits."), Some("Who waits."));
    assert_eq!(comment("let a = 1; // no"), None);
}

/// The paths that a page names between backquotes: words with a slash of which the first is a folder of the project, or
/// the folder above. Names of a form, such as `stdlib/library/FAMILY.coll`, are no paths.
fn paths(page: &str) -> Vec<&str> {
    let mut all = Vec::new();
    // Every third backquote in a row begins or ends a block, which names files of its own.
    for part in page.split("```").step_by(2) {
        all.extend(part.split('`').skip(1).step_by(2));
    }
    all.retain(|word| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
        let own = ["FAMILY", "E0123"].iter().all(|form| !word.contains(form));
        word.contains('/') && own && word.chars().all(plain)
    });
    all
}

/// A page that names a file or a folder of the project names one that is there. In the pages about the inside, a path of a
/// source may begin within its crate.
#[test]
fn a_path_that_a_page_names_is_there() {
    let root = root().canonicalize().expect("the root");
    let mut pages = roundelay_tests::files(&root.join("book/src"), "md");
    let readme = [
        "",
        "core",
        "core/base",
        "core/topology",
        "core/machines",
        "core/simulate",
        "core/exchange",
        "core/pictures",
        "core/synthesis",
        "capi/interposer",
        "capi/nccl",
        "cli/ide",
        "kernels/limit",
        "cli/runner",
        "kernels/check",
        "capi/tuner",
        "tests",
        "tests/mscclpp",
        "python",
    ];
    pages.extend(readme.map(|folder| root.join(folder).join("README.md")));
    pages.push(root.join("CONTRIBUTING.md"));
    let folders = ["core", "kernels", "cli"].map(|folder| root.join(folder));
    let sources: Vec<PathBuf> =
        folders.iter().flat_map(|folder| roundelay_tests::files(folder, "rs")).collect();
    let (mut seen, mut wrong) = (0, Vec::new());
    for page in pages.iter().filter(|page| page.exists()) {
        let text = fs::read_to_string(page).expect("a page");
        for path in paths(&text) {
            let first = path.split('/').next().unwrap_or_default();
            let own = first == ".." || !first.is_empty() && root.join(first).is_dir();
            let source = Path::new(path).extension().is_some_and(|e| e == "rs");
            if first == "target" || !own && !source {
                continue;
            }
            seen += 1;
            let beside = page.parent().expect("a folder").join(path);
            let there = root.join(path).exists() || beside.exists();
            if !there && (own || !sources.iter().any(|file| file.ends_with(path))) {
                wrong.push(format!("{}: {path}", page.display()));
            }
        }
    }
    assert!(seen > 150, "{seen} paths");
    assert!(wrong.is_empty(), "no such files:\n{}", wrong.join("\n"));
}
