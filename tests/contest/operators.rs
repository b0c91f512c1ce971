//! Operators for HCOMM: exported C++ over the documented calls leaves the host's bits on a stub of them, whatever the order
//! of tasks; each misuse of a call has its own error; what the documentation does not say is needed only where the text
//! declares it.

use std::fmt::Write as _;

use roundelay_core::collective::Collective;
use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_export::contest::operator::{Assumption, Operator, Profile};

use crate::contest::executable::{Call, Door, Executable};
use crate::contest::export::{
    BROKEN, Exported, Placed, export, export_operator, place, place_text, with_driver,
};
use crate::contest::exports::{DEAD, equals_host, ring};

fn around(name: &str) -> Placed {
    place(name, BROKEN, 8, &[]).expect("it is right")
}

/// The whole entry, tiny to huge.
fn classes() -> Vec<(Option<u64>, Placed)> {
    vec![
        (Some(256), around("OneShotAround")),
        (Some(1024), around("TwoShotAround")),
        (Some(4096), around("MeshAround")),
        (None, ring()),
    ]
}

/// Returns the operator of an algorithm at all sizes.
pub(crate) fn alone(placed: &Placed, profile: Profile) -> Result<Operator, String> {
    export_operator(&placed.proved.schedule().algorithm, &[(None, placed)], profile)
}

/// In every profile, with threads and one task at a time, in place and in passes, call after call.
#[test]
fn the_entry_leaves_the_hosts_bits() {
    for profile in Profile::ALL {
        let entry = Exported::operator("Entry", classes(), profile);
        let counts = &[1, 7, 100, 1000, 3, 63, 64, 3001, 3, 701, 1023, 1024, 65, 65];
        let call = Call { counts, ccl: 14_000, dead: DEAD, late: 1, ..Call::default() };
        let report = equals_host(&entry, &call);
        assert_eq!(report.passes[0][1..], [7, 12], "threads and notifies");
        for seed in 0..3 {
            let counts = &[7, 1000, 7, 1001, 2001, 100, 1030];
            let call = Call { counts, seed: Some(seed), in_place: seed == 1, ..call.clone() };
            equals_host(&entry, &call);
        }
    }
}

#[test]
fn six_types_and_three_ops_are_reduced() {
    use DType::{Bf16, F16, F32, I8, I32};
    let ring = Exported::operator("Ring", vec![(None, ring())], Profile::A2);
    let call = Call { counts: &[5, 301], dead: DEAD, ..Call::default() };
    for dtype in [I8, I32, F16, Bf16, F32] {
        for op in [ReduceOp::Sum, ReduceOp::Min, ReduceOp::Max] {
            equals_host(&ring, &Call { dtype, op, ..call.clone() });
        }
    }
    for (dtype, op) in
        [(F32, ReduceOp::Prod), (DType::I64, ReduceOp::Sum), (DType::U8, ReduceOp::Sum)]
    {
        let inputs = vec![vec![0; 2448]; 16];
        let refused = ring.program.run(&Call { dtype, op, ..call.clone() }, &inputs);
        let refused = refused.expect_err("the engine has no such reduction");
        assert!(refused.contains("the operator refuses with code 5"), "{refused}");
    }
}

/// The algorithms of the library, by whether they become operators: with one notify a lane and signal, with notifies in
/// turn, or not; each with what else there is to say. And those that do, by their collectives.
fn library() -> ([String; 3], Vec<Vec<Placed>>) {
    let mut told = [(); 3].map(|()| String::new());
    let mut gathered: Vec<Vec<Placed>> = Vec::new();
    for (_, text) in roundelay_tests::sources("stdlib/library") {
        for line in text.lines().filter_map(|line| line.strip_prefix("pub algorithm ")) {
            let name = line.split('(').next().expect("a name").to_owned();
            let Ok(placed) = place(&name, "full_mesh(8)", 8, &[]) else { continue };
            let (group, said) = match alone(&placed, Profile::A350) {
                Ok(operator) if operator.needs.in_turn == [1] => (0, name),
                Ok(operator) => (1, format!("{name} {}", operator.needs.in_turn[0])),
                Err(why) => (2, format!("{name} {}", &why[why.len() - 7..])),
            };
            let _ = write!(told[group], "{}{said}", if told[group].is_empty() { "" } else { ", " });
            if group < 2 {
                let kind = |of: &Placed| of.proved.schedule().collective;
                match gathered.iter_mut().find(|all| kind(&all[0]) == kind(&placed)) {
                    Some(all) => all.push(placed),
                    None => gathered.push(vec![placed]),
                }
            }
        }
    }
    (told, gathered)
}

#[test]
fn the_library_becomes_operators() {
    let heads = ["one notify a lane and signal", "notifies in turn", "refused"];
    let told = heads.iter().zip(library().0).map(|(head, told)| format!("{head}: {told}\n"));
    expect_test::expect_file!["operators.txt"].assert_eq(&told.collect::<String>());
}

#[test]
fn the_library_leaves_the_hosts_bits_on_a2() {
    leaves_the_hosts_bits(0);
}

#[test]
fn the_library_leaves_the_hosts_bits_on_a3() {
    leaves_the_hosts_bits(1);
}

#[test]
fn the_library_leaves_the_hosts_bits_on_350() {
    leaves_the_hosts_bits(2);
}

/// Runs the programs of the library's operators that this profile's turn has. A program has as many size classes as a
/// communicator has notifies for, at most six.
fn leaves_the_hosts_bits(turn: usize) {
    let mut number = 0;
    for mut left in library().1 {
        while !left.is_empty() {
            let profile = Profile::ALL[number % 3];
            let fits = |many: usize| {
                let classes: Vec<_> = left[..many].iter().map(|placed| (None, placed)).collect();
                export_operator("Some", &classes, profile).is_ok()
            };
            let many = (1..=left.len().min(6)).take_while(|many| fits(*many)).last().expect("one");
            let rest = left.split_off(many);
            let some = std::mem::replace(&mut left, rest);
            if number % 3 == turn {
                runs_like_the_host(some, profile);
            }
            number += 1;
        }
    }
    assert!(number > 3, "{number}");
}

/// An operator of algorithms for one collective, a class for each.
fn runs_like_the_host(all: Vec<Placed>, profile: Profile) {
    let (collective, nranks) = {
        let schedule = all[0].proved.schedule();
        (schedule.collective, schedule.nranks)
    };
    let units = (collective.max_input_units(nranks), collective.max_output_units(nranks));
    let last = all.len() - 1;
    // Class k takes fewer bytes than 2048 * 2^k; the last takes all larger sizes.
    let classes = all.into_iter().enumerate();
    let classes = classes.map(|(nth, of)| ((nth < last).then_some(2048 << nth), of)).collect();
    let unit = 4 * u64::from(units.0.max(units.1));
    let counts: Vec<u64> = (0..=last).map(|nth| (1100 << nth) / unit + 1).collect();
    let counts = [&counts[..], &[1], &counts].concat();
    let some = Exported::operator("Some", classes, profile);
    for seed in [None, Some(3)] {
        let call = Call { nranks, counts: &counts, units, ccl: 1 << 16, seed, ..Call::default() };
        equals_host(&some, &Call { late: 1, ..call });
    }
}

/// A sender and a receiver, as the documentation's own example: the text for readers, which `UPDATE_EXPECT=1` writes anew.
#[test]
fn the_smallest_operator_sends() {
    let text = "algorithm SendReceive(root: Rank = 0) -> Broadcast {
    require root == 0, \"rank 0 sends\";
    if rank == 0 {
        copy(local.input, local.output);
        peer(1).TxAck();
        peer(1).RxDataSignal();
    } else {
        peer(0).RxAck();
        copy(peer(0).output, local.output);
        peer(0).TxDataSignal();
    }
}";
    let placed = place_text(text, 2);
    let operator = alone(&placed, Profile::A3).expect("it is exported");
    expect_test::expect_file!["send_receive.cpp"].assert_eq(&operator.source);
    assert!(operator.header.contains("extern \"C\" HcclResult SendReceive("));
    assert!(
        operator.description.expect("a kernel").contains("\"functionName\": \"SendReceiveKernel\"")
    );
    for profile in Profile::ALL {
        let placed = place_text(text, 2);
        let program = Exported::operator("SendReceive", vec![(None, placed)], profile);
        for seed in 0..4 {
            let counts = &[1, 1000, 17];
            let call = Call { nranks: 2, counts, ccl: 512, seed: Some(seed), ..Call::default() };
            equals_host(&program, &call);
        }
    }
}

/// A push may arrive late: before a signal that its thread records later, or at no time that anybody documents. On 350 the
/// push and the signal behind it are one task.
#[test]
fn pushes_are_declared() {
    let text = |twice: &str| {
        format!(
            "algorithm Pushed() -> AllGather {{
            scratch inbox: nranks like input;
            let right = peer((rank + 1) % nranks);
            let left = peer((rank - 1) % nranks);
            copy(local.input, local.output.block(rank));
            for s in 0..nranks - 1 {{
                left.TxAck();
                right.RxAck();
                {twice}
                copy(local.output.block((rank - s) % nranks), right.output.block((rank - s) % nranks));
                right.TxDataSignal();
                left.RxDataSignal();
            }}
        }}"
        )
    };
    let needs = |text: &str, profile| {
        let operator = alone(&place_text(text, 4), profile).expect("it is exported");
        operator.needs.assumptions[0]
    };
    let (once, halves) =
        (text(""), text("copy(local.output.block((rank - s) % nranks), right.inbox[s]);"));
    assert_eq!(needs(&once, Profile::A2), Assumption::PushesArrive(12));
    assert_eq!(needs(&once, Profile::A350), Assumption::SignalsPublish, "each push is fused");
    assert_eq!(needs(&halves, Profile::A350), Assumption::PushesArrive(12));
    for profile in Profile::ALL {
        let program = Exported::operator("Pushed", vec![(None, place_text(&once, 4))], profile);
        let call = Call { nranks: 4, counts: &[100, 7], units: (1, 4), ..Call::default() };
        for seed in 0..3 {
            let late = Call { seed: Some(seed), late: 1, ..call.clone() };
            equals_host(&program, &late);
            let inputs = [400, 400, 400, 400, 28, 28, 28, 28].map(|bytes| vec![7; bytes]);
            let right = program.program.run(&late, &inputs).expect("it ends").0;
            let never = program.program.run(&Call { late: 2, ..late }, &inputs).expect("it ends").0;
            assert!(right != never, "a push that arrives at the end is seen");
        }
    }
}

/// Where one flag could lose a signal, an operator takes several in turn.
#[test]
fn slices_take_notifies_in_turn() {
    let trees = || place("TreesAllReduce", "full_mesh(4)", 4, &[]).expect("it is right");
    let refused = export("Trees", &[(None, &trees())]).expect_err("a link has two flags");
    assert!(refused.contains("[E0314]"), "{refused}");
    let operator = alone(&trees(), Profile::A2).expect("it is exported");
    assert!(operator.needs.in_turn[0] > 1, "{:?}", operator.needs);
    let program = Exported::operator("Trees", vec![(None, trees())], Profile::A2);
    let call = Call { nranks: 4, counts: &[1000, 7, 333], ..Call::default() };
    for seed in 0..8 {
        equals_host(&program, &Call { seed: Some(seed), ..call.clone() });
    }
    // With one flag some order loses a signal; if notifies counted, none would.
    let rounds = format!("run.rounds = {};", operator.needs.in_turn[0]);
    let text = operator.source.replace(&rounds, "run.rounds = 1;");
    assert_ne!(text, operator.source);
    let text = with_driver(&text, "TreesAllReduce", Profile::A2, true);
    let one =
        Executable::compile_for(Door::Hcomm(Profile::A2), &text, "Trees").expect("it compiles");
    let inputs: Vec<_> = [4000, 28, 1332].iter().flat_map(|n| vec![vec![0; *n]; 4]).collect();
    let run = |loose, seed| one.run(&Call { loose, seed: Some(seed), ..call.clone() }, &inputs);
    let lost: Vec<_> = (0..8).filter_map(|seed| run(false, seed).err()).collect();
    assert!(lost.iter().any(|why| why.contains("which is lost")), "{lost:?}");
    for seed in 0..8 {
        run(true, seed).expect("notifies that count lose nothing");
    }
}

#[test]
fn more_than_a_communicator_has_is_refused() {
    let text = "algorithm Mesh() -> AllGather {
        copy(local.input, local.output.block(rank));
        parallel d in 1..nranks {
            let to = peer((rank + d) % nranks);
            let from = peer((rank - d) % nranks);
            to.TxAck();
            from.RxAck();
            copy(from.input, local.output.block(from.rank));
            from.TxDataSignal();
            to.RxDataSignal();
        }
    }";
    let mesh =
        |nranks: u32| alone(&place_text(text, nranks), Profile::A2).map(|operator| operator.needs);
    let needs = mesh(33).expect("32 notifies of the main thread, and one of each other");
    assert_eq!((needs.threads, needs.thread_notifies), (32, 62));
    let refused = mesh(35).expect_err("66 notifies");
    assert!(
        refused.contains("needs 66 notifies of threads, and there are 64 [E0315]"),
        "{refused}"
    );
    let refused = mesh(42).expect_err("41 threads");
    assert!(refused.contains("needs 41 threads, and there are 40 [E0315]"), "{refused}");
    let ring = ring();
    let classes: Vec<_> = (1..20).map(|nth| (Some(nth * 512), &ring)).collect();
    let refused = export_operator("Many", &classes, Profile::A2).expect_err("4 notifies each");
    assert!(refused.contains("needs 76 notifies at an end of a channel"), "{refused}");
}

/// The twisted ring is a page of C++.
#[test]
fn an_operators_body_is_short() {
    let text = alone(&ring(), Profile::A2).expect("it is exported").source;
    let body =
        text.split("// ---- ").nth(1).and_then(|rest| rest.split("} // namespace class_0").next());
    let lines = body.expect("a class").lines().filter(|line| !line.trim().is_empty()).count();
    assert!(lines <= 90, "{lines}");
}

/// The collectives that the ranks leave with different numbers of units.
#[test]
fn rooted_operators_have_no_op() {
    let placed = place("RingBroadcast", "full_mesh(4)", 4, &[("root", "2")]).expect("it is right");
    assert_eq!(placed.proved.schedule().collective, Collective::Broadcast);
    let operator = alone(&placed, Profile::A2).expect("it is exported");
    assert!(!operator.source.contains("HcclReduceOp op"), "{}", operator.header);
    assert!(operator.source.contains("// The root is rank 2."));
}

/// A page whose name is a word of C++, and whose comments end in what would continue them in the next line.
#[test]
fn names_and_comments_of_a_page_stay_in_their_place() {
    for name in ["main", "int", "Call", "Lane", "min"] {
        let text = format!(
            "/// Shifts. \\
        algorithm {name}() -> AllGather {{
            copy(local.input, local.output.block(rank)); // \\
            parallel d in 1..nranks {{
                peer((rank + d) % nranks).TxAck(); // what??/
                peer((rank - d) % nranks).RxAck(); // \\ ??/
                copy(peer((rank - d) % nranks).input, local.output.block((rank - d) % nranks));
                peer((rank - d) % nranks).TxDataSignal(); // ??/\\
                peer((rank + d) % nranks).RxDataSignal();
            }}
        }}"
        );
        let program = Exported::operator(name, vec![(None, place_text(&text, 3))], Profile::A3);
        let call = Call { nranks: 3, counts: &[9, 1], units: (1, 3), ..Call::default() };
        equals_host(&program, &call);
    }
}

/// An operator for the whole mesh, where a cable is cut: the topology has no link for a channel.
#[test]
fn a_cut_cable_is_no_channel() {
    let placed = place("MeshAllGather", "full_mesh(8)", 8, &[]).expect("it is right");
    let mesh = Exported::operator("Mesh", vec![(None, placed)], Profile::A2);
    let call = Call { counts: &[10], units: (1, 8), dead: DEAD, ..Call::default() };
    let refused = mesh.program.run(&call, &vec![vec![0; 40]; 8]).expect_err("no link");
    assert!(refused.contains("the operator refuses with code 6"), "{refused}");
}
