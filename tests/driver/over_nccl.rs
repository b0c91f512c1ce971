//! Plans over NCCL, below the driver for tests and the library with NCCL's symbols.

use std::time::Duration;

use roundelay::{DType, ReduceOp};
use roundelay_export::cuda::Form;
use roundelay_kernels::cuda::{Error, NcclComm, NcclId, NcclPlan};

use super::below::one_device::sums;
use super::cases::Data;
use super::engine::Engine as _;
use super::members::Ranks;
use super::rank_processes::{case, proved};

const WHY: Duration = Duration::from_secs(20);

/// Runs algorithms at numbers of ranks on data, and compares every byte with the host's.
fn like_the_host(cases: &[(&str, u32, Data)]) {
    let engine = Ranks::over_nccl(0, WHY).expect("NCCL");
    assert!(engine.about().contains("NCCL 23004 on device 0, Paper GPU 0"), "{}", engine.about());
    for (name, nranks, data) in cases {
        let of = proved(name, *nranks);
        let case = case(&of, *data, Form::Loops);
        for in_place in [false, true] {
            let Some(expected) = case.expected(in_place) else { continue };
            let got = engine.run(&case, in_place, 5);
            let got = got.unwrap_or_else(|why| panic!("{name} {}: {why}", case.name(in_place)));
            assert!(got == expected, "{name} {}", case.difference(in_place, &expected, &got));
        }
    }
}

const AVERAGES: Data = Data { count: 1003, dtype: DType::F32, op: ReduceOp::Avg };

#[test]
fn floats_and_copies_are_the_hosts() {
    below!(2);
    let copies = Data { count: 1003, dtype: DType::I8, op: ReduceOp::Sum };
    like_the_host(&[
        ("RingAllReduce", 4, sums(20_000)),
        ("RingAllReduce", 3, AVERAGES),
        ("MeshAllReduce", 5, sums(0)),
        ("OneShotMeshAllReduce", 4, AVERAGES),
        ("MeshReduceScatter", 3, sums(7)),
        ("RecursiveHalvingDoublingAllReduce", 8, sums(1003)),
        ("NcclRingAllReduce", 3, sums(1003)),
        ("TreeBroadcast", 6, copies),
        ("MeshAllToAll", 7, copies),
        ("MeshGather", 4, copies),
    ]);
}

#[test]
fn other_types_are_the_hosts() {
    below!(2);
    like_the_host(&[
        ("RingAllReduce", 3, Data { dtype: DType::Bf16, ..AVERAGES }),
        ("MeshAllReduce", 4, Data { dtype: DType::I64, op: ReduceOp::Lxor, ..AVERAGES }),
        ("RingReduce", 4, Data { dtype: DType::F16, op: ReduceOp::Min, ..AVERAGES }),
    ]);
}

#[test]
fn a_rank_that_does_not_launch_is_waited_for_until_the_deadline() {
    below!(2);
    let engine = Ranks::over_nccl(0, WHY).expect("NCCL");
    let of = proved("RingAllReduce", 4);
    let told = engine.without_last(&case(&of, sums(100), Form::Loops)).expect("a report");
    assert!(told.contains("a group of rank"), "{told}");
    assert!(told.contains("waits for rank"), "{told}");
}

#[test]
fn what_does_not_fit_is_refused_with_a_code() {
    below!(2);
    let id = NcclId::new().expect("a name");
    assert_eq!(NcclId::from_bytes(id.to_bytes()), id);
    let refused = |result: Result<(), Error>, code: &str| {
        let error = result.expect_err(code);
        assert_eq!(error.code().as_str(), code, "{error}");
    };
    let join = |device, rank: u32, nranks| NcclComm::join(device, &id, rank, nranks, WHY);
    refused(join(7, 0, 1).map(drop), "E0415");
    refused(join(0, 1, 1).map(drop), "E0411");
    refused(join(0, 0, 0).map(drop), "E0409");
    let comm = join(0, 0, 1).expect("one rank");
    let plan = |nranks, count, dtype, op| {
        NcclPlan::new(&comm, &proved("RingAllReduce", nranks).1, count, dtype, op)
    };
    let (f32s, sum) = (DType::F32, ReduceOp::Sum);
    refused(plan(2, 10, f32s, sum).map(drop), "E0401");
    refused(plan(1, u64::MAX, f32s, sum).map(drop), "E0407");
    refused(plan(1, 10, f32s, ReduceOp::Bxor).map(drop), "E0431");
    let all_to_all = proved("MeshAllToAll", 1).1;
    let apart = NcclPlan::new(&comm, &all_to_all, 10, f32s, sum).expect("a plan");
    let plan = plan(1, 10, f32s, sum).expect("a plan");
    assert_eq!((plan.count(), plan.input_len(), plan.output_len(), plan.groups()), (10, 10, 10, 0));
    assert_eq!(plan.in_place_len(), 10);
    assert!(format!("{plan:?}").contains("rank 0 of 1 on device 0"), "{plan:?}");
    plan.wait().expect("nothing is under way");
    let stream = comm.stream();
    let buffer = |bytes| comm.buffer("buffer", bytes).expect("room");
    let (mut input, mut output) = (buffer(40), buffer(40));
    let bytes: Vec<u8> = (1..=40).collect();
    stream.memcpy_htod(&bytes, &mut input).expect("copied");
    refused(plan.launch_bytes(stream, &buffer(36), &mut output), "E0402");
    refused(plan.launch_bytes(stream, &input, &mut buffer(44)), "E0402");
    let (wide, mut long) = (buffer(44), buffer(44));
    refused(plan.launch_bytes(stream, &wide.slice(2..42), &mut output), "E0404");
    refused(plan.launch::<u8, _, _>(stream, &input, &mut output), "E0403");
    refused(apart.launch_bytes_in_place(stream, &mut long.slice_mut(..40)), "E0408");
    refused(plan.launch_bytes_in_place(stream, &mut long), "E0402");
    let other = roundelay_kernels::cuda::CudaWorld::on_devices(&[1], 1).expect("another device");
    refused(plan.launch_bytes(&other.stream(), &input, &mut output), "E0420");
    let there = other.buffer("input", roundelay_core::ids::RankId(0), 40).expect("room");
    refused(plan.launch_bytes(stream, &there, &mut output), "E0420");
    // The plan is as good as before, on another stream too.
    let another = comm.context().new_stream().expect("a stream");
    for stream in [stream, &another, stream] {
        plan.launch_bytes(stream, &input, &mut output).expect("a launch");
    }
    plan.wait().expect("it ends");
    let left = stream.clone_dtoh(&output).expect("copied");
    stream.synchronize().expect("it ends");
    assert_eq!(left, bytes, "the input of one rank is its output");
}
