//! Every mutant that the proof accepts is right in all interleavings that the oracle tries, and so every
//! mutant that it finds wrong is refused.

use roundelay_core::schedule::{Schedule, legality, text};
use roundelay_core::verify::verify;

use crate::mutation::CLASSES;
use crate::oracle::wrong;
use crate::programs::RIGHT;
use crate::schedule;

/// What the oracle has against `schedule`, in either mode that the proof covers.
fn objection(schedule: &Schedule) -> Option<String> {
    let in_place = schedule.collective.has_in_place() && !schedule.out_of_place;
    let count = 2 * u64::from(schedule.nranks);
    wrong(schedule, count, false).or_else(|| {
        let what = in_place.then(|| wrong(schedule, count, true)).flatten()?;
        Some(format!("in place: {what}"))
    })
}

#[test]
fn the_oracle_agrees_with_what_is_right() {
    for (source, refuses) in RIGHT {
        for nranks in (1..=4).filter(|n| !refuses(*n)) {
            assert_eq!(objection(&schedule(source, nranks)), None, "{nranks} ranks\n{source}");
        }
    }
}

/// Rank counts, and of how many mutants one is tried.
const SIZES: [(u32, usize); 3] = [(2, 1), (3, 3), (4, 23)];

#[test]
fn mutants() {
    for (name, mutate) in CLASSES {
        let [mut refused, mut harmless] = [0; 2];
        for (source, refuses) in RIGHT {
            for (nranks, stride) in SIZES.into_iter().filter(|(n, _)| !refuses(*n)) {
                for mutant in mutate(&schedule(source, nranks)).into_iter().step_by(stride) {
                    let proof = verify(&mutant);
                    // What is no schedule cannot be run.
                    let why = match legality::check(&mutant) {
                        Ok(()) => objection(&mutant),
                        Err(all) => Some(all[0].rule.to_owned()),
                    };
                    let text = || text::print(&mutant);
                    match (proof, why) {
                        (Err(_), Some(_)) => refused += 1,
                        (Ok(_), None) => harmless += 1,
                        (Ok(_), Some(why)) => panic!("{name}: proved, but {why}\n{}", text()),
                        (Err(found), None) => {
                            panic!("{name}: no interleaving is wrong, but {found:#?}\n{}", text())
                        }
                    }
                }
            }
        }
        println!("{name}: {refused} refused, {harmless} harmless");
        // A fold's order matters to rounding alone; an op that may go or move was one too many.
        let may_stay = ["swap sources", "swap neighbours", "delete a post and its wait"];
        assert_eq!(harmless > 0, may_stay.contains(name), "{name}");
        assert_eq!(refused == 0, *name == "swap sources", "{name}");
    }
}
