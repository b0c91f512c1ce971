//! What is exported, against the host engine: bit for bit, since the schedule fixes the order.

use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_core::ids::RankId;
use roundelay_kernels::Plan;
use roundelay_kernels::reference::Reference;

use crate::export::{BROKEN, Placed, export, place, place_text, program};
use crate::program::{Call, Program, Report};

const DEAD: &[(u32, u32)] = &[(0, 1)];

/// Runs `call` and the host on the same data, and compares every byte.
fn equals_host(program: &Program, placed: &Placed, call: &Call<'_>) -> Report {
    let schedule = placed.proved.schedule();
    let reference = Reference {
        collective: schedule.collective,
        nranks: schedule.nranks,
        root: RankId(0),
        count: call.count as usize,
        dtype: call.dtype,
        op: call.op,
    };
    let inputs = reference.inputs(7 + call.count);
    // In loops, each as the host runs that part alone: its pieces are cut for its own count.
    let unit = call.dtype.size() as u64;
    let units = u64::from(call.units.0.max(call.units.1));
    let most = call.ccl / (units * unit);
    let mut expected = vec![vec![0; (u64::from(call.units.1) * call.count * unit) as usize]; inputs.len()];
    let mut done = 0;
    while done < call.count {
        let count = most.min(call.count - done);
        let part = |all: &[u8], units: u32| -> Vec<u8> {
            let from = |unit_at: u64| ((unit_at * call.count + done) * unit) as usize;
            let parts = (0..u64::from(units)).map(|u| &all[from(u)..][..(count * unit) as usize]);
            parts.collect::<Vec<_>>().concat()
        };
        let reads: Vec<_> = inputs.iter().map(|input| part(input, call.units.0)).collect();
        let mut writes: Vec<_> = expected.iter().map(|output| part(output, call.units.1)).collect();
        let plan = Plan::new(&placed.proved, count, call.dtype, call.op).expect("a plan");
        plan.run_bytes(
            &reads.iter().map(Vec::as_slice).collect::<Vec<_>>(),
            &mut writes.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>(),
        )
        .expect("it runs");
        for (output, part) in expected.iter_mut().zip(&writes) {
            for u in 0..u64::from(call.units.1) {
                let to = ((u * call.count + done) * unit) as usize;
                let len = (count * unit) as usize;
                output[to..to + len].copy_from_slice(&part[u as usize * len..][..len]);
            }
        }
        done += count;
    }
    let (outputs, report) = program.run(call, &inputs).unwrap_or_else(|e| panic!("{call:?}: {e}"));
    for (rank, (got, wanted)) in outputs.iter().zip(&expected).enumerate() {
        assert!(got == wanted, "{call:?}: rank {rank} differs");
    }
    report
}

fn ring() -> Placed {
    place("TwistedRingAllReduce", BROKEN, 8, &[("ring", "around(topology)")]).expect("it is right")
}

#[test]
fn the_twisted_ring_of_the_broken_mesh_leaves_the_hosts_bits() {
    let ring = ring();
    let program = program("Ring", &[(None, &ring)]);
    for (count, ccl) in [(1, 1 << 20), (7, 1 << 20), (100, 1 << 20), (100, 148), (1_000_003, 1 << 20)] {
        let call = Call { count, ccl, dead: DEAD, ..Call::default() };
        equals_host(&program, &ring, &call);
    }
    for seed in 0..4 {
        let call = Call { count: 100, ccl: 148, dead: DEAD, seed: Some(seed), ..Call::default() };
        equals_host(&program, &ring, &call);
    }
}
