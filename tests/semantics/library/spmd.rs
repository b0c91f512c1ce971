//! Every algorithm by ranks that call by themselves: there the signals alone order the ranks, at every level of the
//! optimizer.

use std::time::Duration;

use roundelay::{Level, Options, ReduceOp, SpmdPlan, half};

use super::super::ranks::{Runs, Whole};
use super::super::runs::Proofs;
use super::subjects::{self, Subject};
use super::values::{Told, Values};

/// All rank counts, levels, counts and dtypes; the values of the parameters turn.
fn run(subject: Subject) {
    let mut turn = 0;
    for nranks in (1..=5).filter(|n| (subject.admits)(*n)) {
        for values in Values::all(subject.params, nranks).chunks(4) {
            let values = &values[turn % values.len()];
            let _told = Told(values);
            let algorithm = (subject.with)(values);
            let mut proofs = Proofs::new(&*algorithm);
            for level in [Level::O0, Level::O1, Level::O2] {
                for count in [0, 1, 3, 1000] {
                    run_as::<i32>(&mut proofs, nranks, level, count);
                    run_as::<f32>(&mut proofs, nranks, level, count);
                    run_as::<half::bf16>(&mut proofs, nranks, level, count);
                }
            }
            turn += 1;
        }
    }
}

/// A few runs, so that the counters of one meet those of the next; out of place, then in place.
fn run_as<T: Whole>(proofs: &mut Proofs<'_>, nranks: u32, level: Level, count: usize) {
    let proved = proofs.proved(nranks);
    let options = Options::new().level(level).deadline(Duration::from_secs(20));
    let team =
        SpmdPlan::new(proved, count as u64, T::DTYPE, ReduceOp::Sum, options).expect("a team");
    let schedule = proved.schedule();
    let (collective, root) = (schedule.collective, schedule.root);
    let places: &[bool] = if proved.proof().in_place && !schedule.out_of_place {
        &[false, true, false]
    } else {
        assert!(!collective.has_in_place() || schedule.out_of_place, "{}", schedule.algorithm);
        &[false]
    };
    for &in_place in places {
        let runs = Runs { team: &team, collective, root, count, in_place };
        runs.assert_right::<T>(0..3, |_| {});
    }
}

macro_rules! tests {
    ($($family:ident { $($_any:tt)* })*) => {
        $(
            #[test]
            fn $family() {
                subjects::family(stringify!($family)).into_iter().for_each(run);
            }
        )*
    };
}
roundelay_tests::library!(tests);
