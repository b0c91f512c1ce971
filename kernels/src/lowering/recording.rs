//! Effects that are recorded for a trace, around those of any engine.

use super::code::{Code, Instr};
use super::interpreter::{Effects, Waiting, Waits};
use crate::recorder::{Recorded, RecordedCall, Recorder, now};

/// The effects of an engine in a recorded call.
pub(crate) struct RecordedEffects<'r, E> {
    pub(crate) effects: &'r mut E,
    pub(crate) code: &'r Code,
    pub(crate) recorder: &'r Recorder,
    pub(crate) call: RecordedCall,
    /// The stream of the record's first row.
    pub(crate) first: u32,
}

impl<E> RecordedEffects<'_, E> {
    fn note(&self, stream: u32, (step, len): (u32, u32), begin: u64) {
        let what = Recorded::Ops { stream, step, len };
        self.recorder.in_row(self.row(stream), self.call, begin, what);
    }

    fn row(&self, stream: u32) -> usize {
        (stream - self.first) as usize
    }
}

impl<E: Effects> Effects for RecordedEffects<'_, E> {
    type Stop = E::Stop;

    unsafe fn data(&mut self, stream: u32, instr: Instr) -> Result<(), E::Stop> {
        let begin = now();
        // SAFETY: the caller's promise.
        let done = unsafe { self.effects.data(stream, instr) };
        self.note(stream, (instr.step, self.code.step_after(stream, instr) - instr.step), begin);
        done
    }

    fn post(&mut self, stream: u32, row: &[Instr]) -> Result<(), E::Stop> {
        let begin = now();
        let done = self.effects.post(stream, row);
        self.note(stream, (row[0].step, row.len() as u32), begin);
        done
    }

    fn take(&mut self, waiting: Waiting) -> Result<bool, E::Stop> {
        // Before the look at the signal: a stream that waits may go on in another thread at once.
        self.recorder.comes_to_wait(self.row(waiting.stream), self.call.number);
        let taken = self.effects.take(waiting)?;
        if taken && let Some(since) = self.recorder.goes_on(self.row(waiting.stream)) {
            let step = self.code.instrs[waiting.at as usize].step;
            self.note(waiting.stream, (step, 1), since);
        }
        Ok(taken)
    }

    fn moved(&mut self) -> Result<(), E::Stop> {
        self.effects.moved()
    }
}

impl<E: Waits> Waits for RecordedEffects<'_, E> {
    fn wait(&mut self, waits: &[Waiting]) -> Result<(), E::Stop> {
        self.effects.wait(waits)
    }
}
