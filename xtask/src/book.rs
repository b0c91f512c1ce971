//! The book as readers have it: built, then looked at page by page. Every link leads to a page and a heading that are
//! there, every picture is there, and the search knows every word of the glossary.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::run;
use crate::playground;

/// The book's builder; installed below `target/`, so that a fresh machine needs only Rust.
const MDBOOK: &str = "0.5.4";

/// The part that is made besides the pages.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    Pages,
    /// The pages are run in a browser.
    Tests,
    /// A command with the book in it.
    Command,
}

/// Builds the book with the command in its pages.
pub(crate) fn whole(root: &Path, wanted: Wanted) -> Result<(), String> {
    check(root)?;
    let built = std::path::absolute(root.join("target/book")).map_err(|why| why.to_string())?;
    let made = playground::build(root, &built, "browser")?;
    match (wanted, made) {
        (Wanted::Pages, _) => Ok(()),
        (Wanted::Tests, true) => playground::test(root, &built),
        (Wanted::Tests, false) => Err("there is no command to test in the pages".to_owned()),
        (Wanted::Command, _) => {
            let command = playground::command(root, &built, "release")?;
            println!("{} has the book: `roundelay book --open`", command.display());
            Ok(())
        }
    }
}

/// Builds the book and checks its pages, and the links of README.md.
pub(crate) fn check(root: &Path) -> Result<(), String> {
    let built = root.join("target/book");
    // A page that is gone must not be found.
    match std::fs::remove_dir_all(&built) {
        Err(why) if built.exists() => return Err(format!("{}: {why}", built.display())),
        _ => {}
    }
    run(Command::new(builder(root)?)
        .args(["build", "--dest-dir"])
        .arg(&built)
        .arg(root.join("book")))?;
    let pages = pages(&built)?;
    let mut wrong = dead_links(&built, &pages);
    wrong.extend(dead_links_of_the_readme(root)?);
    wrong.extend(unknown_to_search(&built, &pages)?);
    match wrong.len() {
        0 => Ok(()),
        n => Err(format!("{n} links or words lead nowhere:\n{}", wrong.join("\n"))),
    }
}

/// Returns the path of mdBook, which is installed first where it is missing.
fn builder(root: &Path) -> Result<PathBuf, String> {
    let tools = root.join("target/tools");
    let mdbook = tools.join("bin").join(format!("mdbook{}", std::env::consts::EXE_SUFFIX));
    if !mdbook.exists() {
        println!("installing mdbook {MDBOOK} below target/tools, without its server");
        // Optimized it takes minutes to build, and to build the book it takes seconds either way.
        let features = ["--no-default-features", "--features", "search"];
        run(Command::new(env!("CARGO"))
            .current_dir(root)
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            .args(["install", "mdbook", "--locked", "--debug", "--version", MDBOOK])
            .args(features)
            .arg("--root")
            .arg(&tools))?;
    }
    Ok(mdbook)
}

/// A page of HTML: where its links and pictures lead, and the names of its places.
struct Page {
    links: Vec<String>,
    places: BTreeSet<String>,
}

impl Page {
    fn new(html: &str) -> Self {
        let mut links = attributes(html, "href");
        links.extend(attributes(html, "src"));
        Self { links, places: attributes(html, "id").into_iter().collect() }
    }
}

/// Returns the values of an attribute in the tags of a page. Text has no quotation marks that look like one: mdBook
/// escapes them.
fn attributes(html: &str, name: &str) -> Vec<String> {
    let opening = format!(" {name}=\"");
    let found = html.split(&opening).skip(1).filter_map(|rest| rest.split_once('"'));
    found.map(|(value, _)| value.replace("&amp;", "&")).collect()
}

/// Returns the pages below a folder by their paths in it.
fn pages(folder: &Path) -> Result<BTreeMap<PathBuf, Page>, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(inner) = folders.pop() {
        let entries = std::fs::read_dir(&inner).map_err(|e| format!("{}: {e}", inner.display()))?;
        for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            let inside = path.strip_prefix(folder).unwrap_or(&path).to_owned();
            if path.is_dir() {
                folders.push(path);
            // The page of all pages, and a page whose links begin at the site's root, are left out.
            } else if path.extension().is_some_and(|e| e == "html")
                && !["print.html", "404.html"].contains(&&*inside.to_string_lossy())
            {
                let html = std::fs::read_to_string(&path);
                let html = html.map_err(|e| format!("{}: {e}", path.display()))?;
                found.insert(inside, Page::new(&html));
            }
        }
    }
    if found.len() < 40 {
        Err(format!("the book has {} pages alone", found.len()))
    } else {
        Ok(found)
    }
}

/// Returns the broken links, a line each.
fn dead_links(built: &Path, pages: &BTreeMap<PathBuf, Page>) -> Vec<String> {
    let mut dead = Vec::new();
    for (path, page) in pages {
        for link in page.links.iter().filter(|link| is_local(link)) {
            let (file, place) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { path.clone() } else { beside(path, file) };
            let there = match pages.get(&target) {
                Some(page) => place.is_empty() || page.places.contains(place),
                None => place.is_empty() && built.join(&target).is_file(),
            };
            if !there {
                dead.push(format!("{}: {link}", path.display()));
            }
        }
    }
    dead.dedup();
    dead
}

/// Whether a link stays within the book: a test needs no network.
fn is_local(link: &str) -> bool {
    !link.contains("://") && !link.starts_with("mailto:") && !link.starts_with("data:")
}

/// Returns the file that a page calls `link`.
fn beside(page: &Path, link: &str) -> PathBuf {
    let mut path = page.parent().unwrap_or(Path::new("")).to_owned();
    for part in link.split('/') {
        match part {
            "." | "" => {}
            ".." => {
                path.pop();
            }
            part => path.push(part),
        }
    }
    path
}

/// Returns the broken links of README.md, which is read beside the sources: its links are files, and headings of
/// Markdown.
fn dead_links_of_the_readme(root: &Path) -> Result<Vec<String>, String> {
    let read = |path: &Path| {
        std::fs::read_to_string(path).map_err(|why| format!("{}: {why}", path.display()))
    };
    let mut dead = Vec::new();
    for rest in read(&root.join("README.md"))?.split("](").skip(1) {
        let link = rest.split(')').next().unwrap_or_default();
        let (file, place) = link.split_once('#').unwrap_or((link, ""));
        if !is_local(link) {
            continue;
        }
        let path = root.join(file);
        let there = if place.is_empty() {
            path.exists()
        } else {
            let text = read(&path)?;
            text.lines().filter_map(|l| l.strip_prefix('#')).any(|heading| anchor(heading) == place)
        };
        if !there {
            dead.push(format!("README.md: {link}"));
        }
    }
    Ok(dead)
}

/// Returns the anchor of a heading in Markdown.
fn anchor(heading: &str) -> String {
    let words = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = words.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Returns the words of the glossary, which are its headings, that the search does not lead to.
fn unknown_to_search(built: &Path, pages: &BTreeMap<PathBuf, Page>) -> Result<Vec<String>, String> {
    let entries = std::fs::read_dir(built).map_err(|e| format!("{}: {e}", built.display()))?;
    let mut names = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let index = names
        .find(|path| {
            path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("searchindex"))
        })
        .ok_or("the book has no search")?;
    let index = std::fs::read_to_string(&index).map_err(|e| format!("{}: {e}", index.display()))?;
    let glossary = Path::new("reference/glossary.html");
    let page = pages.get(glossary).ok_or("the book has no glossary")?;
    let html = built.join(glossary);
    let html = std::fs::read_to_string(&html).map_err(|e| format!("{}: {e}", html.display()))?;
    let words = attributes(&html.replace("<h3 id=", "<h3 word="), "word");
    if words.len() < 40 || words.iter().any(|word| !page.places.contains(word)) {
        return Err(format!("the glossary has {} words alone", words.len()));
    }
    let known = |word: &String| index.contains(&format!("\"{}#{word}\"", glossary.display()));
    Ok(words.iter().filter(|w| !known(w)).map(|w| format!("search: {w}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_followed_from_its_page() {
        assert_eq!(
            beside(Path::new("guide/a.html"), "../errors/E0001.html"),
            Path::new("errors/E0001.html")
        );
        assert_eq!(beside(Path::new("a.html"), "b.html"), Path::new("b.html"));
    }

    #[test]
    fn dead_links_are_told_from_living_ones() {
        let page = |html: &str| Page::new(html);
        let pages = BTreeMap::from([
            ("a.html".into(), page(r##"<a href="b.html#here">, <a href="#top" id="top">"##)),
            ("b.html".into(), page(r#"<h2 id="here"> <a href="a.html#gone"> <img src="no.svg">"#)),
        ]);
        let dead = dead_links(Path::new("nowhere"), &pages);
        assert_eq!(dead, ["b.html: a.html#gone", "b.html: no.svg"]);
    }
}
