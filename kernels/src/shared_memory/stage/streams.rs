//! A rank's streams on a tile, for schedules that are not fused.

use std::sync::atomic::Ordering;

use roundelay_core::ids::OpId;

use super::plan::WorldRank;
use super::strategy::Streams;
use crate::Error;
use crate::lowering::{Effects, Instr, RecordedEffects, Waiting, Waits, run_streams};
use crate::shared_memory::calls::ActiveCall;
use crate::shared_memory::world::memory::shared_state::CallPosition;

/// The memory of a plan and the signals of its world, for the streams of this rank in a call.
pub(crate) struct StreamRun<'s, 'v, 'w> {
    plan: &'s WorldRank,
    streams: &'s Streams,
    active: &'v mut ActiveCall<'w>,
    /// The numbers of posts and waits of each signal from the rank to itself.
    inner: Vec<[u64; 2]>,
}

impl<'s, 'v, 'w> StreamRun<'s, 'v, 'w> {
    pub(crate) fn new(
        plan: &'s WorldRank,
        streams: &'s Streams,
        active: &'v mut ActiveCall<'w>,
    ) -> Self {
        Self { plan, streams, active, inner: vec![[0; 2]; streams.counters.len()] }
    }

    /// Runs the streams on a tile.
    ///
    /// # Safety
    /// As for [`Effects::data`], for all streams.
    pub(crate) unsafe fn go(&mut self) -> Result<(), Error> {
        let Streams { code, tasks, .. } = self.streams;
        match self.active.recording.parts() {
            // SAFETY: the caller's promise.
            None => unsafe { run_streams(code, tasks.clone(), self) },
            Some((recorder, call)) => {
                let first = tasks.start;
                let mut recorded = RecordedEffects { effects: self, code, recorder, call, first };
                // SAFETY: the caller's promise.
                unsafe { run_streams(code, tasks.clone(), &mut recorded) }
            }
        }
    }

    /// Publishes the rank's position, for ranks that report why it is late.
    fn stand(&self, stream: u32, step: u32) {
        let running = &self.streams.running;
        let stream = running.streams[stream as usize];
        let op = (step < stream.len).then(|| running.op(OpId(stream.first.0 + step)));
        self.active.stand(CallPosition { step, at: op.map_or(0, |op| op.at.0 + 1) });
    }

    /// Whether the next post of a channel has arrived.
    fn met(&self, channel: u32) -> bool {
        let counter = self.streams.counters[channel as usize];
        if counter.from == counter.to {
            let [posted, taken] = self.inner[channel as usize];
            return posted > taken;
        }
        let arena = &self.active.world.shared.arena;
        let word = arena.word(arena.layout.signal(counter.from, counter.to, counter.which));
        let taken =
            self.active.local.stage.taken[counter.from].get(counter.which).copied().unwrap_or(0);
        word.load(Ordering::Acquire) > taken
    }
}

impl Effects for StreamRun<'_, '_, '_> {
    type Stop = Error;

    unsafe fn data(&mut self, stream: u32, instr: Instr) -> Result<(), Error> {
        self.stand(stream, instr.step);
        let (active, segments) = (&*self.active, &self.streams.code.segments);
        let segment = segments.all[instr.arg as usize];
        let (bases, partials) = (&self.streams.bases, self.plan.partials.address(0));
        let (elements, ends) = (0..segment.elements, || active.ends());
        // SAFETY: the rooms are valid for all buffers of the code; the proof orders the segment with all accesses of
        // other ranks to the same memory; only this process uses the partials.
        let whole = unsafe { segments.run(segment, elements, bases, partials, ends) };
        if whole { Ok(()) } else { active.goes_on() }
    }

    fn post(&mut self, _: u32, row: &[Instr]) -> Result<(), Error> {
        let world = self.active.world;
        let arena = &world.shared.arena;
        for instr in row {
            let counter = self.streams.counters[instr.arg as usize];
            if counter.from == counter.to {
                self.inner[instr.arg as usize][0] += 1;
                continue;
            }
            let posted = entry(&mut self.active.local.stage.posted[counter.to], counter.which);
            *posted += 1;
            let word = arena.word(arena.layout.signal(counter.from, counter.to, counter.which));
            // Release: this rank's earlier accesses come before the signal. One process writes this word, so no
            // exchange is needed.
            word.store(*posted, Ordering::Release);
        }
        world.shared.ring(world.rank);
        Ok(())
    }

    fn take(&mut self, waiting: Waiting) -> Result<bool, Error> {
        let met = self.met(waiting.channel);
        let counter = self.streams.counters[waiting.channel as usize];
        if !met {
            self.stand(waiting.stream, self.streams.code.instrs[waiting.at as usize].step);
        } else if counter.from == counter.to {
            self.inner[waiting.channel as usize][1] += 1;
        } else {
            *entry(&mut self.active.local.stage.taken[counter.from], counter.which) += 1;
        }
        Ok(met)
    }
}

impl Waits for StreamRun<'_, '_, '_> {
    fn wait(&mut self, waits: &[Waiting]) -> Result<(), Error> {
        let ready = || waits.iter().any(|waiting| self.met(waiting.channel));
        let from = |waiting: &Waiting| self.streams.counters[waiting.channel as usize].from;
        let on = from(&waits[0]);
        // A rank that rings wakes the ranks that wait for it, or for no rank in particular.
        let one = waits.iter().all(|waiting| from(waiting) == on);
        self.active.wait(one.then_some(on), ready)
    }
}

/// Returns the count of signal `which`, 0 at first.
fn entry(counts: &mut Vec<u64>, which: usize) -> &mut u64 {
    if counts.len() <= which {
        counts.resize(which + 1, 0);
    }
    &mut counts[which]
}
