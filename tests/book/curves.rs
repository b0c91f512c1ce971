//! Pictures that take too long to be drawn by every run of the tests: `x.curves` holds a command, `x.svg` its picture
//! for a whole range of rank counts. The test compares some of its points with a run of those counts alone.

use std::collections::BTreeSet;
use std::path::Path;

use roundelay_tests::{files, root};

use crate::book::{console, read};

/// The range of the commands, and the counts that are compared: few ranks, and some on both sides of powers of two.
const ALL: &str = "--nranks 2..=128";
const SOME: &str = "--nranks 2,3,5,8,9,16,31,33,64,100,128";

#[test]
fn the_curves_go_through_the_points_that_the_command_finds() {
    let commands = files(&root().join("book/src"), "curves");
    assert!(commands.len() >= 6, "{} curves alone", commands.len());
    for path in commands {
        let command = read(&path);
        let (command, folder) = (command.trim(), path.parent().expect("a file has a folder"));
        assert!(command.contains(ALL), "{command}: the curves have {ALL}");
        let some = console::drawn(&command.replace(ALL, SOME), folder);
        let picture = path.with_extension("svg");
        let drawn = std::fs::read_to_string(&picture).unwrap_or_default();
        if let Err(why) = agree(&drawn, &some) {
            assert!(
                std::env::var_os("UPDATE_EXPECT").is_some(),
                "{} is stale, UPDATE_EXPECT=1 draws it anew: {why}",
                picture.display()
            );
            draw(command, folder, &picture);
        }
    }
}

/// Draws the whole range, which must hold the points of a part of it.
fn draw(command: &str, folder: &Path, picture: &Path) {
    let drawn = console::drawn(command, folder);
    let points = drawn.matches("<circle ").count();
    assert!(points >= 127, "{}: {points} points for 127 rank counts", picture.display());
    std::fs::write(picture, drawn).expect("the book's folder is there");
}

/// Checks that a picture has the points of another picture, which has fewer, in an equal style.
fn agree(drawn: &str, some: &str) -> Result<(), String> {
    let style = |text: &str| between(text, "<style>", "</style>").first().cloned();
    if style(drawn) != style(some) {
        return Err("it has another style".to_owned());
    }
    let points =
        |text: &str| between(text, "<title>", "</title>").into_iter().collect::<BTreeSet<_>>();
    let found = points(drawn);
    match points(some).difference(&found).next() {
        Some(missing) => Err(format!("it lacks `{missing}`")),
        None => Ok(()),
    }
}

/// Returns the texts between two words, at each occurrence.
fn between(text: &str, open: &str, close: &str) -> Vec<String> {
    let parts = text.split(open).skip(1);
    parts.filter_map(|part| Some(part.split_once(close)?.0.to_owned())).collect()
}

#[test]
fn a_stale_picture_is_seen() {
    let picture = |time: &str, style: &str| {
        let point =
            |n: u32, time: &str| format!("<circle><title>A: {n} ranks, {time}</title></circle>");
        format!("<style>{style}</style>{}{}", point(2, "1 us"), point(3, time))
    };
    let some = "<style>s</style><circle><title>A: 3 ranks, 2 us</title></circle>";
    assert_eq!(agree(&picture("2 us", "s"), some), Ok(()));
    assert!(agree(&picture("3 us", "s"), some).is_err());
    assert!(agree(&picture("2 us", "t"), some).is_err());
    assert!(agree("", some).is_err());
}
