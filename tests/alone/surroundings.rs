//! Expanded code leans on no name that the author may have taken, and warns of nothing by itself.
#![deny(warnings)]
#![allow(
    clippy::used_underscore_binding,
    reason = "the expansion reads the field of each parameter"
)]

use roundelay::collective;

mod inner {
    roundelay::include_collective!("right.coll");
}

struct Int;
struct Flag;
struct Ring;
struct Peer;
struct Builder;
struct Stop;

collective! {
    /// Rust's own keywords and the expansion's words are fine names here.
    #[verify(nranks = [1])]
    pub algorithm Odd(ring: Ring, schedule: int = 3, builder: int = 4) -> AllReduce {
        let s = schedule + builder - 7;
        let int = s + 1;
        let at = int;
        let match = if nranks > 1 || false { at } else { 1 };
        let choose = if match == 1 { 1 } else { 2 };
        view type = output.split(choose);
        step fn(impl: peer) {
            copy(impl.input, impl.type[0]);
        }
        require nranks == 1 && ring.position == 0, "one rank";
        fn(local);
    }
}

collective! {
    /// What is not used says so, or is allowed to be.
    #[allow(W0002)]
    #[verify(nranks = [1])]
    pub algorithm Unused(slices: int = 3, _loops: int = 2) -> AllReduce {
        require nranks == 1, "one rank";
        scratch _inbox: like output;
        view _half = output.split(2);
        let _mine = rank;
        let seen = 1;
        let count = seen * 1;
        step _again(_to: peer, part: region) {
            copy(local.input, local.part);
        }
        for i in 0..count {
            copy(local.input, local.output);
        }
    }
}

#[test]
fn names_that_are_taken_do_not_matter() {
    let _ = Unused::new().slices(1)._loops(2);
    let _ = (Int, Flag, Ring, Peer, Builder, Stop);
    let schedule = roundelay::Algorithm::schedule(&Odd::new(), 1).unwrap();
    assert_eq!(schedule.ops.len(), 1);
    let _ = inner::Right::new();
}
