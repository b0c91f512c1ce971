//! Amounts of data, times and bandwidths as the language writes them.

use std::fmt::Display;
use std::fmt::Write as _;

/// Units of data that stand apart from their number.
pub const SIZE_UNITS: [(&str, u64); 7] = [
    ("B", 1),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];

/// Returns a bandwidth in bytes a second as the language writes it: `25GB/s`.
pub fn rate_text(rate: u64) -> String {
    data_text(rate) + "/s"
}

/// Returns a number of bytes as the language writes it: `25GB`.
pub fn data_text(bytes: u64) -> String {
    let units = [("TB", 1_000_000_000_000), ("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1000)];
    scaled(bytes, &units, "B")
}

/// Returns a number of nanoseconds as the language writes it: `2us`.
pub fn time_text(nanoseconds: u64) -> String {
    scaled(nanoseconds, &[("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1000)], "ns")
}

/// Returns the value in the largest unit that it reaches, with every digit.
fn scaled(value: u64, units: &[(&str, u64)], smallest: &str) -> String {
    let Some((unit, size)) = units.iter().find(|(_, size)| value >= *size) else {
        return format!("{value}{smallest}");
    };
    let mut text = (value / size).to_string();
    let rest = value % size;
    if rest > 0 {
        let digits = size.ilog10() as usize;
        let _ = write!(text, ".{}", format!("{rest:0digits$}").trim_end_matches('0'));
    }
    text + unit
}

/// Returns a number with at most `most` decimals, and no zeros at their end: a number of floating point may lie beside the
/// one that is meant, as 5.699999999999999 beside 5.7.
pub fn decimals(value: f64, most: usize) -> String {
    let text = format!("{value:.most$}");
    if most == 0 { text } else { text.trim_end_matches('0').trim_end_matches('.').to_owned() }
}

/// Returns a time in microseconds, to a millionth of one, for outputs that print every digit.
pub fn microseconds(seconds: f64) -> f64 {
    (seconds * 1e12).round() / 1e6
}

/// Returns a number of bytes in the largest unit that divides it.
pub fn size_text(bytes: u64) -> String {
    let fits = |(_, unit): &&(&str, u64)| bytes > 0 && bytes.is_multiple_of(*unit);
    let (name, unit) =
        SIZE_UNITS.iter().filter(fits).max_by_key(|(_, unit)| *unit).unwrap_or(&SIZE_UNITS[0]);
    format!("{} {name}", bytes / unit)
}

/// Returns counts as ranges: `2..=5, 8` for 2 3 4 5 8.
pub fn ranges(counts: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &n in counts {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == n => *last = n,
            _ => runs.push((n, n)),
        }
    }
    let text =
        |&(lo, hi): &(u32, u32)| if lo == hi { lo.to_string() } else { format!("{lo}..={hi}") };
    runs.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// Returns a number of things: `1 rank`, `3 ranks`.
pub fn count<N: Copy + Display + From<u8> + PartialEq>(n: N, what: &str) -> String {
    let plural = plural(n);
    format!("{n} {what}{plural}")
}

/// Returns the ending of the word for `n` things: none, or `s`.
pub fn plural<N: Copy + From<u8> + PartialEq>(n: N) -> &'static str {
    if n == N::from(1) { "" } else { "s" }
}

/// Returns a number with at most three decimals, and no zeros at their end.
pub fn short(value: f64) -> String {
    decimals(value, 3)
}

/// Wraps text between words, and within words that are longer than a line.
pub fn wrap(text: &str, letters: usize) -> Vec<String> {
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

/// Formats a time in seconds, as tables have it: to four digits.
pub fn time(seconds: f64) -> String {
    match seconds {
        s if s < 1e-6 => format!("{} ns", number(s * 1e9)),
        s if s < 1e-3 => format!("{} us", number(s * 1e6)),
        s if s < 1.0 => format!("{} ms", number(s * 1e3)),
        s => format!("{} s", number(s)),
    }
}

/// Formats a bandwidth in bytes a second, as tables have it.
pub fn rate(bytes: f64) -> String {
    format!("{} GB/s", number(bytes / 1e9))
}

/// Formats a number of bytes, exactly, as tables have it.
pub fn size(bytes: u64) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let unit = units.into_iter().find(|(unit, _)| bytes > 0 && bytes.is_multiple_of(*unit));
    unit.map_or_else(|| format!("{bytes} B"), |(unit, name)| format!("{} {name}", bytes / unit))
}

/// Formats a number with four digits, without zeros at the end of a fraction.
pub fn number(value: f64) -> String {
    let digits = match value {
        v if v >= 1000.0 => 0,
        v if v >= 100.0 => 1,
        v if v >= 10.0 => 2,
        _ => 3,
    };
    decimals(value, digits)
}
