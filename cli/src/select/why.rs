//! One sentence on why an algorithm is the fastest at a size, from what it and the next best one take.

use std::fmt::Write as _;

use roundelay::Choice;
use roundelay::select::{Row, time};

use super::about;
use crate::topo::{count, short};

/// What a time is spent on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Steps,
    Pieces,
    Volume,
    Reduced,
    Copied,
}

/// Times that differ by less than this share are the same.
const SAME: f64 = 1e-3;

/// Where the winner saves most against another, of what it does less of.
fn saved(winner: &Row, other: &Row) -> Option<Part> {
    let (a, b) = (&winner.time, &other.time);
    let (c, d) = (&winner.counts, &other.counts);
    let fewer = |a: f64, b: f64| short(a) != short(b) && a < b;
    let parts = [
        (Part::Steps, b.steps - a.steps, c.steps < d.steps),
        (Part::Pieces, b.pieces - a.pieces, fewer(c.pieces.busiest, d.pieces.busiest)),
        (Part::Volume, b.volume - a.volume, fewer(c.volume.busiest, d.volume.busiest)),
        (Part::Reduced, b.reduced - a.reduced, fewer(c.reduced.busiest, d.reduced.busiest)),
        (Part::Copied, b.copied - a.copied, fewer(c.copied.busiest, d.copied.busiest)),
    ];
    let less = parts.into_iter().filter(|(_, seconds, less)| *less && *seconds > 0.0);
    less.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(part, ..)| part)
}

/// What the busiest rank of the winner does less of: `sends 1.75 S` and `7 S`, S being the size.
fn less(part: Part, winner: &Row, other: &Row) -> (String, String) {
    let (a, b) = (&winner.counts, &other.counts);
    let of = |verb: &str, a: f64, b: f64, unit: &str| {
        (format!("{verb} {} {unit}", short(a)), format!("{} {unit}", short(b)))
    };
    match part {
        Part::Steps => (
            format!("takes {} ({})", count(a.steps as usize, "step"), time(winner.time.steps)),
            format!("{} ({})", b.steps, time(other.time.steps)),
        ),
        Part::Pieces => of("sends", a.pieces.busiest, b.pieces.busiest, "pieces"),
        Part::Volume => of("sends", a.volume.busiest, b.volume.busiest, "S"),
        Part::Reduced => of("reduces", a.reduced.busiest, b.reduced.busiest, "S"),
        Part::Copied => {
            of("copies", a.copied.busiest, b.copied.busiest, "S within the memory of a rank")
        }
    }
}

/// Why the best of a choice is the best.
pub(super) fn of(choice: &Choice) -> String {
    let Some((best, others)) = choice.ranked.split_first() else { return String::new() };
    let limit = best.time.seconds() * (1.0 + SAME);
    let level: Vec<_> = others.iter().take_while(|row| row.time.seconds() <= limit).collect();
    let Some(other) = others.get(level.len()) else {
        return match level.len() {
            0 => "no other algorithm takes these ranks".to_owned(),
            n => format!("{} as long; the first by name", count(n, "other takes")),
        };
    };
    let mut text = match saved(best, other) {
        Some(part) => {
            let (mine, its) = less(part, best, other);
            format!("{mine} against {its} of {}", other.algorithm)
        }
        None => format!(
            "takes {} against {} of {}",
            time(best.time.seconds()),
            time(other.time.seconds()),
            other.algorithm
        ),
    };
    if let Some(first) = level.first() {
        let more = match level.len() {
            1 => String::new(),
            n => format!(" and {} more", n - 1),
        };
        let _ = write!(text, "; {}{more} as fast", first.algorithm);
    }
    text
}

/// Which one is the best beyond a range, and why; `middle` is the choice within the range, and `next` that beyond.
pub(super) fn beyond(middle: &Choice, from: u64, next: &Choice) -> String {
    let (Some(best), Some(then)) = (middle.best(), next.best()) else { return String::new() };
    let at = next.ranked.iter().find(|row| row.algorithm == best.algorithm);
    let how = at.and_then(|row| {
        let (mine, its) = less(saved(then, row)?, then, row);
        Some(format!(", which {mine} against {its}"))
    });
    format!("; from {} on {}{}", about(from), then.algorithm, how.unwrap_or_default())
}
