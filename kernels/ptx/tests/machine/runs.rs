//! Launches, calls, and the ends of runs.

use roundelay_ptx::machine::{Failure, FaultKind, Launch, LaunchError, Window};
use roundelay_ptx::program::Module;

use super::{MEMORY, fault, launch, line, module, parse, words};

/// Waits for a flag of the other block, and sets the own one.
fn two_blocks(waits_first: bool) -> Module {
    let wait = "$L1: ld.acquire.gpu.global.u32 %r2, [%d2]; setp.eq.u32 %p1, %r2, 0; @%p1 bra $L1;";
    let post = "st.release.gpu.global.u32 [%d1], 1;";
    let (first, second) = if waits_first { (wait, post) } else { (post, wait) };
    module(&format!(
        "mov.u32 %r1, %ctaid.x;
        mul.wide.u32 %d1, %r1, 64;
        add.s64 %d1, %m, %d1;
        xor.b32 %r3, %r1, 1;
        mul.wide.u32 %d2, %r3, 64;
        add.s64 %d2, %m, %d2;
        {first}
        {second}"
    ))
}

#[test]
fn blocks_wait_for_each_other() {
    assert_eq!(words(&launch(&two_blocks(false), 1, 2, 1), 1), [1]);
    let module = two_blocks(true);
    let fault = fault(&launch(&module, 1, 2, 1));
    let FaultKind::Stuck(waiting) = &fault.kind else { panic!("{fault}") };
    let polls: Vec<u32> = waiting.iter().map(|(at, _)| at.block).collect();
    assert_eq!(polls, [0, 1], "{fault}");
}

/// An atomic operation that leaves the value as it is may be a poll: threads that do nothing else cannot go on.
#[test]
fn polls_by_atomic_operations_are_told() {
    for poll in ["atom.global.cas.b32 %r2, [%m], 1, 0", "atom.global.add.u32 %r2, [%m], 0"] {
        let body = format!("$L1: {poll};\nsetp.ne.u32 %p1, %r2, 1;\n@%p1 bra $L1;");
        let fault = fault(&launch(&module(&body), 1, 1, 2));
        assert!(matches!(fault.kind, FaultKind::Stuck(_)), "{poll}: {fault}");
    }
}

#[test]
fn traps_are_told() {
    let module = module("setp.eq.u32 %p1, %r0, 2;\n@%p1 trap;");
    let fault = fault(&launch(&module, 2, 1, 32));
    let at = fault.at.clone().unwrap();
    assert_eq!((&fault.kind, at.lanes, line(&fault)), (&FaultKind::Trap, 1 << 2, 2));
}

const FUNCTIONS: &str = "\
.version 8.8
.target sm_90
.address_size 64
.func (.param .b32 result) f(.param .b32 a, .param .b32 b)
{
.reg .b32 %r<4>;
.local .align 4 .b8 depot[4];
ld.param.u32 %r0, [a];
ld.param.u32 %r1, [b];
CHECK
st.local.u32 [depot], %r0;
sub.u32 %r2, %r0, %r1;
st.param.b32 [result], %r2;
ret;
}
.visible .entry k(.param .u64 memory)
{
.reg .pred %p<2>;
.reg .b32 %r<8>;
.reg .b64 %d<4>;
ld.param.u64 %d1, [memory];
mov.u32 %r0, %tid.x;
mul.wide.u32 %d0, %r0, 4;
add.s64 %d0, %d1, %d0;
mov.u32 %r3, 3;
mov.u32 %r4, 0;
$L1:
{
.param .b32 p0;
st.param.b32 [p0], %r3;
.param .b32 p1;
st.param.b32 [p1], %r0;
.param .b32 r;
call.uni (r), f, (p0, p1);
ld.param.b32 %r2, [r];
}
add.u32 %r4, %r4, %r2;
setp.lt.u32 %p1, %r4, 10;
@%p1 bra $L1;
st.global.u32 [%d0], %r4;
ret;
}
";

/// Calls by lanes that leave a loop after different numbers of rounds.
#[test]
fn functions_are_called() {
    let module = parse(&FUNCTIONS.replace("CHECK", ""));
    assert_eq!(words(&launch(&module, 1, 1, 3), 3), [12, 10, 10]);
}

/// Local memory has no values at the start of each call.
#[test]
fn a_call_has_fresh_local_memory() {
    let second = "setp.ne.u32 %p1, %r0, 3;\n@%p1 ld.local.u32 %r3, [depot];";
    let text = FUNCTIONS.replace("CHECK", &format!(".reg .pred %p<2>;\n{second}"));
    let result = "sub.u32 %r2, %r0, %r1;";
    let text = text.replace(result, &format!("{result}\n@%p1 add.u32 %r2, %r2, %r3;"));
    let module = parse(&text.replace("add.u32 %r4", "add.u32 %r3, %r3, 1;\nadd.u32 %r4"));
    let kind = fault(&launch(&module, 1, 1, 3)).kind;
    assert!(matches!(kind, FaultKind::Unset { what: "a condition" }), "{kind:?}");
}

#[test]
fn launches_that_cannot_begin() {
    let text = FUNCTIONS.replace("CHECK", "call.uni (result), f, (a, b);");
    let recursive = parse(&text);
    let error = launch(&recursive, 1, 1, 1).run().unwrap_err();
    assert_eq!(error, Failure::Launch(LaunchError::Recursion("f".to_owned())));

    let module = module("");
    let mut short = launch(&module, 1, 1, 1);
    short.ranks[0].parameters.pop();
    assert_eq!(short.run().unwrap_err(), Failure::Launch(LaunchError::Parameters(8, 7)));

    let large = launch(&module, 1, 1, 1025);
    assert_eq!(large.run().unwrap_err(), Failure::Launch(LaunchError::Block([1025, 1, 1])));

    let mut overlap = launch(&module, 1, 1, 1);
    let window = Window { name: "other".to_owned(), address: MEMORY + 8, bytes: vec![0; 8] };
    overlap.windows.push(window);
    let error = overlap.run().unwrap_err();
    assert_eq!(error, Failure::Launch(LaunchError::Window("other".to_owned())));
}

/// A wait with a limit of time ends by the clock.
#[test]
fn the_clock_goes_on() {
    let module = module(
        "mov.u64 %d1, %globaltimer;
        $L1:
        ld.relaxed.sys.global.u32 %r1, [%m];
        mov.u64 %d2, %globaltimer;
        sub.u64 %d2, %d2, %d1;
        setp.lt.u64 %p1, %d2, 5000;
        @%p1 bra $L1;
        st.global.u32 [%m+4], 1;",
    );
    let mut slow = launch(&module, 1, 1, 1);
    slow.limits.turn_ns = 100;
    assert_eq!(words(&slow, 2), [0, 1]);
    slow.limits.idle_turns = 10;
    assert!(matches!(fault(&slow).kind, FaultKind::Stuck(_)));
}

#[test]
fn instructions_are_limited() {
    let module = module("$L1: bra $L1;");
    let mut endless = launch(&module, 1, 1, 1);
    endless.limits.instructions = 100_000;
    assert_eq!(fault(&endless).kind, FaultKind::Limit(100_000));
}

/// A reader that traps if the data are old: the failing run of a seed is made smaller until, for some seed, only the choice of the
/// old data is left.
#[test]
fn failing_runs_shrink() {
    let module = module(
        "mov.u32 %r1, %ctaid.x;
        setp.ne.u32 %p1, %r1, 0;
        @%p1 bra $L1;
        st.relaxed.gpu.global.u32 [%m], 1;
        st.relaxed.gpu.global.u32 [%m+64], 1;
        ret;
        $L1:
        ld.acquire.gpu.global.u32 %r2, [%m+64];
        setp.eq.u32 %p1, %r2, 0;
        @%p1 bra $L1;
        ld.relaxed.gpu.global.u32 %r1, [%m];
        setp.eq.u32 %p1, %r1, 0;
        @%p1 trap;",
    );
    let launch = launch(&module, 1, 8, 1);
    let seeds = (0..50).map(|seed| Launch { seed, ..launch.clone() });
    let failing: Vec<Launch> = seeds.filter(|launch| launch.run().is_err()).collect();
    assert!(!failing.is_empty());
    let mut fewest = usize::MAX;
    let mut left_out = 0;
    for launch in failing {
        assert_eq!(launch.run().unwrap_err(), launch.run().unwrap_err());
        let shrunk = launch.shrink(200).unwrap();
        assert!(shrunk.choices <= shrunk.choices_before, "{shrunk:?}");
        fewest = fewest.min(shrunk.choices);
        left_out += shrunk.choices_before - shrunk.choices;
        let Failure::Fault(fault) = shrunk.failure else { panic!("another failure") };
        assert_eq!(fault.kind, FaultKind::Trap);
    }
    assert!(fewest == 1 && left_out > 0, "{fewest} {left_out}");
}
