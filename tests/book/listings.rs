//! All code in the book is a file: a right program or a program whose mistake is shown, a transcript, a picture.

use std::path::Path;

use expect_test::expect_file;
use roundelay_core::diagnostics::Code;
use roundelay_tests::{files, root};

use crate::book::{compare, console, holds, is_right, pages, read};

/// The pages that a reader reads, without the error pages, which have tests of their own.
pub(crate) fn prose() -> Vec<std::path::PathBuf> {
    let pages = files(&root().join("book/src"), "md");
    let prose: Vec<_> = pages
        .into_iter()
        .filter(|path| !path.components().any(|part| part.as_os_str() == "errors"))
        .collect();
    assert!(prose.len() > 30, "{} pages alone", prose.len());
    prose
}

/// The text of files that a page includes stands in the page. `UPDATE_EXPECT=1` writes it, from the files as they are before the tests run.
#[test]
fn the_pages_are_whole() {
    let mut parts = 0;
    for path in prose().into_iter().chain([root().join("README.md")]) {
        let page = pages::whole(&path);
        parts += pages::includes(&page).len();
        assert!(!page.contains("{{#"), "{}: mdBook's directives", path.display());
        expect_file![path].assert_eq(&page);
    }
    assert!(parts > 300, "{parts} parts alone");
}

#[test]
fn the_transcripts_are_what_the_command_prints() {
    let transcripts = files(&root().join("book/src/listings"), "console");
    assert!(!transcripts.is_empty());
    for path in transcripts {
        let written = read(&path);
        let folder = path.parent().expect("a file has a folder");
        let commands = console::commands(&written);
        assert!(!commands.is_empty(), "{} holds no command", path.display());
        let fresh: Vec<_> = commands.iter().map(|c| console::transcript(c, folder)).collect();
        // Simulated results repeat in every run.
        if commands.iter().all(|command| command.starts_with("$ roundelay simulate ")) {
            expect_file![path].assert_eq(&fresh.join("\n"));
        } else {
            compare(&path, &fresh.join("\n"));
        }
    }
}

/// `x.picture` holds a command; `x.svg` is the picture that it draws.
#[test]
fn the_pictures_are_what_the_command_draws() {
    let pictures = files(&root().join("book/src"), "picture");
    assert!(pictures.len() > 5, "{} pictures alone", pictures.len());
    for path in pictures {
        let command = read(&path);
        let folder = path.parent().expect("a file has a folder");
        expect_file![path.with_extension("svg")].assert_eq(&console::drawn(command.trim(), folder));
    }
    for path in files(&root().join("book/src"), "svg") {
        // Python draws the measured data, and its tests draw it again.
        let made_of = ["picture", "curves", "measured"];
        let command = made_of.map(|extension| path.with_extension(extension));
        assert!(
            command.iter().any(|file| file.exists()),
            "nothing says how {} was drawn",
            path.display()
        );
    }
}

/// A program is right, or a transcript beside it shows its mistake.
#[test]
fn every_program_is_right_or_its_mistake_is_shown() {
    for path in files(&root().join("book/src/listings"), "coll") {
        let (file, folder) = (path.file_name().expect("a name"), path.parent().expect("a folder"));
        let file = file.to_string_lossy();
        let text = read(&path);
        // The path from the tests' package, by which `compile` finds the files that the program uses.
        let inside = path.strip_prefix(root()).expect("a file of the tree");
        let shown = Path::new("..").join(inside).display().to_string();
        let mistake = files(folder, "console").iter().map(|p| read(p)).any(|transcript| {
            transcript.contains("error[")
                && console::commands(&transcript).iter().any(|c| c.contains(&*file))
        });
        // A program that is right for some rank counts may be shown where it is wrong.
        if let Err(why) = is_right(&shown, &text)
            && !mistake
        {
            panic!("{shown} is wrong, and no transcript shows it:\n{why}");
        }
    }
}

/// No file of the listings is left over.
#[test]
fn every_listing_is_shown() {
    let pages: Vec<_> = files(&root().join("book/src"), "md").iter().map(|p| read(p)).collect();
    let pages = pages.concat();
    let transcripts = files(&root().join("book/src/listings"), "console");
    let mut ran: String =
        transcripts.iter().map(|path| console::commands(&read(path)).join("\n")).collect();
    // The error pages run some too.
    ran.extend(Code::ALL.iter().map(|code| pages::written(*code)));
    for extension in ["console", "coll", "table", "text", "xml", "svg", "md"] {
        for path in files(&root().join("book/src/listings"), extension) {
            let inside = path.strip_prefix(root().join("book/src")).expect("below the book");
            let inside = inside.display().to_string();
            let name = path.file_name().expect("a name").to_string_lossy();
            assert!(
                pages.contains(&inside) || ran.contains(&*name),
                "no page shows {inside}, and no transcript uses it"
            );
        }
    }
}

#[test]
fn the_programs_in_the_pages_are_right() {
    let mut seen = 0;
    let readme = root().join("README.md");
    for page in prose().iter().chain([&readme]) {
        for (i, program) in pages::programs(&read(page)).iter().enumerate() {
            seen += 1;
            holds(&format!("program {i} of {}", page.display()), program);
        }
    }
    assert!(seen > 5, "{seen} programs alone");
}

#[test]
fn the_corrected_programs_are_right() {
    for code in Code::ALL {
        for (i, text) in pages::programs(&read(&pages::path(*code))).iter().enumerate() {
            holds(&format!("program {i} of {code}"), text);
        }
    }
}

/// A chapter of the tutorial ends in two or three exercises, each with a program that solves it and a transcript that
/// shows that it does; both lie in the chapter's folder `solutions`, or the program is an example.
#[test]
fn every_exercise_has_a_solution_that_runs() {
    let chapters = files(&root().join("book/src/tutorial"), "md");
    assert_eq!(chapters.len(), 8, "the tutorial has eight chapters");
    for path in chapters {
        let chapter = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let text = read(&path);
        let (_, exercises) = text
            .split_once("\n## Exercises\n")
            .unwrap_or_else(|| panic!("{chapter} has no exercises"));
        let exercises: Vec<_> = exercises.split("\n### ").skip(1).collect();
        assert!((2..=3).contains(&exercises.len()), "{chapter}: {} exercises", exercises.len());
        for exercise in exercises {
            let title = exercise.lines().next().unwrap_or_default();
            let (_, solution) = exercise
                .split_once("<details><summary>Solution</summary>")
                .unwrap_or_else(|| panic!("{chapter}, {title}: no solution"));
            let shown = pages::includes(solution);
            let solutions = format!("listings/{chapter}/solutions/");
            let of = |extension: &str| {
                // A page shows some of the lines of a few files: `file:1:4`.
                let mut files = shown.iter().filter_map(|shown| shown.split(':').next());
                files.any(|file| file.contains(&solutions) && file.ends_with(extension))
            };
            let program = of(".coll") || shown.iter().any(|file| file.contains("examples/"));
            assert!(program, "{chapter}, {title}: the solution shows no program");
            assert!(of(".console"), "{chapter}, {title}: the solution shows no transcript");
        }
    }
    for path in files(&root().join("book/src/listings"), "coll") {
        if path.components().any(|part| part.as_os_str() == "solutions") {
            let inside = path.strip_prefix(root()).expect("a file of the tree");
            holds(&Path::new("..").join(inside).display().to_string(), &read(&path));
        }
    }
}

/// Rust in the tutorial is from an example, which is run.
#[test]
fn the_tutorials_rust_is_from_examples() {
    for path in files(&root().join("book/src/tutorial"), "md") {
        let text = read(&path);
        assert!(!pages::by_hand(&text).contains("```rust"), "{}: Rust by hand", path.display());
        let shown = pages::includes(&text).into_iter().filter(|file| file.contains(".rs"));
        let apart: Vec<&str> =
            shown.filter(|file| !file.starts_with("../../../examples/")).collect();
        assert!(apart.is_empty(), "{}: Rust that no example holds: {apart:?}", path.display());
    }
}

/// Code is no wider than the page. The page wraps the output of commands: their messages may be a little wider.
#[test]
fn no_line_is_wider_than_a_page() {
    let mut wide = Vec::new();
    let mut look = |path: &Path, widest: usize, text: &str| {
        let shown = path.strip_prefix(root()).unwrap_or(path).display().to_string();
        for (i, line) in text.lines().enumerate() {
            let width = line.chars().count();
            if width > widest {
                wide.push(format!("{shown}:{}: {width} columns", i + 1));
            }
        }
    };
    for path in files(&root().join("book/src"), "md") {
        let mut code = false;
        let blank_but_code = |line: &str| {
            let fence = line.trim_start().starts_with("```");
            code ^= fence;
            if code && !fence { format!("{line}\n") } else { "\n".to_owned() }
        };
        // Error pages wrap the messages in their parts, and listings have a width of their own.
        let text = read(&path);
        let errors = path.components().any(|part| part.as_os_str() == "errors");
        let text = if errors { text } else { pages::by_hand(&text) };
        let blocks: String = text.lines().map(blank_but_code).collect();
        look(&path, pages::WIDEST, &blocks);
    }
    for (extension, widest) in [("coll", pages::WIDEST), ("text", pages::WIDEST), ("console", 160)]
    {
        for path in files(&root().join("book/src/listings"), extension) {
            look(&path, widest, &read(&path));
        }
    }
    assert!(wide.is_empty(), "wider than a page:\n{}", wide.join("\n"));
}
