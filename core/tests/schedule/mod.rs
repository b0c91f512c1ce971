//! The schedule's text form, and the streams that it shows.

mod groups;
mod lanes;
mod lengths;
mod origins;
mod text;

use roundelay_core::layout::Algorithm as _;
use roundelay_core::schedule::Schedule;

use crate::sources::algorithms;

/// The first algorithm of a source, laid out.
fn lay_out(text: &str, nranks: u32) -> Schedule {
    let schedule = algorithms("test.coll", text)[0].schedule(nranks);
    schedule.unwrap_or_else(|findings| panic!("{findings:#?}"))
}

const RING: &str = include_str!("../../../stdlib/library/ring.coll");
const NCCL_RING: &str = include_str!("../../../stdlib/library/nccl_ring.coll");
const TWISTED: &str = include_str!("../../../stdlib/library/twisted_ring.coll");
const SLOTS: &str = "
#[out_of_place]
algorithm Slots() -> AllReduce {
    view block = output.split(3);
    scratch inbox: like output;
    scratch slot: 2 like block;
    copy(local.input, [local.output, local.inbox]);
    parallel lane in 0..2 {
        parallel twin in 3..5 {
            if lane == 0 && twin == 3 {
                copy(local.block[1], local.slot[1]);
                reduce([local.slot[1], local.inbox.split(3)[1]], local.block[1]);
            }
        }
    }
}";
