//! The pairs of posts and waits: a post statement meets one wait statement, in the same round.

use super::program::{Action, Doubling};
use super::terms::RoundSeat;
use crate::schedule::SignalKind;
use crate::verify::parametric::rounds::NotCovered;

/// A post statement, and the wait statement that it meets in the same round.
#[derive(Clone, Copy, Debug)]
pub(super) struct SignalLink {
    pub(super) post: usize,
    pub(super) wait: usize,
    /// The waiting rank, as the posting rank sees it.
    pub(super) to: RoundSeat,
}

/// Returns all links of `program`.
///
/// The posts of a kind and the waits of that kind are compared one by one, in text order: the post to a rank stands
/// against the wait for the rank that is as far back, and posts of one part stand against waits of one part. So
/// for any two ranks the posts of the one to the other and the waits of the other are one list of (part, round,
/// statement), however far ranks coincide. As each wait is later in the text than its post, this list is an order that
/// the program keeps.
pub(super) fn links(program: &Doubling) -> Result<Vec<SignalLink>, NotCovered> {
    let mut links = Vec::new();
    for kind in [SignalKind::Ack, SignalKind::Data] {
        let (mut posts, mut waits) = (Vec::new(), Vec::new());
        for (i, step) in program.steps.iter().enumerate() {
            match step.action {
                Action::Post(of, seat) if of == kind => posts.push((i, seat)),
                Action::Wait(of, seat) if of == kind => waits.push((i, seat.back())),
                _ => {}
            }
        }
        if let Some((step, _)) = posts.get(waits.len()) {
            return program.fault(*step, "no wait in the same round takes this signal at the peer");
        }
        if let Some((step, _)) = waits.get(posts.len()) {
            return program.fault(*step, "no peer sends this signal in the same round");
        }
        let part = |step: usize| program.steps[step].part;
        let mut together: Option<(usize, usize)> = None;
        for (&(post, to), &(wait, from)) in posts.iter().zip(&waits) {
            let (sent, taken) = *together.get_or_insert((part(post), part(wait)));
            let in_step = (part(post) == sent) == (part(wait) == taken);
            together = Some((part(post), part(wait)));
            if to != from || !in_step || program.in_rounds(post) != program.in_rounds(wait) {
                let what =
                    "the wait in its place at the peer is for another rank or in another loop";
                return program.fault(post, what);
            }
            if wait < post {
                return program
                    .fault(wait, "this waits for a signal that peers send later in the text");
            }
            links.push(SignalLink { post, wait, to });
        }
    }
    Ok(links)
}
