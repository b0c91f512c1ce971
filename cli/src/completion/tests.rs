use clap::CommandFactory as _;
use roundelay::select;

use super::candidates::known;
use super::*;
use crate::command::Cli;

/// Returns the words that complete a call, of which the last word is begun.
fn found(call: &[&str]) -> Vec<String> {
    let mut command = Cli::command();
    command.build();
    let words: Vec<String> = call.iter().map(|word| (*word).to_owned()).collect();
    candidates(&command, &words, words.len() - 1).into_iter().map(|found| found.word).collect()
}

#[test]
fn names_of_the_library_stand_where_an_algorithm_does() {
    let library: Vec<_> = select::library().iter().map(roundelay::Algorithm::name).collect();
    let calls: [&[&str]; 8] = [
        &["roundelay", "check", ""],
        &["roundelay", "check", "mine.coll", ""],
        &["roundelay", "-v", "run", "-n", "8", "--in-place", ""],
        &["roundelay", "bench", "-b", "1K", ""],
        &["roundelay", "emit", "cuda", "--op", "max", ""],
        &["roundelay", "simulate", ""],
        &["roundelay", "list", ""],
        &["roundelay", "signals", "--nranks=4", ""],
    ];
    for call in calls {
        let words = found(call);
        let missing: Vec<_> =
            library.iter().filter(|name| !words.iter().any(|w| w == *name)).collect();
        assert!(missing.is_empty(), "{call:?} lacks {missing:?}");
    }
    assert_eq!(found(&["roundelay", "check", "RingAllR"]), ["RingAllReduce"]);
    assert_eq!(found(&["roundelay", "check", "ringallr"]), ["RingAllReduce"]);
    // The last of a list.
    assert_eq!(found(&["roundelay", "bench", "A,RingAllR"]), ["A,RingAllReduce"]);
}

#[test]
fn values_have_the_words_of_their_kinds() {
    let is = |call: &[&str], expected: &[&str]| {
        assert_eq!(found(&[&["roundelay"], call].concat()), expected, "{call:?}");
    };
    is(&["run", "A", "--dtype", "f8"], &["f8e4m3", "f8e5m2"]);
    is(&["bench", "A", "-d", "f32,bf"], &["f32,bf16"]);
    is(&["bench", "A", "-of32", "-o", "lx"], &["lxor"]);
    is(&["bench", "--dry-run", "--gpu", "H2"], &["H200"]);
    is(&["synthesize", "All"], &["AllReduce", "AllGather", "AllToAll"]);
    is(&["bench", "--collective", "allr"], &["AllReduce"]);
    is(
        &["explain", "e030"],
        &found(&["roundelay", "explain", "E030"]).iter().map(String::as_str).collect::<Vec<_>>(),
    );
    is(&["explain", "ord"], &["order"]);
    is(&["check", "A", "--deny", "warn"], &["warnings"]);
    is(&["simulate", "A", "--topology", "full"], &["full_mesh(ranks, bandwidth, latency)"]);
    is(&["simulate", "A", "--topology", "\"full"], &["full_mesh(ranks, bandwidth, latency)"]);
    is(&["run", "A", "--format", ""], &["human", "json"]);
    is(&["run", "A", "--format=j"], &["--format=json"]);
    // As bash splits it.
    is(&["run", "A", "--format", "=", "j"], &["json"]);
    is(&["--color", "a"], &["auto", "always"]);
    is(&["run", "A", "--nran"], &["--nranks"]);
    is(&["emit", "msc"], &["msccl", "mscclpp"]);
    is(&["ch"], &["check"]);
    is(&["run", "--", "RingAllR"], &["RingAllReduce"]);
    is(&["run", "A", "--", "RingAllR"], &[]);
    is(
        &["ps", ""],
        &found(&["roundelay", "ps", "-"]).iter().map(String::as_str).collect::<Vec<_>>(),
    );
    assert!(found(&["roundelay", "explain", "E03"]).contains(&"E0301".to_owned()));
}

#[test]
fn files_stand_where_a_file_does() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for name in ["one.coll", "two.txt", ".hidden.coll", "two words.coll"] {
        std::fs::write(folder.path().join(name), "").expect("a file");
    }
    std::fs::create_dir(folder.path().join("folder")).expect("a folder");
    let dir = folder.path().to_str().expect("text");
    let of = |words: &[&str]| {
        let (last, before) = words.split_last().expect("a word");
        let last = format!("{dir}/{last}");
        let call = [&["roundelay"], before, &[&*last]].concat();
        let strip = |word: String| word.rsplit_once(&format!("{dir}/")).unwrap().1.to_owned();
        found(&call).into_iter().map(strip).collect::<Vec<_>>()
    };
    assert_eq!(of(&["check", ""]), ["folder/", "one.coll", "two words.coll"]);
    assert_eq!(of(&["check", ".h"]), [".hidden.coll"]);
    assert_eq!(of(&["topo", "tw"]), ["two words.coll", "two.txt"]);
    assert_eq!(of(&["fmt", "one.coll", "tw"]), ["two words.coll", "two.txt"]);
    assert_eq!(of(&["emit", "cuda", "A", "-o", "f"]), ["folder/"]);
}

/// A name in the table that no argument has would complete nothing.
#[test]
fn every_name_of_a_value_is_one_of_an_argument() {
    fn collect(command: &Command, names: &mut Vec<String>) {
        for arg in command.get_arguments() {
            names.push(arg.get_id().to_string());
            names.extend(arg.get_value_names().into_iter().flatten().map(ToString::to_string));
        }
        command.get_subcommands().for_each(|sub| collect(sub, names));
    }
    let mut command = Cli::command();
    command.build();
    let mut names = Vec::new();
    collect(&command, &mut names);
    for name in known() {
        assert!(names.iter().any(|arg| arg == name), "no argument has `{name}`");
    }
}
