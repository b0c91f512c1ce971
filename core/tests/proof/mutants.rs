//! Mutants of mutants: two mutations of one schedule, which may make up for each other or hide each other.

use roundelay_core::schedule::legality;

use crate::proof::mutation::CLASSES;
use crate::proof::programs::RIGHT;
use crate::proof::schedule;
use crate::proof::suite::Score;

/// How many of them.
const PAIRS: u64 = 400;

#[test]
fn mutants_of_mutants() {
    let mut random = fastrand::Rng::with_seed(1);
    let mut pick = |below: usize| random.usize(..below);
    let mut score = Score::default();
    for _ in 0..PAIRS {
        let (source, refuses) = RIGHT[pick(RIGHT.len())];
        let nranks = 2 + pick(2) as u32;
        if refuses(nranks) {
            continue;
        }
        let mut mutant = schedule(source, nranks);
        for _ in 0..2 {
            let (_, mutate) = CLASSES[pick(CLASSES.len())];
            let all = mutate(&mutant);
            // Further mutation starts from a schedule, right or wrong.
            if !all.is_empty() && legality::check(&all[0]).is_ok() {
                mutant = all[pick(all.len())].clone();
            }
            if legality::check(&mutant).is_err() {
                break;
            }
        }
        score.add("two mutations", &mutant);
    }
    score.agree();
    let (bad, harmless) = score.parts();
    assert!(bad > 0 && harmless > 0, "{bad} bad, {harmless} harmless");
}
