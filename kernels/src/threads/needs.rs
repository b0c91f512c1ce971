//! The ranks that a rank must meet in a call before it does anything in it.

use std::collections::BTreeSet;

use roundelay_core::ids::RankId;
use roundelay_core::schedule::{OpKind, Schedule};

/// The ranks that a rank must meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Needs {
    /// All other ranks.
    All,
    /// These ranks.
    Some(Box<[RankId]>),
}

/// Returns, for each rank, the ranks that it must meet before it does anything: the ranks that it waits for, the ranks
/// whose buffers it touches, and, for each rank whose buffers it writes, the ranks that this owner must meet: so no
/// rank writes to a rank that then finds others in another call.
pub(super) fn needs(schedule: &Schedule) -> Vec<Needs> {
    let n = schedule.nranks;
    let mut meets = vec![BTreeSet::new(); n as usize];
    let mut writes = vec![BTreeSet::new(); n as usize];
    for stream in &schedule.streams {
        let rank = stream.rank;
        let (meets, writes) = (&mut meets[rank.index()], &mut writes[rank.index()]);
        for op in &schedule.ops[stream.first.index()..][..stream.len as usize] {
            match op.kind {
                OpKind::Move => {
                    meets.extend(schedule.srcs(op).iter().map(|operand| operand.rank));
                    writes.extend(schedule.dsts(op).iter().map(|operand| operand.rank));
                }
                OpKind::Wait => _ = meets.insert(schedule.channel(op).from),
                OpKind::Post => {}
            }
        }
        meets.extend(writes.iter().copied());
        meets.remove(&rank);
        writes.remove(&rank);
    }
    let mut needs: Vec<Needs> = Vec::with_capacity(n as usize);
    for rank in (0..n).map(RankId) {
        // From writers to owners, as long as an owner writes buffers of other ranks.
        let mut found = BTreeSet::from([rank]);
        let (mut seen, mut open) = (BTreeSet::from([rank]), vec![rank]);
        let mut all = false;
        while let Some(at) = open.pop()
            && !all
        {
            found.extend(&meets[at.index()]);
            all = found.len() == n as usize || needs.get(at.index()) == Some(&Needs::All);
            open.extend(writes[at.index()].iter().filter(|owner| seen.insert(**owner)));
        }
        // The nearest rank after this rank first, so that no rank is the first for all.
        let (after, before) = (found.range(rank..).skip(1), found.range(..rank));
        needs.push(if all {
            Needs::All
        } else {
            Needs::Some(after.chain(before).copied().collect())
        });
    }
    needs
}

#[cfg(test)]
mod tests {
    use roundelay_core::ids::RankId;
    use roundelay_core::schedule::text;

    use super::{Needs, needs};

    fn of(streams: [&str; 4]) -> Vec<Needs> {
        let [a, b, c, d] = streams;
        let text = format!(
            "schedule A Broadcast nranks 4 root 0\nrank 0 stream 0\n{a}rank 1 stream 0\n{b}rank 2 stream 0\n{c}rank 3 stream 0\n{d}"
        );
        needs(&text::parse(&text).expect("a schedule"))
    }

    fn some(ranks: &[u32]) -> Needs {
        Needs::Some(ranks.iter().copied().map(RankId).collect())
    }

    #[test]
    fn those_that_it_waits_for_and_those_that_it_visits() {
        let posts = "  post data 0->2 @0\n  wait ack 2->0 @0\n";
        let waits = "  wait data 0->2 @0\n  post ack 2->0 @0\n";
        let reads = "  copy 0.input[0..1] -> 3.output[0..1] @0\n";
        assert_eq!(of([posts, "", waits, reads]), [some(&[2]), some(&[]), some(&[0]), some(&[0])]);
        let only_posts = "  post data 0->2 @0\n";
        let waits = "  wait data 0->2 @0\n";
        assert_eq!(of([only_posts, "", waits, ""]), [some(&[]), some(&[]), some(&[0]), some(&[])]);
    }

    #[test]
    fn nobody_writes_to_a_rank_that_may_still_find_others_elsewhere() {
        let to_1 = "  copy 0.input[0..1] -> 1.output[0..1] @0\n";
        let to_2 = "  copy 1.input[0..1] -> 2.output[0..1] @0\n";
        let waits = "  wait data 3->2 @0\n";
        let posts = "  post data 3->2 @0\n";
        let needs = of([to_1, to_2, waits, posts]);
        assert_eq!(needs, [Needs::All, some(&[2, 3]), some(&[3]), some(&[])]);
        // The order in which ranks are asked about does not matter.
        let back = "  copy 2.input[0..1] -> 0.output[0..1] @0\n  wait data 3->2 @0\n";
        assert_eq!(of([to_1, to_2, back, posts])[..3], [Needs::All, Needs::All, Needs::All]);
    }
}
