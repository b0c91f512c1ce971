//! The numbers of lanes in a text with the loops of a program.

use std::collections::BTreeSet;

/// Returns lanes by their numbers in a text: those inside one lane have numbers in a row, in the order of their values.
pub(crate) fn lanes_in_order(known: &BTreeSet<Vec<i64>>) -> Vec<Vec<i64>> {
    let mut lanes = vec![Vec::new()];
    let mut next = 0;
    while let Some(around) = lanes.get(next).cloned() {
        let values = || {
            let inside = known.iter().filter_map(|lane: &Vec<i64>| lane.split_last());
            inside.filter(|(_, outer)| **outer == *around).map(|(value, _)| *value)
        };
        if let (Some(least), Some(most)) = (values().min(), values().max()) {
            lanes.extend((least..=most).map(|value| [&around[..], &[value]].concat()));
        }
        next += 1;
    }
    lanes
}

/// Returns for each lane the number of a lane inside it, less its value.
pub(crate) fn lanes_within(lanes: &[Vec<i64>]) -> Vec<i64> {
    let first = |around: &Vec<i64>| {
        let inside =
            |lane: &&Vec<i64>| lane.split_last().is_some_and(|(_, outer)| *outer == around[..]);
        let (number, lane) = (0..).zip(lanes).find(|(_, lane)| inside(lane))?;
        Some(number - lane.last()?)
    };
    lanes.iter().map(|lane| first(lane).unwrap_or(0)).collect()
}
