//! Checks groups without the rounds that they were made by: every message is in one group at each end, within its
//! window there; the k-th send to a rank meets the k-th receive; and some rank can always go on.

use rustc_hash::FxHashMap;

use super::{Group, GroupStep};
use crate::ids::{RankId, SpanId};
use crate::messages::check::Wrong;
use crate::messages::{Action, Message, MessageId, TwoSided};

/// The positions at which a message begins and ends among the actions of a rank.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Window {
    pub(super) begins: u32,
    pub(super) ends: u32,
}

/// The windows of all messages, at both ends.
pub(super) struct Windows {
    pub(super) sends: Vec<Window>,
    pub(super) receives: Vec<Window>,
}

impl Windows {
    pub(super) fn new(form: &TwoSided) -> Self {
        let none = vec![Window::default(); form.messages().len()];
        let mut windows = Self { sends: none.clone(), receives: none };
        for rank in (0..form.schedule().nranks).map(RankId) {
            for (at, action) in (0..).zip(form.actions(rank)) {
                match action {
                    Action::Send(id) => windows.sends[id.index()].begins = at,
                    Action::Sent(id) => windows.sends[id.index()].ends = at,
                    Action::Receive(id) => windows.receives[id.index()].begins = at,
                    Action::Received(id) => windows.receives[id.index()].ends = at,
                    Action::Move(_) => {}
                }
            }
        }
        windows
    }
}

/// Checks the steps of all ranks.
pub(super) fn meets(
    form: &TwoSided,
    windows: &Windows,
    of: &[Vec<GroupStep>],
) -> Result<(), Wrong> {
    for (rank, steps) in (0..).map(RankId).zip(of) {
        in_turn(form, rank, windows, steps)?;
    }
    order(form, of)?;
    divides(form, of)?;
    goes_on(form, of)
}

fn at(form: &TwoSided, id: MessageId) -> SpanId {
    form.message(id).at
}

/// Checks that the moves of a rank are those of its actions, and that no action ends before the beginning of an
/// earlier step.
fn in_turn(
    form: &TwoSided,
    rank: RankId,
    windows: &Windows,
    steps: &[GroupStep],
) -> Result<(), Wrong> {
    let actions = form.actions(rank);
    let mut moves = (0..).zip(actions).filter_map(|(at, action)| match action {
        Action::Move(id) => Some((at, *id)),
        _ => None,
    });
    // The latest beginning so far.
    let mut begun = 0;
    for step in steps {
        match step {
            GroupStep::Move(id) => {
                let span = form.schedule().op(*id).at;
                let place = moves.next().filter(|(_, next)| next == id).map(|(at, _)| at);
                match place {
                    Some(place) if place >= begun => begun = place,
                    _ => return Err((span, format!("rank {rank} does a move out of turn"))),
                }
            }
            GroupStep::Group(Group { sends, receives }) => {
                let of = |ids: &[MessageId], windows: &[Window]| -> Vec<(MessageId, Window)> {
                    ids.iter().map(|id| (*id, windows[id.index()])).collect()
                };
                let mut all = of(sends, &windows.sends);
                all.extend(of(receives, &windows.receives));
                begun = all.iter().map(|(_, window)| window.begins).fold(begun, u32::max);
                if let Some((id, _)) = all.iter().find(|(_, window)| window.ends < begun) {
                    return Err((at(form, *id), format!("rank {rank} sends or receives too late")));
                }
            }
        }
    }
    match moves.next() {
        None => Ok(()),
        Some((_, id)) => {
            Err((form.schedule().op(id).at, format!("rank {rank} does not do all its moves")))
        }
    }
}

/// Checks that each message is sent once by its sender and received once by its receiver, and that the receives of
/// two ranks have the order of the sends.
fn order(form: &TwoSided, of: &[Vec<GroupStep>]) -> Result<(), Wrong> {
    type Sequences = FxHashMap<(RankId, RankId), Vec<MessageId>>;
    let mut ends = [Sequences::default(), Sequences::default()];
    let mut seen = vec![[0_u8; 2]; form.messages().len()];
    for (rank, steps) in (0..).map(RankId).zip(of) {
        for step in steps {
            let GroupStep::Group(Group { sends, receives }) = step else { continue };
            for (end, ids) in [sends, receives].into_iter().enumerate() {
                for id in ids {
                    let Message { from, to, at, .. } = *form.message(*id);
                    if [from, to][end] != rank {
                        return Err((at, format!("rank {rank} has a message of others")));
                    }
                    seen[id.index()][end] += 1;
                    ends[end].entry((from, to)).or_default().push(*id);
                }
            }
        }
    }
    if let Some(id) = seen.iter().position(|seen| *seen != [1, 1]) {
        let id = MessageId(id as u32);
        return Err((at(form, id), format!("message {} is not in one group at each end", id.0)));
    }
    let [sent, received] = &ends;
    match sent.iter().find(|(pair, ids)| received.get(pair) != Some(ids)) {
        None => Ok(()),
        Some(((from, to), ids)) => Err((
            at(form, ids[0]),
            format!("messages from rank {from} to rank {to} cross each other"),
        )),
    }
}

/// Checks that averages divide only where a rank does a move, not where a message ends.
fn divides(form: &TwoSided, of: &[Vec<GroupStep>]) -> Result<(), Wrong> {
    let finish = &form.proof().finish;
    let moves = of.iter().flatten().filter_map(|step| match step {
        GroupStep::Move(id) => Some(id),
        GroupStep::Group(_) => None,
    });
    let found = moves.filter(|id| finish.binary_search(id).is_ok()).count();
    if found == finish.len() {
        Ok(())
    } else {
        Err((form.schedule().op(finish[0]).at, "an average divides what a message brings".into()))
    }
}

/// Checks that some rank can go on until all are done, where a group ends when each of its messages is issued at both
/// ends.
fn goes_on(form: &TwoSided, of: &[Vec<GroupStep>]) -> Result<(), Wrong> {
    let mut issued = vec![0_u8; form.messages().len()];
    // For each rank its next step, and the number of messages of its group whose other end is not issued yet.
    let mut next = vec![0; of.len()];
    let mut open: Vec<Option<usize>> = vec![None; of.len()];
    let mut ready: Vec<usize> = (0..of.len()).rev().collect();
    while let Some(rank) = ready.pop() {
        while let Some(step) = of[rank].get(next[rank]) {
            if let (GroupStep::Group(group), None) = (step, open[rank]) {
                open[rank] = Some(group.messages().count());
                for id in group.messages() {
                    issued[id.index()] += 1;
                    if issued[id.index()] == 2 {
                        let Message { from, to, .. } = form.message(id);
                        for end in [from.index(), to.index()] {
                            let left = open[end].map_or(0, |left| left - 1);
                            open[end] = Some(left);
                            if left == 0 && end != rank {
                                ready.push(end);
                            }
                        }
                    }
                }
            }
            if open[rank].is_some_and(|left| left > 0) {
                break;
            }
            open[rank] = None;
            next[rank] += 1;
        }
    }
    let stuck = next.iter().zip(of).position(|(next, steps)| *next < steps.len());
    match stuck {
        None => Ok(()),
        Some(rank) => {
            let GroupStep::Group(group) = &of[rank][next[rank]] else {
                unreachable!("moves do not wait")
            };
            let waits = group.messages().find(|id| issued[id.index()] < 2);
            let at = waits.map_or(SpanId(0), |id| at(form, id));
            Err((at, format!("the group of rank {rank} waits for ever")))
        }
    }
}
