//! Runs without polls in vain, whose counts are the same for all seeds.

use super::{FinalState, launch, module};

/// A warp stores 1, 2 and 3, and another one polls until it has seen each of them.
const POLLS: &str = "
    setp.ge.u32 %p1, %r0, 32;
    @%p1 bra READS;
    setp.ne.u32 %p2, %r0, 0;
    @%p2 bra DONE;
    mov.u32 %r1, 1;
WRITE:
    st.release.gpu.global.u32 [%m], %r1;
    add.u32 %r1, %r1, 1;
    setp.le.u32 %p3, %r1, 3;
    @%p3 bra WRITE;
    bra DONE;
READS:
    mov.u32 %r1, 0;
POLL:
    ld.acquire.gpu.global.u32 %r2, [%m];
    setp.eq.u32 %p3, %r2, %r1;
    @%p3 bra POLL;
    mov.u32 %r1, %r2;
    setp.ne.u32 %p3, %r2, 3;
    @%p3 bra POLL;
DONE:";

#[test]
fn a_wait_loads_once_in_every_order() {
    let module = module(POLLS);
    let mut hasty = Vec::new();
    let mut patient = Vec::new();
    for seed in 0..20 {
        let mut launch = launch(&module, 1, 1, 64);
        launch.seed = seed;
        let counters = |outcome: FinalState| outcome.counters[0].clone();
        let ran = |outcome: Result<FinalState, _>| {
            outcome.map_or_else(|failure| panic!("{failure}"), counters)
        };
        hasty.push(ran(launch.run()));
        patient.push(ran(launch.run_patiently()));
    }
    // Each store is read, by all lanes at once.
    assert_eq!((patient[0][1].strong_loads, patient[0][0].strong_stores), (3, 3));
    assert!(patient.iter().all(|counters| *counters == patient[0]));
    assert!(hasty.iter().any(|counters| counters[1].strong_loads > 3));
}

#[test]
fn lanes_meet_behind_a_loop() {
    // The way out of the loop is before it, where lanes do not meet by chance.
    let module = module(
        "mov.u32 %r1, 0;
        bra LOOP;
    OUT:
        st.global.u32 [%d0], %r1;
        bra DONE;
    LOOP:
        add.u32 %r1, %r1, 1;
        setp.lt.u32 %p1, %r1, %r0;
        @%p1 bra LOOP;
        bra OUT;
    DONE:",
    );
    let launch = launch(&module, 1, 1, 32);
    let outcome = launch.run_patiently().unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(
        (outcome.counters[0][0].global_stores, outcome.counters[0][0].store_sectors),
        (1, 4)
    );
    let hasty = launch.run().unwrap_or_else(|failure| panic!("{failure}"));
    assert!(hasty.counters[0][0].global_stores > 1);
}

#[test]
fn a_store_that_never_comes_is_waited_for_in_vain() {
    let module = module(
        "ld.acquire.gpu.global.u32 %r1, [%m];
        st.global.u32 [%d0+64], %r1;",
    );
    let failure = launch(&module, 1, 1, 32).run_patiently().expect_err("nothing stores");
    assert!(failure.to_string().starts_with("no thread can go on"), "{failure}");
}
