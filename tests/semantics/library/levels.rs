//! The optimizer's levels: equal bits at each, for one caller and for ranks that call by themselves; with `reassociate`
//! equal up to the effects of rounding.

use std::collections::BTreeSet;

use roundelay::{DType, Level, Options, Plan, ReduceOp, half};
use roundelay_core::collective::Collective;
use roundelay_core::ids::RankId;
use roundelay_core::verify::Proved;
use roundelay_tests::takes_all;

use super::super::runs::{Kind, Proofs, data, run};
use super::engines::{Called, Mode, assert_same_bits, team};
use super::subjects::{self, Subject};
use super::values::{Told, Values, shuffled};

/// Not a multiple of any rank count but 1, so that pieces differ in length.
const COUNT: u64 = 211;

/// Reductions whose bits depend on the order, or on the divided value.
const KINDS: [(DType, ReduceOp); 4] = [
    (DType::F32, ReduceOp::Sum),
    (DType::F32, ReduceOp::Avg),
    (DType::I32, ReduceOp::Avg),
    (DType::F16, ReduceOp::Avg),
];

/// Returns one element: large ones that cancel, small ones that are lost beside them, and some that are rounded.
fn rough(random: u64) -> f64 {
    let fraction = (random >> 40) as f64 / (1_u64 << 24) as f64;
    match random % 5 {
        0 => 1e8,
        1 => -1e8,
        2 => 1.0,
        3 => 1e-30,
        _ => fraction * 1e4 - 5e3,
    }
}

/// Inputs of all ranks.
fn inputs(plan: &Plan) -> Vec<Vec<u8>> {
    let ranks = (0..plan.schedule().nranks).map(RankId);
    let bytes = |rank: RankId| -> Vec<u8> {
        let randoms = shuffled(plan.input_len(rank) as i64, 7 + u64::from(rank.0));
        let randoms = randoms.into_iter().map(|at| {
            (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(rank.0) << 50
        });
        match plan.dtype() {
            DType::F32 => randoms.flat_map(|random| (rough(random) as f32).to_ne_bytes()).collect(),
            DType::I32 => {
                randoms.flat_map(|random| ((random >> 32) as i32).to_ne_bytes()).collect()
            }
            DType::F16 => randoms
                .flat_map(|random| half::f16::from_f64(rough(random) * 1e-5).to_ne_bytes())
                .collect(),
            other => panic!("no kind is of {other}"),
        }
    };
    ranks.map(bytes).collect()
}

/// Returns the first and the last values of an algorithm at that number of ranks: another root, another ring, all flags
/// set.
fn some(subject: &Subject, nranks: u32) -> Vec<Values> {
    let all = Values::all(subject.params, nranks);
    BTreeSet::from([0, all.len() - 1]).into_iter().map(|at| all[at].clone()).collect()
}

fn places(plan: &Plan) -> &'static [bool] {
    let apart = plan.schedule().out_of_place || !plan.schedule().collective.has_in_place();
    if apart { &[false] } else { &[false, true] }
}

/// In a usual run the kinds take turns.
fn run_levels(subject: Subject) {
    for nranks in (1..=9).filter(|n| (subject.admits)(*n)) {
        for (at, values) in some(&subject, nranks).into_iter().enumerate() {
            let _told = Told(&values);
            let algorithm = (subject.with)(&values);
            let mut proofs = Proofs::new(&*algorithm);
            for (nth, (dtype, op)) in KINDS.into_iter().enumerate() {
                let dealt = nth == (nranks as usize + at) % KINDS.len();
                if !takes_all() && !dealt {
                    continue;
                }
                let kind = Kind { dtype, op, in_place: false };
                let mut plan = |level| {
                    proofs.plan_with(nranks, COUNT, kind, Options::new().level(level).workers(2))
                };
                let plain = plan(Level::O0);
                let inputs = inputs(&plain);
                let others = [Level::O1, Level::O2].map(|level| (level, plan(level)));
                for &in_place in places(&plain) {
                    let wanted = run(&plain, in_place, &inputs);
                    for (level, other) in &others {
                        let same = run(other, in_place, &inputs) == wanted;
                        assert!(same, "{} at {level}: {kind:?}, {in_place}", algorithm.name());
                    }
                    if dealt {
                        let proved = proofs.proved(nranks);
                        assert_teams(proved, &plain, in_place, &inputs, &wanted);
                    }
                }
            }
        }
    }
}

/// Ranks that call by themselves get the bits `wanted` at each level; with `mixed` every other one runs in place.
fn assert_teams(proved: &Proved, plan: &Plan, mixed: bool, inputs: &[Vec<u8>], wanted: &[Vec<u8>]) {
    let mode = if mixed { Mode::Mixed } else { Mode::Apart };
    let call = [Called { mode, inputs: inputs.to_vec(), wanted: wanted.to_vec() }];
    let kind = Kind { dtype: plan.dtype(), op: plan.op(), in_place: mixed };
    for level in [Level::O0, Level::O1, Level::O2] {
        let ranks = team(proved, (level, COUNT, kind));
        assert_same_bits(&ranks, plan, &call, |_| None, &level);
    }
}

macro_rules! tests {
    ($($family:ident { $($_any:tt)* })*) => {
        $(
            #[test]
            fn $family() {
                subjects::family(stringify!($family)).into_iter().for_each(run_levels);
            }
        )*
    };
}
roundelay_tests::library!(tests);

/// Otherwise the tests above would hold of any order.
#[test]
fn the_order_shows_in_these_inputs() {
    for (dtype, op) in [KINDS[0], KINDS[1], KINDS[3]] {
        let kind = Kind { dtype, op, in_place: false };
        let bits = ["RingAllReduce", "OneShotMeshAllReduce", "NhrAllReduce"].map(|name| {
            let algorithm = (subjects::named(name).with)(&Values::plain(5));
            let plan = Proofs::new(&*algorithm).plan(5, COUNT, kind);
            run(&plan, false, &inputs(&plan))
        });
        assert!(bits[0] != bits[1] && bits[1] != bits[2] && bits[0] != bits[2], "{kind:?}");
    }
}

/// Integers, minima and maxima keep their bits; floats are as near as any order brings them.
#[test]
fn reassociated_reductions_differ_in_their_last_bits_only() {
    let mut differ = 0;
    for subject in subjects::all() {
        for nranks in [2, 3, 5, 8, 9].into_iter().filter(|n| (subject.admits)(*n)) {
            let algorithm = (subject.with)(&Values::plain(nranks));
            if !algorithm.collective().reduces() {
                continue;
            }
            let mut proofs = Proofs::new(&*algorithm);
            for (dtype, op, exact) in [
                (DType::F32, ReduceOp::Sum, false),
                (DType::Bf16, ReduceOp::Avg, false),
                (DType::F64, ReduceOp::Prod, false),
                (DType::F32, ReduceOp::Max, true),
                (DType::I32, ReduceOp::Avg, true),
            ] {
                let kind = Kind { dtype, op, in_place: false };
                let options = Options::new().reassociate(true);
                let plain = proofs.plan(nranks, COUNT, kind);
                let other = proofs.plan_with(nranks, COUNT, kind, options);
                let (reference, inputs) = data(&plain, u64::from(nranks));
                let (wanted, got) = (run(&plain, false, &inputs), run(&other, false, &inputs));
                let said = format!("{} at {nranks}: {kind:?}", subject.name);
                assert!(!exact || got == wanted, "{said}");
                differ += u32::from(got != wanted);
                let views: Vec<&[u8]> = got.iter().map(Vec::as_slice).collect();
                // The depth is that of the deepest tree with that number of leaves.
                assert_eq!(reference.count_wrong(&inputs, &views, nranks - 1), 0, "{said}");
                if algorithm.collective() == Collective::AllReduce {
                    assert!(got.iter().all(|output| *output == got[0]), "{said}: made once");
                }
            }
        }
    }
    assert!(differ > 0, "it did nothing");
}
