//! Lanes of a warp.

use roundelay_ptx::machine::{Conflict, FaultKind};

use super::{HEAD, fault, launch, line, module, words};

#[test]
fn lanes_shuffle_and_vote() {
    let module = module(
        "xor.b32 %r1, %r0, 1;
        shfl.sync.idx.b32 %r2, %r0, %r1, 31, -1;
        setp.lt.u32 %p1, %r0, 5;
        vote.sync.ballot.b32 %r3, %p1, -1;
        vote.sync.all.pred %p2, %p1, -1;
        selp.u32 %r4, 1000, 0, %p2;
        add.u32 %r2, %r2, %r3;
        add.u32 %r2, %r2, %r4;
        st.global.u32 [%d0], %r2;",
    );
    let expected: Vec<u32> = (0..32).map(|lane| (lane ^ 1) + 31).collect();
    assert_eq!(words(&launch(&module, 1, 1, 32), 32), expected);
}

/// Lanes that branch come together before a shuffle, whatever way they took.
#[test]
fn lanes_that_diverge_shuffle_together() {
    let module = module(
        "setp.lt.u32 %p1, %r0, 7;
        mov.u32 %r2, 100;
        @%p1 bra $L1;
        mov.u32 %r2, 200;
        st.global.u32 [%d0], %r2;
        $L1:
        shfl.sync.idx.b32 %r3, %r2, 8, 31, -1;
        st.global.u32 [%d0], %r3;",
    );
    let launch = launch(&module, 1, 1, 32);
    assert_eq!(words(&launch, 32), [200; 32]);
    let outcome = launch.run().unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(outcome.counters[0][0].global_stores, 2);
}

#[test]
fn a_lane_that_has_ended_cannot_shuffle() {
    let module = module(
        "setp.eq.u32 %p1, %r0, 9;
        @%p1 ret;
        shfl.sync.idx.b32 %r3, %r0, 8, 31, -1;",
    );
    let fault = fault(&launch(&module, 1, 1, 32));
    assert_eq!(fault.kind, FaultKind::Lanes { mask: u32::MAX, missing: 1 << 9 });
    assert_eq!((line(&fault), fault.at.unwrap().lanes), (3, !(1 << 9)));
}

/// A lane that ends while others wait for it is told at once.
#[test]
fn a_lane_ends_while_others_wait() {
    let module = module(
        "setp.eq.u32 %p1, %r0, 9;
        @%p1 bra $L1;
        vote.sync.any.pred %p2, %p1, -1;
        ret;
        $L1:",
    );
    let fault = fault(&launch(&module, 1, 1, 32));
    assert_eq!(fault.kind, FaultKind::Lanes { mask: u32::MAX, missing: 1 << 9 });
}

#[test]
fn a_lane_beyond_the_mask_cannot_shuffle() {
    let module = module("vote.sync.ballot.b32 %r3, %p1, 0xff;");
    let fault = fault(&launch(&module, 1, 1, 32));
    assert_eq!(fault.kind, FaultKind::Lanes { mask: 0xff, missing: !0xff });
}

#[test]
fn a_shuffle_from_beyond_the_mask_has_no_value() {
    let module = module(
        "setp.gt.u32 %p1, %r0, 7;
        @%p1 ret;
        shfl.sync.idx.b32 %r3, %r0, 8, 31, 0xff;",
    );
    let fault = fault(&launch(&module, 1, 1, 32));
    assert_eq!(fault.kind, FaultKind::Lanes { mask: 0xff, missing: 1 << 8 });
}

/// Lanes that wait for each other at different instructions wait for ever.
#[test]
fn lanes_that_wait_elsewhere_are_told() {
    let module = module(
        "setp.lt.u32 %p1, %r0, 4;
        @%p1 bra $L1;
        shfl.sync.idx.b32 %r3, %r0, 8, 31, -1;
        ret;
        $L1:
        bar.warp.sync -1;",
    );
    let fault = fault(&launch(&module, 1, 1, 32));
    let FaultKind::Stuck(waiting) = &fault.kind else { panic!("{fault}") };
    let lanes: Vec<(u32, u32)> =
        waiting.iter().map(|(at, _)| (at.lanes, at.line - HEAD.lines().count() as u32)).collect();
    assert!(lanes.contains(&(15, 6)) && lanes.contains(&(!15, 3)), "{fault}");
}

#[test]
fn a_warp_barrier_orders_lanes() {
    let text = |barrier: &str| {
        module(&format!(
            "mov.u64 %d1, shared;
            mul.wide.u32 %d2, %r0, 4;
            add.s64 %d2, %d1, %d2;
            st.shared.u32 [%d2], %r0;
            {barrier}
            xor.b32 %r1, %r0, 3;
            mul.wide.u32 %d2, %r1, 4;
            add.s64 %d2, %d1, %d2;
            ld.shared.u32 %r2, [%d2];
            st.global.u32 [%d0], %r2;"
        ))
    };
    let expected: Vec<u32> = (0..32).map(|lane| lane ^ 3).collect();
    assert_eq!(words(&launch(&text("bar.warp.sync -1;"), 1, 1, 32), 32), expected);
    let fault = fault(&launch(&text(""), 1, 1, 32));
    assert!(matches!(fault.kind, FaultKind::Unordered { conflict: Conflict::Race, .. }), "{fault}");
}

#[test]
fn lanes_that_store_to_one_place_race() {
    let module = module("st.global.u32 [%m], %r0;");
    let fault = fault(&launch(&module, 1, 1, 32));
    assert!(matches!(fault.kind, FaultKind::Unordered { stores: true, other_stores: true, .. }));
}

/// A lane that polls does not keep the other lanes of its warp from setting the flag.
#[test]
fn a_lane_waits_for_another_one() {
    let module = module(
        "setp.ne.u32 %p1, %r0, 0;
        @%p1 bra $L2;
        $L1:
        ld.acquire.cta.global.u32 %r2, [%m];
        setp.eq.u32 %p2, %r2, 0;
        @%p2 bra $L1;
        ret;
        $L2:
        setp.eq.u32 %p1, %r0, 5;
        @%p1 st.release.cta.global.u32 [%m], 1;",
    );
    assert_eq!(words(&launch(&module, 1, 1, 32), 1), [1]);
}

/// The four ways of a shuffle, in segments too, and whether the lane is in range.
#[test]
fn shuffles_of_all_modes() {
    let module = module(
        "shfl.sync.bfly.b32 %r1, %r0, 5, 31, -1;
        shfl.sync.up.b32 %r2|%p1, %r0, 3, 0, -1;
        shfl.sync.down.b32 %r3|%p2, %r0, 3, 31, -1;
        shfl.sync.idx.b32 %r4|%p3, %r0, 3, 0x181f, -1;
        selp.u32 %r5, 1, 0, %p1;
        selp.u32 %r6, 1, 0, %p2;
        selp.u32 %r7, 1, 0, %p3;
        st.global.u32 [%d0], %r1;
        st.global.u32 [%d0+128], %r2;
        st.global.u32 [%d0+256], %r3;
        st.global.u32 [%d0+384], %r4;
        st.global.u32 [%d0+512], %r5;
        st.global.u32 [%d0+640], %r6;
        st.global.u32 [%d0+768], %r7;",
    );
    let words = words(&launch(&module, 1, 1, 32), 7 * 32);
    for lane in 0..32 {
        let found: Vec<u32> = words[lane as usize..].iter().copied().step_by(32).collect();
        let (up, down) = (lane >= 3, lane + 3 < 32);
        let from = [
            lane ^ 5,
            if up { lane - 3 } else { lane },
            if down { lane + 3 } else { lane },
            (lane & 0x18) | 3,
        ];
        assert_eq!(found, [&from[..], &[up.into(), down.into(), 1]].concat(), "lane {lane}");
    }
}

#[test]
fn votes_of_all_modes() {
    let module = module(
        "setp.gt.u32 %p1, %r0, 40;
        vote.sync.any.pred %p2, %p1, -1;
        vote.sync.uni.pred %p3, %p1, -1;
        vote.sync.all.pred %p4, !%p1, -1;
        selp.u32 %r1, 1, 0, %p2;
        selp.u32 %r2, 2, 0, %p3;
        selp.u32 %r3, 4, 0, %p4;
        add.u32 %r1, %r1, %r2;
        add.u32 %r1, %r1, %r3;
        st.global.u32 [%d0], %r1;",
    );
    let expected: Vec<u32> = [6, 1, 3].into_iter().flat_map(|word| [word; 32]).collect();
    assert_eq!(words(&launch(&module, 1, 1, 96), 96), expected);
}
