//! A model chooses kernels: its results for sizes, protocols and forms.

use roundelay::cuda::{Form, Gpu, KernelChoice, KernelRow, Protocol, select};
use roundelay::{Collective, DType, ReduceOp};
use roundelay_core::diagnostics::Code;

fn choice(collective: Collective, nranks: u32, bytes: u64) -> KernelChoice {
    let gpu = Gpu::find("H200").expect("the model knows it");
    select(&gpu, collective, nranks, bytes, DType::F32, ReduceOp::Sum)
}

fn time(choice: &KernelChoice, name: &str, form: Form, protocol: Protocol) -> f64 {
    let is =
        |row: &&KernelRow| row.algorithm == name && row.form == form && row.protocol == protocol;
    let row = choice.ranked.iter().find(is);
    row.unwrap_or_else(|| panic!("{name} as {form}, {} is not in\n{choice}", protocol.name()))
        .estimate
        .time
}

#[test]
fn lines_are_for_small_messages_and_wide_ones_for_larger_ones() {
    let names = ["NcclRingAllReduce", "PushedOneShotAllReduce", "PushedMeshAllReduce"];
    let [ring, one_shot, two_shots] = names;
    let all = [Protocol::Simple, Protocol::Ll, Protocol::Ll128];
    for (bytes, first, some) in [
        (1 << 10, Protocol::Ll, &names[..]),
        (128 << 10, Protocol::Ll128, &[one_shot]),
        (512 << 10, Protocol::Ll128, &[two_shots]),
        (8 << 20, Protocol::Ll128, &[ring]),
        (256 << 20, Protocol::Simple, &names),
    ] {
        let choice = choice(Collective::AllReduce, 8, bytes);
        for name in some {
            // In picoseconds: where the walk alone takes the time, both kinds of lines do.
            let times = all.map(|p| (time(&choice, name, Form::Loops, p) * 1e12).round());
            let fastest = all.iter().zip(&times).min_by(|(_, a), (_, b)| a.total_cmp(b));
            let fastest = fastest.map(|(protocol, _)| *protocol);
            assert_eq!(fastest, Some(first), "{name} at {bytes} bytes: {times:?} by {all:?}");
        }
        // Among all of these kernels with slots, a kernel with such slots is the first.
        let slots = choice.ranked.iter().find(|row| {
            row.protocol != Protocol::Direct && names.contains(&row.algorithm.as_str())
        });
        assert_eq!(slots.expect("there are some").protocol, first, "{choice}");
    }
    // Two shots where one would send too much.
    let shots = |bytes| {
        let choice = choice(Collective::AllReduce, 8, bytes);
        ["PushedOneShotAllReduce", "PushedMeshAllReduce"]
            .map(|name| time(&choice, name, Form::Loops, Protocol::Ll))
    };
    let [small, large] = [shots(1 << 10), shots(4 << 20)];
    assert!(small[0] < small[1] && large[0] > large[1], "{small:?} {large:?}");
}

#[test]
fn the_first_is_the_fastest_and_larger_ones_take_longer() {
    for collective in Collective::ALL {
        let mut before = 0.0;
        for bytes in [1 << 10, 1 << 16, 1 << 22, 1 << 28] {
            let choice = choice(collective, 8, bytes);
            let best = choice.best().unwrap_or_else(|| panic!("{choice}")).estimate.time;
            assert!(choice.ranked.iter().all(|row| row.estimate.time >= best), "{choice}");
            assert!(best >= before, "{choice}");
            before = best;
        }
    }
}

#[test]
fn what_the_optimizer_makes_of_a_mesh_moves_what_the_floor_does() {
    let choice = choice(Collective::AllReduce, 8, 64 << 20);
    let is = |row: &&KernelRow| row.algorithm == "MeshAllReduce" && row.form == Form::Table;
    let mesh = choice.ranked.iter().find(is).expect("it has a table").estimate;
    assert_eq!((mesh.traffic, mesh.waits), (2 * 8 * (64 << 20), 0));
    let floor = mesh.traffic as f64 / choice.gpu.bandwidth;
    assert!(floor > 0.85 * mesh.time, "{mesh:?}");
}

#[test]
fn what_has_no_kernel_says_why() {
    let choice = choice(Collective::AllReduce, 6, 1 << 20);
    let doubling = choice.refused.iter().find(|r| r.algorithm == "RecursiveDoublingAllReduce");
    assert_eq!(doubling.expect("6 is no power of two").code, Code::RankCountRefused);
    let text = choice.to_string();
    for part in ["on 6 ranks of one GPU", "refused", "[E0205]", "by a model of the GPU:"] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}
