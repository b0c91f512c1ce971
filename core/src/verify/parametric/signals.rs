//! The pairs of posts and waits, for every nranks: a post statement meets one wait statement, in the same round, either
//! of the same loop or of a later loop with the same rounds.

use super::rounds::{Action, Answer, Naming, NotCovered, Rounds};
use crate::schedule::SignalKind;

/// A post statement, the wait statement that it meets in the same round, and the distance between their ranks.
#[derive(Clone, Copy, Debug)]
pub(super) struct SignalLink<P> {
    pub(super) post: usize,
    pub(super) wait: usize,
    /// The waiting rank, counted from the posting rank.
    pub(super) offset: P,
}

/// A post or a wait.
#[derive(Clone, Copy, Debug)]
struct SignalEnd<P> {
    step: usize,
    part: usize,
    /// The waiting rank, counted from the posting rank.
    offset: P,
}

/// Returns all links of `program`.
///
/// Rank r's k-th post to another rank and the k-th wait of that rank for r are the k-th entries of one list of (loop,
/// round, statement), for two reasons: statement by statement, in loops with equal rounds, posts to a rank stand
/// against waits for the rank that is as far back, however far ranks coincide; and both ranks run one text. Statements
/// that always go to different ranks are listed apart. As each wait is later in the text than its post, the list is an
/// order that the program keeps.
pub(super) fn links<C: Naming>(program: &Rounds<C>) -> Answer<Vec<SignalLink<C::Peer>>> {
    let mut links = Vec::new();
    let mut lanes: Vec<_> = program.parts.iter().map(|part| part.lane).collect();
    lanes.sort_unstable();
    lanes.dedup();
    for lane in lanes {
        for kind in [SignalKind::Ack, SignalKind::Data] {
            let (mut posts, mut waits) = ends(program, lane, kind)?;
            let offsets: Vec<_> = posts.iter().chain(&waits).map(|end| end.offset).collect();
            if !program.class.told_apart(&offsets) {
                meet(program, &posts, &waits, &mut links)?;
                continue;
            }
            while let Some(offset) = posts.first().or(waits.first()).map(|end| end.offset) {
                let this = |end: &SignalEnd<C::Peer>| end.offset == offset;
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

/// The posts and the waits of one kind.
type Ends<P> = (Vec<SignalEnd<P>>, Vec<SignalEnd<P>>);

/// Returns the posts and waits of one kind in one lane, in the order in which a rank comes to them.
fn ends<C: Naming>(
    program: &Rounds<C>,
    lane: Option<i64>,
    kind: SignalKind,
) -> Answer<Ends<C::Peer>> {
    let (mut posts, mut waits) = (Vec::new(), Vec::new());
    for (i, step) in program.steps.iter().enumerate() {
        let part = &program.parts[step.part];
        let (peer, sends) = match step.action {
            Action::Post(k, peer) if k == kind => (peer, true),
            Action::Wait(k, peer) if k == kind => (peer, false),
            _ => continue,
        };
        if part.lane != lane {
            continue;
        }
        if !C::never_same_peer(&program.class.facts(part.rounds), peer, C::OWN) {
            let what = "in some round or for some nranks this peer is the rank itself";
            return Err(program.fault(i, what));
        }
        // Back and back again, a peer has its plainest name.
        let back = C::back(peer);
        let (list, offset) = if sends { (&mut posts, C::back(back)) } else { (&mut waits, back) };
        list.push(SignalEnd { step: i, part: step.part, offset });
    }
    Ok((posts, waits))
}

/// Links each post with the wait at its position in the list of waits.
fn meet<C: Naming>(
    program: &Rounds<C>,
    posts: &[SignalEnd<C::Peer>],
    waits: &[SignalEnd<C::Peer>],
    links: &mut Vec<SignalLink<C::Peer>>,
) -> Answer<()> {
    let mut together = None;
    for i in 0..posts.len().max(waits.len()) {
        let (post, wait) = match (posts.get(i), waits.get(i)) {
            (Some(post), Some(wait)) => (post, wait),
            (Some(post), None) => {
                let what = "no wait in the same round takes this signal at the peer";
                return Err(program.fault(post.step, what));
            }
            (None, wait) => {
                let at = wait.map_or(program.header, |wait| program.steps[wait.step].at);
                return Err(NotCovered::new(at, "no peer sends this signal in the same round"));
            }
        };
        // A loop's posts meet the waits of one loop: both lists go from loop to loop at the same place.
        let (sent, taken) = *together.get_or_insert((post.part, wait.part));
        let in_step = (post.part == sent) == (wait.part == taken);
        together = Some((post.part, wait.part));
        let same_rounds = program.rounds(post.step) == program.rounds(wait.step);
        if post.offset != wait.offset || !same_rounds || !in_step {
            let what = "the wait in its place at the peer is for another rank or in another loop";
            return Err(program.fault(post.step, what));
        }
        if wait.step < post.step {
            let what = "this waits for a signal that peers send later in the text";
            return Err(program.fault(wait.step, what));
        }
        links.push(SignalLink { post: post.step, wait: wait.step, offset: post.offset });
    }
    Ok(())
}
