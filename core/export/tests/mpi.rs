//! Files of C for MPI: a form that differs from its messages is found, and peers have names where they are one.

use roundelay_core::check::Frontend;
use roundelay_core::check::dependencies::Dependencies;
use roundelay_core::compile_with;
use roundelay_core::layout::Configured;
use roundelay_core::messages::TwoSided;
use roundelay_core::syntax::Source;
use roundelay_core::verify::Proved;
use roundelay_export::loops::text::{parse, print};
use roundelay_export::mpi::{Export, form, is_form, mpi};
use roundelay_library::SOURCES;

/// The algorithm of a source with this name.
fn named(file: &str, text: &str, name: &str) -> Option<Configured> {
    let source = Source::from_text(file, text);
    let library = Dependencies::library(SOURCES);
    let checked = compile_with(&source, Frontend::File, &library).ok()?;
    let found = checked.algorithms.into_iter().find(|found| found.name == name)?;
    Some(Configured::new(found, &source))
}

fn proved(name: &str, nranks: u32) -> (Proved, TwoSided) {
    let mut all = SOURCES.iter().filter_map(|(file, text)| named(file, text, name));
    let algorithm = all.next().expect("the library has it");
    let proved = roundelay_core::prove(&algorithm, nranks).expect("it is right");
    let form = TwoSided::new(&proved).expect("it has messages");
    (proved, form)
}

/// Returns the end of the brackets that open at a place.
fn closing(text: &str, open: usize) -> usize {
    let mut depth = 0;
    for (at, c) in text[open..].char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return open + at + 1;
        }
    }
    panic!("{text} does not end")
}

/// Returns the places of the numbers of a statement: of literals, names, expressions in parentheses, calls, and entries of
/// tables; of an entry that is a whole piece the places of its indices.
fn numbers(statement: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut at = 0;
    let word = |c: char| c.is_ascii_alphanumeric() || "_%#@-".contains(c);
    while let Some(c) = statement[at..].chars().next() {
        let end = statement[at..].find(|c| !word(c)).map_or(statement.len(), |len| at + len);
        let list = statement.trim_start().starts_with("do ");
        if c == '(' && !list {
            let end = closing(statement, at);
            found.push((at, end));
            at = end;
        } else if end == at {
            at += c.len_utf8();
        } else {
            let name = &statement[at..end];
            let next = statement[end..].chars().next();
            let piece = next == Some('[') && statement[..at].ends_with('[');
            let entry = name.starts_with('t') && name[1..].parse::<u32>().is_ok();
            let whole = match next {
                Some('(') => true,
                Some('[') => entry && !piece,
                _ => false,
            };
            let bound =
                ["for ", "do ", "let ", "on "].iter().any(|word| statement[..at].ends_with(word));
            let number = name.parse::<i64>().is_ok() || name.starts_with('%');
            if whole {
                let end = closing(statement, end);
                found.push((at, end));
                at = end;
                continue;
            }
            if !bound && (number || ["me", "nranks"].contains(&name)) {
                found.push((at, end));
            }
            at = end;
        }
    }
    found
}

/// Returns the text of a form with one mistake: without a statement, with a statement twice, or with another number.
fn mistaken(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let mut all = Vec::new();
    let joined = |parts: &[&[&str]]| parts.concat().join("\n") + "\n";
    // Statements are indented; a block ends in a line of its own.
    let statement = |line: &str| line.starts_with(' ') && !line.trim_start().starts_with('}');
    for at in (0..lines.len()).filter(|at| statement(lines[*at])) {
        let mut depth = 0;
        let ends = |line: &&str| {
            depth = depth + line.matches('{').count() - line.matches('}').count();
            depth == 0
        };
        let end = at + 1 + lines[at..].iter().position(ends).expect("it ends");
        all.push(joined(&[&lines[..at], &lines[end..]]));
        all.push(joined(&[&lines[..end], &lines[at..end], &lines[end..]]));
        for (from, to) in numbers(lines[at]) {
            let (line, number) = (lines[at], &lines[at][from..to]);
            let other = format!("{}({number} + 1){}", &line[..from], &line[to..]);
            all.push(joined(&[&lines[..at], &[&other], &lines[at + 1..]]));
        }
    }
    all
}

/// Every statement of a form, and every number in it, is compared with what was proved: a message to another rank, a
/// request that is in use, awaited twice or never, and a reduction that is left out are found.
#[test]
fn a_form_that_differs_from_its_messages_is_found() {
    let mut many = 0;
    for name in ["RingAllReduce", "NcclRingAllReduce", "TreesAllReduce", "MeshAround"] {
        let (_, two_sided) = proved(name, 4);
        let part = two_sided.part(None);
        let loops = form(&part).expect("there are few pieces");
        let text = print(&loops);
        assert!(is_form(&loops, &part), "{name}: {text}");
        assert_eq!(parse(&text).as_ref(), Ok(&loops));
        for mistaken in mistaken(&text) {
            let read = parse(&mistaken).unwrap_or_else(|why| panic!("{name}: {why}: {mistaken}"));
            assert!(!is_form(&read, &part), "{name}: {mistaken}");
            many += 1;
        }
    }
    assert!(many > 1000, "{many} mistakes");
}

/// A peer that changes with the iteration has no name outside its loop.
#[test]
fn only_what_is_one_peer_throughout_has_a_name() {
    let names = |name: &str, nranks| {
        let (author, two_sided) = proved(name, nranks);
        let part = two_sided.part(None);
        let export =
            Export { form: &part, author: author.proof(), command: "", docs: &[], source: None };
        let text = mpi(&export).expect("there are few pieces").text;
        let named = text.lines().map(str::trim).filter(|line| line.starts_with("const int "));
        let peers = named
            .filter(|line| ["to", "from"].contains(&line[10..].split(' ').next().unwrap_or("")));
        peers.map(str::to_owned).collect::<Vec<_>>()
    };
    let ring = ["const int to = (rank + 1) % RANKS;", "const int from = (rank + 3) % RANKS;"];
    assert_eq!(names("RingAllReduce", 4), ring);
    assert_eq!(names("MeshAround", 4), [""; 0]);
    assert_eq!(names("TreeBroadcast", 2), [""; 0]);
}
