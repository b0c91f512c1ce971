//! A rank's streams in a tile: what runs where a schedule is not fused.

use std::ops::Range;
use std::sync::atomic::Ordering;

use roundelay_core::ids::OpId;

use super::board::Place;
use super::calls::Visit;
use super::forms::Streams;
use super::plan::WorldRank;
use crate::Error;
use crate::host::Kind;

/// A rank's streams in a tile.
pub(super) struct StreamRun<'s> {
    streams: &'s Streams,
    /// Where each stream stands.
    steps: Vec<u32>,
    /// Posts and waits of signals from the rank to itself.
    inner: Vec<[u64; 2]>,
}

impl<'s> StreamRun<'s> {
    pub(super) fn new(streams: &'s Streams) -> Self {
        let (steps, inner) = (vec![0; streams.tasks.len()], vec![[0; 2]; streams.counters.len()]);
        Self { streams, steps, inner }
    }

    /// Runs all streams to their ends.
    ///
    /// # Safety
    /// The tile's input is in place, and all ranks are in this call.
    pub(super) unsafe fn all(
        &mut self,
        plan: &WorldRank,
        visit: &mut Visit<'_>,
    ) -> Result<(), Error> {
        let tasks: Vec<_> =
            self.tasks().map(|task| self.streams.code.tasks[task as usize]).collect();
        for (step, task) in self.steps.iter_mut().zip(&tasks) {
            *step = task.first;
        }
        let mut open: Vec<usize> = (0..tasks.len()).collect();
        while !open.is_empty() {
            let mut moved = false;
            let mut blocked = Vec::new();
            for at in std::mem::take(&mut open) {
                let (before, task) = (self.steps[at], tasks[at]);
                // SAFETY: the caller's promise.
                let channel = unsafe { self.advance(plan, visit, at, task.first + task.len)? };
                moved |= self.steps[at] != before || channel.is_none();
                if let Some(channel) = channel {
                    blocked.push((at, channel));
                }
            }
            if !moved {
                self.wait(visit, &blocked)?;
            }
            open.extend(blocked.iter().map(|(at, _)| *at));
        }
        Ok(())
    }

    fn tasks(&self) -> Range<u32> {
        self.streams.tasks.clone()
    }

    /// Runs a stream until it ends, or up to a wait that is not met: then that channel.
    ///
    /// # Safety
    /// As for [`Self::all`].
    unsafe fn advance(
        &mut self,
        plan: &WorldRank,
        visit: &mut Visit<'_>,
        at: usize,
        end: u32,
    ) -> Result<Option<u32>, Error> {
        let code = &self.streams.code;
        while self.steps[at] < end {
            let instr = code.instrs[self.steps[at] as usize];
            match instr.kind {
                Kind::Data => {
                    self.stand(visit, at, instr.step);
                    let segment = code.segments.all[instr.arg as usize];
                    let (bases, partials) = (&self.streams.bases, plan.partials.address(0));
                    let ends = || visit.world.ends(visit.number);
                    // SAFETY: rooms are good for all buffers of the code; the proof orders the segment after and
                    // before all that others do to the same memory; the partials are this process's alone.
                    let whole = unsafe {
                        code.segments.run(segment, 0..segment.elements, bases, partials, ends)
                    };
                    if !whole {
                        visit.goes_on()?;
                    }
                }
                Kind::Post => self.post(visit, instr.arg),
                Kind::Wait => {
                    if !self.met(visit, instr.arg) {
                        self.stand(visit, at, instr.step);
                        return Ok(Some(instr.arg));
                    }
                    self.take(visit, instr.arg);
                }
                Kind::Panic | Kind::Sleep => unreachable!("only tests of threads inject faults"),
            }
            self.steps[at] += 1;
        }
        Ok(None)
    }

    fn stand(&self, visit: &Visit<'_>, at: usize, step: u32) {
        let running = &self.streams.running;
        let stream = running.streams[self.tasks().start as usize + at];
        let op = (step < stream.len).then(|| running.op(OpId(stream.first.0 + step)));
        visit.stand(Place { step, at: op.map_or(0, |op| op.at.0 + 1) });
    }

    fn post(&mut self, visit: &mut Visit<'_>, channel: u32) {
        let counter = self.streams.counters[channel as usize];
        if counter.from == counter.to {
            self.inner[channel as usize][0] += 1;
            return;
        }
        let world = visit.world;
        let posted = entry(&mut visit.own.posted[counter.to], counter.which);
        *posted += 1;
        let arena = &world.board.arena;
        let word = arena.word(arena.layout.signal(counter.from, counter.to, counter.which));
        // Release: what this rank did before. One process writes here: no exchange is needed.
        word.store(*posted, Ordering::Release);
        world.board.ring(world.rank);
    }

    /// Whether a channel's next post is there.
    fn met(&self, visit: &Visit<'_>, channel: u32) -> bool {
        let counter = self.streams.counters[channel as usize];
        if counter.from == counter.to {
            let [posted, taken] = self.inner[channel as usize];
            return posted > taken;
        }
        let arena = &visit.world.board.arena;
        let word = arena.word(arena.layout.signal(counter.from, counter.to, counter.which));
        let taken = visit.own.taken[counter.from].get(counter.which).copied().unwrap_or(0);
        word.load(Ordering::Acquire) > taken
    }

    fn take(&mut self, visit: &mut Visit<'_>, channel: u32) {
        let counter = self.streams.counters[channel as usize];
        if counter.from == counter.to {
            self.inner[channel as usize][1] += 1;
        } else {
            *entry(&mut visit.own.taken[counter.from], counter.which) += 1;
        }
    }

    /// Returns when one of these waits is met.
    fn wait(&self, visit: &Visit<'_>, blocked: &[(usize, u32)]) -> Result<(), Error> {
        let ready = || blocked.iter().any(|(_, channel)| self.met(visit, *channel));
        let from = |(_, channel): &(usize, u32)| self.streams.counters[*channel as usize].from;
        let on = from(&blocked[0]);
        // Who rings wakes those who wait for him, or for nobody in particular.
        let one = blocked.iter().all(|wait| from(wait) == on);
        visit.wait(one.then_some(on), ready)
    }
}

/// A count of signals, 0 at first.
fn entry(counts: &mut Vec<u64>, which: usize) -> &mut u64 {
    if counts.len() <= which {
        counts.resize(which + 1, 0);
    }
    &mut counts[which]
}
