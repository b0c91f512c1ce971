//! Kernels: their texts need no GPU; a code names the part that a device lacks.

use std::time::Duration;

use roundelay::cuda::{
    Callers, CudaOptions, CudaPlan, CudaWorld, DeviceRank, Error, Estimate, Form, Gpu, Kernel,
    KernelChoice, KernelRow, LaunchShape, Missing, NcclComm, NcclId, NcclPlan, OnDevice as _, Part,
    PlanGraph, Protocol, RankPlan, Refused, Spec, cudarc, select,
};
#[cfg(target_os = "linux")]
use roundelay::cuda::{CudaRank, DeviceCalls, ProcessPlan, RankBuffer, Registration, Transport};
use roundelay::library::RingAllReduce;
use roundelay::{Collective, DType, ReduceOp};

#[test]
fn a_kernel_is_a_text() -> Result<(), roundelay::Error> {
    let kernel: Kernel = RingAllReduce::new().kernel(4, DType::F32, ReduceOp::Sum)?;
    assert!(kernel.text.contains(&kernel.name) && kernel.form == Form::Loops);
    let spec = Spec { protocol: Protocol::Direct, callers: Callers::One, ..kernel.spec };
    let element: DType = spec.element;
    assert_eq!(element, DType::F32);
    assert!(!RingAllReduce::new().kernel_with(4, spec)?.text.is_empty());
    Ok(())
}

#[test]
fn kernels_are_chosen_by_a_model() -> Result<(), roundelay::Error> {
    let gpu = Gpu::find("H100").expect("the model knows it");
    let chosen = |bytes| -> KernelRow {
        let sum = ReduceOp::Sum;
        let choice: KernelChoice = select(&gpu, Collective::AllReduce, 8, bytes, DType::F32, sum);
        choice.best().expect("some algorithm takes 8 ranks").clone()
    };
    let (small, large) = (chosen(1 << 10), chosen(1 << 26));
    assert!(small.estimate.time < large.estimate.time);
    let kernel = RingAllReduce::new().kernel(8, DType::F32, ReduceOp::Sum)?;
    let by = |graph| {
        let shape = LaunchShape { parts: 1, in_flight: 56 << 10, graph };
        Estimate::for_launch(&kernel, 256, &gpu, shape).time
    };
    // On the GPU that was measured, a launch by a graph takes as long as one by a call.
    assert!((by(true) - by(false)).abs() < 1e-9);
    Ok(())
}

#[test]
fn what_a_device_lacks_is_said() {
    let options = CudaOptions::new().threads(256);
    // A launch on slices of cudarc, where there is a device to launch on.
    let launched = |plan: &CudaPlan, stream: &cudarc::driver::CudaStream| {
        CudaWorld::finish(stream).map(|()| plan.count())
    };
    let _: fn(&CudaPlan, &cudarc::driver::CudaStream) -> Result<u64, Error> = launched;
    let again = |graph: &mut PlanGraph<'_>| graph.launch().and_then(|()| graph.wait());
    let _: fn(&mut PlanGraph<'_>) -> Result<(), Error> = again;
    let world = CudaWorld::on_devices(&[0], 2).map_err(roundelay::Error::from);
    let made = world.and_then(|world| {
        let ring = RingAllReduce::new();
        ring.plan_on_device_with(&world, 4, DType::F32, ReduceOp::Sum, options)
    });
    match made {
        Ok(plan) => assert_eq!(plan.count(), 4),
        Err(roundelay::Error::Cuda(Error::NoCuda(missing))) => {
            let Missing { part, tried } = *missing;
            assert!(matches!(part, Part::Driver | Part::Device | Part::Nvrtc | Part::Header(_)));
            println!("there is no {part:?} here: {tried:?}");
        }
        Err(roundelay::Error::Cuda(Error::KernelRefused(refused))) => {
            let Refused { log, .. } = *refused;
            panic!("{log}");
        }
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn what_nccl_lacks_is_said() {
    let made = NcclId::new()
        .and_then(|id| NcclComm::join(0, &id, 0, 1, Duration::from_secs(10)))
        .map_err(roundelay::Error::from);
    let planned: Result<NcclPlan, _> = made
        .and_then(|comm| RingAllReduce::new().plan_over_nccl(&comm, 4, DType::F32, ReduceOp::Sum));
    match planned {
        Ok(plan) => assert_eq!((plan.count(), plan.groups()), (4, 0), "one rank has no peers"),
        Err(roundelay::Error::Cuda(Error::NoCuda(missing))) => {
            println!("there is no {:?} here: {:?}", missing.part, missing.tried);
        }
        // A library without a driver.
        Err(roundelay::Error::Cuda(Error::NcclFailed { what, why })) => println!("{what}: {why}"),
        Err(other) => panic!("{other}"),
    }
}

/// One rank in a process of its own, where there is a device.
#[cfg(target_os = "linux")]
#[test]
fn what_a_process_lacks_is_said() -> Result<(), roundelay::Error> {
    let world = roundelay::World::join(&roundelay::UniqueId::new()?, 1, 0)?;
    let plan = world.on_device(0).and_then(|rank: CudaRank| {
        let ways: Vec<Transport> = rank.transports().map(|(_, way, _)| way).collect();
        assert!(ways.is_empty(), "one rank has no peers");
        let place: &DeviceRank = &rank;
        assert_eq!(place.nranks(), 1);
        let buffer: RankBuffer = rank.rank_buffer("input", 64)?;
        assert_eq!(format!("{buffer:?}"), "RankBuffer(64 bytes on device 0)");
        let (sum, options) = (ReduceOp::Sum, CudaOptions::new().registration(Registration::All));
        RingAllReduce::new().plan_on_rank(&rank, 4, DType::F32, sum, options)
    });
    let calls: Result<DeviceCalls, _> = world.device_calls(0);
    assert_eq!(calls.is_ok(), plan.is_ok());
    if let Ok(calls) = calls {
        world.update(&calls);
    }
    match plan {
        Ok(plan) => {
            let plan: &ProcessPlan = &plan;
            assert_eq!(plan.count(), 4);
            let _: &RankPlan<_> = plan;
        }
        Err(roundelay::Error::Cuda(Error::NoCuda(missing))) => {
            println!("there is no {:?} here: {:?}", missing.part, missing.tried);
        }
        Err(other) => panic!("{other}"),
    }
    Ok(())
}
