//! Links between pages: the page is there, and so is the heading.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Component, Path, PathBuf};

use roundelay_tests::root;

use crate::book::files;

/// A page's lines without its blocks of code.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fence = false;
    text.lines().enumerate().filter(move |(_, line)| {
        let is_fence = line.trim_start().starts_with("```");
        fence ^= is_fence;
        !fence && !is_fence
    })
}

/// The anchors that `mdBook` gives to the headings of a page.
fn anchors(text: &str) -> Vec<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let headings = lines(text).filter(|(_, line)| line.starts_with('#'));
    headings
        .map(|(_, line)| {
            let heading = line.trim_start_matches('#').trim();
            let kept = heading.chars().filter_map(|c| match c {
                c if c.is_alphanumeric() || c == '_' || c == '-' => Some(c.to_ascii_lowercase()),
                c if c.is_whitespace() => Some('-'),
                _ => None,
            });
            let slug: String = kept.collect();
            let before = seen.entry(slug.clone()).or_default();
            *before += 1;
            if *before == 1 { slug } else { format!("{slug}-{}", *before - 1) }
        })
        .collect()
}

/// `a/../b` is `b`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            other => plain.push(other),
        }
    }
    plain
}

#[test]
fn every_link_leads_somewhere() {
    let book = root().join("book/src");
    let pages: BTreeMap<PathBuf, String> = files(&book, "md")
        .into_iter()
        .map(|path| {
            let text = std::fs::read_to_string(&path).expect("pages are text");
            (path.strip_prefix(&book).expect("pages are in the book").to_owned(), text)
        })
        .collect();
    let mut wrong = String::new();
    let mut count = 0;
    for (page, text) in &pages {
        for (number, line) in lines(text) {
            let targets = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
            for target in targets.filter(|target| !target.contains("://")) {
                let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
                let path = match path {
                    "" => page.clone(),
                    path => plain(&page.parent().expect("a page is in a folder").join(path)),
                };
                let there = match pages.get(&path) {
                    Some(text) => anchor.is_empty() || anchors(text).iter().any(|a| a == anchor),
                    None => book.join(&path).is_file(),
                };
                count += 1;
                if !there {
                    let _ = writeln!(wrong, "book/src/{}:{}: {target}", page.display(), number + 1);
                }
            }
        }
    }
    assert!(wrong.is_empty(), "these links lead nowhere:\n{wrong}");
    assert!(count > 200, "{count} links were found");
}
