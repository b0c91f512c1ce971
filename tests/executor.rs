//! Executors: the expansion of the macro, the framework's loop, and its refusals.

use std::sync::Arc;

use roundelay::executor::{
    CommInfo, Compiled as _, ExecMem, Executor, Framework, OpParam, find, names, register,
};
use roundelay::library::{RingAllReduce, TwistedRingAllReduce};
use roundelay::{Algorithm as _, Collective, DType, ReduceOp, Ring, Stats, ToPlan as _, Topology};
use roundelay_core::check::Frontend;
use roundelay_core::diagnostics::Code;
use roundelay_core::executor::Executor as Spec;
use roundelay_core::ids::RankId;
use roundelay_core::syntax::Source;
use roundelay_kernels::Error;
use roundelay_kernels::reference::Reference;
use roundelay_tests::compile;

roundelay::executor! {
    /// Reads everything from the rank before it, once it has everything from there.
    algorithm Chain(root: Rank = 0) -> Broadcast {
        if rank == root {
            copy(local.input, local.output);
        } else {
            let from = peer((rank - 1) % nranks);
            from.RxAck();
            copy(from.output, local.output);
            from.TxDataSignal();
        }
        if (rank + 1) % nranks != root {
            let to = peer((rank + 1) % nranks);
            to.TxAck();
            to.RxDataSignal();
        }
    }

    /// Broadcast down a chain from rank 2.
    pub executor Down for Broadcast {
        topology: full_mesh(5);
        root: 2;
        ccl_buffer: 64 B;
        when bytes < 16 B => TreeBroadcast;
        otherwise => Chain;
    }

    /// AllReduce that moves the caller's memory itself.
    pub executor Itself for AllReduce {
        topology: full_mesh(4) without (0, 1);
        ccl_buffer: 100 B;
        dma_reduce: true;
        otherwise => TwistedRingAllReduce(ring = around(topology));
    }

    executor Scattered for ReduceScatter {
        topology: full_mesh(3);
        ccl_buffer: 100 B;
        when bytes < 60 B => MeshReduceScatter;
        otherwise => RingReduceScatter;
    }

    executor Gathered for AllGather {
        topology: full_mesh(3);
        ccl_buffer: 100 B;
        otherwise => RingAllGather;
    }

    executor Everybody for AllToAll {
        topology: full_mesh(3);
        ccl_buffer: 100 B;
        otherwise => MeshAllToAll;
    }
}

/// The executor's result is the reference's, apart and in place; gives the loops, and whether data was staged.
fn is_right(
    executor: &dyn Executor,
    framework: Framework,
    count: u64,
    op: ReduceOp,
) -> (u64, bool) {
    let collective = executor.collective();
    let (nranks, root) = (executor.nranks(), executor.root_rank());
    let dtype = DType::I32;
    let elements = count as usize;
    let reference = Reference { collective, nranks, root, count: elements, dtype, op };
    let inputs: Vec<Vec<i32>> = reference.inputs(7).iter().map(|bytes| words(bytes)).collect();
    let expected: Vec<Vec<i32>> =
        reference.outputs(&reference.inputs(7)).iter().map(|bytes| words(bytes)).collect();

    let mut outputs: Vec<Vec<i32>> = expected.iter().map(|e| vec![-1; e.len()]).collect();
    let reads: Vec<&[i32]> = inputs.iter().map(Vec::as_slice).collect();
    let mut writes: Vec<&mut [i32]> = outputs.iter_mut().map(Vec::as_mut_slice).collect();
    let ran = framework.run(executor, count, op, &reads, &mut writes).expect("it runs");
    assert_eq!(outputs, expected, "{}, {count} elements", executor.name());

    if collective.has_in_place() {
        let ranks = (0..nranks).map(RankId).zip(&inputs).zip(&expected);
        let mut buffers: Vec<Vec<i32>> = ranks
            .map(|((rank, input), output)| {
                let mut buffer = vec![-1; input.len().max(output.len())];
                let at = collective.alias(rank, root).starts().0 as usize * elements;
                buffer[at..at + input.len()].copy_from_slice(input);
                buffer
            })
            .collect();
        let mut views: Vec<&mut [i32]> = buffers.iter_mut().map(Vec::as_mut_slice).collect();
        let again = framework.run_in_place(executor, count, op, &mut views).expect("it runs");
        assert_eq!((again.loops, again.staged), (ran.loops, ran.staged));
        for ((rank, buffer), output) in (0..nranks).map(RankId).zip(&buffers).zip(&expected) {
            let at = collective.alias(rank, root).starts().1 as usize * elements;
            assert_eq!(&buffer[at..at + output.len()], output, "{} in place", executor.name());
        }
    }
    (ran.loops, ran.staged)
}

fn words(bytes: &[u8]) -> Vec<i32> {
    bytes.chunks_exact(4).map(|b| i32::from_ne_bytes(b.try_into().expect("four"))).collect()
}

#[test]
fn what_fits_runs_where_it_lies_and_the_rest_in_parts() {
    let framework = Framework::new();
    // 64 bytes: 16 elements a loop, the last of which may be smaller.
    for (count, loops) in [(0, 0), (1, 1), (3, 1), (4, 1), (16, 1), (17, 2), (32, 2), (100, 7)] {
        let ran = is_right(&Down, framework, count, ReduceOp::Sum);
        assert_eq!(ran, (loops, loops > 1), "{count} elements");
    }
    // 25 elements a loop, in the caller's memory.
    for (count, loops) in [(0, 0), (1, 1), (25, 1), (26, 2), (1003, 41)] {
        for op in [ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Avg] {
            assert_eq!(is_right(&Itself, framework, count, op), (loops, false));
        }
    }
    // Three units of 8 elements a loop.
    for (count, loops) in [(0, 0), (1, 1), (4, 1), (8, 1), (9, 2), (50, 7)] {
        assert_eq!(is_right(&Scattered, framework, count, ReduceOp::Max), (loops, loops > 1));
        assert_eq!(is_right(&Gathered, framework, count, ReduceOp::Sum), (loops, loops > 1));
        assert_eq!(is_right(&Everybody, framework, count, ReduceOp::Sum), (loops, loops > 1));
    }
    assert_eq!(is_right(&Itself, framework.ccl_buffer(1 << 20), 1003, ReduceOp::Sum), (1, false));
    assert_eq!(is_right(&Down, framework.ccl_buffer(4), 5, ReduceOp::Sum), (5, true));
}

#[test]
fn the_class_is_chosen_by_the_size_of_the_whole_call() {
    let spec = Down.compiled().spec();
    assert_eq!(spec.class(15).algorithm.name(), "TreeBroadcast");
    assert_eq!(spec.class(16).algorithm.name(), "Chain");
    // A tail of one element is still a part of 17.
    let param = OpParam { count: 1, ..OpParam::new(17, DType::I32, ReduceOp::Sum) };
    let plan = Down.compiled().plan(&param).expect("it is lowered");
    assert_eq!(plan.schedule().algorithm, "Chain");
}

#[test]
fn what_a_contestant_computes_by_hand_is_derived() {
    let executor = find("CustomHugeAllReduceMesh").expect("the library registers it");
    assert_eq!(executor.calc_notify_num(3), 6);
    assert_eq!(executor.ccl_buffer_size(), 200 << 20);
    assert_eq!(executor.calc_loop_max_count(200 << 20, 4), 50 << 20);
    let CommInfo { links, .. } = executor.calc_comm_info();
    let dead = |a: u32, b: u32| links.iter().any(|l| (l.from, l.to) == (RankId(a), RankId(b)));
    assert!(!dead(0, 1) && !dead(1, 0), "the dead link is not asked for");

    let twisted = Itself.compiled().spec();
    assert_eq!((twisted.needs.slave_streams, twisted.needs.notifies), (1, 2));
    assert_eq!(twisted.needs.links.len(), 8, "two links of each of four ranks");
    assert_eq!(twisted.scratch_bytes(1 << 20), 0);
    // n blocks of scratch of a ring that reduces out of the input, of at most a CCL buffer each.
    let scattered = Scattered.compiled().spec();
    for ccl in [100, 101, 1 << 20] {
        for unit in [1, 2, 4, 8] {
            let count = scattered.loop_max_count(ccl, unit);
            let class = &scattered.classes[1];
            let all = class.proved.schedule().scratch.iter().map(|s| s.elements(count) * unit);
            assert!(all.sum::<u64>() <= scattered.scratch_bytes(ccl));
        }
    }
}

/// An executor written by hand, which returns the values that it is given.
struct ByHand {
    slaves: u32,
    links: CommInfo,
}

impl ByHand {
    fn ring() -> TwistedRingAllReduce {
        TwistedRingAllReduce::new().ring(Ring::natural())
    }
}

impl Executor for ByHand {
    fn name(&self) -> &'static str {
        "ByHand"
    }

    fn collective(&self) -> Collective {
        Collective::AllReduce
    }

    fn nranks(&self) -> u32 {
        4
    }

    fn ccl_buffer_size(&self) -> u64 {
        1 << 10
    }

    fn calc_scratch_mem_size(&self, _: u64) -> u64 {
        0
    }

    fn calc_stream_num(&self) -> u32 {
        self.slaves
    }

    fn calc_comm_info(&self) -> CommInfo {
        self.links.clone()
    }

    fn calc_loop_max_count(&self, ccl_buff_size: u64, unit_size: u64) -> u64 {
        ccl_buff_size / unit_size
    }

    fn kernel_run(&self, param: &OpParam, mem: &mut ExecMem<'_, '_>) -> Result<Stats, Error> {
        let plan = Self::ring().plan(4, param.count, param.dtype, param.op);
        mem.run(&plan.expect("the library's ring is proved"))
    }
}

#[test]
fn an_executor_that_asks_for_too_little_is_refused() {
    let topology: Topology = "full_mesh(4)".parse().expect("a topology");
    let schedule = ByHand::ring().schedule(4).expect("it fits");
    let needs = roundelay_core::executor::Needs::new(&schedule, &topology);
    let links = CommInfo { links: needs.links, exposed: needs.exposed };
    let framework = Framework::new();
    let right = ByHand { slaves: 1, links: links.clone() };
    assert_eq!(is_right(&right, framework, 1000, ReduceOp::Sum), (4, true));

    let mut fewer = links.clone();
    fewer.links.pop_first();
    for (executor, why) in [
        (ByHand { slaves: 0, links }, "asked for 0 slave streams, and uses 1"),
        (ByHand { slaves: 1, links: fewer }, "rank 0 uses its link to rank 1"),
    ] {
        let inputs = [[1.0_f32; 3]; 4];
        let mut outputs = [[0.0_f32; 3]; 4];
        let refused = framework.run(
            &executor,
            3,
            ReduceOp::Sum,
            &inputs.each_ref().map(|i| &i[..]),
            &mut outputs.each_mut().map(|o| &mut o[..]),
        );
        let error = refused.expect_err("it uses more");
        assert_eq!(error.code(), Code::OverBudget);
        assert!(error.to_string().contains(why), "{error}");
    }
}

#[test]
fn wrong_calls_are_told() {
    let framework = Framework::new();
    let (inputs, mut outputs) = ([[1_i32; 4]; 4], [[0_i32; 4]; 4]);
    let mut call = |count: u64, ranks: usize, framework: Framework| {
        let reads: Vec<&[i32]> = inputs[..ranks].iter().map(|i| &i[..]).collect();
        let mut writes: Vec<&mut [i32]> = outputs.iter_mut().map(|o| &mut o[..]).collect();
        framework.run(&Itself, count, ReduceOp::Sum, &reads, &mut writes).map_err(|e| e.code())
    };
    assert_eq!(call(4, 3, framework), Err(Code::WrongBufferCount));
    assert_eq!(call(5, 4, framework), Err(Code::WrongBufferLength));
    assert_eq!(call(u64::MAX, 4, framework), Err(Code::WrongBufferLength));
    assert_eq!(call(4, 4, framework.ccl_buffer(3)), Err(Code::OverBudget));
    assert!(call(4, 4, framework).is_ok());
    let reads = inputs.each_ref().map(|i| &i[..]);
    let mut writes = outputs.each_mut().map(|o| &mut o[..]);
    let bits = framework.run(&Itself, 4, ReduceOp::Band, &reads, &mut writes);
    let error = bits.expect_err("the contest has none");
    assert_eq!(error.code(), Code::NoSuchOp);
    assert!(error.to_string().contains("no op band"), "{error}");
}

#[test]
fn executors_are_found_by_name_and_a_name_is_given_once() {
    register(Down).expect("no other executor has the name");
    assert_eq!(find("Down").map(|executor| executor.nranks()), Some(5));
    assert!(names().contains(&"Down".to_owned()));
    let twice = register(Down).expect_err("it is there already");
    assert_eq!(twice.code(), Code::AlreadyDeclared);
    assert!(find("Up").is_none());
}

#[test]
fn both_frontends_make_the_same_executor() {
    let text = include_str!("../stdlib/library/contest.coll");
    let source = Source::from_text("contest.coll", text);
    let program = compile(&source, Frontend::File).expect("the library is right");
    let read = Spec::compile(&program.executors[0], &source).expect("it is proved");
    let made = roundelay::executor::library::CustomHugeAllReduceMesh.compiled().spec();
    assert_eq!(made.needs, read.needs);
    assert_eq!(made.docs, read.docs);
    for (made, read) in made.classes.iter().zip(&read.classes) {
        assert_eq!(made.below, read.below);
        assert_eq!(made.proved.schedule(), read.proved.schedule());
    }
    // A class is laid out as its algorithm is by itself.
    let ring = Arc::new("full_mesh(4) without (0, 1)".parse::<Topology>().expect("a topology"));
    let alone = TwistedRingAllReduce::new().ring(Ring::around(ring)).schedule(4).expect("it fits");
    let class = Itself.compiled().spec().classes[0].proved.schedule();
    assert_eq!((&class.ops, &class.operands), (&alone.ops, &alone.operands));
    assert_ne!(class.operands, RingAllReduce::new().schedule(4).expect("it fits").operands);
}
