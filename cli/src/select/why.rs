//! One sentence on why an algorithm is the fastest at a size, from its costs and the costs of the next best one.

use std::fmt::Write as _;

use roundelay::Choice;
use roundelay::select::{Row, time};
use roundelay_simulate::cost::Work;

use super::about;
use crate::topo::{count, short};

/// Times that differ by less than this share count as equal.
const SAME: f64 = 0.01;

/// Returns the cost in which the winner saves the most time against another algorithm, of the costs of which its
/// busiest rank has less: `sends 1.75 S` and `7 S`, where S is the size.
fn less(winner: &Row, other: &Row) -> Option<(String, String)> {
    let (a, b) = (&winner.counts, &other.counts);
    let (spent, its) = (&winner.time, &other.time);
    let of = |seconds: f64, verb: &str, [a, b]: [Work; 2], unit: &str| {
        let (mine, its) = (short(a.busiest), short(b.busiest));
        let fewer = mine != its && a.busiest < b.busiest;
        (seconds, fewer, format!("{verb} {mine} {unit}"), format!("{its} {unit}"))
    };
    let steps = (
        its.steps - spent.steps,
        a.steps < b.steps,
        format!("takes {} ({})", count(a.steps as usize, "step"), time(spent.steps)),
        format!("{} ({})", b.steps, time(its.steps)),
    );
    let memory = "S within the memory of a rank";
    let parts = [
        steps,
        of(its.pieces - spent.pieces, "sends", [a.pieces, b.pieces], "pieces"),
        of(its.volume - spent.volume, "sends", [a.volume, b.volume], "S"),
        of(its.reduced - spent.reduced, "reduces", [a.reduced, b.reduced], "S"),
        of(its.copied - spent.copied, "copies", [a.copied, b.copied], memory),
    ];
    let saving = parts.into_iter().filter(|(seconds, fewer, ..)| *fewer && *seconds > 0.0);
    saving.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, _, mine, its)| (mine, its))
}

/// Returns why the best of a choice is the best.
pub(super) fn of(choice: &Choice) -> String {
    let Some((best, others)) = choice.ranked.split_first() else { return String::new() };
    let limit = best.time.seconds() * (1.0 + SAME);
    let level: Vec<_> = others.iter().take_while(|row| row.time.seconds() <= limit).collect();
    let Some(other) = others.get(level.len()) else {
        return match level.len() {
            0 => "no other algorithm takes these ranks".to_owned(),
            1 => "1 other takes as long; the first by name".to_owned(),
            n => format!("{n} others take as long; the first by name"),
        };
    };
    let mut text = match less(best, other) {
        Some((mine, its)) => format!("{mine} against {its} of {}", other.algorithm),
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

/// Returns the best algorithm beyond a range, and why; `middle` is the choice within the range, and `next` the choice
/// beyond.
pub(super) fn beyond(middle: &Choice, from: u64, next: &Choice) -> String {
    let (Some(best), Some(then)) = (middle.best(), next.best()) else { return String::new() };
    let at = next.ranked.iter().find(|row| row.algorithm == best.algorithm);
    let how = at.and_then(|row| less(then, row));
    let how = how.map_or_else(String::new, |(mine, its)| format!(", which {mine} against {its}"));
    format!("; from {} on {}{how}", about(from), then.algorithm)
}
