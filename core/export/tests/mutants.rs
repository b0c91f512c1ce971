//! Right programs that are changed by chance: what the proof says of each is what a model of the runtime does.

use std::collections::BTreeMap;

use fastrand::Rng;

use crate::models::Outcome;

/// Mutants: how many, unless the environment asks for another number, and the seed of their numbers.
pub(crate) struct Mutants {
    pub(crate) usual: usize,
    pub(crate) variable: &'static str,
    pub(crate) seed: u64,
}

impl Mutants {
    /// Makes mutants of the programs by one or two changes, and has each judged, with its name.
    pub(crate) fn judge<P: Clone>(
        &self,
        programs: &[(String, P)],
        mutate: impl Fn(&mut P, &mut Rng),
        mut judge: impl FnMut(&str, &P) -> Outcome,
    ) {
        let asked = |of: &str| {
            let text = std::env::var(format!("{}{of}", self.variable)).ok()?;
            Some(text.parse::<u64>().expect("a number"))
        };
        let all = asked("").map_or(self.usual, |all| all as usize);
        let mut random = Rng::with_seed(asked("_SEED").unwrap_or(self.seed));
        let mut seen = BTreeMap::new();
        for number in 0..all {
            let (name, right) = &programs[random.usize(..programs.len())];
            let mut program = right.clone();
            for _ in 0..=random.usize(..2) {
                mutate(&mut program, &mut random);
            }
            let outcome = judge(&format!("mutant {number} of {name}"), &program);
            *seen.entry(outcome).or_insert(0) += 1;
        }
        eprintln!("{all} mutants: {seen:?}");
        use Outcome::{Hangs, Race, Refused, Right, Wrong};
        for outcome in [Right, Wrong, Race, Hangs, Refused] {
            assert!(seen.contains_key(&outcome), "no mutant is {outcome:?}: {seen:?}");
        }
    }
}
