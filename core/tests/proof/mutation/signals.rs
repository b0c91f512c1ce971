//! Signals that are lost or go astray.

use roundelay_core::schedule::{OpKind, Schedule, SignalKind};

use super::{delete, each};

pub(super) fn delete_pairs(schedule: &Schedule) -> Vec<Schedule> {
    let ops = &schedule.ops;
    // One stream has each end of a channel, so the k-th of each are the k-th in the op list.
    let nth = |at: usize| {
        ops[..at].iter().filter(|op| (op.kind, op.arg) == (ops[at].kind, ops[at].arg)).count()
    };
    let partner = |post: usize| {
        let wait = |at: &usize| ops[*at].kind == OpKind::Wait && ops[*at].arg == ops[post].arg;
        (0..ops.len()).filter(wait).nth(nth(post))
    };
    each(
        schedule,
        |op| op.kind == OpKind::Post,
        |mutant, post| {
            if let Some(wait) = partner(post) {
                delete(mutant, post.max(wait));
                delete(mutant, post.min(wait));
            }
        },
    )
}

/// Each signal goes to, or is taken from, the next channel of its rank.
pub(super) fn redirect(schedule: &Schedule) -> Vec<Schedule> {
    let forked = |kind| matches!(kind, SignalKind::Fork | SignalKind::Join);
    let other = |mutant: &Schedule, at: usize| {
        let op = mutant.ops[at];
        let mine = mutant.channel(&op);
        let all = mutant.channels.len() as u32;
        let fits = |id: &u32| {
            let channel = mutant.channels[*id as usize];
            let same = match op.kind {
                OpKind::Post => channel.from == mine.from,
                _ => channel.to == mine.to,
            };
            same && !forked(channel.kind) && !forked(mine.kind)
        };
        (1..all).map(|step| (op.arg + step) % all).find(fits)
    };
    let hits = (0..schedule.ops.len()).filter(|at| schedule.ops[*at].kind != OpKind::Move);
    hits.filter_map(|at| {
        let mut mutant = schedule.clone();
        mutant.ops[at].arg = other(schedule, at)?;
        Some(mutant)
    })
    .collect()
}

/// Swaps each post with the next post of its stream, across any ops between.
pub(super) fn swap_posts(schedule: &Schedule) -> Vec<Schedule> {
    let posts = schedule.streams.iter().flat_map(|stream| {
        let ops = stream.first.index()..stream.first.index() + stream.len as usize;
        let posts: Vec<_> = ops.filter(|at| schedule.ops[*at].kind == OpKind::Post).collect();
        posts.windows(2).map(|pair| (pair[0], pair[1])).collect::<Vec<_>>()
    });
    let differ = posts.filter(|(a, b)| schedule.ops[*a].arg != schedule.ops[*b].arg);
    let swap = |(a, b)| {
        let mut mutant = schedule.clone();
        mutant.ops.swap(a, b);
        mutant
    };
    differ.map(swap).collect()
}
