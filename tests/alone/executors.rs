//! Executors in the form of the contest.

use std::sync::Arc;

use roundelay::executor::{
    CommInfo, Compiled, CompiledExecutor, ExecMem, Executor, ExecutorLink, Exposed, Flags,
    Framework, OpParam, Ran, find, library, names, register,
};
use roundelay::{Collective, DType, EngineError, Error, ReduceOp, Stats};

roundelay::executor! {
    /// A ring for all sizes.
    executor Four for AllReduce {
        topology: full_mesh(4);
        ccl_buffer: 1 MiB;
        otherwise => RingAllReduce;
    }
}

/// The executor `Four` under a name of its own, which records the calls of its methods.
struct Watched;

impl Executor for Watched {
    fn name(&self) -> &'static str {
        "Watched"
    }

    fn collective(&self) -> Collective {
        Four.collective()
    }

    fn nranks(&self) -> u32 {
        Four.nranks()
    }

    fn flags(&self) -> Flags {
        Four.flags()
    }

    fn ccl_buffer_size(&self) -> u64 {
        Four.ccl_buffer_size()
    }

    fn calc_scratch_mem_size(&self, ccl_buff_size: u64) -> u64 {
        Four.calc_scratch_mem_size(ccl_buff_size)
    }

    fn calc_stream_num(&self) -> u32 {
        Four.calc_stream_num()
    }

    fn calc_comm_info(&self) -> CommInfo {
        Four.calc_comm_info()
    }

    fn calc_loop_max_count(&self, ccl_buff_size: u64, unit_size: u64) -> u64 {
        Four.calc_loop_max_count(ccl_buff_size, unit_size)
    }

    fn kernel_run(&self, param: &OpParam, mem: &mut ExecMem<'_, '_>) -> Result<Stats, EngineError> {
        assert_eq!((param.dtype, param.op), (DType::I32, ReduceOp::Sum));
        Four.kernel_run(param, mem)
    }
}

#[test]
fn an_executor_is_registered_found_and_run() -> Result<(), Error> {
    register(Watched)?;
    assert!(matches!(register(Watched), Err(Error::Registered(name)) if name == "Watched"));
    assert!(names().iter().any(|name| name == "Watched"));
    let found: Arc<dyn Executor> = find("Watched").expect("it was registered");
    let (mut outputs, inputs) = ([[0_i32; 10]; 4], [[1_i32; 10]; 4]);
    let ran: Ran = Framework::new().run(
        &*found,
        10,
        ReduceOp::Sum,
        &inputs.each_ref().map(|input| &input[..]),
        &mut outputs.each_mut().map(|output| &mut output[..]),
    )?;
    assert_eq!((ran.loops, outputs), (1, [[4; 10]; 4]));

    let compiled: &CompiledExecutor = Compiled::compiled(&library::CustomHugeAllReduceMesh);
    assert_eq!(compiled.name(), "CustomHugeAllReduceMesh");
    let CommInfo { links, exposed } = Four.calc_comm_info();
    let _: Option<ExecutorLink> = links.first().copied();
    let _: Exposed = exposed;
    let class = compiled.plan(&OpParam::new(1, DType::F32, ReduceOp::Sum))?;
    assert_eq!(class.dtype(), DType::F32);
    Ok(())
}
