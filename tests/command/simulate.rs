//! `simulate`: its pictures.

use super::call::{Call, TempFile, roundelay};

fn simulate(args: &[&str]) -> Call {
    roundelay(&[&["simulate"], args].concat())
}

/// Runs by the latencies and bandwidths of the links alone, which are computed by hand.
const MESSAGES: [&str; 2] = ["--costs", "messages"];

/// Flags choose the content of a picture; names that do not exist are refused.
#[test]
fn pictures_of_a_part() {
    let mesh =
        ["RingAllReduce", "--topology", "full_mesh(64, 25GB/s, 2us)", MESSAGES[0], MESSAGES[1]];
    let with = |more: &[&str]| simulate(&[&mesh[..], more].concat());
    let (svg, html) = (TempFile::new("run.svg", b""), TempFile::new("run.html", b""));
    let read = |file: &TempFile| std::fs::read_to_string(file.path()).expect("a picture");

    let call = with(&["--bytes", "64MiB", "--svg", svg.path()]).ends(0);
    let picture = read(&svg);
    assert!(
        picture
            .contains(">RingAllReduce, 64 ranks, 64 MiB on full_mesh(64, 25GB/s, 2us); messages")
    );
    assert!(picture.contains("class=\"flow\""), "64 ranks are a matrix");
    assert!(call.err.contains("8064 messages are too many for arrows"), "{}", call.err);

    let part = ["--ranks", "0..8", "--rounds", "1..=4", "--width", "900", "--bytes", "64MB"];
    let call = with(&[&part[..], &["--svg", svg.path(), "--html", html.path()]].concat()).ends(0);
    assert!(!call.err.contains("note:"), "{}", call.err);
    assert!(call.out.contains("of 64 MB on 64 ranks"), "{}", call.out);
    let (picture, page) = (read(&svg), read(&html));
    assert!(
        picture.contains(">RingAllReduce, 64 ranks, 64 MB on full_mesh(64, 25GB/s, 2us); messages")
    );
    assert!(picture.contains(">8 of 64 ranks, rounds 1 to 4 of 126, 28 messages, "));
    assert!(picture.contains(" width=\"900\" "));
    assert!(page.contains("<code>reduce(left.block[b], local.block[b]);</code>"));
    assert!(page.contains(">ring.coll:27<") && page.contains("id=\"fit\""));

    let call = with(&["--view", "arrows", "--svg", svg.path()]).ends(0);
    assert!(!call.err.contains("note:") && !read(&svg).contains("class=\"flow\""), "{}", call.err);
}
