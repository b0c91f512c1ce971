//! Launches that run one after another.

use roundelay_ptx::machine::{Conflict, Failure, FaultKind, Launch, LaunchError, RankLaunch};
use roundelay_ptx::program::Module;

use super::{fault, launch, module, words};

/// A launch of each module, on these devices and after these launches.
fn launches<'a>(all: &[(&'a Module, u32, &[usize])]) -> Launch<'a> {
    let one = launch(all[0].0, 1, 1, 64);
    let launch = |&(module, device, after): &(&'a Module, u32, &[usize])| RankLaunch {
        module,
        device,
        after: after.to_vec(),
        ..one.ranks[0].clone()
    };
    Launch { ranks: all.iter().map(launch).collect(), ..one }
}

/// Adds 1 to a word that belongs to the same thread of each launch.
const ADDS: &str = "\
ld.global.u32 %r1, [%d0];
add.u32 %r1, %r1, 1;
st.global.u32 [%d0], %r1;";

/// Stores the word of the neighbour, plus 1, behind all words.
const COPIES: &str = "\
xor.b32 %r1, %r0, 63;
mul.wide.u32 %d1, %r1, 4;
add.s64 %d1, %m, %d1;
ld.global.u32 %r2, [%d1];
st.global.u32 [%d0+256], %r2;";

#[test]
fn a_launch_knows_what_launches_before_it_have_done() {
    let (adds, copies) = (module(ADDS), module(COPIES));
    for device in [0, 1] {
        let chain: [(&Module, u32, &[usize]); 3] =
            [(&adds, 0, &[]), (&adds, device, &[0]), (&copies, 0, &[1])];
        assert_eq!(words(&launches(&chain), 128), [2; 128], "device {device}");
    }
}

#[test]
fn launches_that_nothing_orders_race() {
    let (adds, copies) = (module(ADDS), module(COPIES));
    let orders: [[&[usize]; 3]; 2] = [[&[], &[], &[1]], [&[], &[0], &[0]]];
    for after in orders {
        let [first, second, third] = after;
        let fault = fault(&launches(&[(&adds, 0, first), (&adds, 0, second), (&copies, 0, third)]));
        let is_race = matches!(fault.kind, FaultKind::Unordered { conflict: Conflict::Race, .. });
        assert!(is_race, "{after:?}: {fault}");
    }
}

/// A launch waits for two others, of which one has no block.
#[test]
fn a_launch_after_an_empty_one() {
    let (adds, copies) = (module(ADDS), module(COPIES));
    let mut all = launches(&[(&adds, 0, &[]), (&adds, 0, &[0]), (&copies, 0, &[0, 1])]);
    all.ranks[1].grid = [0, 1, 1];
    assert_eq!(words(&all, 128), [1; 128]);
}

/// The scope `gpu` has all launches of a device, and none of another one.
#[test]
fn a_scope_has_the_launches_of_a_device() {
    let strong = module("st.relaxed.gpu.global.u32 [%m], 1;");
    let on = |device| launches(&[(&strong, 0, &[]), (&strong, device, &[])]);
    assert_eq!(words(&on(0), 1), [1]);
    let fault = fault(&on(1));
    let is_scope = matches!(fault.kind, FaultKind::Unordered { conflict: Conflict::Scope, .. });
    assert!(is_scope, "{fault}");
}

/// A launch that never ends, and one behind it.
#[test]
fn the_report_has_launches_that_wait() {
    let polls = module(
        "$L1:\nld.acquire.gpu.global.u32 %r1, [%m];\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra $L1;",
    );
    let fault = fault(&launches(&[(&polls, 0, &[]), (&polls, 0, &[0])]));
    assert!(fault.to_string().contains("waits for the launches before its own"), "{fault}");
}

#[test]
fn an_order_in_a_circle_is_refused() {
    let adds = module(ADDS);
    let wrong = launches(&[(&adds, 0, &[]), (&adds, 0, &[1])]).run();
    assert_eq!(wrong.unwrap_err(), Failure::Launch(LaunchError::Order(1)));
}
