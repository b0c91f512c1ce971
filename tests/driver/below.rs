//! The tests that run below the driver for tests.

pub(super) mod one_device {
    use std::time::Duration;

    use roundelay::{DType, ReduceOp};
    use roundelay_core::diagnostics::Code;
    use roundelay_core::ids::RankId;
    use roundelay_core::verify::Callers;
    use roundelay_export::cuda::{Form, Kernel};
    use roundelay_kernels::Check;
    use roundelay_kernels::cuda::{CudaOptions, CudaPlan, CudaWorld, Driven, Error, Rooms};

    use crate::driver::cases::Data;
    use crate::driver::cuda::Cuda;
    use crate::driver::engine::Engine;
    use crate::driver::rank_processes::{case, proved};

    const WHY: Duration = Duration::from_secs(20);

    pub(in super::super) fn sums(count: usize) -> Data {
        Data { count, dtype: DType::F32, op: ReduceOp::Sum }
    }

    #[test]
    fn results_are_the_hosts() {
        below!(1);
        let engine = Cuda::new(0, WHY, true).expect("a device");
        assert!(engine.about().contains("Paper GPU 0"), "{}", engine.about());
        let average = Data { count: 1003, dtype: DType::Bf16, op: ReduceOp::Avg };
        let table = [
            // Large enough for two CTAs a stream.
            ("RingAllReduce", 4, sums(20_000), Form::Loops),
            ("RingAllReduce", 3, average, Form::Loops),
            ("MeshAllReduce", 4, sums(0), Form::Loops),
            ("TwistedRingAllReduce", 4, average, Form::Loops),
            ("MeshReduceScatter", 3, sums(7), Form::Loops),
            ("RingBroadcast", 3, sums(1003), Form::Loops),
            ("NcclRingAllReduce", 3, sums(1003), Form::Loops),
            ("RingAllGather", 5, sums(3), Form::Table),
        ];
        for (name, nranks, data, form) in table {
            let of = proved(name, nranks);
            let case = case(&of, data, form);
            for in_place in [false, true] {
                let Some(expected) = case.expected(in_place) else { continue };
                let got = engine.run(&case, in_place, 12);
                let got = got.unwrap_or_else(|why| panic!("{name} {}: {why}", case.name(in_place)));
                assert!(got == expected, "{name} {}", case.difference(in_place, &expected, &got));
            }
        }
    }

    /// A kernel that was patched to take the maximum is found when its plan is made, and one that is right is not.
    #[test]
    fn a_plan_checks_itself_when_it_is_made() {
        below!(1);
        for (name, nranks) in [("RingAllReduce", 3), ("MeshReduceScatter", 4)] {
            let of = proved(name, nranks);
            let case = case(&of, sums(1003), Form::Loops);
            let world = CudaWorld::on_devices(&[0], nranks).expect("a world");
            let mut kernel = case.kernel().expect("a kernel");
            let made = |kernel: &Kernel, check| {
                let options = CudaOptions::new().deadline(WHY).check_calls(check);
                CudaPlan::of_kernel(&world, kernel.clone(), 1003, options).map(drop)
            };
            made(&kernel, Check::First).expect("a right kernel");
            let (sum, max) = ("#define ROUNDELAY_OP Sum", "#define ROUNDELAY_OP Max");
            assert!(kernel.text.contains(sum), "{}", kernel.text);
            kernel.text = kernel.text.replace(sum, max);
            made(&kernel, Check::Never).expect("no check");
            let error = made(&kernel, Check::First).expect_err("a patched kernel");
            let Error::Host(roundelay_kernels::Error::WrongData(wrong)) = &error else {
                panic!("{error}")
            };
            assert_eq!((wrong.rank, wrong.algorithm.as_str()), (RankId(0), name), "{error}");
        }
    }

    #[test]
    fn other_buffers_and_streams_are_bound_anew() {
        below!(1);
        let of = proved("RingAllReduce", 3);
        let case = case(&of, sums(1003), Form::Loops);
        let kernel = case.kernel().expect("a kernel");
        let world = CudaWorld::on_devices(&[0, 0], 3).expect("a world");
        assert_eq!(world.names().count(), 1, "a device that comes twice counts once");
        let plan = CudaPlan::of_kernel(&world, kernel, 1003, CudaOptions::new()).expect("a plan");
        let rooms = || Rooms::new(&world, case.buffers(), &case.inputs()).expect("room");
        let streams = [world.stream(), world.context(RankId(0)).new_stream().expect("a stream")];
        let mut all = [rooms(), rooms(), rooms()];
        for (rooms, stream) in all.iter_mut().zip(streams.iter().cycle()) {
            rooms.clear().expect("cleared");
            // There is no wait: each launch comes after the launch before.
            rooms.launch(&plan, stream, false).expect("a launch");
        }
        plan.wait().expect("no wait gave up");
        let expected = case.expected(false).expect("a result");
        for rooms in &all {
            assert!(rooms.results(false).expect("results") == expected);
        }
    }

    #[test]
    fn a_graph_launches_a_plan_again_and_again() {
        below!(1);
        let of = proved("RingAllReduce", 3);
        let case = case(&of, sums(1003), Form::Loops);
        let kernel = case.kernel().expect("a kernel");
        let world = CudaWorld::on_devices(&[0], 3).expect("a world");
        let options = CudaOptions::new().deadline(WHY);
        let plan = CudaPlan::of_kernel(&world, kernel.clone(), 1003, options);
        let mut plan = plan.expect("a plan");
        let rooms = || Rooms::new(&world, case.buffers(), &case.inputs()).expect("room");
        let mut all = [rooms(), rooms()];
        for in_place in [false, true] {
            let expected = case.expected(in_place).expect("a result");
            for rooms in &mut all {
                // A launch of its own on other buffers comes before it, and one on its buffers after it.
                rooms.enter().expect("entered");
                rooms.launch(&plan, &world.stream(), in_place).expect("a launch");
                rooms.enter().expect("entered");
                let mut graph = rooms.graph(&mut plan, in_place).expect("a graph");
                graph.launch().expect("a launch");
                graph.wait().expect("no wait gave up");
                // In place, a second reduction gives another sum.
                for _ in 0..if in_place { 0 } else { 3 } {
                    graph.launch().expect("a launch");
                }
                drop(graph);
                assert!(rooms.results(in_place).expect("results") == expected);
            }
        }
        let [rooms, _] = &mut all;
        // Its deadline is waited for.
        let options = CudaOptions::new().deadline(Duration::from_secs(2));
        let mut plan = CudaPlan::of_kernel(&world, kernel, 1003, options).expect("a plan");
        plan.leave_out_last_rank(true);
        let mut graph = rooms.graph(&mut plan, false).expect("a graph");
        graph.launch().expect("a launch");
        assert_eq!(graph.wait().expect_err("no rank comes").code(), Code::Timeout);
        drop(graph);
        plan.leave_out_last_rank(false);
        rooms.clear().expect("cleared");
        let mut graph = rooms.graph(&mut plan, false).expect("a graph");
        graph.launch().expect("a launch");
        graph.wait().expect("the plan goes on");
        drop(graph);
        let expected = case.expected(false).expect("a result");
        assert!(rooms.results(false).expect("results") == expected);

        let slices = |len| {
            let slice = |_| world.stream().alloc_zeros::<f32>(len).expect("room");
            (0..3).map(slice).collect::<Vec<_>>()
        };
        let (inputs, mut short, mut outputs) = (slices(1003), slices(1002), slices(1003));
        let refused = plan.graph(&inputs, &mut short).err().expect("too short");
        assert_eq!(refused.code(), Code::WrongBufferLength);
        let mut graph = plan.graph(&inputs, &mut outputs).expect("a graph");
        graph.launch().expect("a launch");
        graph.wait().expect("no wait gave up");
    }

    #[test]
    fn the_kernel_that_is_chosen_is_planned() {
        below!(1);
        let world = CudaWorld::on_devices(&[0], 4).expect("a world");
        let gpu = world.gpu(1e12).expect("a GPU of the model");
        assert_eq!((gpu.name.as_str(), gpu.multiprocessors), ("Paper GPU 0", 16));
        for bytes in [1 << 10, 1 << 20] {
            let choice = roundelay::cuda::select(
                &gpu,
                roundelay::Collective::AllReduce,
                4,
                bytes,
                DType::F32,
                ReduceOp::Sum,
            );
            let best = choice.best().expect("there is one").clone();
            let (algorithm, proved) = proved(&best.algorithm, 4);
            let options = CudaOptions::new().form(best.form).protocol(best.protocol);
            let kind = (DType::F32, ReduceOp::Sum);
            let kernel = options.kernel(algorithm, &proved, kind, Callers::One).expect("a kernel");
            let plan = choice.plan(&world, 1003, DType::F32, ReduceOp::Sum).expect("a plan");
            assert_eq!(plan.kernel().text, kernel.text);
            let estimate = plan.estimate(&gpu, false);
            assert!(estimate.time > estimate.launch, "{estimate:?}");
        }
    }

    #[test]
    fn a_rank_that_never_runs_is_reported_and_the_plan_survives() {
        below!(1);
        let engine = Cuda::new(0, WHY, true).expect("a device");
        let of = proved("RingAllReduce", 4);
        let case = case(&of, sums(100), Form::Loops);
        let stuck = engine.stuck(&case).expect("a report");
        assert!(stuck.waiting_on.ends_with("from rank 3"), "{stuck}");
        assert_eq!((stuck.expected, stuck.seen), (1, 0), "{stuck}");
        assert!(stuck.line > 0, "{stuck}");
    }

    #[test]
    fn the_host_drives_the_same_schedule_to_the_same_bits() {
        below!(1);
        for (name, nranks) in [("RingAllReduce", 4), ("MeshAllReduce", 5), ("TreeBroadcast", 6)] {
            let of = proved(name, nranks);
            let case = case(&of, sums(1003), Form::Loops);
            let kernel = case.kernel().expect("a kernel");
            let world = CudaWorld::on_devices(&[0], nranks).expect("a world");
            let options = CudaOptions::new();
            let plan = CudaPlan::of_kernel(&world, kernel, 1003, options).expect("a plan");
            let driven = Driven::new(&world, &plan).expect("a driven plan");
            let mut rooms = Rooms::new(&world, case.buffers(), &case.inputs()).expect("room");
            for in_place in [false, true] {
                let Some(expected) = case.expected(in_place) else { continue };
                rooms.enter().expect("entered");
                driven.launch(&mut rooms, &world.stream(), in_place).expect("a launch");
                let got = rooms.results(in_place).expect("results");
                assert!(got == expected, "{name} {}", case.difference(in_place, &expected, &got));
            }
        }
        let world = CudaWorld::on_devices(&[0], 1).expect("a world");
        assert!(world.copy_bandwidth().expect("it copies") > 0.0);
    }

    #[test]
    fn what_does_not_fit_is_refused_with_a_code() {
        below!(1);
        let plan = |name, nranks, count, options| {
            let of = proved(name, nranks);
            let case = case(&of, sums(count), Form::Loops);
            let kernel = case.kernel().expect("a kernel");
            let world = CudaWorld::on_devices(&[0], nranks).expect("a world");
            let plan = CudaPlan::of_kernel(&world, kernel, count as u64, options);
            plan.map(|plan| (world, plan))
        };
        let refused = |result: Result<(CudaWorld, CudaPlan), Error>, code: &str| {
            let error = result.err().unwrap_or_else(|| panic!("{code} is expected"));
            assert_eq!(error.code().as_str(), code, "{error}");
        };
        let options = CudaOptions::new();
        refused(plan("RingAllReduce", 33, 10, options), "E0418");
        refused(plan("RingAllReduce", 4, 10, options.parts(9)), "E0418");
        assert!(plan("RingAllReduce", 4, 10, options.parts(8)).is_ok(), "32 CTAs are there");
        refused(plan("RecursiveDoublingAllReduce", 4, 8 << 20, options), "E0419");
        refused(plan("RingAllReduce", 4, 10, options.threads(33)), "E0423");
        let error = CudaWorld::on_devices(&[7], 4).err().expect("no such device");
        assert_eq!(error.code(), Code::NoCuda, "{error}");
        assert_eq!(CudaWorld::on_devices(&[0], 0).err().map(|e| e.code()), Some(Code::NoRanks));

        let (world, plan) = plan("RingAllReduce", 3, 10, options).expect("a plan");
        let slices = |bytes| {
            let slice = |rank| world.buffer("input", RankId(rank), bytes).expect("room");
            (0..3).map(slice).collect::<Vec<_>>()
        };
        let stream = world.stream();
        let (inputs, mut short, mut outputs) = (slices(40), slices(39), slices(40));
        let code = |result: Result<(), Error>| result.expect_err("it does not fit").code();
        let launched = plan.launch_bytes(&stream, &inputs, &mut short);
        assert_eq!(code(launched), Code::WrongBufferLength);
        let launched = plan.launch_bytes(&stream, &inputs[..2], &mut outputs);
        assert_eq!(code(launched), Code::WrongBufferCount);
        let launched = plan.launch::<i64, _, _>(
            &stream,
            &[] as &[cuda_slice::I64],
            &mut [] as &mut [cuda_slice::I64],
        );
        assert_eq!(code(launched), Code::WrongDType);
        plan.launch_bytes(&stream, &inputs, &mut outputs).expect("what fits is launched");
        plan.wait().expect("no wait gave up");
    }

    mod cuda_slice {
        pub(super) type I64 = roundelay_kernels::cuda::cudarc::driver::CudaSlice<i64>;
    }
}

mod several_devices {
    use roundelay::{DType, ReduceOp};
    use roundelay_core::ids::RankId;
    use roundelay_core::verify::Callers;
    use roundelay_export::cuda::{Form, Kernel, Protocol};
    use roundelay_kernels::cuda::{CudaOptions, CudaPlan, CudaWorld, Rooms};

    use crate::driver::cases::{Case, Data};
    use crate::driver::rank_processes::{case, proved};
    use crate::driver::{passes, test_below};

    #[test]
    fn ranks_of_two_devices_reach_each_other() {
        below!(3);
        let data = Data { count: 1003, dtype: DType::F32, op: ReduceOp::Sum };
        let direct = ["RingAllReduce", "MeshAllReduce"].map(|name| (name, Protocol::Direct));
        for (name, protocol) in direct.into_iter().chain([("NcclRingAllReduce", Protocol::Ll128)]) {
            let of = proved(name, 5);
            let case = Case { protocol, ..case(&of, data, Form::Loops) };
            let spec = case.kernel().expect("a kernel").spec;
            let spec = roundelay_export::cuda::Spec { callers: Callers::Each, ..spec };
            let kernel = Kernel::of_loops(of.0, &of.1, spec).expect("a kernel");
            let world = CudaWorld::on_devices(&[0, 1], 5).expect("devices that reach each other");
            let options = CudaOptions::new();
            let mut plan = CudaPlan::of_kernel(&world, kernel, 1003, options).expect("a plan");
            let mut rooms = Rooms::new(&world, case.buffers(), &case.inputs()).expect("room");
            for in_place in [false, true] {
                let expected = case.expected(in_place).expect("a result");
                rooms.enter().expect("entered");
                let mut graph = rooms.graph(&mut plan, in_place).expect("a graph");
                graph.launch().expect("a launch");
                graph.wait().expect("no wait gave up");
                drop(graph);
                assert!(rooms.results(in_place).expect("results") == expected, "by a graph");
                for _ in 0..5 {
                    rooms.enter().expect("entered");
                    rooms.launch(&plan, &world.stream(), in_place).expect("a launch");
                    plan.wait().expect("no wait gave up");
                    let got = rooms.results(in_place).expect("results");
                    assert!(got == expected, "{}", case.difference(in_place, &expected, &got));
                }
            }
            let other = CudaWorld::on_devices(&[1], 5).expect("a world");
            let slices = |world: &CudaWorld| {
                let slice = |rank| world.buffer("output", RankId(rank), 4012).expect("room");
                (0..5).map(slice).collect::<Vec<_>>()
            };
            let (right, mut wrong) = (slices(&world), slices(&other));
            let launched = plan.launch_bytes(&world.stream(), &right, &mut wrong);
            assert_eq!(launched.expect_err("another device").code().as_str(), "E0420");
        }
    }

    #[test]
    fn devices_that_do_not_reach_each_other_are_refused() {
        below!(3);
        let error = CudaWorld::on_devices(&[0, 2], 4).err().expect("the last reaches no other");
        assert_eq!(error.code().as_str(), "E0422", "{error}");
    }

    /// Without `NVLink`, devices reach each other by `PCIe`, which does not keep lines of 128 bytes together.
    #[test]
    fn devices_that_tear_lines_are_refused() {
        if std::env::var_os("ROUNDELAY_FAKE").is_none() {
            let name = "driver::below::several_devices::devices_that_tear_lines_are_refused";
            let mut command = test_below(name, 3);
            command.env("ROUNDELAY_FAKE_LINK", "pcie");
            return passes(command.spawn().expect("it starts"));
        }
        let (algorithm, proved) = proved("NcclRingAllReduce", 4);
        let world = CudaWorld::on_devices(&[0, 1], 4).expect("devices that reach each other");
        let plan = |protocol| {
            let options = CudaOptions::new().protocol(protocol);
            let sums = (DType::F32, ReduceOp::Sum);
            CudaPlan::new(&world, algorithm, &proved, 10, sums, options)
        };
        let error = plan(Protocol::Ll128).expect_err("PCIe tears its lines");
        assert_eq!(error.code().as_str(), "E0423", "{error}");
        assert!(error.to_string().contains("device 0 reaches device 1 by PCIe"), "{error}");
        assert!(plan(Protocol::Ll).is_ok(), "lines of 16 bytes are right on every link");
    }
}

/// Plans of a process that has each of them check itself.
mod checked {
    use std::time::Duration;

    use roundelay::{DType, ReduceOp};
    use roundelay_export::cuda::Form;
    use roundelay_kernels::cuda::{Error, NcclComm, NcclId, NcclPlan};

    use super::one_device::sums;
    use crate::driver::cuda::Cuda;
    use crate::driver::engine::Engine;
    use crate::driver::members::Ranks;
    use crate::driver::rank_processes::{case, proved};

    const WHY: Duration = Duration::from_secs(20);

    #[test]
    fn right_results_are_as_they_were() {
        below!(2, "first");
        let engines: [Box<dyn Engine>; 2] = [
            Box::new(Cuda::new(0, WHY, true).expect("a device")),
            Box::new(Ranks::over_nccl(0, WHY).expect("NCCL")),
        ];
        for (engine, name) in
            engines.iter().flat_map(|e| ["RingAllReduce", "MeshGather"].map(|n| (e, n)))
        {
            let of = proved(name, 3);
            let case = case(&of, sums(1003), Form::Loops);
            let expected = case.expected(false).expect("a result");
            assert!(engine.run(&case, false, 2).expect("a run") == expected, "{name}");
        }
    }

    /// One rank takes the maximum, as a patched library might: all ranks are told alike.
    #[test]
    fn a_rank_with_wrong_data_is_named_on_all_ranks() {
        below!(2, "first");
        let (_, proved) = proved("RingAllReduce", 3);
        let id = NcclId::new().expect("an id");
        let made = |rank: u32| {
            let comm = NcclComm::join(0, &id, rank, 3, WHY)?;
            let op = if rank == 1 { ReduceOp::Max } else { ReduceOp::Sum };
            NcclPlan::new(&comm, &proved, 1003, DType::F32, op)
        };
        let errors = std::thread::scope(|threads| {
            let made = &made;
            let ranks: Vec<_> = (0..3).map(|rank| threads.spawn(move || made(rank))).collect();
            ranks
                .into_iter()
                .map(|rank| rank.join().expect("no panic").map(drop))
                .collect::<Vec<_>>()
        });
        for error in errors {
            let Err(Error::Host(roundelay_kernels::Error::WrongData(wrong))) = error else {
                panic!("{error:?}")
            };
            assert_eq!((wrong.rank.0, wrong.algorithm.as_str()), (0, "RingAllReduce"), "{wrong}");
        }
    }
}
