//! What is claimed, and which construct leaves the class where nothing is.

use crate::{algorithms, finitely_right, members, prove};

#[test]
fn members_are_proved_and_hold_at_every_count_tried() {
    for text in members() {
        for (algorithm, source) in algorithms(&text).expect("it compiles") {
            let claim = prove(&algorithm).map_err(|outside| {
                let place = source.location(outside.at);
                format!("{} at line {}: {}", algorithm.name, place.line, outside.what)
            });
            // At two ranks, left and right are one; signals to both are not told apart.
            let from: u32 = if algorithm.name == "TwoWayAllGather" { 3 } else { 2 };
            assert_eq!(claim.map(|every| every.from), Ok(from));
            assert_eq!(finitely_right(&algorithm, &source, from..=64), Ok(()), "{}", algorithm.name);
        }
    }
}
