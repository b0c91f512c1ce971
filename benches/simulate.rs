//! Simulated runs, and their schedules with them: `cargo bench --bench simulate`. Items are ops and messages.

use std::fmt;
use std::sync::Arc;

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use roundelay::library::{MeshAllReduce, MeshAllToAll, RingAllReduce};
use roundelay::{Algorithm, DType, Schedule};
use roundelay_simulate::{Machine, SignalCost, simulate};

fn main() {
    divan::main();
}

/// An algorithm, ranks, what joins them, and what signals cost.
#[derive(Clone, Copy)]
struct Case(&'static str, u32, &'static str, SignalCost);

const CASES: [Case; 6] = [
    Case("ring", 1024, "crossbar", SignalCost::Free),
    Case("ring", 1024, "crossbar", SignalCost::Messages),
    Case("mesh", 256, "crossbar", SignalCost::Free),
    Case("mesh", 256, "full_mesh", SignalCost::Messages),
    Case("all to all", 256, "crossbar", SignalCost::Free),
    Case("all to all", 256, "full_mesh", SignalCost::Messages),
];

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} on a {}, signals {:?}", self.0, self.1, self.2, self.3)
    }
}

impl Case {
    fn schedule(self) -> Schedule {
        let algorithm: Box<dyn Algorithm> = match self.0 {
            "ring" => Box::new(RingAllReduce::new()),
            "mesh" => Box::new(MeshAllReduce::new()),
            _ => Box::new(MeshAllToAll::new()),
        };
        algorithm.schedule(self.1).expect("it can be laid out")
    }

    fn machine(self) -> Machine {
        let topology = format!("{}({}, 25GB/s, 1us)", self.2, self.1);
        let topology = Arc::new(topology.parse().expect("a topology"));
        Machine { signals: self.3, ..Machine::new(topology) }
    }
}

/// Elements a unit: blocks of 64 KiB and more.
const COUNT: u64 = 1 << 24;

fn run(schedule: &Schedule, machine: &Machine) -> u64 {
    simulate(schedule, machine, COUNT, DType::F32, false).expect("it ends").tasks
}

#[divan::bench(args = CASES, max_time = 5)]
fn simulated(bencher: Bencher<'_, '_>, case: &Case) {
    let (schedule, machine) = (case.schedule(), case.machine());
    let tasks = run(&schedule, &machine);
    bencher
        .counter(ItemsCount::new(tasks))
        .bench_local(|| run(black_box(&schedule), black_box(&machine)));
}

#[divan::bench(args = CASES, max_time = 5)]
fn with_its_schedule(case: &Case) -> u64 {
    run(&case.schedule(), &case.machine())
}
