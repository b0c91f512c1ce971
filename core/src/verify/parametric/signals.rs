//! The pairs of posts and waits, for every nranks: a post statement meets one wait statement, in the same round, either
//! of the same loop or of a later loop with as many rounds.

use super::linear::{Affine, Facts, S};
use super::rounds::{Action, NotCovered, Rounds};
use crate::schedule::SignalKind;

/// A post statement, the wait statement that it meets in the same round, and the distance between their ranks.
#[derive(Clone, Copy, Debug)]
pub(super) struct SignalLink {
    pub(super) post: usize,
    pub(super) wait: usize,
    /// The waiting rank, counted from the posting rank.
    pub(super) offset: Affine,
}

/// A post or a wait.
#[derive(Clone, Copy, Debug)]
struct SignalEnd {
    step: usize,
    part: usize,
    /// The offset from the posting rank to the waiting rank.
    offset: Affine,
}

/// Returns all links of `program`.
///
/// Rank r's k-th post to r + d and the k-th wait of r + d for r are the k-th entries of one list of (loop, round,
/// statement), for two reasons: statement by statement, in loops with equal rounds, posts to `o(s)` stand against waits
/// from `-o(s)`; and both ranks run one text. Statements that always go to different ranks are listed apart.
pub(super) fn links(program: &Rounds, facts: &Facts) -> Result<Vec<SignalLink>, NotCovered> {
    let mut links = Vec::new();
    let mut lanes: Vec<_> = program.parts.iter().map(|part| part.lane).collect();
    lanes.sort_unstable();
    lanes.dedup();
    for lane in lanes {
        for kind in [SignalKind::Ack, SignalKind::Data] {
            let (mut posts, mut waits) = ends(program, facts, lane, kind)?;
            let offsets: Vec<Affine> = posts.iter().chain(&waits).map(|end| end.offset).collect();
            if !apart(&offsets, facts) {
                meet(program, &posts, &waits, &mut links)?;
                continue;
            }
            while let Some(offset) = posts.first().or(waits.first()).map(|end| end.offset) {
                let this = |end: &SignalEnd| end.offset == offset;
                let (these_posts, other_posts): (Vec<_>, Vec<_>) =
                    posts.into_iter().partition(this);
                let (these_waits, other_waits): (Vec<_>, Vec<_>) =
                    waits.into_iter().partition(this);
                meet(program, &these_posts, &these_waits, &mut links)?;
                (posts, waits) = (other_posts, other_waits);
            }
        }
    }
    Ok(links)
}

/// Returns the posts and waits of one kind in one lane, in the order in which a rank comes to them.
fn ends(
    program: &Rounds,
    facts: &Facts,
    lane: Option<i64>,
    kind: SignalKind,
) -> Result<(Vec<SignalEnd>, Vec<SignalEnd>), NotCovered> {
    let (mut posts, mut waits) = (Vec::new(), Vec::new());
    for (i, step) in program.steps.iter().enumerate() {
        let part = &program.parts[step.part];
        let (list, offset) = match step.action {
            Action::Post(k, offset) if k == kind => (&mut posts, offset),
            Action::Wait(k, offset) if k == kind => (&mut waits, -offset),
            _ => continue,
        };
        if part.lane != lane {
            continue;
        }
        let facts = facts.within(S, part.first, part.last);
        if facts.multiples(offset).is_none_or(|multiples| !multiples.is_empty()) {
            let what = "in some round or for some nranks this peer is the rank itself";
            return Err(NotCovered::new(step.at, what));
        }
        list.push(SignalEnd { step: i, part: step.part, offset: offset.residue() });
    }
    Ok((posts, waits))
}

/// Whether all offsets are constants that stand for different ranks unless they are equal.
fn apart(offsets: &[Affine], facts: &Facts) -> bool {
    let differ = |a: Affine, b: Affine| {
        a == b || facts.multiples(a - b).is_some_and(|multiples| multiples.is_empty())
    };
    offsets.iter().all(|a| a.constant().is_some() && offsets.iter().all(|b| differ(*a, *b)))
}

/// Links each post with the wait at its position in the list of waits.
fn meet(
    program: &Rounds,
    posts: &[SignalEnd],
    waits: &[SignalEnd],
    links: &mut Vec<SignalLink>,
) -> Result<(), NotCovered> {
    let mut together = None;
    for i in 0..posts.len().max(waits.len()) {
        let (post, wait) = match (posts.get(i), waits.get(i)) {
            (Some(post), Some(wait)) => (post, wait),
            (Some(post), None) => {
                let what = "no wait in the same round takes this signal at the peer";
                return Err(NotCovered::new(program.steps[post.step].at, what));
            }
            (None, wait) => {
                let at = wait.map_or(program.header, |wait| program.steps[wait.step].at);
                return Err(NotCovered::new(at, "no peer sends this signal in the same round"));
            }
        };
        let rounds = |end: &SignalEnd| {
            let part = &program.parts[end.part];
            (part.first, part.last)
        };
        // A loop's posts meet the waits of one loop: both lists go from loop to loop at the same place.
        let (sent, taken) = *together.get_or_insert((post.part, wait.part));
        let in_step = (post.part == sent) == (wait.part == taken);
        together = Some((post.part, wait.part));
        if post.offset != wait.offset || rounds(post) != rounds(wait) || !in_step {
            let what = "the wait in its place at the peer is for another rank or in another loop";
            return Err(NotCovered::new(program.steps[post.step].at, what));
        }
        if wait.step < post.step {
            let what = "this waits for a signal that peers send later in the text";
            return Err(NotCovered::new(program.steps[wait.step].at, what));
        }
        links.push(SignalLink { post: post.step, wait: wait.step, offset: post.offset });
    }
    Ok(())
}
