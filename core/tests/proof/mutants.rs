//! Every mutant that the proof accepts is right in all interleavings that the oracle tries, and so every
//! mutant that it finds wrong is refused.

use roundelay_core::schedule::Schedule;
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

#[test]
fn mutants() {
    let mut report = String::new();
    for (name, mutate) in CLASSES {
        let [mut refused, mut harmless, mut alarms] = [0; 3];
        let start = std::time::Instant::now();
        for (source, refuses) in RIGHT {
            for nranks in (2..=3).filter(|n| !refuses(*n)) {
                for mutant in mutate(&schedule(source, nranks)) {
                    let proof = verify(&mutant);
                    let legal = roundelay_core::schedule::legality::check(&mutant).is_ok();
                    let objection = if legal { objection(&mutant) } else { Some("illegal".into()) };
                    match (&proof, objection) {
                        (Err(_), Some(_)) => refused += 1,
                        (Ok(_), None) => harmless += 1,
                        (Err(found), None) => {
                            alarms += 1;
                            println!("ALARM {name} {} {nranks}: {}", mutant.algorithm, found[0].title);
                        }
                        (Ok(_), Some(why)) => panic!(
                            "{name}: the proof accepts what the oracle refuses: {why}\n{}",
                            roundelay_core::schedule::text::print(&mutant)
                        ),
                    }
                }
            }
        }
        report += &format!("{name}: {refused} refused, {harmless} harmless, {alarms} alarms {:?}\n", start.elapsed());
    }
    println!("{report}");
}
