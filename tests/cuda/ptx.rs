//! Compiled kernels, executed by the interpreter of PTX: the bits are those of the host engine. `cargo xtask ptx` runs all
//! kernels of the library so.

use roundelay::{DType, ReduceOp};
use roundelay_core::optimize::{Goal, Level};
use roundelay_core::verify::{Callers, Proved};
use roundelay_export::cuda::{Form, Kernel, Protocol, Spec};
use roundelay_kernels::cuda::{self, Target};
use roundelay_kernels::interpreter::{BINDS, DrivenMoves, Interpreted, NoOutcome, move_text};
use roundelay_kernels::shim::{Outcome, ShimJob};

use super::runs::{algorithm, code, inputs, loops, named, on_the_host, program, proved, run, spec};

/// Threads of a block: two warps that move, so that barriers are those of several warps, and the one that walks.
const THREADS: u32 = 96;
/// Blocks of a multiprocessor, by which each thread has eight loads under way, as it has in blocks of 256 threads.
const CTAS: u32 = 7;

/// The PTX that NVRTC makes of a text.
fn ptx(text: &str, name: &str, arch: &str, defines: &[(&str, usize)]) -> String {
    let defines = defines.iter().map(|(name, value)| ((*name).to_owned(), value.to_string()));
    let target = Target::new(arch.parse().expect("an architecture"));
    let target = Target { threads: THREADS, ctas: CTAS, defines: defines.collect(), ..target };
    cuda::ptx(&code(text), name, &target).expect("it compiles")
}

fn interpreted(kernel: &Kernel, arch: &str, defines: &[(&str, usize)]) -> Interpreted {
    let text = ptx(&kernel.text, &kernel.name, arch, defines);
    let program = Interpreted::new(&text, &kernel.name);
    program.unwrap_or_else(|error| panic!("{error}")).granting(kernel.spec.protocol)
}

/// The kernel of an algorithm of the library, with its proof.
fn kernel(
    (name, nranks): (&str, u32),
    (form, protocol): (Form, Protocol),
    (element, op): (DType, ReduceOp),
    callers: Callers,
) -> (Kernel, Proved) {
    let algorithm = named(name);
    let proved = proved(algorithm, nranks).expect("it takes the ranks");
    let spec = Spec { element, op, protocol, callers, ..spec(algorithm) };
    let kernel = match form {
        Form::Loops => loops(algorithm, &proved, spec),
        Form::Table => {
            let goal = Goal { level: Level::O2, callers, reassociate: false };
            let made = proved.optimize(goal).expect("it is proved again");
            Kernel::of_table(&made, spec).unwrap_or_else(|refused| panic!("{}", refused.title))
        }
        Form::Switch => {
            Kernel::of_switch(&proved, spec).unwrap_or_else(|refused| panic!("{}", refused.title))
        }
    };
    (kernel, proved)
}

/// Runs a kernel with several seeds, two launches each, and compares the outputs with the host engine's.
fn has_the_hosts_bits(
    (kernel, proved): &(Kernel, Proved),
    (count, parts): (u64, u32),
    run: impl Fn(&ShimJob, u64) -> Result<Outcome, NoOutcome>,
) {
    let inputs = inputs(kernel, count);
    let expected = on_the_host(proved, kernel, count, &inputs);
    for seed in 0..2 {
        let job = ShimJob { repeats: 2, parts, ..ShimJob::new(kernel, count, &inputs) };
        let case = format!("{}, {}, count {count}, seed {seed}", kernel.name, kernel.form);
        let outcome = run(&job, seed).unwrap_or_else(|error| panic!("{case}: {error}"));
        assert!(!outcome.aborted, "{case}: a wait gave up");
        assert_eq!(outcome.outputs, expected, "{case}");
    }
}

/// Runs a kernel for one caller.
fn leaves_the_hosts_bits(
    of: (&str, u32),
    form: (Form, Protocol),
    kind: (DType, ReduceOp),
    shape: (u64, u32),
) {
    let of = kernel(of, form, kind, Callers::One);
    let interpreted = interpreted(&of.0, "sm_90", &[]);
    has_the_hosts_bits(&of, shape, |job, seed| interpreted.run(job, seed));
}

const LOOPS: (Form, Protocol) = (Form::Loops, Protocol::Direct);
const TABLE: (Form, Protocol) = (Form::Table, Protocol::Direct);
const LINES: (Form, Protocol) = (Form::Loops, Protocol::Ll);
const WIDE_LINES: (Form, Protocol) = (Form::Loops, Protocol::Ll128);
const SUMS: (DType, ReduceOp) = (DType::F32, ReduceOp::Sum);

#[test]
fn rings() {
    leaves_the_hosts_bits(("RingAllReduce", 2), LOOPS, SUMS, (17, 1));
    leaves_the_hosts_bits(("RingAllReduce", 3), LOOPS, SUMS, (261, 2));
    leaves_the_hosts_bits(("RingAllReduce", 3), TABLE, (DType::Bf16, ReduceOp::Avg), (161, 2));
}

#[test]
fn slots() {
    let ring = ("NcclRingAllReduce", 3);
    leaves_the_hosts_bits(ring, (Form::Loops, Protocol::Simple), SUMS, (161, 2));
    leaves_the_hosts_bits(ring, LINES, (DType::U8, ReduceOp::Max), (161, 2));
    leaves_the_hosts_bits(ring, WIDE_LINES, (DType::U8, ReduceOp::Max), (3000, 2));
    leaves_the_hosts_bits(ring, WIDE_LINES, (DType::F64, ReduceOp::Sum), (400, 1));
}

#[test]
fn trees_and_meshes() {
    leaves_the_hosts_bits(("DoubleBinaryTreeAllReduce", 4), LOOPS, SUMS, (61, 1));
    leaves_the_hosts_bits(("MeshAllReduce", 4), LOOPS, (DType::F16, ReduceOp::Prod), (61, 1));
    leaves_the_hosts_bits(("PairwiseAllToAll", 3), LOOPS, (DType::I64, ReduceOp::Sum), (7, 1));
}

/// Moves of all ranks, by `multimem`: each rank has a device, and the stages of its buffers. A switch has no order, so sums
/// of floats are those of two ranks.
#[test]
fn a_switch() {
    use ReduceOp::{Avg, Bxor, Min, Sum};
    for (name, nranks, kind, shape) in [
        ("SwitchAllReduce", 2, (DType::F16, Sum), (161, 2)),
        ("SwitchAllReduce", 3, (DType::U32, Avg), (95, 1)),
        ("SwitchAllReduce", 2, (DType::U8, Bxor), (300, 1)),
        ("OneShotSwitchAllReduce", 3, (DType::I64, Min), (41, 1)),
        ("SwitchReduceScatter", 2, (DType::F32, Avg), (59, 1)),
        ("SwitchAllGather", 3, (DType::U8, Sum), (37, 1)),
    ] {
        let of = kernel((name, nranks), (Form::Switch, Protocol::Direct), kind, Callers::Each);
        by_a_switch(&of, shape);
    }
}

/// A kernel of a switch without the fences before its moves, or without those behind them, is refused.
#[test]
fn a_switch_has_a_fence_on_either_side() {
    const FENCE: &str = "fence.proxy.alias;";
    let of = ("SwitchAllReduce", 2);
    let (kernel, _) = kernel(of, (Form::Switch, Protocol::Direct), SUMS, Callers::Each);
    let text = ptx(&kernel.text, &kernel.name, "sm_90", &STAGED);
    let parts: Vec<&str> = text.split(FENCE).collect();
    let inputs = inputs(&kernel, 64);
    for lacking in 0..2 {
        let joined = parts.iter().enumerate().skip(1).map(|(nth, part)| {
            // The fences of a move are a pair.
            let fence = if (nth - 1) % 2 == lacking { "" } else { FENCE };
            format!("{fence}{part}")
        });
        let text = format!("{}{}", parts[0], joined.collect::<String>());
        let program = Interpreted::new(&text, &kernel.name).expect("it is PTX").stage(2);
        let run = program.run(&ShimJob::new(&kernel, 64, &inputs), 0).map(|_| ());
        let refused = run.expect_err("a fence is missing").to_string();
        assert!(refused.contains("without `fence.proxy.alias` between them"), "{refused}");
    }
}

/// The definitions of kernels whose ranks are processes with a device each.
const STAGED: [(&str, usize); 2] = [("ROUNDELAY_SCOPE_SYS", 1), ("ROUNDELAY_STAGED", 1)];

/// Runs a switch's kernel with a device for each rank.
fn by_a_switch(of: &(Kernel, Proved), shape: (u64, u32)) {
    let nranks = of.0.schedule.nranks as usize;
    let interpreted = interpreted(&of.0, "sm_90", &STAGED).stage(nranks);
    has_the_hosts_bits(of, shape, |job, seed| interpreted.run(job, seed));
}

/// Switches of pairs of ranks, of which each rank is in two.
#[test]
fn switches_of_groups() {
    let mut algorithm = named("CollNetAllReduce").clone();
    algorithm.set_text("groups", "of(2)").expect("groups");
    let proved = proved(&algorithm, 4).expect("it takes the ranks");
    let kinds = Spec { element: DType::I32, callers: Callers::Each, ..spec(&algorithm) };
    let kernel = Kernel::of_switch(&proved, kinds).expect("integers have sums");
    assert_eq!(kernel.facts(61).switches.len(), 4);
    by_a_switch(&(kernel, proved), (61, 1));
}

/// Blocks of `within` one behind another, with no op between them.
#[test]
fn islands_of_one_rank() {
    leaves_the_hosts_bits(("HierarchicalAllReduce", 2), LOOPS, SUMS, (37, 1));
}

/// A kernel of callers each, whose scope is the system's: a launch on each device. And on one device, where another
/// kernel writes the buffers' addresses before the launch.
#[test]
fn callers_each() {
    let halves = (DType::Bf16, ReduceOp::Avg);
    for (name, form, kind) in [
        ("RingAllReduce", LOOPS, SUMS),
        ("NcclRingAllReduce", LINES, SUMS),
        ("NcclRingAllReduce", WIDE_LINES, SUMS),
        ("MeshAllReduce", TABLE, halves),
    ] {
        let of = kernel((name, 3), form, kind, Callers::Each);
        let apart = interpreted(&of.0, "sm_90", &[("ROUNDELAY_SCOPE_SYS", 1)]);
        for devices in [2, 3] {
            let apart = apart.clone().on_devices(devices);
            has_the_hosts_bits(&of, (61, 2), |job, seed| apart.run(job, seed));
        }
    }
    let of = kernel(("RingAllReduce", 3), LOOPS, SUMS, Callers::Each);
    let binds = ptx(BINDS.0, BINDS.1, "sm_90", &[]);
    let bound = interpreted(&of.0, "sm_90", &[]).bound_by(&binds).expect("it is read");
    has_the_hosts_bits(&of, (61, 1), |job, seed| bound.run(job, seed));
}

/// The macros of ranks in processes, the last of them for devices between which atomics are not whole.
const WHOLE: [(&str, usize); 3] =
    [("ROUNDELAY_SCOPE_SYS", 1), ("ROUNDELAY_STAGED", 1), ("ROUNDELAY_ONE_WRITER", 1)];

/// Kernels of ranks in processes.
fn kernels_in_processes() -> impl Iterator<Item = (Kernel, Proved)> {
    let halves = (DType::Bf16, ReduceOp::Avg);
    let kernels = [
        ("RingAllReduce", LOOPS, SUMS),
        ("TwistedRingAllReduce", LOOPS, SUMS),
        ("NcclRingAllReduce", LINES, SUMS),
        ("NcclRingAllReduce", WIDE_LINES, halves),
        ("MeshReduceScatter", LOOPS, SUMS),
        ("MeshAllReduce", TABLE, halves),
        ("MeshAllReduce", TABLE, (DType::I32, ReduceOp::Avg)),
    ];
    kernels.into_iter().map(|(name, form, kind)| kernel((name, 3), form, kind, Callers::Each))
}

/// Blocks of several grains, so that CTAs share them otherwise than whole buffers, and short ones.
const GRAINS: [(u64, u32); 2] = [(900, 2), (10, 1)];

/// A rank in each process: the launch of each copies its buffers into stages that the others see, and a post is an atomic
/// addition.
#[test]
fn ranks_in_processes() {
    kernels_in_processes().for_each(|of| stages(&of, &WHOLE[..2]));
}

/// A post is a store where atomics are not whole.
#[test]
fn ranks_in_processes_that_store() {
    kernels_in_processes().for_each(|of| stages(&of, &WHOLE));
}

fn stages(of: &(Kernel, Proved), defines: &[(&str, usize)]) {
    let staged = interpreted(&of.0, "sm_90", defines).stage(3);
    for shape in GRAINS {
        has_the_hosts_bits(of, shape, |job, seed| staged.run(job, seed));
    }
}

/// Some ranks copy, and others have the kernels of all use their buffers where they are.
#[test]
fn ranks_in_processes_that_lend() {
    let registered = [WHOLE[0], WHOLE[1], ("ROUNDELAY_REGISTERED", 1)];
    for of in kernels_in_processes() {
        let lent = interpreted(&of.0, "sm_90", &registered).lend(3);
        for shape in GRAINS {
            has_the_hosts_bits(&of, shape, |job, seed| lent.run(job, seed));
        }
    }
}

/// Two posts to one counter in a row, which a CTA does at once.
#[test]
fn posts_that_store_are_not_lost() {
    let text = "algorithm Twice(ring: Ring) -> AllGather {
    let left = ring.left;
    let right = ring.right;
    let me = ring.position;
    view block = output.split(nranks);
    copy(local.input, local.block[me]);
    right.TxAck();
    right.TxAck();
    left.RxAck();
    left.RxAck();
    copy(left.block[(me - 1) % nranks], local.block[(me - 1) % nranks]);
    left.TxDataSignal();
    left.TxDataSignal();
    right.RxDataSignal();
    right.RxDataSignal();
}
";
    let algorithm = algorithm(text);
    let proved = proved(&algorithm, 2).expect("it is right");
    // The loops and the optimizer post once.
    let goal = Goal { level: Level::O0, callers: Callers::Each, reassociate: false };
    let made = proved.optimize(goal).expect("it is proved again");
    let kernel = Kernel::of_table(&made, Spec { callers: Callers::Each, ..spec(&algorithm) });
    let kernel = kernel.unwrap_or_else(|refused| panic!("{}", refused.title));
    let staged = interpreted(&kernel, "sm_90", &WHOLE).stage(2);
    has_the_hosts_bits(&(kernel, proved), (20, 1), |job, seed| staged.run(job, seed));
}

/// PTX lets the vectors of a line of LL128 arrive in any order, so that data without its flag is taken for arrived.
#[test]
fn lines_of_128_bytes_need_their_assumption() {
    let (kernel, proved) = kernel(("NcclRingAllReduce", 2), WIDE_LINES, SUMS, Callers::One);
    let inputs = inputs(&kernel, 900);
    let expected = on_the_host(&proved, &kernel, 900, &inputs);
    let job = ShimJob::new(&kernel, 900, &inputs);
    let text = ptx(&kernel.text, &kernel.name, "sm_90", &[]);
    let bare = Interpreted::new(&text, &kernel.name).unwrap_or_else(|error| panic!("{error}"));
    let outputs = bare.run(&job, 0).unwrap_or_else(|error| panic!("{error}")).outputs;
    assert_ne!(outputs, expected, "a line was torn");
    let outputs = bare.granting(Protocol::Ll128).run(&job, 0).map(|outcome| outcome.outputs);
    assert_eq!(outputs.unwrap_or_else(|error| panic!("{error}")), expected);
}

/// The scope of a device does not do for several devices.
#[test]
fn a_scope_that_is_too_narrow_is_found() {
    let (kernel, _) = kernel(("RingAllReduce", 2), LOOPS, SUMS, Callers::Each);
    let narrow = interpreted(&kernel, "sm_90", &[]).on_devices(2);
    let inputs = inputs(&kernel, 17);
    let fault = narrow.run(&ShimJob::new(&kernel, 17, &inputs), 0).expect_err("a fault");
    assert!(fault.to_string().contains("scope"), "{fault}");
}

/// A launch for each move, ordered by the streams and the signals of the schedule alone.
#[test]
fn moves_from_the_host() {
    for (name, kind) in [("RingAllReduce", SUMS), ("MeshAllReduce", (DType::Bf16, ReduceOp::Avg))] {
        let of = kernel((name, 3), LOOPS, kind, Callers::One);
        let (text, name) = move_text(&of.0);
        let moves = DrivenMoves::new(&ptx(&text, name, "sm_90", &[])).expect("it is read");
        has_the_hosts_bits(&of, (61, 2), |job, seed| moves.run(&of.0, job, seed));
    }
}

/// The ops of each stream are those of the same kernel on CPU threads.
#[test]
fn ops_are_the_shims() {
    for (name, form) in [("RingAllReduce", LOOPS), ("NcclRingAllReduce", LINES)] {
        let (kernel, _) = kernel((name, 3), form, SUMS, Callers::One);
        let inputs = inputs(&kernel, 61);
        let job = ShimJob { trace: true, parts: 2, ..ShimJob::new(&kernel, 61, &inputs) };
        let blocks = 2 * job.facts.groups.len();
        let traced = interpreted(&kernel, "sm_90", &[("ROUNDELAY_TRACED", blocks)]);
        let outcome = traced.run(&job, 1).unwrap_or_else(|error| panic!("{name}: {error}"));
        let shims = run(&program(&kernel), &job);
        assert!(shims.trace.contains("move"), "{name}");
        assert_eq!(outcome.trace, shims.trace, "{name}");
        assert_eq!(outcome.outputs, shims.outputs, "{name}");
    }
}

#[test]
fn an_older_architecture() {
    let of = kernel(("RingAllReduce", 3), LOOPS, (DType::Bf16, ReduceOp::Sum), Callers::One);
    let interpreted = interpreted(&of.0, "sm_80", &[]);
    has_the_hosts_bits(&of, (61, 2), |job, seed| interpreted.run(job, seed));
}
