//! The form of one rank, of a schedule of which one rank stands for all; and the ranks of a form that are written.

use std::sync::Arc;

use super::acts::{Act, Acts};
use super::memory::{Followed, FollowedForm, FormCells};
use super::windows::Windows;
use super::{Action, LIMIT, Message, MessageId, TwoSided, check, form, levels};
use crate::diagnostics::Finding;
use crate::ids::{OpId, RankId, RegionId};
use crate::optimize::join;
use crate::schedule::{Operand, Schedule};
use crate::stages::stage;
use crate::symmetry::{MoveTurner, NoProof, Representative, SymmetricProof, folded, proved};
use crate::turns::Turns;
use crate::verify::layout::BufferMode;
use crate::verify::{Proof, in_order, too_fine};

/// The ranks of a form that are written: all of them, or one.
#[derive(Clone, Debug)]
pub struct FormPart<'a> {
    /// The schedule in normal form; its ops are those of the ranks at least.
    pub schedule: &'a Schedule,
    /// The proof of the schedule.
    pub proof: &'a Proof,
    /// The messages that the actions name.
    pub messages: &'a [Message],
    /// The actions of each rank.
    pub of: Vec<(RankId, &'a [Action])>,
    /// The data that passes through the busiest port, in units of the count.
    pub busiest_port: f64,
}

impl FormPart<'_> {
    /// Returns the only rank that is written, where there are others.
    pub fn only(&self) -> Option<RankId> {
        match self.of[..] {
            [(rank, _)] if self.schedule.nranks > 1 => Some(rank),
            _ => None,
        }
    }
}

impl TwoSided {
    /// Returns all ranks of this form, or one rank.
    pub fn part(&self, rank: Option<RankId>) -> FormPart<'_> {
        let all = (0..).map(RankId).zip(self.actions.iter().map(Vec::as_slice));
        FormPart {
            schedule: self.schedule(),
            proof: self.proof(),
            messages: &self.messages,
            of: all.filter(|(of, _)| rank.is_none_or(|rank| rank == *of)).collect(),
            busiest_port: self.schedule().busiest_port(),
        }
    }
}

/// The two-sided form of one rank, made from the ops of the rank that stands for all.
#[derive(Clone, Debug)]
pub struct RankForm {
    rank: RankId,
    schedule: Schedule,
    proof: Arc<Proof>,
    messages: Vec<Message>,
    actions: Vec<Action>,
    busiest_port: f64,
}

/// The reason why one rank has no form without those of the others.
#[derive(Clone, Debug)]
pub enum Unformed {
    /// Turns do not take messages to messages; the form of all ranks decides.
    Unlike(String),
    /// It has no form: E0426, or E0206 where a proof cannot hold it.
    Wrong(Vec<Finding>),
}

impl RankForm {
    /// Returns the form of `rank`. It is proved as the author's schedule is: by rank 0, which stands for all.
    ///
    /// # Errors
    /// The reason why this rank alone has no form.
    pub fn new(author: &SymmetricProof, rank: RankId) -> Result<Self, Unformed> {
        stage("messages", || Self::made(author, rank))
    }

    /// Returns the rank as the part of a form that is written.
    pub fn part(&self) -> FormPart<'_> {
        FormPart {
            schedule: &self.schedule,
            proof: &self.proof,
            messages: &self.messages,
            of: vec![(self.rank, &self.actions)],
            busiest_port: self.busiest_port,
        }
    }

    fn made(author: &SymmetricProof, rank: RankId) -> Result<Self, Unformed> {
        let unlike = |why: &str| Unformed::Unlike(why.to_owned());
        let Representative { own, turns, way, space, .. } = &author.of;
        let joined = join(own);
        let order = in_order(&folded(&joined, turns)).map_err(Unformed::Wrong)?;
        let mut acts = Acts::new(&joined, &order, 1, LIMIT).map_err(Unformed::Wrong)?;
        let mut form = acts.tables(&joined);
        let mut space = space.extended(own, &form, &acts.likes).map_err(Unformed::Unlike)?;
        let modes = &BufferMode::BOTH[..=usize::from(author.proof.in_place)];
        let ranks = Followed::One(turns);
        let fine = |cells| Unformed::Wrong(vec![too_fine(cells)]);
        let cells = FormCells::one(&form, &space);
        let of = FollowedForm { tables: &form, ranks, cells: &cells, modes };
        levels::sort(&mut acts, &of).map_err(fine)?;
        let windows = Windows::new(&of, &acts).map_err(fine)?;
        let mut actions = form::actions(&of, &acts, &windows);
        let cut = "a turn cuts the data of a message";
        let mut turner = MoveTurner::new(&mut space, &form);
        turn_home(&mut acts, &mut form, &mut turner, turns).ok_or_else(|| unlike(cut))?;
        form::write(&mut form, ranks, &acts, &mut actions);
        let cells = FormCells::one(&form, &space);
        let of = FollowedForm { tables: &form, ranks, cells: &cells, modes };
        let messages = acts.messages;
        check::check(&of, &messages, &actions).map_err(|(_, why)| Unformed::Unlike(why))?;
        let totals = author.of.totals;
        let of = Representative { own: form, turns: turns.clone(), way: *way, totals, space };
        let proof = proved(of).map_err(|none| match none {
            NoProof::Asymmetric(left) => Unformed::Unlike(left.why()),
            NoProof::Wrong(found) => {
                Unformed::Unlike(found.first().map_or_else(String::new, |f| f.title.clone()))
            }
        })?;
        keeps(&author.proof, &proof.proof).map_err(unlike)?;
        let (mut schedule, ops) = proof.of.turned(rank).ok_or_else(|| unlike(cut))?;
        let mut space = proof.of.space.clone();
        let mut turner = MoveTurner::new(&mut space, &schedule);
        let mut all = Vec::with_capacity(2 * messages.len());
        let mut ids = Vec::with_capacity(messages.len());
        for message in &messages {
            let mut ends = [0..0, 0..0];
            for (ids, home) in ends.iter_mut().zip([message.from, message.to]) {
                let by = turns.turn_between(home.0, rank.0);
                let parts = turned(message, &mut turner, &mut schedule, turns, by);
                let first = all.len() as u32;
                all.extend(parts.ok_or_else(|| unlike(cut))?);
                *ids = first..all.len() as u32;
            }
            ids.push(ends);
        }
        let own = |action: &Action| -> Vec<Action> {
            let end = |id: MessageId, end: usize| ids[id.index()][end].clone().map(MessageId);
            match action {
                Action::Send(id) => end(*id, 0).map(Action::Send).collect(),
                Action::Sent(id) => end(*id, 0).map(Action::Sent).collect(),
                Action::Receive(id) => end(*id, 1).map(Action::Receive).collect(),
                Action::Received(id) => end(*id, 1).map(Action::Received).collect(),
                Action::Move(op) => {
                    let of = ops[op.index()].0..ops[op.index() + 1].0;
                    of.map(|op| Action::Move(OpId(op))).collect()
                }
            }
        };
        let actions = actions[0].iter().flat_map(own).collect();
        Ok(Self {
            rank,
            messages: all,
            actions,
            busiest_port: proof.busiest_port(),
            proof: Arc::new(proof.proof),
            schedule,
        })
    }
}

/// Takes the acts to rank 0: each message becomes the image that rank 0 receives, and each move the image that rank 0
/// does. `None` where a turn cuts an image.
fn turn_home(
    acts: &mut Acts,
    form: &mut Schedule,
    turner: &mut MoveTurner<'_>,
    turns: &Turns,
) -> Option<()> {
    for message in &mut acts.messages {
        let parts = turned(message, turner, form, turns, turns.back(message.to.0))?;
        let [image] = parts[..] else { return None };
        *message = image;
    }
    for act in &mut acts.list {
        let Act::Move(rank, op) = act else { continue };
        if rank.0 == 0 {
            continue;
        }
        let ids: Vec<RegionId> = form.operands_of(op).iter().map(|of| of.region).collect();
        let parts = turner.turn(form, &ids, turns.back(rank.0))?;
        let [regions] = &parts[..] else { return None };
        op.arg = form.operands.len() as u32;
        form.operands
            .extend(regions.iter().map(|region| Operand { rank: RankId(0), region: *region }));
        *rank = RankId(0);
    }
    Some(())
}

/// Returns the messages to which a turn takes a message: one for each part into which the turn cuts it, at both ends
/// alike.
fn turned(
    message: &Message,
    turner: &mut MoveTurner<'_>,
    form: &mut Schedule,
    turns: &Turns,
    by: u32,
) -> Option<Vec<Message>> {
    let parts = turner.turn(form, &[message.source, message.target], by)?;
    let of = |rank: RankId| RankId(turns.turn(rank.0, by));
    let (from, to) = (of(message.from), of(message.to));
    let part = |regions: Vec<RegionId>| {
        let [source, target] = [regions[0], regions[1]];
        Message { from, to, source, target, ..*message }
    };
    Some(parts.into_iter().map(part).collect())
}

/// Whether the form keeps the promises of the author's schedule.
fn keeps(theirs: &Proof, ours: &Proof) -> Result<(), &'static str> {
    if ours.one_mode.is_some() && theirs.one_mode.is_none() {
        return Err("ranks may no longer choose whether they run in place");
    }
    let order = |proof: &Proof| {
        proof.reduction.as_ref().map(|of| (of.apart, of.in_place, of.modes, proof.reduce_depth))
    };
    if order(theirs) == order(ours) { Ok(()) } else { Err("results are reduced in another order") }
}
