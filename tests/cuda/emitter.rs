//! The texts: their growth, and the signals that they leave out.

use roundelay::{Algorithm as _, DType, Level, ReduceOp, Ring, select};
use roundelay_core::diagnostics::Code;
use roundelay_core::optimize::Goal;
use roundelay_core::verify::Callers;
use roundelay_export::cuda::{Kernel, Protocol, Spec};

use super::runs::{algorithm, code, loops, named, proved, spec};

/// Loops stay loops: a text for 128 ranks equals the text for 8 except for its head, its numbers of ranks and pieces, and
/// the signals that are left out.
#[test]
fn texts_do_not_grow_with_the_ranks() {
    for algorithm in select::library() {
        let (Some(few), Some(many)) = (proved(algorithm, 8), proved(algorithm, 32)) else {
            continue;
        };
        // The moves of ranks that stand for a switch have drawn orders, and are written out.
        if algorithm.schedule(8).is_ok_and(|written| written.has_switch()) {
            continue;
        }
        let texts = [few, many].map(|proved| loops(algorithm, &proved, spec(algorithm)).text);
        let [few, many] = texts.each_ref().map(String::len);
        assert!(many * 2 <= few * 3, "{}: {few} bytes, then {many}", algorithm.name());
    }
    let ring = named("RingAllReduce");
    let texts = [8, 128].map(|n| loops(ring, &proved(ring, n).expect("a ring"), spec(ring)).text);
    let [few, many] = texts.each_ref().map(|text| code(text));
    assert_eq!(few.replace('8', "128"), many);
}

/// One launch for all ranks orders their ends; ranks on several devices begin and end by themselves.
#[test]
fn signals_that_others_imply_are_left_out() {
    let algorithm = named("MeshAllGather");
    let proved = proved(algorithm, 8).expect("a mesh");
    let posts = |callers| {
        let kernel = loops(algorithm, &proved, Spec { callers, ..spec(algorithm) });
        kernel.text.matches("TxAck(").count() + kernel.text.matches("TxDataSignal(").count()
    };
    assert_eq!((posts(Callers::One), posts(Callers::Each)), (0, 2));
}

#[test]
fn a_protocol_that_does_not_fit_is_refused() {
    for (name, protocol) in [
        ("RingAllReduce", Protocol::Simple),
        ("RingAllReduce", Protocol::Ll),
        ("RingAllReduce", Protocol::Ll128),
        ("NcclRingAllReduce", Protocol::Direct),
    ] {
        let algorithm = named(name);
        let proved = proved(algorithm, 4).expect("any rank count will do");
        let spec = Spec { protocol, ..spec(algorithm) };
        let errors = Kernel::of_loops(algorithm, &proved, spec).expect_err("it does not fit");
        assert_eq!(errors[0].code, Code::NoSuchKernel, "{name}");
        assert!(errors[0].help.is_some(), "{name}");
    }
}

/// Elements that are floats have no bits and no truth values.
#[test]
fn an_op_that_the_elements_do_not_have_is_refused() {
    let algorithm = named("RingAllReduce");
    let proved = proved(algorithm, 4).expect("any rank count will do");
    let goal = Goal { level: Level::O1, callers: Callers::One, reassociate: false };
    let made = proved.optimize(goal).expect("what is made is proved");
    for (element, op) in [
        (DType::F64, ReduceOp::Band),
        (DType::F8E4M3, ReduceOp::Lor),
        (DType::F8E5M2, ReduceOp::Bxor),
    ] {
        let spec = Spec { element, op, ..spec(algorithm) };
        let errors = Kernel::of_loops(algorithm, &proved, spec).expect_err("floats have no bits");
        let none = Kernel::of_table(&made, spec).expect_err("floats have no bits");
        assert_eq!((errors[0].code, &errors[0].title), (Code::NoSuchOp, &none.title));
        let words = [op.name(), element.name()];
        assert!(words.iter().all(|word| none.title.contains(word)), "{}", none.title);
        let spec = Spec { element: DType::I8, ..spec };
        Kernel::of_loops(algorithm, &proved, spec).expect("integers have bits");
        Kernel::of_table(&made, spec).expect("integers have bits");
    }
}

/// Lines of 128 bytes arrive whole by `NVLink` of `sm_70` and newer. Other machines are refused, with the link in
/// words.
#[test]
fn machines_that_tear_lines_are_refused() {
    for (topology, nranks, why) in [
        ("full_mesh(4, gpus(sm=70))", 4, None),
        ("machine(\"dgx-h100\")", 8, None),
        ("full_mesh(4, gpus(sm=60))", 4, Some("are sm=60")),
        ("full_mesh(4, gpus(gfx942))", 4, Some("are gfx942")),
        ("machine(\"dgx-h100\", 2)", 16, Some("by the network (NET)")),
    ] {
        let mut algorithm = named("NcclRingAllReduce").clone();
        let place = topology.parse().unwrap_or_else(|error| panic!("{topology}: {error:?}"));
        algorithm.place_on(std::sync::Arc::new(place));
        let proved = proved(&algorithm, nranks).expect("any rank count will do");
        for protocol in [Protocol::Ll, Protocol::Ll128] {
            let made = Kernel::of_loops(&algorithm, &proved, Spec { protocol, ..spec(&algorithm) });
            let why = why.filter(|_| protocol == Protocol::Ll128);
            let refused = made.err().map(|errors| (errors[0].code, errors[0].title.clone()));
            let Some((code, title)) = refused else {
                assert_eq!(why, None, "{topology}");
                continue;
            };
            assert_eq!(code, Code::NoSuchKernel, "{topology}");
            assert!(why.is_some_and(|why| title.contains(why)), "{topology}: {title}");
        }
    }
}

/// Loops that no single text can hold are refused, and the help names the form to use instead.
#[test]
fn loops_that_do_not_fit_are_refused() {
    let both = include_str!("../../book/src/listings/kernel/mixed.coll");
    let streams = "algorithm Streams() -> AllGather {
    view block = output.split(nranks);
    fifo like block;
    let right = peer((rank + 1) % nranks);
    let left = peer((rank - 1) % nranks);
    require nranks == 2, \"two ranks will do\";

    copy(local.input, local.block[rank]);
    parallel way in 1..3 {
        if way == 2 {
            right.send(local.block[rank]);
            left.recv(local.block[left.rank]);
        }
    }
    parallel way in 2..3 {
        right.send(local.block[rank]);
        left.recv(local.block[left.rank]);
    }
}
";
    let peers = "algorithm Peers() -> AllReduce {
    require nranks == 2, \"two ranks will do\";
    let others = [1 - rank];
    fifo like output, credits = 2;
    others.send(local.input);
    others.recv_reduce_copy(local.input, local.output);
}
";
    for (text, protocol, why, help) in [
        (both, Protocol::Ll, "beside its fifo", "protocol simple"),
        (peers, Protocol::Ll, "data of several peers in one move", "protocol simple"),
        (streams, Protocol::Simple, "several streams of a rank use one link", "table form"),
    ] {
        let algorithm = algorithm(text);
        let proved = proved(&algorithm, 2).expect("two ranks will do");
        let spec = Spec { protocol, ..spec(&algorithm) };
        let errors = Kernel::of_loops(&algorithm, &proved, spec).expect_err(why);
        assert_eq!(errors[0].code, Code::NoSuchKernel, "{why}");
        assert!(errors[0].title.contains(why), "{}", errors[0].title);
        assert!(errors[0].help.as_ref().is_some_and(|said| said.contains(help)), "{errors:?}");
    }
}

/// The program that a macro expanded is read again for its loops, with its callees and the values of its parameters.
#[test]
fn a_macro_gives_the_kernel_of_its_source() {
    use roundelay::cuda::OnDevice as _;
    use roundelay::library::{HierarchicalAllReduce, NcclRingAllReduce, RingAllReduce};

    let statements = |text: &str| {
        let lines = code(text);
        let lines = lines.lines().filter(|line| !line.starts_with("#line"));
        lines.collect::<Vec<_>>().join("\n")
    };
    let order = [3, 1, 0, 2];
    let expanded = [
        RingAllReduce::new().ring(order).kernel(4, DType::F32, ReduceOp::Sum),
        NcclRingAllReduce::new().credits(6).kernel(4, DType::F32, ReduceOp::Sum),
        HierarchicalAllReduce::new().kernel(4, DType::F32, ReduceOp::Sum),
    ];
    for kernel in expanded {
        let kernel = kernel.unwrap_or_else(|error| panic!("{error}"));
        let mut known = named(&kernel.name).clone();
        match kernel.name.as_str() {
            "RingAllReduce" => known.set("ring", Ring::from(order).into()).expect("a ring"),
            "NcclRingAllReduce" => known.set("credits", 6_i64.into()).expect("a number"),
            _ => {}
        }
        let proved = proved(&known, 4).expect("four ranks will do");
        let read = loops(&known, &proved, spec(&known));
        assert_eq!(statements(&kernel.text), statements(&read.text));
        assert_eq!(kernel.facts(1000), read.facts(1000), "{}", kernel.name);
    }
}
