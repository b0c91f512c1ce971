//! Exported executors against the host engine: bit for bit, since the schedule fixes the order.

use roundelay_core::collective::Collective;
use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_core::ids::RankId;
use roundelay_kernels::Plan;
use roundelay_kernels::reference::Reference;

use crate::contest::executable::{Call, Printed};
use crate::contest::export::{BROKEN, Exported, Placed, export, place, place_text};

pub(crate) const DEAD: &[(u32, u32)] = &[(0, 1)];

/// Returns the host's outputs of a call in loops, each loop as a plan of its own.
fn on_host(
    placed: &Placed,
    call: &Call<'_>,
    (total, most): (u64, u64),
    inputs: &[Vec<u8>],
) -> Vec<Vec<u8>> {
    let unit = call.dtype.size() as u64;
    let ins = u64::from(call.units.0);
    let schedule = placed.proved.schedule();
    // In a rooted collective other ranks may have no output.
    let units = |rank: usize| {
        let rank = RankId(rank as u32);
        schedule.collective.output_units(rank, schedule.nranks, schedule.root) as usize
    };
    let empty = |len: usize| -> Vec<_> {
        (0..inputs.len()).map(|rank| vec![0; units(rank) * len]).collect()
    };
    let mut outputs = empty((total * unit) as usize);
    let mut done = 0;
    while done < total {
        let count = most.min(total - done);
        let len = (count * unit) as usize;
        let at = |unit_at: u64| ((unit_at * total + done) * unit) as usize;
        let part = |input: &Vec<u8>| {
            // In a rooted collective other ranks may have no input.
            let units = if input.is_empty() { 0..0 } else { 0..ins };
            units.map(|u| &input[at(u)..][..len]).collect::<Vec<_>>().concat()
        };
        let reads: Vec<_> = inputs.iter().map(part).collect();
        let mut writes = empty(len);
        let plan = Plan::new(&placed.proved, count, call.dtype, call.op).expect("a plan");
        let reads: Vec<_> = reads.iter().map(Vec::as_slice).collect();
        plan.run_bytes(&reads, &mut writes.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>())
            .expect("it runs");
        for (rank, (output, part)) in outputs.iter_mut().zip(&writes).enumerate() {
            for u in 0..units(rank) {
                output[at(u as u64)..][..len].copy_from_slice(&part[u * len..][..len]);
            }
        }
        done += count;
    }
    outputs
}

/// Runs `call` and the host on equal data, and compares every byte.
pub(crate) fn equals_host(exported: &Exported, call: &Call<'_>) -> Printed {
    let schedule = exported.classes[0].1.proved.schedule();
    let mut inputs = Vec::new();
    for (nth, &count) in call.counts.iter().enumerate() {
        let reference = Reference {
            collective: schedule.collective,
            nranks: schedule.nranks,
            root: schedule.root,
            count: count as usize,
            dtype: call.dtype,
            op: call.op,
        };
        inputs.push(reference.inputs(7 + nth as u64));
    }
    let size = call.dtype.size();
    let padded = |(inputs, count): (&Vec<Vec<u8>>, &u64)| {
        let len = (u64::from(call.units.0) * count) as usize * size;
        let pad = move |mut input: Vec<u8>| {
            input.resize(len, 0);
            input
        };
        inputs.clone().into_iter().map(pad).collect::<Vec<_>>()
    };
    let all: Vec<_> = inputs.iter().zip(call.counts).flat_map(padded).collect();
    let ran = exported.program.run(call, &all);
    let (outputs, report) = ran.unwrap_or_else(|error| panic!("{call:?}: {error}"));
    let mut expected = Vec::new();
    for (nth, (&count, inputs)) in call.counts.iter().zip(&inputs).enumerate() {
        let bytes = schedule.collective.bytes(count, call.nranks, size as u64);
        let units = u64::from(call.units.0.max(call.units.1));
        let pass = report.passes.get(nth).map_or(call.ccl / (units * size as u64), |pass| pass[0]);
        expected.extend(on_host(exported.class(bytes), call, (count, pass), inputs));
    }
    for (at, (got, wanted)) in outputs.iter().zip(&expected).enumerate() {
        let (nth, rank) = (at / call.nranks as usize, at % call.nranks as usize);
        assert!(got.starts_with(wanted), "{call:?}: call {nth}: rank {rank} differs");
    }
    report
}

pub(crate) fn ring() -> Placed {
    place("TwistedRingAllReduce", BROKEN, 8, &[("ring", "around(topology)")]).expect("it is right")
}

fn around(name: &str) -> Placed {
    place(name, BROKEN, 8, &[]).expect("it is right")
}

/// The whole entry, tiny to huge.
fn entry() -> Exported {
    let classes = vec![
        (Some(256), around("OneShotAround")),
        (Some(1024), around("TwoShotAround")),
        (Some(4096), around("MeshAround")),
        (None, ring()),
    ];
    Exported::new("Entry", classes)
}

#[test]
fn the_twisted_ring_of_the_broken_mesh_leaves_the_hosts_bits() {
    let ring = Exported::new("Ring", vec![(None, ring())]);
    let call = |counts, ccl| Call { counts, ccl, dead: DEAD, ..Call::default() };
    equals_host(&ring, &call(&[1, 7, 100], 1 << 20));
    equals_host(&ring, &call(&[1, 7, 100], 148));
    equals_host(&ring, &call(&[1_000_003], 1 << 20));
    for seed in 0..4 {
        equals_host(&ring, &Call { seed: Some(seed), ..call(&[100, 3], 148) });
    }
    equals_host(&ring, &Call { in_place: true, ..call(&[1, 100, 7], 148) });
}

/// Signals and scratch of an algorithm never disturb each other, in any order of sizes.
#[test]
fn an_executor_of_four_classes_picks_by_bytes() {
    let entry = entry();
    let counts = &[1, 7, 100, 1000, 3, 63, 64, 10_001, 3, 701, 1023, 1024, 65];
    let report = equals_host(&entry, &Call { counts, ccl: 3000, dead: DEAD, ..Call::default() });
    let [_, slaves, notifies, levels] = report.resources;
    assert_eq!((slaves, notifies, levels), (6, 12, 4));
    for seed in 0..3 {
        let counts = &[7, 1000, 7, 1001, 5_001, 100, 1030];
        let call = Call { counts, ccl: 3000, dead: DEAD, seed: Some(seed), ..Call::default() };
        equals_host(&entry, &call);
    }
}

/// Also where the copy engine does not: tile by tile, by the ranks' own cores.
#[test]
fn every_type_and_op_is_reduced() {
    let entry = entry();
    // The runtime has no fp8.
    let fp8 = [DType::F8E4M3, DType::F8E5M2];
    for &dtype in DType::ALL.iter().filter(|dtype| !fp8.contains(dtype)) {
        for op in [ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Min, ReduceOp::Max] {
            let counts = &[5, 301, 6_001];
            let call = Call { counts, dtype, op, dead: DEAD, ..Call::default() };
            equals_host(&entry, &call);
        }
    }
    // More than one tile of a piece.
    let ring = Exported::new("Ring", vec![(None, ring())]);
    let (dtype, op) = (DType::I64, ReduceOp::Prod);
    let call = Call { counts: &[2_500_001], dtype, op, dead: DEAD, ..Call::default() };
    ring.program.dry(&call).expect("it is right");
}

/// The comment where loops were found in the schedule.
const FOUND: &str = "// These loops were found in the schedule";

/// Which programs of the library are written with their own loops, which from their schedules, and that those with loops
/// leave the host's bits too.
#[test]
fn programs_keep_their_loops() {
    let (mut loops, mut flat, mut refused) = (Vec::new(), Vec::new(), Vec::new());
    let mut classes = Vec::new();
    for (_, text) in roundelay_tests::sources("stdlib/library") {
        for line in text.lines().filter_map(|line| line.strip_prefix("pub algorithm ")) {
            let name = line.split('(').next().expect("a name").to_owned();
            let placed = place(&name, "full_mesh(8)", 8, &[]).ok();
            let text = placed.as_ref().and_then(|placed| export(&name, &[(None, placed)]).ok());
            match (placed, text) {
                (Some(placed), Some(text)) if !text.contains(FOUND) => {
                    if placed.proved.schedule().collective == Collective::AllReduce {
                        classes.push(placed);
                    }
                    loops.push(name);
                }
                (_, Some(_)) => flat.push(name),
                (_, None) => refused.push(name),
            }
        }
    }
    let told = [("loops", &loops), ("from the schedule", &flat), ("refused", &refused)];
    let told = told.map(|(what, names)| format!("{what}: {}\n", names.join(", ")));
    expect_test::expect_file!["loops.txt"].assert_eq(&told.concat());
    // Class k takes fewer bytes than 512 * 2^k; the last takes all larger sizes.
    let last = classes.len() - 1;
    let limit = |nth: usize| (nth < last).then_some(512 << nth);
    let classes: Vec<_> = (0..).map(limit).zip(classes).collect();
    let counts: Vec<u64> = (0..=last).map(|nth| (300 << nth) / 4 + 1).collect();
    let many = Exported::new("Many", classes);
    equals_host(&many, &Call { counts: &counts, ccl: 8 << 20, ..Call::default() });
}

/// Two servers: links inside and ports across, one of which takes over from a dead link.
#[test]
fn islands_leave_the_hosts_bits() {
    let two = "groups([4, 2]) without (0, 1)";
    let placed = place("HierarchicalMeshAllReduce", two, 6, &[]).expect("it is right");
    let exported = Exported::new("Islands", vec![(None, placed)]);
    for seed in [None, Some(5)] {
        let call =
            Call { nranks: 6, counts: &[1, 7, 1003, 100], ccl: 2000, seed, ..Call::default() };
        equals_host(&exported, &call);
    }
}

/// Written with the loops of the program, not from the schedule.
fn has_loops(placed: &Placed) -> bool {
    let name = &placed.proved.schedule().algorithm;
    let text = export(name, &[(None, placed)]).unwrap_or_else(|why| panic!("{name}: {why}"));
    !text.contains(FOUND)
}

/// An algorithm is written with its own loops, and leaves the host's bits.
fn loops_like_the_host(placed: Placed, counts: &[u64], units: (u32, u32)) {
    assert!(has_loops(&placed), "{:?}", placed.proved.schedule().algorithm);
    let schedule = placed.proved.schedule();
    let (nranks, name) = (schedule.nranks, schedule.algorithm.clone());
    let call = Call { nranks, counts, units, ccl: 80 * u64::from(nranks), ..Call::default() };
    equals_host(&Exported::new(&name, vec![(None, placed)]), &call);
}

/// With detours around the dead link and shares of different widths: no move has a table of its own.
#[test]
fn what_goes_around_a_dead_link_is_arithmetic() {
    for name in ["OneShotAround", "TwoShotAround", "MeshAround"] {
        let placed = around(name);
        assert!(has_loops(&placed), "{name}");
        let text = export(name, &[(None, &placed)]).expect("it is exported");
        assert!(!text.contains("const Piece PIECE_"), "{name}: {text}");
    }
}

/// Programs that call others within groups: islands side by side, groups that no arithmetic tells, and one alone.
#[test]
fn programs_of_programs_leave_the_hosts_bits() {
    let colors = ("groups", "colors(0, 1, 1, 0, 1, 0)");
    let rings = [("ring_inside", "true"), ("ring_across", "true")];
    for (name, settings, units) in [
        ("HierarchicalReduceScatter", &[("groups", "of(3)"), rings[0]][..], (6, 1)),
        ("HierarchicalReduceScatter", &[colors, rings[1]], (6, 1)),
        ("HierarchicalAllGather", &[colors], (1, 6)),
        ("HierarchicalAllGather", &[("groups", "of(6)"), rings[0]], (1, 6)),
        ("HierarchicalBroadcast", &[colors, ("root", "4")], (1, 1)),
    ] {
        let placed = place(name, "full_mesh(6)", 6, settings).expect("it is right");
        loops_like_the_host(placed, &[1, 103, 17], units);
    }
}

/// Groups of different sizes and orders, of which not every rank is a member.
#[test]
fn groups_of_lists_become_tables() {
    let text = "algorithm Lists() -> AllReduce {
        copy(local.input, local.output);
        for turn in 0..2 {
            within if turn == 0 { [3, 0, 4] } else { [1, 0] } {
                At(root: 1) on (output);
            }
            if turn == 0 {
                within [1, 2] {
                    At() on (output);
                }
            }
        }
        within [1, 2, 0, 4, 3] {
            if rank == 2 {
                for d in 1..nranks {
                    peer((2 + d) % nranks).TxAck();
                }
                for d in 1..nranks {
                    peer((2 + d) % nranks).RxDataSignal();
                }
            } else {
                peer(2).RxAck();
                copy(peer(2).output, local.output);
                peer(2).TxDataSignal();
            }
        }
    }
    algorithm At(root: Rank = 0) -> Reduce {
        if rank == root {
            for d in 1..nranks {
                let from = peer((root + d) % nranks);
                from.RxAck();
                reduce(from.output, local.output);
                from.TxDataSignal();
            }
        } else {
            peer(root).TxAck();
            peer(root).RxDataSignal();
        }
    }";
    loops_like_the_host(place_text(text, 5), &[1, 103], (1, 1));
}

/// Streams that fork streams have the numbers that the layout gave them; a step that is called often is one function.
#[test]
fn streams_in_streams_and_steps_keep_their_loops() {
    let text = "algorithm Forks() -> AllGather {
        step hear(from: peer) {
            from.RxAck();
            copy(from.input, local.output.split(nranks)[from.rank]);
            for k in 0..1 {
                from.TxDataSignal();
            }
        }
        copy(local.input, local.output.split(nranks)[rank]);
        parallel way in 0..2 {
            parallel d in 1..nranks {
                if d % 2 == way {
                    peer((rank - d) % nranks).TxAck();
                    if way == 0 {
                        hear(peer((rank + d) % nranks));
                    } else {
                        hear(peer((rank + d) % nranks));
                    }
                    peer((rank - d) % nranks).RxDataSignal();
                }
            }
        }
    }";
    let placed = place_text(text, 4);
    let text = export("Forks", &[(None, &placed)]).expect("it is exported");
    assert_eq!(text.matches("Step_hear(").count(), 3, "{text}");
    loops_like_the_host(placed, &[1, 103], (1, 4));
}

/// The passes of a fifo are moves and signals in the loops of the program.
#[test]
fn loops_with_a_fifo_are_kept() {
    let text = "algorithm Pushed() -> AllGather {
        view all = output.split(nranks);
        fifo like input, credits = 1, slices = 1;
        copy(local.input, local.all[rank]);
        for s in 0..nranks - 1 {
            peer((rank + 1) % nranks).send(local.all[(rank - s) % nranks]);
            peer((rank - 1) % nranks).recv(local.all[(rank - s - 1) % nranks]);
        }
    }";
    loops_like_the_host(place_text(text, 4), &[1, 103], (1, 4));
}

#[test]
fn other_collectives_loop_over_each_unit() {
    let mesh = "full_mesh(5)";
    for (name, units) in
        [("RingReduceScatter", (5, 1)), ("RingAllGather", (1, 5)), ("MeshAllToAll", (5, 5))]
    {
        loops_like_the_host(place(name, mesh, 5, &[]).expect("it is right"), &[1, 103, 17], units);
    }
}

/// Beyond 4 GiB, and with a tail: every byte, without one of them.
#[test]
fn huge_calls_are_right_byte_by_byte() {
    let counts = &[1_500_000_001];
    for ccl in [200 << 20, 8 << 30] {
        entry()
            .program
            .dry(&Call { counts, ccl, dead: DEAD, ..Call::default() })
            .expect("it is right");
    }
    let mesh = Exported::new("Mesh", vec![(None, around("MeshAround"))]);
    let call = Call { counts, ccl: 8 << 30, dead: DEAD, ..Call::default() };
    mesh.program.dry(&call).expect("it is right");
}

#[test]
fn what_would_lose_a_signal_is_refused() {
    // At two ranks both directions share the flags of one link.
    let two =
        place("TwistedRingAllReduce", "full_mesh(2)", 2, &[]).expect("with counters it is right");
    let refused = export("Two", &[(None, &two)]).expect_err("its signals are lost");
    assert!(refused.contains("[E0314]"), "{refused}");
}

#[test]
fn what_the_form_cannot_hold_is_refused() {
    let fine = "algorithm Fine() -> AllReduce {
        copy(local.input, local.output);
        copy(local.input.split(8191)[0].split(8209)[1], local.output.split(8191)[0].split(8209)[1]);
    }";
    let fine = place_text(fine, 1);
    let refused = export("Fine", &[(None, &fine)]).expect_err("67 million pieces");
    assert!(refused.contains("[E0704]"), "{refused}");
    let other = place("RingAllReduce", "full_mesh(4)", 4, &[]).expect("it is right");
    let refused =
        export("Mixed", &[(Some(9), &other), (None, &ring())]).expect_err("4 and 8 ranks");
    assert!(refused.contains("[E0704]"), "{refused}");
}

/// The text for readers: `UPDATE_EXPECT=1` writes it anew.
#[test]
fn the_text_of_a_small_ring() {
    let ring = place("RingAllReduce", "full_mesh(3)", 3, &[]).expect("it is right");
    let text = export("SmallRing", &[(None, &ring)]).expect("it is exported");
    expect_test::expect_file!["small_ring.cpp"].assert_eq(&text);
}
