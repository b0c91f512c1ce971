//! The common parts of all pictures, also of the command's: the look of the page and its text (`picture.css`), numbers,
//! and escaped and wrapped text.

use roundelay_core::units::wrap;
use std::fmt::Write as _;

/// Pixels of a letter, somewhat more than the average.
pub const LETTER: f64 = 6.7;
/// The distance from a line of text to the next.
pub const LINE: f64 = 19.0;
/// The width of a sample before an entry of a legend.
const SAMPLE: f64 = 38.0;

/// Returns a picture of this size, with a title, from its style, its definitions, and its body.
pub fn page(
    title: &str,
    (wide, tall): (f64, f64),
    (style, definitions): (&str, &str),
    body: &str,
) -> String {
    let (title, wide, tall) = (escape(title), px(wide), px(tall));
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {wide} {tall}\" width=\"{wide}\" height=\"{tall}\" role=\"img\">\n\
         <title>{title}</title>\n<style>\n{style}</style>\n{definitions}\
         <rect class=\"page\" width=\"{wide}\" height=\"{tall}\"/>\n{body}</svg>\n"
    )
}

/// Writes a line of text.
pub fn text(body: &mut String, class: &str, (x, y): (f64, f64), words: &str) {
    let (x, y, words) = (px(x), px(y), escape(words));
    let _ = writeln!(body, r#"<text class="{class}" x="{x}" y="{y}">{words}</text>"#);
}

/// Writes a title of that many letters a line, and small lines below it; returns the height of the next line.
pub(super) fn caption(
    body: &mut String,
    margin: f64,
    (title, letters): (&str, usize),
    lines: impl Iterator<Item = String>,
) -> f64 {
    let mut y = margin + 12.0;
    for words in wrap(title, letters * 3 / 4) {
        text(body, "title", (margin, y), &words);
        y += LINE + 2.0;
    }
    for words in lines {
        text(body, "small", (margin, y), &words);
        y += LINE;
    }
    y
}

/// Writes samples with their meaning, side by side as far as they fit; returns the height of the last ones.
pub(super) fn legend(
    body: &mut String,
    (margin, mut y): (f64, f64),
    wide: f64,
    entries: Vec<(String, String)>,
) -> f64 {
    let mut x = margin;
    for (sample, words) in entries {
        let room = SAMPLE + words.chars().count() as f64 * LETTER + 16.0;
        if x > margin && x + room > margin + wide {
            (x, y) = (margin, y + LINE);
        }
        let (at, words) = (format!("{} {}", px(x), px(y)), escape(&words));
        let _ = writeln!(
            body,
            r#"<g transform="translate({at})">{sample}<text class="small" x="{SAMPLE}" y="4">{words}</text></g>"#
        );
        x += room;
    }
    y
}

/// Returns a number with at most one decimal.
pub fn px(value: f64) -> String {
    let text = format!("{value:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// Returns text for the inside of an element.
pub fn escape(text: &str) -> String {
    // XML forbids control characters and these two noncharacters.
    let odd = |c: char| c.is_control() || matches!(c, '\u{FFFE}' | '\u{FFFF}');
    let plain = |c: char| if odd(c) { ' ' } else { c };
    let text: String = text.chars().map(plain).collect();
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
