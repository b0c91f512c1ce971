//! The text above and below the bands: the title, the meaning of colors, and notes on omitted parts. It also completes
//! the file.

use roundelay_core::units::wrap;
use std::fmt::Write as _;

use super::bands::Work;
use super::cells;
use super::matrix::{Matrix, Moment};
use super::scale::{short, time_text};
use super::shares::LEVELS;
use super::{AXIS, Diagram, MARGIN, STYLE, bar_class, gaps};
use crate::picture::{self, LETTER, LINE, caption, legend, page, px};
use roundelay_core::units::count;
use roundelay_simulate::TimelineState;

/// The most ranks whose arrows can be told apart.
const FEW: u32 = 8;
/// The room above the matrix, for the heading of its columns.
const HEADING: f64 = 14.0;
/// The heads of arrows: they differ in shape too, not only in color.
const MARKS: [(&str, &str); 3] = [
    ("reduces", "M0 .5L8 4L0 7.5Z"),
    ("copies", "M.8 .8L7 4L.8 7.2"),
    ("signal", "M0 .5L8 4L0 7.5Z"),
];

/// Returns the whole file with the drawing `body`.
pub(super) fn finish(diagram: &Diagram<'_>, body: &str) -> String {
    let (title, wide) = (diagram.drawing.title, diagram.width());
    let letters = (wide / LETTER) as usize;
    let mut text = String::new();
    let ring =
        diagram.shown.reordered().then(|| "The ranks are in the order of the ring.".to_owned());
    let said = std::iter::once(counted(diagram)).chain(instead(diagram)).chain(ring);
    let said = said.flat_map(|said| wrap(&said, letters));
    let y = caption(&mut text, MARGIN, (title, letters), said);
    let heading = if diagram.matrix.is_some() { HEADING } else { 0.0 };
    let top = y + 8.0 + AXIS + heading;
    let bottom = top + diagram.height() + AXIS;
    let mut entries = String::new();
    let mut y = legend(&mut entries, (MARGIN, bottom + 28.0), wide, entries_of(diagram));
    for words in missing(diagram).iter().flat_map(|words| wrap(words, letters)) {
        y += LINE;
        picture::text(&mut text, "small", (MARGIN, y + 4.0), &words);
    }
    let mut marks = String::new();
    for (mark, shape) in MARKS {
        let _ = writeln!(
            marks,
            r#"<marker id="{mark}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6" markerHeight="6" markerUnits="userSpaceOnUse" orient="auto"><path class="head {mark}" d="{shape}"/></marker>"#
        );
    }
    for (pattern, size) in [("waits", 5), ("folds", 4), ("folds-home", 4)] {
        let _ = writeln!(
            marks,
            r#"<pattern id="{pattern}" width="{size}" height="{size}" patternUnits="userSpaceOnUse" patternTransform="rotate({})"><rect class="{pattern}-ground" width="{size}" height="{size}"/><path class="{pattern}" d="M0 0V{size}"/></pattern>"#,
            if pattern == "waits" { 45 } else { -45 }
        );
    }
    let body = format!(
        "{text}<g class=\"run\" transform=\"translate({} {})\">\n{body}</g>\n{entries}",
        px(MARGIN),
        px(top)
    );
    let definitions = format!("<defs>\n{marks}</defs>\n");
    page(title, (wide + 2.0 * MARGIN, y + MARGIN), (STYLE, &definitions), &body)
}

/// Returns the counts of the drawn part, for example `8 ranks, 14 rounds, 112 messages, 101.4 us`.
pub(super) fn counted(diagram: &Diagram<'_>) -> String {
    let shown = &diagram.shown;
    let (ranks, all) = (shown.ranks.len() as u64, u64::from(diagram.schedule.nranks));
    let rounds = diagram.rounds.all.len() as u64;
    let parts = [
        if ranks == all {
            count(all, "rank")
        } else {
            format!("{ranks} of {}", count(all, "rank"))
        },
        match shown.rounds.len() {
            _ if shown.whole(&diagram.rounds) => count(rounds, "round"),
            1 => format!("round {} of {rounds}", shown.rounds.end),
            _ => format!("rounds {} to {} of {rounds}", shown.rounds.start + 1, shown.rounds.end),
        },
        count(messages(diagram), "message"),
        time_text(diagram.timeline.seconds),
    ];
    parts.join(", ")
}

/// Returns the number of messages with data that are drawn from rank to rank.
pub(super) fn messages(diagram: &Diagram<'_>) -> u64 {
    let rounds = &diagram.shown.rounds;
    let of = &diagram.rounds.all[rounds.start as usize..rounds.end as usize];
    of.iter().map(|round| round.messages).sum()
}

/// Returns a note that explains the missing arrows, and the flags to get them.
fn instead(diagram: &Diagram<'_>) -> Option<String> {
    let by_itself = diagram.matrix.is_some() && diagram.drawing.view.is_none();
    by_itself.then(|| {
        let messages = count(messages(diagram), "message");
        let ranks = FEW.min(diagram.schedule.nranks);
        format!(
            "{messages} are too many for arrows: colors say how much. Arrows: --ranks 0..{ranks}, --rounds 1, or \
             --view arrows."
        )
    })
}

/// Returns a sample of a bar, or of the ground behind it.
fn swatch(class: &str) -> String {
    format!(
        r#"<rect class="band" x="0" y="-6" width="30" height="12"/><rect class="{class}" x="0" y="-6" width="30" height="12"/><rect class="frame" x="0" y="-6" width="30" height="12"/>"#
    )
}

/// Returns samples of the elements in the picture, with their meaning.
fn entries_of(diagram: &Diagram<'_>) -> Vec<(String, String)> {
    let mut all = entries_of_data(diagram);
    if !diagram.drawing.critical.is_empty() {
        let sample = "<path class=\"critical-halo\" d=\"M0 0L30 0\"/><path class=\"critical\" d=\"M0 0L30 0\"/>";
        all.push((sample.to_owned(), "the critical path".to_owned()));
    }
    all
}

fn entries_of_data(diagram: &Diagram<'_>) -> Vec<(String, String)> {
    if let Some(matrix) = &diagram.matrix {
        return colors(matrix);
    }
    let arrow = |class: &str| {
        format!(r#"<path class="arrow {class}" marker-end="url(#{class})" d="M0 0L30 0"/>"#)
    };
    let mut all = Vec::new();
    for (state, work, words) in [
        (TimelineState::Transfer, Work::Copies, "copies from or to another rank"),
        (TimelineState::Transfer, Work::Reduces, "reduces with another rank"),
        (TimelineState::Local, Work::Copies, "copies at home"),
        (TimelineState::Local, Work::Reduces, "reduces at home"),
    ] {
        if diagram.bars.iter().any(|bar| (bar.state, bar.work) == (state, work)) {
            all.push((swatch(&bar_class(state, work)), words.to_owned()));
        }
    }
    if diagram.bars.iter().any(|bar| bar.state == TimelineState::Idle) {
        all.push((swatch("idle"), "waits for a signal".to_owned()));
    }
    if gaps(&diagram.bars, &diagram.bands, &diagram.scale) {
        all.push((swatch("band"), "does nothing".to_owned()));
    }
    for (work, words) in [(Work::Copies, "data to copy"), (Work::Reduces, "data to reduce")] {
        if diagram.arrows.data.iter().any(|arrow| arrow.work == work) {
            all.push((arrow(work.class()), words.to_owned()));
        }
    }
    if !diagram.arrows.signals.is_empty() {
        all.push((arrow("signal"), "signal".to_owned()));
    }
    all
}

/// Returns the colors of a matrix, with their meaning.
fn colors(matrix: &Matrix) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let most = rate_text(matrix.fastest);
    for (work, words) in [
        (
            Work::Reduces,
            format!("sends or receives to reduce, up to {most} a rank, the more of both"),
        ),
        (Work::Copies, "sends or receives to copy".to_owned()),
    ] {
        if matrix.any(|moment| matches!(moment, Moment::Travels(of, _) if of == work)) {
            let wide = 30.0 / f64::from(LEVELS);
            let mut scale = String::new();
            for level in 1..=LEVELS {
                let (class, x) = (cells::class(Moment::Travels(work, level)), f64::from(level - 1));
                let (x, wide) = (px(x * wide), px(wide));
                let _ = write!(
                    scale,
                    r#"<rect class="{class}" x="{x}" y="-6" width="{wide}" height="12"/>"#
                );
            }
            scale += r#"<rect class="frame" x="0" y="-6" width="30" height="12"/>"#;
            all.push((scale, words));
        }
    }
    for (moment, words) in [
        (Moment::Works, "copies or reduces at home"),
        (Moment::Waits, "waits for a signal"),
        (Moment::Nothing, "does nothing"),
    ] {
        if matrix.any(|any| any == moment) {
            all.push((swatch(&cells::class(moment)), words.to_owned()));
        }
    }
    all
}

/// Returns a rate as text, for example `25 GB/s`.
fn rate_text(rate: f64) -> String {
    let units = [(1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s")];
    let (size, name) = units.into_iter().find(|(size, _)| rate >= *size).unwrap_or((1.0, "B/s"));
    format!("{} {name}", short(rate / size))
}

/// Returns notes on omitted and merged elements.
pub(super) fn missing(diagram: &Diagram<'_>) -> Vec<String> {
    let (arrows, bands) = (&diagram.arrows, &diagram.bands);
    let mut all = Vec::new();
    let outside = diagram.outside();
    if outside > 0 {
        all.push(format!(
            "{} from or to ranks that are not shown {} not drawn.",
            count(outside, "message"),
            if outside == 1 { "is" } else { "are" }
        ));
    }
    if let Some(matrix) = &diagram.matrix {
        if matrix.each > 1 {
            all.push(format!("A row stands for {} ranks, and shows their average.", matrix.each));
        }
        if matrix.flows.is_empty() && !diagram.shown.rounds.is_empty() {
            all.push("Who sends to whom is drawn for all rounds together only.".to_owned());
        }
        return all;
    }
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
            count(bands.rows, "row")
        ));
    }
    let spans = diagram.spans();
    if diagram.bars.len() < spans {
        all.push("Ops that are too short to see are drawn as one bar, or not at all.".to_owned());
    }
    all
}
