//! Barriers of a block.

use roundelay_ptx::machine::FaultKind;

use super::{fault, launch, module, words};

/// A barrier of 64 threads, beside which the third warp passes.
#[test]
fn a_barrier_of_some_warps() {
    let module = module(
        "setp.ge.u32 %p1, %r0, 64;
        @%p1 ret;
        xor.b32 %r1, %r0, 32;
        st.global.u32 [%d0], %r1;
        bar.sync 1, 64;
        mul.wide.u32 %d1, %r1, 4;
        add.s64 %d1, %m, %d1;
        ld.global.u32 %r2, [%d1];
        st.global.u32 [%d0+4096], %r2;",
    );
    let words = words(&launch(&module, 1, 1, 96), 1024 + 64);
    assert!((0..64).all(|thread| words[1024 + thread] == thread as u32), "{words:?}");
}

#[test]
fn a_barrier_reduces() {
    let module = module(
        "setp.eq.u32 %p1, %r0, 40;
        bar.red.or.pred %p2, 1, 64, %p1;
        selp.u32 %r1, 1, 0, %p2;
        bar.red.and.pred %p2, 1, 64, %p1;
        selp.u32 %r2, 2, 0, %p2;
        add.u32 %r1, %r1, %r2;
        st.global.u32 [%d0], %r1;",
    );
    assert_eq!(words(&launch(&module, 1, 1, 64), 64), [1; 64]);
}

#[test]
fn barriers_that_do_not_agree() {
    let module = module(
        "setp.lt.u32 %p1, %r0, 32;
        @%p1 bra $L1;
        bar.sync 1, 64;
        ret;
        $L1:
        bar.sync 1, 96;",
    );
    let fault = fault(&launch(&module, 1, 1, 96));
    let FaultKind::BarrierCount { barrier: 1, count, before } = fault.kind else {
        panic!("{fault}")
    };
    assert_eq!([count, before].iter().flatten().sum::<u64>(), 64 + 96);
}

#[test]
fn a_barrier_of_a_part_of_a_warp() {
    let module = module("bar.sync 1, 48;");
    let fault = fault(&launch(&module, 1, 1, 64));
    assert!(matches!(fault.kind, FaultKind::BarrierCount { count: Some(48), .. }), "{fault}");
}

/// A barrier with fewer threads than it names: the report has the warp that waits.
#[test]
fn a_barrier_that_not_all_reach() {
    let module = module(
        "setp.lt.u32 %p1, %r0, 32;
        @%p1 ret;
        bar.sync 1, 64;",
    );
    let fault = fault(&launch(&module, 1, 2, 64));
    let FaultKind::Stuck(waiting) = &fault.kind else { panic!("{fault}") };
    let places: Vec<(u32, u32)> = waiting.iter().map(|(at, _)| (at.block, at.warp)).collect();
    assert_eq!(places, [(0, 1), (1, 1)]);
    assert!(fault.to_string().contains("barrier 1 of 64 threads"), "{fault}");
}

#[test]
fn a_barrier_counts() {
    let module = module(
        "setp.lt.u32 %p1, %r0, 40;
        bar.red.popc.u32 %r1, 2, %p1;
        st.global.u32 [%d0], %r1;",
    );
    assert_eq!(words(&launch(&module, 1, 1, 64), 64), [40; 64]);
}

/// Warps that arrive at a barrier hand their stores on to the warp that waits there, and go on.
#[test]
fn warps_arrive_without_waiting() {
    let module = module(
        "setp.ge.u32 %p1, %r0, 64;
        @%p1 bra $L1;
        st.global.u32 [%d0], %r0;
        bar.arrive 3, 96;
        exit;
        $L1:
        bar.sync 3, 96;
        ld.global.u32 %r1, [%d0+-128];
        ld.global.u32 %r2, [%d0+-256];
        add.u32 %r1, %r1, %r2;
        st.global.u32 [%d0], %r1;",
    );
    let words = words(&launch(&module, 1, 1, 96), 96);
    assert!((64..96).all(|thread| words[thread] == 2 * thread as u32 - 96), "{words:?}");
}

/// Threads that have ended do not count at a barrier of all threads.
#[test]
fn a_barrier_of_all_that_are_left() {
    let module = module(
        "setp.lt.u32 %p1, %r0, 40;
        @%p1 exit;
        bar.sync 0;
        st.global.u32 [%m], 1;",
    );
    let fault = fault(&launch(&module, 1, 1, 64));
    assert!(matches!(fault.kind, FaultKind::Unordered { stores: true, .. }), "{fault}");
}
