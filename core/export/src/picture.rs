//! The common parts of all pictures, also of the command's: the look of the page and its text (`picture.css`), numbers,
//! and escaped and wrapped text.

/// Pixels of a letter, somewhat more than the average.
pub(super) const LETTER: f64 = 6.7;

/// Returns a number with at most one decimal.
pub fn px(value: f64) -> String {
    let text = format!("{value:.1}");
    let text = text.strip_suffix(".0").unwrap_or(&text);
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

/// Returns text for the inside of an element.
pub fn escaped(text: &str) -> String {
    // XML forbids control characters and these two noncharacters.
    let odd = |c: char| c.is_control() || matches!(c, '\u{FFFE}' | '\u{FFFF}');
    let plain = |c: char| if odd(c) { ' ' } else { c };
    let text: String = text.chars().map(plain).collect();
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Wraps text between words, and within words that are longer than a line.
pub fn wrapped(text: &str, letters: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let letters_of: Vec<_> = word.chars().collect();
        for piece in letters_of.chunks(letters.max(1)) {
            let line = lines.last_mut().expect("there is a first line");
            if !line.is_empty() && line.chars().count() + 1 + piece.len() > letters {
                lines.push(piece.iter().collect());
                continue;
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.extend(piece);
        }
    }
    lines
}
