//! Every mutant that the proof accepts is right in all interleavings that the oracle tries, and so every
//! mutant that it finds wrong is refused.

use roundelay_core::schedule::{Schedule, legality, text};
use roundelay_core::verify::verify;

use crate::mutation::CLASSES;
use crate::oracle::judge;
use crate::programs::RIGHT;
use crate::schedule;

/// What the oracles have against `schedule`, in either mode that the proof covers.
fn objection(schedule: &Schedule) -> Option<String> {
    let opinion = judge(schedule).expect("fine cuts");
    if !opinion.searched {
        println!("not searched");
    }
    Some(format!("{:?}", opinion.objections.first()?))
}

#[test]
fn the_oracle_agrees_with_what_is_right() {
    for (source, refuses) in RIGHT {
        for nranks in (1..=4).filter(|n| !refuses(*n)) {
            assert_eq!(objection(&schedule(source, nranks)), None, "{nranks} ranks\n{source}");
        }
    }
}

/// Whether `mutant` is refused; the proof and the oracle must agree on it.
fn refused(name: &str, mutant: &Schedule) -> bool {
    let proof = verify(mutant);
    // What is no schedule cannot be run.
    let why = match legality::check(mutant) {
        Ok(()) => objection(mutant),
        Err(all) => Some(all[0].rule.to_owned()),
    };
    let text = || text::print(mutant);
    match (proof, why) {
        (Err(_), Some(_)) => true,
        (Ok(_), None) => false,
        (Ok(_), Some(why)) => panic!("{name}: proved, but {why}\n{}", text()),
        (Err(found), None) => {
            panic!("{name}: no interleaving is wrong, but {found:#?}\n{}", text())
        }
    }
}

/// Rank counts, and of how many mutants one is tried.
const SIZES: [(u32, usize); 3] = [(2, 1), (3, 3), (4, 23)];

#[test]
fn mutants() {
    for (name, mutate) in CLASSES {
        let [mut bad, mut harmless] = [0; 2];
        for (source, refuses) in RIGHT {
            for (nranks, stride) in SIZES.into_iter().filter(|(n, _)| !refuses(*n)) {
                for mutant in mutate(&schedule(source, nranks)).into_iter().step_by(stride) {
                    *(if refused(name, &mutant) { &mut bad } else { &mut harmless }) += 1;
                }
            }
        }
        println!("{name}: {bad} refused, {harmless} harmless");
        // A fold's order matters to rounding alone; a signal or an order may have been one too many; and
        // another peer may hold the same data.
        let may_stay =
            ["swap sources", "swap neighbours", "delete a post and its wait", "change the peer"];
        assert!(harmless == 0 || may_stay.contains(name), "{name}");
        assert_eq!(bad == 0, *name == "swap sources", "{name}");
    }
}

/// Two mutations of one schedule.
const PAIRS: u64 = 400;

#[test]
fn mutants_of_mutants() {
    let mut random = 0x2545_F491_4F6C_DD1D_u64;
    let mut pick = |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random >> 20) as usize % below
    };
    let [mut bad, mut harmless] = [0; 2];
    for _ in 0..PAIRS {
        let (source, refuses) = RIGHT[pick(RIGHT.len())];
        let nranks = 2 + pick(2) as u32;
        if refuses(nranks) {
            continue;
        }
        let mut mutant = schedule(source, nranks);
        let mut names = Vec::new();
        for _ in 0..2 {
            let (name, mutate) = CLASSES[pick(CLASSES.len())];
            let all = mutate(&mutant);
            // Further mutation starts from a schedule, right or wrong.
            if !all.is_empty() && legality::check(&all[0]).is_ok() {
                mutant = all[pick(all.len())].clone();
                names.push(name);
            }
            if legality::check(&mutant).is_err() {
                break;
            }
        }
        *(if refused(&names.join(", "), &mutant) { &mut bad } else { &mut harmless }) += 1;
    }
    println!("{bad} refused, {harmless} harmless");
    assert!(bad > 0 && harmless > 0);
}
