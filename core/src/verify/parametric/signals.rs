//! Which post meets which wait, for every nranks: the i-th post statement of a part meets the i-th wait
//! statement of it, in the same round.

use super::linear::{Affine, Facts, S};
use super::program::{Action, Outside, Program};
use crate::schedule::SignalKind;

/// A post statement, the wait statement that it meets in the same round, and how far away.
#[derive(Clone, Copy, Debug)]
pub(super) struct Link {
    pub(super) post: usize,
    pub(super) wait: usize,
    /// The waiting rank, counted from the one that posts.
    pub(super) offset: Affine,
}

/// The links of `program`; it is no claim that outside of them there are none.
///
/// Rank r's k-th post to r + d and the k-th wait of r + d for r are taken from the same list of (round,
/// statement) if statement by statement posts to `o(s)` stand against waits from `-o(s)`: both ranks run
/// the same text. Statements that only ever go to different ranks may be listed apart.
pub(super) fn links(program: &Program, facts: &Facts) -> Result<Vec<Link>, Outside> {
    let mut links = Vec::new();
    for kind in [SignalKind::Ack, SignalKind::Data] {
        let apart = apart(program, kind, facts);
        for part in 0..program.parts.len() {
            let (mut posts, mut waits) = (Vec::new(), Vec::new());
            for (i, step) in program.steps.iter().enumerate().filter(|(_, s)| s.part == part) {
                match step.action {
                    Action::Post(k, offset) if k == kind => posts.push((i, offset)),
                    Action::Wait(k, offset) if k == kind => waits.push((i, -offset)),
                    _ => continue,
                }
            }
            check_others(program, facts, &posts)?;
            check_others(program, facts, &waits)?;
            while let Some((post, offset)) = posts.first().copied() {
                let meets = |(_, other): &(usize, Affine)| {
                    !apart || (*other - offset).residue() == Affine::ZERO
                };
                let wait = waits
                    .iter()
                    .position(meets)
                    .filter(|i| (waits[*i].1 - offset).residue() == Affine::ZERO);
                let Some(wait) = wait else {
                    let what = "no wait in the same round takes this signal at the peer";
                    return Err(Outside::new(program.steps[post].at, what));
                };
                posts.remove(0);
                let (wait, _) = waits.remove(wait);
                if wait < post {
                    let what = "this waits for a signal that peers send later in the round";
                    return Err(Outside::new(program.steps[wait].at, what));
                }
                links.push(Link { post, wait, offset });
            }
            if let Some((wait, _)) = waits.first() {
                let what = "no peer sends this signal in the same round";
                return Err(Outside::new(program.steps[*wait].at, what));
            }
        }
    }
    Ok(links)
}

/// Whether all signals of a kind go to constant offsets that are different ranks unless they are equal.
fn apart(program: &Program, kind: SignalKind, facts: &Facts) -> bool {
    let towards = |action: &Action| match *action {
        Action::Post(k, offset) if k == kind => Some(offset.residue()),
        Action::Wait(k, offset) if k == kind => Some((-offset).residue()),
        _ => None,
    };
    let all: Vec<Affine> = program.steps.iter().filter_map(|step| towards(&step.action)).collect();
    all.iter().all(|a| {
        all.iter().all(|b| {
            let between = *a - *b;
            between == Affine::ZERO
                || between.constant().is_some_and(|_| {
                    facts.multiples(between).is_some_and(|multiples| multiples.is_empty())
                })
        })
    })
}

/// A signal to oneself is an error.
fn check_others(
    program: &Program,
    facts: &Facts,
    signals: &[(usize, Affine)],
) -> Result<(), Outside> {
    for (step, offset) in signals {
        let part = &program.parts[program.steps[*step].part];
        let facts = facts.within(S, part.first, part.last);
        if facts.multiples(*offset).is_none_or(|multiples| !multiples.is_empty()) {
            let what = "in some round or for some nranks this peer is the rank itself";
            return Err(Outside::new(program.steps[*step].at, what));
        }
    }
    Ok(())
}
