//! One word, one meaning: each entry of the glossary is linked where the book uses its word first, and words that the
//! book does not use are found.
//!
//! `UPDATE_EXPECT=1 cargo test -p roundelay-tests book::glossary` puts the missing links into the pages.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;
use std::path::Path;

use roundelay_tests::root;

use crate::book::pages::{END, directive};

const GLOSSARY: &str = "reference/glossary.md";

/// Words that the book does not use, each with the word that it uses. A page that must use the word, because it is
/// another library's or a paper's, is named behind.
const AVOIDED: &[(&str, &str, &[&str])] = &[
    ("team", "communicator, or group", &["guide/coming_from.md"]),
    ("teams", "communicators, or groups", &["guide/coming_from.md"]),
    ("chunk", "piece", &["guide/coming_from.md", "guide/contest.md", "guide/msccl.md"]),
    ("chunks", "pieces", &["guide/coming_from.md", "guide/contest.md", "guide/msccl.md"]),
    ("alpha", "L", &["guide/coming_from.md"]),
    ("beta", "1/B", &["guide/coming_from.md"]),
    ("M/b", "S/B", &[]),
    ("semaphore", "signal", &["guide/coming_from.md"]),
    ("semaphores", "signals", &["guide/coming_from.md"]),
    ("analyse", "analyze", &[]),
    ("analyser", "analyzer", &[]),
    ("behaviour", "behavior", &[]),
    ("centre", "center", &[]),
    ("colour", "color", &[]),
    ("coloured", "colored", &[]),
    ("colours", "colors", &[]),
    ("favour", "favor", &[]),
    ("grey", "gray", &[]),
    ("initialised", "initialized", &[]),
    ("minimise", "minimize", &[]),
    ("neighbour", "neighbor", &[]),
    ("neighbouring", "neighboring", &[]),
    ("neighbours", "neighbors", &[]),
    ("optimisation", "optimization", &[]),
    ("optimisations", "optimizations", &[]),
    ("optimise", "optimize", &[]),
    ("optimised", "optimized", &[]),
    ("optimiser", "optimizer", &[]),
    ("organise", "organize", &[]),
    ("recognise", "recognize", &[]),
];

/// A page: its prose alone, with all other text blanked out, and its links to the glossary.
struct Page {
    name: String,
    text: String,
    prose: String,
    links: Vec<(Range<usize>, String)>,
}

/// The pages in the order of the summary.
fn pages() -> Vec<Page> {
    let book = root().join("book/src");
    let summary = std::fs::read_to_string(book.join("SUMMARY.md")).expect("a summary");
    let names = summary.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let names = names.filter(|name| *name != GLOSSARY && book.join(name).is_file());
    names
        .map(|name| {
            let text = std::fs::read_to_string(book.join(name)).expect("pages are text");
            let (prose, links) = prose(&text);
            Page { name: name.to_owned(), text, prose, links }
        })
        .collect()
}

/// Returns the book's prose, at unchanged places: without code, headings, directives, tags and links to other pages.
fn prose(text: &str) -> (String, Vec<(Range<usize>, String)>) {
    let mut plain = text.as_bytes().to_vec();
    let blank = |plain: &mut Vec<u8>, range: Range<usize>| {
        for byte in &mut plain[range] {
            if *byte != b'\n' {
                *byte = b'.';
            }
        }
    };
    let (mut fence, mut part) = (false, false);
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let begins = line.trim_start();
        let is_fence = begins.starts_with("```");
        part = (part || directive(line.trim_end()).is_some()) && line.trim_end() != END;
        if fence || is_fence || part || begins.starts_with('#') {
            blank(&mut plain, at..at + line.len());
        }
        fence ^= is_fence;
        at += line.len();
    }
    let mut links = Vec::new();
    let mut at = 0;
    while at < plain.len() {
        let end = |plain: &[u8], from: usize, sign: u8| {
            plain[from..].iter().position(|byte| *byte == sign).map(|len| from + len)
        };
        match plain[at] {
            b'`' => {
                let ticks = plain[at..].iter().take_while(|byte| **byte == b'`').count();
                let fence = vec![b'`'; ticks];
                let inner = at + ticks;
                let close = plain[inner..].windows(ticks).position(|window| window == fence);
                let Some(close) = close else { break };
                blank(&mut plain, at..inner + close + ticks);
                at = inner + close + ticks;
            }
            b'<' => match end(&plain, at, b'>').filter(|end| !plain[at..*end].contains(&b'\n')) {
                Some(close) => {
                    blank(&mut plain, at..close + 1);
                    at = close + 1;
                }
                None => at += 1,
            },
            b'[' => {
                let close = end(&plain, at, b']');
                let target = close.filter(|close| plain.get(close + 1) == Some(&b'('));
                let Some((close, last)) =
                    target.and_then(|close| Some((close, end(&plain, close, b')')?)))
                else {
                    at += 1;
                    continue;
                };
                let target = &text[close + 2..last];
                match target.split_once("glossary.md#") {
                    Some((_, anchor)) => {
                        links.push((at + 1..close, anchor.to_owned()));
                        blank(&mut plain, at..at + 1);
                        blank(&mut plain, close..last + 1);
                    }
                    None => blank(&mut plain, at..last + 1),
                }
                at = last + 1;
            }
            _ => at += 1,
        }
    }
    // Bytes of one character are blanked together, and other bytes stay.
    (String::from_utf8_lossy(&plain).into_owned(), links)
}

/// The words of `text`, and where they are.
fn words(text: &str) -> Vec<(String, Range<usize>)> {
    let mut words = Vec::new();
    let mut begin = None;
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        match (c.is_ascii_alphanumeric() || c == '_', begin) {
            (true, None) => begin = Some(at),
            (false, Some(from)) => {
                words.push((text[from..at].to_lowercase(), from..at));
                begin = None;
            }
            _ => {}
        }
    }
    words
}

/// An entry: its anchor, and the words that mean it.
struct Entry {
    anchor: String,
    names: Vec<Vec<String>>,
}

fn entries(glossary: &str) -> Vec<Entry> {
    let headings = glossary.lines().filter_map(|line| line.strip_prefix("### "));
    headings
        .map(|heading| {
            let kept = |c: char| c.is_ascii_alphanumeric() || "-_ ".contains(c);
            let anchor: String = heading.to_lowercase().chars().filter(|c| kept(*c)).collect();
            let name = |name: &str| words(name).into_iter().map(|(word, _)| word).collect();
            let names = heading.split(", ").map(name).collect();
            Entry { anchor: anchor.replace(' ', "-"), names }
        })
        .collect()
}

fn is_plural(word: &str, of: &str) -> bool {
    word.strip_prefix(of).is_some_and(|end| ["s", "es"].contains(&end))
        || of.strip_suffix('y').is_some_and(|stem| word == format!("{stem}ies"))
}

/// Where `name` ends if it begins at word `at` of `page`; only the last word may be in the plural.
fn matches(
    page: &Page,
    words: &[(String, Range<usize>)],
    at: usize,
    name: &[String],
) -> Option<usize> {
    let last = at + name.len();
    let found = words.get(at..last)?;
    for (i, (word, range)) in found.iter().enumerate() {
        let fits = *word == name[i] || (i + 1 == name.len() && is_plural(word, &name[i]));
        let between = found.get(i + 1).map(|(_, next)| &page.prose[range.end..next.start]);
        let joined = between.is_none_or(|b| b.chars().all(|c| c.is_whitespace() || c == '-'));
        if !fits || !joined {
            return None;
        }
    }
    Some(last)
}

fn line(text: &str, at: usize) -> usize {
    1 + text[..at].matches('\n').count()
}

/// The way from a page to the glossary.
fn target(page: &str, anchor: &str) -> String {
    let up = "../".repeat(page.matches('/').count());
    let path = match Path::new(page).parent() {
        Some(folder) if GLOSSARY.starts_with(&format!("{}/", folder.display())) => {
            "glossary.md".to_owned()
        }
        _ => format!("{up}{GLOSSARY}"),
    };
    format!("{path}#{anchor}")
}

#[test]
fn every_entry_is_linked_at_its_first_use() {
    let book = root().join("book/src");
    let glossary = std::fs::read_to_string(book.join(GLOSSARY)).expect("a glossary");
    let entries = entries(&glossary);
    let mut anchors: BTreeMap<&str, usize> = BTreeMap::new();
    for (i, entry) in entries.iter().enumerate() {
        let before = anchors.insert(&entry.anchor, i);
        assert!(before.is_none(), "two entries of the glossary are {}", entry.anchor);
    }
    let pages = pages();
    for page in &pages {
        for (range, anchor) in &page.links {
            assert!(
                anchors.contains_key(&anchor[..]),
                "{}:{} links the glossary's #{anchor}, which it does not have",
                page.name,
                line(&page.text, range.start)
            );
        }
    }
    // The longest name first: a thread block is no block.
    let mut names: Vec<(&[String], usize)> = Vec::new();
    for (i, entry) in entries.iter().enumerate() {
        names.extend(entry.names.iter().map(|name| (&name[..], i)));
    }
    names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    let mut seen = vec![false; entries.len()];
    let mut missing: Vec<(&Page, Range<usize>, &str)> = Vec::new();
    for page in &pages {
        let words = words(&page.prose);
        let mut at = 0;
        while at < words.len() {
            let found =
                names.iter().find_map(|(name, i)| Some((matches(page, &words, at, name)?, *i)));
            let Some((end, i)) = found else {
                at += 1;
                continue;
            };
            let place = words[at].1.start..words[end - 1].1.end;
            let anchor = &entries[i].anchor;
            let covers = |(range, to): &(Range<usize>, String)| {
                to == anchor && range.start <= place.start && place.end <= range.end
            };
            if !std::mem::replace(&mut seen[i], true) && !page.links.iter().any(covers) {
                missing.push((page, place, anchor));
            }
            at = end;
        }
    }
    let unused: Vec<_> =
        entries.iter().zip(&seen).filter(|(_, s)| !**s).map(|(e, _)| &e.anchor).collect();
    assert!(unused.is_empty(), "the book uses no word of {unused:?}");
    let mut told = String::new();
    for (page, place, anchor) in &missing {
        let shown = page.text[place.clone()].replace('\n', " ");
        let link = target(&page.name, anchor);
        let _ = writeln!(
            told,
            "book/src/{}:{}: [{shown}]({link})",
            page.name,
            line(&page.text, place.start)
        );
    }
    if !missing.is_empty() && std::env::var_os("UPDATE_EXPECT").is_some() {
        for page in &pages {
            let mut text = page.text.clone();
            let here = missing.iter().filter(|(p, ..)| p.name == page.name);
            for (_, place, anchor) in here.rev() {
                let link = format!("]({})", target(&page.name, anchor));
                text.insert_str(place.end, &link);
                text.insert(place.start, '[');
            }
            if text != page.text {
                std::fs::write(book.join(&page.name), text).expect("pages can be written");
            }
        }
    } else {
        assert!(
            missing.is_empty(),
            "the first use of these words is no link to the glossary:\n{told}"
        );
    }
}

#[test]
fn the_book_uses_one_word_for_one_thing() {
    let mut found = String::new();
    for page in pages() {
        let words = words(&page.prose);
        for (avoided, instead, allowed) in AVOIDED {
            if allowed.contains(&&page.name[..]) {
                continue;
            }
            let as_word =
                words.iter().filter(|(word, _)| word == avoided).map(|(_, range)| range.start);
            let as_sign = page.prose.match_indices(avoided).map(|(at, _)| at);
            let places: Vec<usize> =
                if avoided.contains('/') { as_sign.collect() } else { as_word.collect() };
            for at in places {
                let _ = writeln!(
                    found,
                    "book/src/{}:{}: `{avoided}` is `{instead}` in this book",
                    page.name,
                    line(&page.text, at)
                );
            }
        }
    }
    assert!(found.is_empty(), "\n{found}");
}
