//! The wait to blame for a stuck run, from the control block of a launch.

use std::time::Duration;

use roundelay_core::ids::{ChannelId, OpId, StreamId};
use roundelay_core::schedule::{OpKind, Schedule};
use roundelay_export::cuda::Group;

use super::layout::{CONTROL_GROUP, CONTROL_HEAD};
use crate::stuck::{Stuck, Waiting, signal_name, to_blame};

/// A group's wait, as the group wrote it into the control block.
#[derive(Clone, Copy)]
struct Wait {
    stream: StreamId,
    step: u32,
    expected: u64,
    seen: u64,
}

impl Wait {
    /// Returns the wait of group `at` of the grid, if the group waits.
    fn read(schedule: &Schedule, groups: &[Group], control: &[u64], at: usize) -> Option<Self> {
        let words = control.get(CONTROL_HEAD + CONTROL_GROUP * at..)?.get(..CONTROL_GROUP)?;
        let [state, step, expected, seen, ..] = *words else { return None };
        let group = groups.get(at).filter(|_| state != 0)?;
        let same =
            |s: &roundelay_core::schedule::Stream| (s.rank, s.index) == (group.rank, group.stream);
        let stream = StreamId(schedule.streams.iter().position(same)? as u32);
        Some(Self { stream, step: u32::try_from(step).ok()?, expected, seen })
    }

    /// Returns the channel of the wait; `None` where a stream's own CTAs wait for each other between two ops.
    fn channel(&self, schedule: &Schedule) -> Option<ChannelId> {
        let stream = schedule.streams[self.stream.index()];
        let within = self.step < stream.len;
        let op = within.then(|| schedule.op(OpId(stream.first.0 + self.step)))?;
        (op.kind == OpKind::Wait).then(|| Schedule::channel_id(op))
    }
}

/// Returns the wait to blame for a launch that gave up; `None` for a launch that did not. `control` is the launch's
/// control block, `after` its poll limit.
pub fn stuck(
    schedule: &Schedule,
    groups: &[Group],
    control: &[u64],
    after: Duration,
) -> Option<Stuck> {
    let gave_up = usize::try_from(*control.first()?).ok()?.checked_sub(1)?;
    let waits: Vec<Wait> =
        (0..groups.len()).filter_map(|at| Wait::read(schedule, groups, control, at)).collect();
    let first = Wait::read(schedule, groups, control, gave_up)?;
    let blamed = first.channel(schedule).and_then(|channel| {
        let mut of_ranks: Vec<Option<Waiting>> = vec![None; schedule.nranks as usize];
        for wait in waits.iter().rev() {
            let Some(channel) = wait.channel(schedule) else { continue };
            let rank = schedule.streams[wait.stream.index()].rank;
            of_ranks[rank.index()] = Some((wait.stream, channel));
        }
        let find = |stream: StreamId| waits.iter().find(|wait| wait.stream == stream);
        let step = |stream| find(stream).map_or(u32::MAX, |wait| wait.step);
        let (stream, _) = to_blame(schedule, of_ranks, (first.stream, channel), step);
        find(stream).copied()
    });
    let wait = blamed.unwrap_or(first);
    let channel = wait.channel(schedule);
    let owner = schedule.streams[wait.stream.index()];
    let op = schedule.op(OpId(owner.first.0 + wait.step.min(owner.len.saturating_sub(1))));
    let (expected, seen) = in_run(schedule, &wait, channel);
    Some(Stuck {
        rank: owner.rank,
        stream: wait.stream,
        step: wait.step,
        waiting_on: channel.map_or_else(
            || "the other CTAs of its stream".to_owned(),
            |channel| signal_name(schedule, channel),
        ),
        expected,
        seen,
        file: schedule.file.clone(),
        line: schedule.location(op.at).line,
        after: Some(after),
    })
}

/// Returns the expected and the seen posts of this run: the counters persist, and a completed run takes all of its
/// posts.
fn in_run(schedule: &Schedule, wait: &Wait, channel: Option<ChannelId>) -> (u64, u64) {
    let Some(channel) = channel else { return (wait.expected, wait.seen) };
    let is_wait = |op: &&roundelay_core::schedule::Op| {
        op.kind == OpKind::Wait && Schedule::channel_id(op) == channel
    };
    let a_run = schedule.ops.iter().filter(is_wait).count() as u64;
    let before = wait.expected.saturating_sub(1) / a_run.max(1) * a_run;
    (wait.expected - before, wait.seen.saturating_sub(before))
}

#[cfg(test)]
mod tests {
    use roundelay_core::ids::RankId;
    use roundelay_core::schedule::text;

    use super::*;

    /// Three ranks in a row; rank 0 posts twice, the other ranks pass on the signals that they waited for.
    const ROW: &str = "\
schedule Row Broadcast nranks 3 root 0
at 0 = 4:1..4:9
at 1 = 7:1..7:9
rank 0 stream 0
  post data 0->1 @0
  post data 0->1 @0
rank 1 stream 0
  wait data 0->1 @1
  wait data 0->1 @1
  post data 1->2 @0
rank 2 stream 0
  wait data 1->2 @1
";

    const AFTER: Duration = Duration::from_secs(3);

    fn row(control: &[(usize, [u64; 4])], gave_up: u64) -> Option<Stuck> {
        let schedule = text::parse(ROW).expect("a schedule");
        let groups = [0, 1, 2].map(|rank| Group { rank: RankId(rank), stream: 0 });
        let mut words = vec![0; CONTROL_HEAD + CONTROL_GROUP * groups.len()];
        words[0] = gave_up;
        for (group, wait) in control {
            words[CONTROL_HEAD + CONTROL_GROUP * group..][..4].copy_from_slice(wait);
        }
        stuck(&schedule, &groups, &words, AFTER)
    }

    #[test]
    fn a_launch_that_came_to_its_end_is_not_stuck() {
        assert_eq!(row(&[(1, [1, 0, 1, 0])], 0), None);
    }

    #[test]
    fn the_last_of_a_chain_of_waits_is_to_blame() {
        let chain = [(1, [1, 1, 2, 1]), (2, [2, 0, 1, 0])];
        let stuck = row(&chain, 3).expect("rank 2 gave up");
        assert_eq!((stuck.rank, stuck.step, stuck.line), (RankId(1), 1, 7), "{stuck}");
        assert_eq!(stuck.waiting_on, "TxDataSignal from rank 0");
        assert_eq!((stuck.expected, stuck.seen, stuck.after), (2, 1, Some(AFTER)));
    }

    #[test]
    fn posts_are_counted_from_the_run_that_got_stuck() {
        // The eighth run: seven took two posts each.
        let stuck = row(&[(1, [2, 1, 16, 15])], 2).expect("rank 1 gave up");
        assert_eq!((stuck.expected, stuck.seen), (2, 1));
        let stuck = row(&[(1, [2, 0, 15, 14])], 2).expect("rank 1 gave up");
        assert_eq!((stuck.expected, stuck.seen), (1, 0));
    }

    #[test]
    fn a_wait_within_a_stream_is_named_as_one() {
        let stuck = row(&[(0, [2, 2, 1, 0])], 1).expect("rank 0 gave up");
        assert_eq!(stuck.waiting_on, "the other CTAs of its stream");
        assert_eq!((stuck.rank, stuck.step, stuck.line), (RankId(0), 2, 4));
    }

    #[test]
    fn a_control_block_of_nonsense_is_no_panic() {
        assert_eq!(row(&[], 99), None);
        assert_eq!(row(&[(1, [2, u64::MAX, 0, 0])], 2), None);
        assert!(row(&[(1, [2, 77, 0, 9])], 2).is_some());
    }
}
