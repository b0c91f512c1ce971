//! The ops of all streams in one order, for engines that issue them one by one.

use roundelay_core::ids::{OpId, StreamId};
use roundelay_core::schedule::{OpKind, Schedule};

/// Returns every op with its stream, each after all ops that it waits for; streams take turns. Ops that wait for a post
/// that never comes are left out: a proved schedule has none.
pub fn order(schedule: &Schedule) -> Vec<(StreamId, OpId)> {
    let mut done = vec![0; schedule.streams.len()];
    // Posts not yet taken by a wait.
    let mut posted = vec![0u64; schedule.channels.len()];
    let mut order = Vec::with_capacity(schedule.ops.len());
    loop {
        let before = order.len();
        for (at, stream) in schedule.streams.iter().enumerate() {
            while done[at] < stream.len {
                let id = OpId(stream.first.0 + done[at]);
                let op = schedule.op(id);
                let channel = op.arg as usize;
                match op.kind {
                    OpKind::Move => {}
                    OpKind::Post => posted[channel] += 1,
                    OpKind::Wait if posted[channel] == 0 => break,
                    OpKind::Wait => posted[channel] -= 1,
                }
                done[at] += 1;
                order.push((StreamId(at as u32), id));
            }
        }
        if order.len() == before {
            return order;
        }
    }
}

#[cfg(test)]
mod tests {
    use roundelay_core::schedule::text;

    use super::*;

    #[test]
    fn waits_come_after_their_posts_and_nothing_is_lost() {
        let text = "\
schedule Two AllReduce nranks 2 root 0
rank 0 stream 0
  wait ack 1->0 @0
  post data 0->1 @0
rank 1 stream 0
  post ack 1->0 @0
  wait data 0->1 @0
";
        let order = order(&text::parse(text).expect("a schedule"));
        let ids: Vec<(u32, u32)> = order.iter().map(|(stream, op)| (stream.0, op.0)).collect();
        assert_eq!(ids, [(1, 2), (0, 0), (0, 1), (1, 3)]);
    }

    #[test]
    fn what_never_comes_is_left_out() {
        let text = "\
schedule Two AllReduce nranks 2 root 0
rank 0 stream 0
  wait ack 1->0 @0
";
        assert_eq!(order(&text::parse(text).expect("a schedule")), []);
    }
}
