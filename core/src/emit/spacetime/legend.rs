//! What stands above and below the bands: the title, the meaning of colours, what is left out. It also closes the file.

use std::fmt::Write as _;

use super::scale::{LEFT, time_text};
use super::{AXIS, Diagram, MARGIN, STYLE};
use crate::emit::picture::{LETTER, escaped, px, wrapped};
use crate::simulate::State;

/// From a line of text to the next.
const LINE: f64 = 19.0;
/// The sample in front of an entry.
const SAMPLE: f64 = 38.0;
/// Heads of arrows, and the pattern of what waits.
const MARKS: [&str; 3] = ["up", "down", "signal"];

/// The whole file around what was drawn.
pub(super) fn finish(diagram: &Diagram<'_>, title: &str, body: &str) -> String {
    let wide = LEFT + diagram.scale.wide;
    let letters = (wide / LETTER) as usize;
    let mut text = String::new();
    let mut line = |class: &str, y: f64, words: &str| {
        let (x, y, words) = (px(MARGIN), px(y), escaped(words));
        let _ = writeln!(text, r#"<text class="{class}" x="{x}" y="{y}">{words}</text>"#);
    };
    let mut y = MARGIN + 12.0;
    for words in wrapped(title, letters * 3 / 4) {
        line("title", y, &words);
        y += LINE + 2.0;
    }
    for words in wrapped(&counted(diagram), letters) {
        line("small", y, &words);
        y += LINE;
    }
    let top = y + 8.0 + AXIS;
    let bottom = top + diagram.bands.height() + AXIS;
    let mut at = (MARGIN, bottom + 28.0);
    let mut entries = String::new();
    for (sample, words) in entries_of(diagram) {
        let room = SAMPLE + words.chars().count() as f64 * LETTER + 16.0;
        if at.0 > MARGIN && at.0 + room > MARGIN + wide {
            at = (MARGIN, at.1 + LINE);
        }
        let _ = writeln!(
            entries,
            r#"<g transform="translate({} {})">{sample}<text class="small" x="{}" y="4">{}</text></g>"#,
            px(at.0),
            px(at.1),
            px(SAMPLE),
            escaped(words)
        );
        at.0 += room;
    }
    for words in missing(diagram).iter().flat_map(|words| wrapped(words, letters)) {
        at.1 += LINE;
        line("small", at.1 + 4.0, &words);
    }
    let (wide, tall) = (px(wide + 2.0 * MARGIN), px(at.1 + MARGIN));
    let mut marks = String::new();
    for mark in MARKS {
        let _ = writeln!(
            marks,
            r#"<marker id="{mark}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="5" markerHeight="5" orient="auto"><path class="head {mark}" d="M0 .5L8 4L0 7.5Z"/></marker>"#
        );
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {wide} {tall}\" width=\"{wide}\" height=\"{tall}\" role=\"img\">\n\
         <title>{}</title>\n<style>\n{STYLE}</style>\n<defs>\n{marks}\
         <pattern id=\"waits\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">\
         <path class=\"waits\" d=\"M0 0V5\"/></pattern>\n</defs>\n\
         <rect class=\"page\" width=\"{wide}\" height=\"{tall}\"/>\n{text}\
         <g class=\"run\" transform=\"translate({} {})\">\n{body}</g>\n{entries}</svg>\n",
        escaped(title),
        px(MARGIN),
        px(top)
    )
}

/// `8 ranks, 14 rounds, 112 messages, 101.4 us`
pub(super) fn counted(diagram: &Diagram<'_>) -> String {
    let rounds = &diagram.rounds.all;
    let messages = rounds.iter().map(|r| r.messages).sum();
    let parts = [
        plural(u64::from(diagram.bands.nranks), "rank"),
        plural(rounds.len() as u64, "round"),
        plural(messages, "message"),
        time_text(diagram.timeline.seconds),
    ];
    parts.join(", ")
}

/// `1 rank`, `2 ranks`
pub(super) fn plural(count: u64, one: &str) -> String {
    format!("{count} {one}{}", if count == 1 { "" } else { "s" })
}

/// Samples of what there is, with what they mean.
fn entries_of(diagram: &Diagram<'_>) -> Vec<(String, &'static str)> {
    let arrow = |class: &str, head: &str| {
        format!(r#"<path class="arrow {class}" marker-end="url(#{head})" d="M0 0L30 0"/>"#)
    };
    let bar = |class: &str| {
        format!(
            r#"<rect class="band" x="0" y="-6" width="30" height="12"/><rect class="{class}" x="0" y="-6" width="30" height="12"/>"#
        )
    };
    let mut all = Vec::new();
    for (state, class, words) in [
        (State::Transfer, "transfer", "moves data from or to another rank"),
        (State::Local, "local", "works at home"),
        (State::Idle, "idle", "waits for a signal"),
    ] {
        if diagram.bars.iter().any(|bar| bar.state == state) {
            all.push((bar(class), words));
        }
    }
    all.push((bar("band"), "does nothing"));
    for (down, class, words) in
        [(true, "down", "data to a higher rank"), (false, "up", "data to a lower rank")]
    {
        if diagram.arrows.data.iter().any(|arrow| arrow.down == down) {
            all.push((arrow(class, class), words));
        }
    }
    if !diagram.arrows.signals.is_empty() {
        all.push((arrow("signal", "signal"), "signal"));
    }
    all
}

/// What is left out, and what stands for more than itself.
pub(super) fn missing(diagram: &Diagram<'_>) -> Vec<String> {
    let (arrows, bands) = (&diagram.arrows, &diagram.bands);
    let mut all = Vec::new();
    if arrows.data_missing > 0 {
        all.push(format!(
            "{} messages are too many for arrows and are not drawn.",
            arrows.data_missing
        ));
    }
    if arrows.signals_missing > 0 {
        all.push(format!("{} signals are not drawn.", arrows.signals_missing));
    }
    if bands.rows < bands.streams {
        all.push(format!(
            "Up to {} streams of a rank share {}.",
            bands.streams,
            plural(u64::from(bands.rows), "row")
        ));
    }
    if diagram.bars.len() < diagram.timeline.spans.len() {
        all.push("Ops that are too short to see are drawn as one bar, or not at all.".to_owned());
    }
    all
}
