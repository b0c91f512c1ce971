//! From a schedule to a plan, stage by stage and at each level, and what a call costs beside its data:
//! `cargo bench --bench plans`.

use std::fmt;

use divan::{Bencher, black_box};
use roundelay::library::{NhrAllReduce, OneShotMeshAllReduce, RingAllReduce};
use roundelay::{Algorithm, Comm, DType, Level, Options, Plan, ReduceOp, Schedule, SpmdPlan};
use roundelay_core::ids::RankId;
use roundelay_core::optimize::elide::elide;
use roundelay_core::optimize::fuse;
use roundelay_core::schedule::hash;
use roundelay_core::verify::Callers;
use roundelay_core::verify::{Proved, Signals, verify, verify_called};

fn main() {
    divan::main();
}

/// An algorithm at a rank count: a long chain, few rounds, and one round of many sources.
#[derive(Clone, Copy)]
struct Subject(&'static str, u32);

const SUBJECTS: [Subject; 9] = [
    Subject("ring", 8),
    Subject("ring", 64),
    Subject("ring", 256),
    Subject("NHR", 8),
    Subject("NHR", 64),
    Subject("NHR", 256),
    Subject("one-shot", 8),
    Subject("one-shot", 64),
    Subject("one-shot", 256),
];

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} ranks", self.0, self.1)
    }
}

impl Subject {
    fn schedule(self) -> Schedule {
        let algorithm: Box<dyn Algorithm> = match self.0 {
            "ring" => Box::new(RingAllReduce::new()),
            "NHR" => Box::new(NhrAllReduce::new()),
            _ => Box::new(OneShotMeshAllReduce::new()),
        };
        algorithm.schedule(self.1).expect("it can be laid out")
    }
}

/// Of a buffer: blocks are not empty, and the scratch of the one-shot exchange as written is 64 MiB and no more.
const ELEMENTS: u64 = 256;

const LEVELS: [Level; 3] = [Level::O0, Level::O1, Level::O2];

#[divan::bench(args = SUBJECTS, max_time = 1)]
fn lay_out(subject: &Subject) -> Schedule {
    subject.schedule()
}

#[divan::bench(args = SUBJECTS, max_time = 1)]
fn proof(bencher: Bencher<'_, '_>, subject: &Subject) {
    let schedule = subject.schedule();
    bencher.bench_local(|| verify(black_box(&schedule)).expect("it is right"));
}

#[divan::bench(args = SUBJECTS, max_time = 1)]
fn elision(bencher: Bencher<'_, '_>, subject: &Subject) {
    let schedule = subject.schedule();
    bencher.bench_local(|| elide(black_box(&schedule), Callers::One).expect("it is right"));
}

#[divan::bench(args = SUBJECTS, max_time = 1)]
fn fusion_for_one_caller(bencher: Bencher<'_, '_>, subject: &Subject) {
    let schedule = subject.schedule();
    bencher.bench_local(|| fuse(black_box(&schedule), Callers::One, false).expect("it fits"));
}

#[divan::bench(args = SUBJECTS, max_time = 1)]
fn fusion_for_each_rank(bencher: Bencher<'_, '_>, subject: &Subject) {
    let schedule = subject.schedule();
    bencher.bench_local(|| fuse(black_box(&schedule), Callers::Each, false).expect("it fits"));
}

/// The proof of what a pass made, without which no engine runs it. The second plan finds it by its digest.
fn proof_again(bencher: Bencher<'_, '_>, callers: Callers, made: &Schedule) {
    let signals = Signals::default();
    bencher.bench_local(|| verify_called(black_box(made), signals, callers).expect("it is right"));
}

#[divan::bench(args = SUBJECTS, max_time = 1)]
fn proof_again_of_fusion(bencher: Bencher<'_, '_>, subject: &Subject) {
    let made = fuse(&subject.schedule(), Callers::One, false).expect("it fits");
    proof_again(bencher, Callers::One, &made);
}

#[divan::bench(args = SUBJECTS, max_time = 1)]
fn proof_again_of_elision(bencher: Bencher<'_, '_>, subject: &Subject) {
    let made = elide(&subject.schedule(), Callers::One).expect("it is right");
    proof_again(bencher, Callers::One, &made.schedule);
}

#[divan::bench(args = SUBJECTS, max_time = 1)]
fn digest(bencher: Bencher<'_, '_>, subject: &Subject) {
    let schedule = subject.schedule();
    bencher.bench_local(|| hash::content(black_box(&schedule)));
}

/// All that comes after the proof: the optimizer, whose results nothing keeps here, and lowering.
fn plan(bencher: Bencher<'_, '_>, subject: Subject, level: Level) {
    let schedule = subject.schedule();
    let options = Options::new().level(level);
    // A new one each time: it remembers what it was optimized to. The proof itself is cached.
    let proved = || Proved::new(schedule.clone()).expect("it is right");
    bencher.with_inputs(proved).bench_local_refs(|proved| {
        Plan::for_options(proved, ELEMENTS, DType::F32, ReduceOp::Sum, options).expect("a plan")
    });
}

#[divan::bench(args = SUBJECTS, max_time = 1)]
fn plan_o0(bencher: Bencher<'_, '_>, subject: &Subject) {
    plan(bencher, *subject, LEVELS[0]);
}

#[divan::bench(args = SUBJECTS, max_time = 1)]
fn plan_o1(bencher: Bencher<'_, '_>, subject: &Subject) {
    plan(bencher, *subject, LEVELS[1]);
}

#[divan::bench(args = SUBJECTS, max_time = 1)]
fn plan_o2(bencher: Bencher<'_, '_>, subject: &Subject) {
    plan(bencher, *subject, LEVELS[2]);
}

/// One rank and one element: what a call of one caller costs by itself.
#[divan::bench]
fn run_without_work(bencher: Bencher<'_, '_>) {
    let proved = Proved::new(Subject("ring", 1).schedule()).expect("it is right");
    let plan = Plan::new(&proved, 1, DType::F32, ReduceOp::Sum).expect("a plan");
    let mut buffer = [1.0_f32];
    bencher.bench_local(|| plan.run_in_place(&mut [black_box(&mut buffer[..])]).expect("it ends"));
}

/// The second and later calls of a communicator: the plan is found, and 2 elements are added. To be under 200 ns.
#[divan::bench]
fn comm_all_reduce_2_ranks_1_element(bencher: Bencher<'_, '_>) {
    let comm = Comm::new(2).expect("two ranks");
    let (mut a, mut b) = ([1.0_f32], [1.0_f32]);
    bencher.bench_local(|| {
        let mut buffers = [black_box(&mut a[..]), black_box(&mut b[..])];
        comm.all_reduce(&mut buffers, ReduceOp::Max).expect("it ends");
    });
}

/// An in-place AllReduce of 2 ranks and 1 element by a plan that is at hand, without a communicator's look-up.
#[divan::bench]
fn plan_all_reduce_2_ranks_1_element(bencher: Bencher<'_, '_>) {
    let proved = Proved::new(Subject("one-shot", 2).schedule()).expect("it is right");
    let plan = Plan::new(&proved, 1, DType::F32, ReduceOp::Max).expect("a plan");
    let (mut a, mut b) = ([1.0_f32], [1.0_f32]);
    bencher.bench_local(|| {
        let mut buffers = [black_box(&mut a[..]), black_box(&mut b[..])];
        plan.run_in_place(&mut buffers).expect("it ends")
    });
}

/// One rank that calls by itself.
#[divan::bench]
fn team_of_one_without_work(bencher: Bencher<'_, '_>) {
    let proved = Proved::new(Subject("ring", 1).schedule()).expect("it is right");
    let team =
        SpmdPlan::new(&proved, 1, DType::F32, ReduceOp::Sum, Options::new()).expect("a team");
    let rank = team.rank(RankId(0)).expect("the only one");
    let mut buffer = [1.0_f32];
    bencher.bench_local(|| rank.run_in_place(black_box(&mut buffer[..])).expect("it ends"));
}
