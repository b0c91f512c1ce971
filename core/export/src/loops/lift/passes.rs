//! Passes of a fifo: the signals and the moves of their slices, with slots and waits by the steps of each link.

use super::observations::each;
use super::regions::{Cut, RankCut};
use super::{Around, Lift, LiftResult, Rows, Unfit};
use crate::loops::ir::{LoopNode, Number, Op, binary, sum};
use roundelay_core::layout::trace::PassSteps;
use roundelay_core::program::ir::{Pass, Program, Stmt};
use roundelay_core::schedule::{Buffer, SignalKind};
use roundelay_core::syntax::ast::BinOp;

/// A link in a slice of a pass: its step, the slot of that, and the condition under which a credit is waited for before
/// it.
struct LinkStep {
    step: Number,
    slot: Number,
    waits: Number,
}

impl<'p> Lift<'p> {
    /// Adds the statements of a pass.
    pub(super) fn pass(
        &mut self,
        stmt: &'p Stmt,
        pass: &'p Pass,
        nodes: &mut Vec<LoopNode>,
    ) -> LiftResult<()> {
        // The number of a list's peers differs between ranks, and so would the operands of one move.
        if self.frame.program.list_of_peers(pass).is_some() {
            return Err(Unfit);
        }
        let seen: Vec<_> = self.traces.iter().map(|trace| trace.passes(stmt)).collect();
        let seen = self.here(&seen);
        let mut all = seen.iter().flatten().map(|(_, pass)| (pass.fifo, pass.credits, pass.slices));
        let Some(sizes) = all.next() else { return Ok(()) };
        if all.any(|other| other != sizes) {
            return Err(Unfit);
        }
        let (fifo, credits, slices) = sizes;
        let var = self.vars.len();
        self.vars.push("slice".to_owned());
        let slice = if slices > 1 { Number::var(var) } else { Number::int(0) };
        let peer = |lift: &mut Self, peer: &'p Option<_>| {
            peer.as_ref().map(|peer| lift.number(peer)).transpose()
        };
        let (from, to) = (peer(self, &pass.from)?, peer(self, &pass.to)?);
        let sizes = (i64::from(credits), i64::from(slices));
        let step = |lift: &mut Self, end: usize| lift.link(&seen, end, sizes, &slice);
        let (received, sent) = (step(self, 0)?, step(self, 1)?);

        // The regions have their shape from the whole message, and the slots of the fifo from the slice.
        let mut regions = self.operands(pass.own.iter().chain(&pass.dst))?;
        self.shaped(&mut regions);
        let mut body = Vec::new();
        self.sliced(&mut regions, (&slice, sizes.1), &mut body);
        let mut regions = regions.into_iter();
        let own = pass.own.as_ref().and_then(|_| regions.next());
        let steps = [&received, &sent].map(|link| link.as_ref().map(|link| link.step.clone()));
        let slot =
            |of, step: LinkStep| (of, Cut::Shapeless(Buffer::Scratch(fifo), Some(step.slot)));
        let waits = sent.as_ref().map(|step| step.waits.clone());
        let received = received.map(|step| slot(None, step));
        let srcs = own.iter().chain(&received).count();
        let sent = sent.map(|step| slot(to.clone(), step));
        let mut cuts: Vec<_> =
            [own, received, regions.next(), sent].into_iter().flatten().collect();
        self.shaped(&mut cuts);
        self.around.push(Around::Loop(slice));
        let srcs_dsts = self.placed_all(stmt, cuts);
        self.around.pop();
        let mut places = srcs_dsts?;
        let mut dsts = places.split_off(srcs);
        // The slots come last.
        for (places, step) in [&mut places, &mut dsts].into_iter().zip(steps) {
            if let (Some(place), Some(step)) = (places.last_mut(), step) {
                place.step = Some(step);
            }
        }

        let at = self.at(stmt);
        let signal = |post: bool, kind: SignalKind, peer: &Option<Number>| {
            peer.clone().map(|peer| LoopNode::Signal { at, post, kind, peer, lane: None })
        };
        let head = signal(false, SignalKind::Head, &to);
        let credit = waits.and_then(|condition| match condition.op {
            Op::Int(0) => None,
            Op::Int(_) => head,
            _ => Some(LoopNode::If(vec![(condition, head.into_iter().collect())], Vec::new())),
        });
        let ops = [
            signal(false, SignalKind::Tail, &from),
            credit,
            Some(LoopNode::Move { at, chain: false, srcs: places, dsts }),
            signal(true, SignalKind::Tail, &to),
            signal(true, SignalKind::Head, &from),
        ];
        body.extend(ops.into_iter().flatten());
        repeated(var, Number::int(sizes.1), body, nodes);
        Ok(())
    }

    /// Cuts a slice of each region, and gives its start a variable: the slots of the fifo have the same.
    fn sliced(
        &mut self,
        regions: &mut [RankCut],
        (slice, slices): (&Number, i64),
        nodes: &mut Vec<LoopNode>,
    ) {
        let mut known: Vec<[Number; 2]> = Vec::new();
        for (_, cut) in regions {
            let Cut::Region(part) = cut else { continue };
            if slices > 1 {
                *part = part.clone().even(slice.clone(), slices);
            }
            if part.lo.args.is_empty() {
                continue;
            }
            let named = known.iter().find(|[lo, _]| *lo == part.lo).map(|[_, var]| var.clone());
            let named = named.unwrap_or_else(|| {
                let var = self.named("begin", part.lo.clone(), nodes);
                known.push([part.lo.clone(), var.clone()]);
                var
            });
            if part.base == part.lo {
                part.base = named.clone();
            }
            part.lo = named;
        }
    }

    /// Returns the step of a slice on the link at one end of a pass, if there is one.
    fn link(
        &mut self,
        seen: &Rows<PassSteps>,
        end: usize,
        (credits, slices): (i64, i64),
        slice: &Number,
    ) -> LiftResult<Option<LinkStep>> {
        let steps = each(seen, |way, pass| {
            pass.links[end].map(|(_, step)| (way.clone(), step as i64)).into_iter().collect()
        });
        let firsts = each(seen, |way, pass| {
            pass.links[end].map(|(first, _)| (way.clone(), first.into())).into_iter().collect()
        });
        let all = || steps.iter().flatten().map(|(_, step)| *step);
        let (Some(least), Some(most)) = (all().min(), all().max()) else { return Ok(None) };
        let step = sum(self.entry(&steps)?, slice.clone());
        let waits = match () {
            () if most + slices <= credits => Number::int(0),
            () if least >= credits => Number::int(1),
            () => binary(BinOp::Ge, step.clone(), Number::int(credits)),
        };
        // The steps may all take the same slots, or none a second time.
        let slot = least % credits;
        let slot = if all().all(|step| step % credits == slot) && slot + slices <= credits {
            sum(Number::int(slot), slice.clone())
        } else if most + slices <= credits {
            step.clone()
        } else {
            binary(BinOp::Rem, step.clone(), Number::int(credits))
        };
        Ok(Some(LinkStep { step, slot: sum(self.entry(&firsts)?, slot), waits }))
    }

    /// Adds the waits at the end of a program: for the outstanding credits of each link.
    pub(super) fn end(&mut self, program: &Program, nodes: &mut Vec<LoopNode>) -> LiftResult<()> {
        let seen: Vec<_> = self.traces.iter().map(|trace| trace.owed_credits(program)).collect();
        let seen = self.here(&seen);
        if seen.iter().flatten().all(|(_, owed)| owed.is_empty()) {
            return Ok(());
        }
        let links = self.count(&each(&seen, |way, owed| vec![(way.clone(), owed.len() as i64)]))?;
        let var = self.vars.len();
        self.vars.extend(["link".to_owned(), "credit".to_owned()]);
        let link = if links == Number::int(1) { Number::int(0) } else { Number::var(var) };
        let owed = |of: fn(&(i64, i64)) -> i64| {
            each(&seen, |way, owed| {
                let item = |(at, link)| ([&way[..], &[at]].concat(), of(link));
                (0..).zip(owed).map(item).collect()
            })
        };
        self.around.push(Around::Loop(link));
        let peer = self.entry(&owed(|(peer, _)| *peer));
        let times = self.count(&owed(|(_, times)| *times));
        self.around.pop();
        let (post, kind, at) = (false, SignalKind::Head, self.frame.fifo_at);
        let mut waits = Vec::new();
        let wait = vec![LoopNode::Signal { at, post, kind, peer: peer?, lane: None }];
        repeated(var + 1, times?, wait, &mut waits);
        repeated(var, links, waits, nodes);
        Ok(())
    }
}

/// Adds statements that run a number of times.
fn repeated(var: usize, times: Number, body: Vec<LoopNode>, nodes: &mut Vec<LoopNode>) {
    match times.op {
        Op::Int(1) => nodes.extend(body),
        _ => nodes.push(LoopNode::Loop { var, lo: Number::int(0), hi: times, body }),
    }
}
