//! Accesses to memory.

use roundelay_ptx::machine::{Conflict, FaultKind};

use super::{MEMORY, Module, fault, launch, module, words};

#[test]
fn a_race_names_both_places() {
    let module = module(
        "setp.ge.u32 %p1, %r0, 32;
        mov.u64 %d1, shared;
        @%p1 bra $L1;
        setp.eq.u32 %p2, %r0, 3;
        @%p2 st.shared.u32 [%d1+8], 1;
        ret;
        $L1:
        setp.eq.u32 %p2, %r0, 39;
        @%p2 st.shared.u16 [%d1+10], 2;",
    );
    let fault = fault(&launch(&module, 1, 1, 64));
    let FaultKind::Unordered { conflict: Conflict::Race, other, .. } = &fault.kind else {
        panic!("{fault}")
    };
    let at = fault.at.as_ref().unwrap();
    let mut places = [(at.warp, at.lanes), (other.warp, other.lanes)];
    places.sort_unstable();
    assert_eq!(places, [(0, 1 << 3), (1, 1 << 7)], "{fault}");
}

/// Granules of the order of accesses lie by addresses, not by where a window begins.
#[test]
fn neighbours_in_a_window_that_begins_between_words_do_not_race() {
    let module = module(
        "setp.ge.u32 %p1, %r0, 32;
        @%p1 bra $L1;
        setp.eq.u32 %p2, %r0, 0;
        @%p2 st.global.u64 [%m+4], 1;
        ret;
        $L1:
        st.global.u32 [%m], 2;",
    );
    let mut launch = launch(&module, 1, 1, 33);
    launch.windows[0].address += 4;
    launch.ranks[0].parameters = (MEMORY + 4).to_le_bytes().to_vec();
    assert_eq!(words(&launch, 3), [2, 1, 0]);
}

#[test]
fn memory_without_a_value() {
    let shared = module("mov.u64 %d1, shared; ld.shared.u32 %r1, [%d1+12];");
    let kind = fault(&launch(&shared, 1, 1, 1)).kind;
    assert!(matches!(kind, FaultKind::NoValue { address: 12, .. }), "{kind:?}");

    let half = module("mov.u64 %d1, shared; st.shared.u16 [%d1], 1; ld.shared.u32 %r1, [%d1];");
    let kind = fault(&launch(&half, 1, 1, 1)).kind;
    assert!(matches!(kind, FaultKind::NoValue { .. }), "{kind:?}");
}

/// A kernel that loads 8 bytes of its local memory, of which the upper ones have no value in lane 0 and the lower ones
/// have the value 5.
fn half_of_a_struct(then: &str) -> Module {
    module(&format!(
        ".local .align 8 .b8 depot[32];
        mov.u64 %d1, depot;
        setp.ne.u32 %p1, %r0, 0;
        st.local.u32 [%d1], 5;
        @%p1 st.local.u32 [%d1+4], 6;
        ld.local.u64 %d2, [%d1];
        {then}"
    ))
}

/// A copy of a struct with fields that nothing has set, and what does not show of them.
#[test]
fn copies_without_a_value_do_not_show() {
    for then in [
        "st.local.u64 [%d1+16], %d2; ld.local.u32 %r1, [%d1+16]; st.global.u32 [%d0], %r1;",
        "ld.local.v2.u32 {%r1, %r2}, [%d1]; st.global.u32 [%d0], %r1;",
        "mov.b64 {%r1, %r2}, %d2; st.global.u32 [%d0], %r1;",
        "cvt.u32.u64 %r1, %d2; add.u32 %r2, %r1, 1; sub.u32 %r1, %r2, 1; st.global.u32 [%d0], %r1;",
        "and.b64 %d3, %d2, 4294967295; st.global.u64 [%m], %d3;",
        "add.u64 %d3, %d2, 1; mov.u64 %d3, 5; st.global.u64 [%m], %d3;",
        "setp.eq.u64 %p2, %d2, 0; vote.sync.all.pred %p2, %p1, 1; selp.u32 %r1, 7, 5, %p2;
        st.global.u32 [%m], %r1;",
        "ld.local.u32 %r2, [%d1+4]; selp.u32 %r1, %r2, 5, %p1; st.global.u32 [%m], 5;",
        "ld.local.u32 %r2, [%d1+4]; add.u32 %r2, %r2, 1; st.local.u32 [%d1+4], %r2;
        st.global.u32 [%m], 5;",
        "ld.local.u32 %r2, [%d1+4]; shfl.sync.idx.b32 %r1, %r2, 1, 31, 3; st.global.u32 [%d0], 5;",
    ] {
        let threads = if then.contains("shfl") { 2 } else { 1 };
        assert_eq!(words(&launch(&half_of_a_struct(then), 1, 1, threads), 1), [5], "{then}");
    }
}

#[test]
fn effects_of_memory_without_a_value() {
    for (then, effect) in [
        ("st.global.u64 [%m], %d2;", "a store"),
        ("mov.u64 %d3, shared; st.shared.u64 [%d3], %d2;", "a store"),
        ("mov.b64 {%r1, %r2}, %d2; st.global.u32 [%m], %r2;", "a store"),
        (
            "st.local.u64 [%d1+16], %d2; ld.local.u64 %d3, [%d1+16]; st.global.u64 [%m], %d3;",
            "a store",
        ),
        (
            "ld.local.u32 %r2, [%d1+4]; selp.u32 %r1, %r2, 5, !%p1; st.global.u32 [%m], %r1;",
            "a store",
        ),
        ("add.u64 %d3, %d2, 1; mov.b64 {%r1, %r2}, %d3; st.global.u32 [%m], %r1;", "a store"),
        ("setp.eq.u64 %p2, %d2, 0; @%p2 add.u32 %r1, %r1, 1;", "a condition"),
        ("setp.eq.u64 %p2, %d2, 0; selp.u32 %r1, 1, 2, %p2; st.global.u32 [%m], %r1;", "a store"),
        ("shl.b64 %d3, %d2, 2; add.s64 %d3, %m, %d3; ld.global.u32 %r1, [%d3];", "an address"),
        ("red.relaxed.gpu.global.add.u64 [%m], %d2;", "a reduction on memory"),
        ("setp.eq.u64 %p2, %d2, 0; vote.sync.all.pred %p3, %p2, 1;", "a barrier or exchange"),
        ("setp.eq.u64 %p2, %d2, 0; bar.red.or.pred %p3, 0, %p2;", "a barrier or exchange"),
        (
            "mov.b64 {%r1, %r2}, %d2; shfl.sync.idx.b32 %r3, %r2, 0, 31, 1; st.global.u32 [%m], %r3;",
            "a store",
        ),
    ] {
        let fault = fault(&launch(&half_of_a_struct(then), 1, 1, 1));
        assert_eq!(fault.kind, FaultKind::Unset { what: effect }, "{then}: {fault}");
        assert_eq!(fault.at.as_ref().map(|at| at.lanes), Some(1), "{then}: {fault}");
    }
}

#[test]
fn accesses_out_of_bounds() {
    for (access, bytes) in [
        ("ld.global.u32 %r1, [%m+65536];", 4),
        ("st.global.v2.u32 [%m+65536], {%r1, %r1};", 8),
        ("ld.global.u32 %r1, [%m+-4];", 4),
        ("mov.u64 %d1, shared; st.shared.u32 [%d1+1024], 1;", 4),
    ] {
        let kind = fault(&launch(&module(access), 1, 1, 1)).kind;
        assert!(matches!(kind, FaultKind::Bounds { bytes: b, .. } if b == bytes), "{kind:?}");
    }
}

#[test]
fn accesses_without_alignment() {
    for access in ["ld.global.u32 %r1, [%m+2];", "ld.global.v2.u64 {%d1, %d2}, [%m+8];"] {
        let kind = fault(&launch(&module(access), 1, 1, 1)).kind;
        assert!(matches!(kind, FaultKind::Alignment { .. }), "{kind:?}");
    }
}

#[test]
fn generic_addresses() {
    let module = module(
        ".local .align 8 .b8 depot[16];
        mov.u64 %d1, depot;
        cvta.local.u64 %d1, %d1;
        st.u32 [%d1], 7;
        mov.u64 %d2, shared;
        cvta.shared.u64 %d2, %d2;
        st.u32 [%d2+4], 8;
        ld.u32 %r1, [%d1];
        ld.u32 %r2, [%d2+4];
        add.u32 %r1, %r1, %r2;
        st.u32 [%m], %r1;
        mov.b64 %d3, memory;
        cvta.param.u64 %d3, %d3;
        ld.u64 %d4, [%d3];
        st.u64 [%m+8], %d4;",
    );
    assert_eq!(words(&launch(&module, 1, 1, 1), 3), [15, 0, MEMORY as u32]);
}

#[test]
fn accesses_of_a_warp_are_counted_in_sectors() {
    let module = module(
        "ld.global.u32 %r1, [%d0];
        mul.wide.u32 %d1, %r0, 32;
        add.s64 %d1, %m, %d1;
        st.global.u32 [%d1+4096], %r1;
        bar.sync 0;",
    );
    let outcome = launch(&module, 1, 1, 64).run().unwrap_or_else(|failure| panic!("{failure}"));
    let counted = outcome.counters[0][0] + outcome.counters[0][1];
    assert_eq!((counted.global_loads, counted.load_sectors), (2, 8));
    assert_eq!((counted.global_stores, counted.store_sectors), (2, 64));
    assert_eq!(counted.barriers, 2);
    assert_eq!(counted.lane_instructions, 32 * counted.instructions);
}
