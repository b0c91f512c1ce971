//! Lanes: the values of all `parallel`s around a signal.

use roundelay_core::schedule::text::{parse, print};
use roundelay_core::schedule::{Schedule, SignalKind};

use super::lay_out;

/// Two signals that stand outside, in iteration 0, in iteration 0 of that, and in an algorithm that is called there.
const ZEROS: &str = "
algorithm Zeros() -> AllReduce {
    let other = peer(1 - rank);
    other.TxAck();
    parallel a in 0..1 {
        other.TxAck();
        parallel b in 0..2 {
            other.TxAck();
            other.RxAck();
            Inner() on (input, output);
        }
        other.RxAck();
    }
    other.RxAck();
}

algorithm Inner() -> AllReduce {
    let other = peer(1 - rank);
    scratch own: like input;
    fifo like input;
    copy(local.input, local.own);
    parallel c in 0..1 {
        other.TxAck();
        other.RxAck();
        other.send(local.input);
        other.recv(local.own);
    }
}
";

fn lanes_of(schedule: &Schedule, kind: SignalKind) -> Vec<&[i64]> {
    let of_rank_0 = |c: &&roundelay_core::schedule::Channel| c.kind == kind && c.from.0 == 0;
    let channels = schedule.channels.iter().filter(of_rank_0);
    let mut lanes: Vec<_> = channels.map(|c| schedule.lanes[c.lane.index()].as_slice()).collect();
    lanes.sort_unstable();
    lanes
}

#[test]
fn iteration_0_has_a_lane_of_its_own() {
    let schedule = lay_out(ZEROS, 2);
    let inner: [&[i64]; 2] = [&[0, 0, 0], &[0, 1, 0]];
    let all: [&[i64]; 6] = [&[], &[0], &[0, 0], inner[0], &[0, 1], inner[1]];
    assert_eq!(lanes_of(&schedule, SignalKind::Ack), all);
    assert_eq!(lanes_of(&schedule, SignalKind::Tail), inner, "links of fifos are in a lane, too");
    let names: Vec<_> = schedule.scratch.iter().map(|scratch| scratch.name.as_str()).collect();
    assert_eq!(names, ["own", "fifo", "own_2", "fifo_2"], "scratch of a call is in a lane, too");
    assert_eq!(schedule.lanes[0], [0_i64; 0], "lane 0 of the tables is the lane outside");
    assert_eq!(parse(&print(&schedule)), Ok(schedule));
}
