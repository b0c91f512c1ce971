//! The values of arguments: of a few words, of names that the command knows, or of files.

use std::fs;

use clap::Arg;
use roundelay::library::SOURCES;
use roundelay::{Collective, DType, ReduceOp};
use roundelay_core::diagnostics::{Code, Severity};
use roundelay_kernels::grid::Gpu;
use roundelay_topology::shape::ShapeKind;

use super::CompletedWord;

/// The things that values name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ValueKind {
    Algorithms,
    Collectives,
    Executors,
    DTypes,
    Ops,
    Topologies,
    Codes,
    Warnings,
    Gpus,
    /// Sources, and files of other forms that stand in their places.
    Sources,
    Files,
}

/// The arguments by the names of their values, or by their own names where others have values of that name.
const NAMED: &[(&str, &[ValueKind])] = &[
    ("SOURCE", &[ValueKind::Algorithms, ValueKind::Sources]),
    ("ALGORITHM|FILE", &[ValueKind::Algorithms, ValueKind::Sources]),
    ("SOURCE|COLLECTIVE", &[ValueKind::Collectives, ValueKind::Algorithms, ValueKind::Sources]),
    ("COLLECTIVE", &[ValueKind::Collectives]),
    ("COLLECTIVE|FILE", &[ValueKind::Collectives, ValueKind::Files]),
    ("NAME|FILE", &[ValueKind::Executors, ValueKind::Sources]),
    ("DTYPE", &[ValueKind::DTypes]),
    ("DTYPES", &[ValueKind::DTypes]),
    ("OP", &[ValueKind::Ops]),
    ("OPS", &[ValueKind::Ops]),
    ("FILE|TEXT", &[ValueKind::Topologies, ValueKind::Files]),
    ("CODE", &[ValueKind::Codes]),
    ("WARNING", &[ValueKind::Warnings]),
    ("gpu", &[ValueKind::Gpus]),
    ("FILE", &[ValueKind::Files]),
    ("DIR", &[ValueKind::Files]),
    ("FILE|DIR", &[ValueKind::Files]),
    ("PROGRAM", &[ValueKind::Files]),
];

/// Returns the values of an argument that go on from what is typed.
pub(super) fn values(arg: &Arg, typed: &str) -> Vec<CompletedWord> {
    let named =
        |name: &str| NAMED.iter().find(|(known, _)| *known == name).map(|(_, named)| *named);
    let value = arg.get_value_names().and_then(<[_]>::first).map_or("", |name| name);
    let named = named(arg.get_id().as_str()).or_else(|| named(value)).unwrap_or_default();
    // Of a list, the last word is typed.
    let lists = arg.get_value_delimiter().is_some() || value.ends_with('S');
    let (head, typed) =
        match typed.rfind(',').filter(|_| lists && !named.contains(&ValueKind::Topologies)) {
            Some(comma) => typed.split_at(comma + 1),
            None => ("", typed),
        };
    let possible = arg.get_possible_values();
    let possible = possible.iter().filter(|value| !value.is_hide_set() && super::takes(arg));
    let help = |value: &clap::builder::PossibleValue| {
        value.get_help().map(ToString::to_string).unwrap_or_default()
    };
    let mut words: Vec<_> =
        possible.map(|value| CompletedWord::new(value.get_name(), help(value))).collect();
    words.extend(named.iter().flat_map(|named| named.words()));
    let begins = |found: &CompletedWord, exact: bool| match (found.word.get(..typed.len()), exact) {
        (Some(begin), true) => begin == typed,
        (Some(begin), false) => begin.eq_ignore_ascii_case(typed),
        (None, _) => false,
    };
    // Names in other letters are offered where none is as it is typed.
    let exact = words.iter().any(|found| begins(found, true));
    words.retain(|found| begins(found, exact));
    for named in named.iter().filter(|named| matches!(named, ValueKind::Sources | ValueKind::Files))
    {
        words.extend(files(typed, *named == ValueKind::Sources));
    }
    words
        .into_iter()
        .map(|found| CompletedWord { word: format!("{head}{}", found.word), ..found })
        .collect()
}

impl ValueKind {
    /// Returns the words, without files.
    fn words(self) -> Vec<CompletedWord> {
        let plain = |word: &str, about: &str| CompletedWord::new(word, about);
        match self {
            Self::Algorithms => algorithms().map(|(name, of)| plain(name, of)).collect(),
            Self::Collectives => Collective::ALL.iter().map(|c| plain(c.name(), "")).collect(),
            Self::Executors => {
                let names = roundelay::executor::names();
                names.iter().map(|name| plain(name, "executor")).collect()
            }
            Self::DTypes => DType::ALL.iter().map(|dtype| plain(dtype.name(), "")).collect(),
            Self::Ops => {
                let about = |op: &ReduceOp| if op.is_for_integers() { "for integers" } else { "" };
                ReduceOp::ALL.iter().map(|op| plain(op.name(), about(op))).collect()
            }
            Self::Topologies => {
                ShapeKind::ALL.iter().map(|kind| plain(kind.form(), "a topology")).collect()
            }
            Self::Codes => {
                let codes = Code::ALL.iter().map(|code| plain(code.as_str(), code.summary()));
                let topics = roundelay_book::TOPICS.iter();
                codes.chain(topics.map(|(topic, _)| plain(topic, "a topic"))).collect()
            }
            Self::Warnings => {
                let codes = Code::ALL.iter().filter(|code| code.severity() == Severity::Warning);
                let all = plain("warnings", "all of them");
                codes.map(|code| plain(code.as_str(), code.summary())).chain([all]).collect()
            }
            Self::Gpus => Gpu::NAMES.iter().map(|name| plain(name, "")).collect(),
            Self::Sources | Self::Files => Vec::new(),
        }
    }
}

/// Returns the public algorithms of the library with their collectives, without compiling it: a key should not wait.
fn algorithms() -> impl Iterator<Item = (&'static str, &'static str)> {
    let heads = SOURCES.iter().flat_map(|(_, text)| text.split("\npub algorithm ").skip(1));
    heads.filter_map(|head| {
        let (name, rest) = head.split_once('(')?;
        let (_, collective) = rest.split_once("-> ")?;
        Some((name, collective.split(|c: char| !c.is_alphanumeric()).next()?))
    })
}

/// Returns the folders and files that a path goes on to; of sources, those that a command reads as such.
fn files(typed: &str, sources: bool) -> Vec<CompletedWord> {
    let (folder, begin) =
        typed.rsplit_once('/').map_or(("", typed), |(folder, begin)| (folder, begin));
    let head = &typed[..typed.len() - begin.len()];
    let read = match (folder, head) {
        ("", "") => fs::read_dir("."),
        ("", root) => fs::read_dir(root),
        (folder, _) => fs::read_dir(folder),
    };
    let entries = read.into_iter().flatten().flatten();
    let mut found: Vec<_> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let fits =
                name.starts_with(begin) && (!name.starts_with('.') || begin.starts_with('.'));
            let path = entry.path();
            let is_source = || {
                let end = path.extension().and_then(|end| end.to_str());
                end.is_some_and(|end| ["coll", "json", "xml"].contains(&end))
            };
            // A name that breaks a line would be two.
            let shown = fits && !name.contains(char::is_control);
            let is_folder = path.is_dir();
            let slash = if is_folder { "/" } else { "" };
            (shown && (is_folder || !sources || is_source()))
                .then(|| CompletedWord::new(format!("{head}{name}{slash}"), ""))
        })
        .collect();
    found.sort_unstable();
    found
}

/// Returns the names of values that arguments have and that no line of [`NAMED`] is about, for the test.
#[cfg(test)]
pub(super) fn known() -> Vec<&'static str> {
    NAMED.iter().map(|(name, _)| *name).collect()
}
