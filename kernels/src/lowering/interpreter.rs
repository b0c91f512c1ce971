//! The interpreter of code: one loop over the data, posts and waits of a stream, for every engine that runs streams. An
//! engine supplies the signals, and the wait of a rank for them.

use std::ops::Range;
use std::thread;
use std::time::Duration;

use super::code::{Code, Instr, InstrKind};

/// A stream at a wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub(crate) stream: u32,
    /// The number of the wait among all instructions.
    pub(crate) at: u32,
    pub(crate) channel: u32,
}

/// The memory and the signals on which an engine runs streams.
pub(crate) trait Effects {
    /// The reason for which a run ends early.
    type Stop;

    /// Runs the segment of an instruction.
    ///
    /// # Safety
    /// The caller owns the stream, all ranks whose buffers the segment touches are in this call, and all that the
    /// schedule orders before the segment has been done.
    unsafe fn data(&mut self, stream: u32, instr: Instr) -> Result<(), Self::Stop>;

    /// Posts a signal on the channel of each instruction of a stream, in this order.
    fn post(&mut self, stream: u32, row: &[Instr]) -> Result<(), Self::Stop>;

    /// Takes the next signal of the channel, if it is there.
    fn take(&mut self, waiting: Waiting) -> Result<bool, Self::Stop>;

    /// Notes that an instruction, or a row of posts, is done: a run may end between two of them.
    fn moved(&mut self) -> Result<(), Self::Stop> {
        Ok(())
    }
}

/// Effects of the streams of one rank, which one thread runs.
pub(crate) trait Waits: Effects {
    /// Returns when one of these waits is met.
    fn wait(&mut self, waits: &[Waiting]) -> Result<(), Self::Stop>;
}

/// Runs a stream from instruction `at` until it ends, or up to a wait whose signal is not there, which it returns.
///
/// # Safety
/// As for [`Effects::data`], for the rest of the stream.
pub(crate) unsafe fn advance<E: Effects>(
    code: &Code,
    stream: u32,
    at: &mut u32,
    effects: &mut E,
) -> Result<Option<Waiting>, E::Stop> {
    let task = code.tasks[stream as usize];
    let instrs = &code.instrs[..(task.first + task.len) as usize];
    while let Some(instr) = instrs.get(*at as usize) {
        match instr.kind {
            // SAFETY: the caller's promise; the stream has come to this instruction.
            InstrKind::Data => unsafe { effects.data(stream, *instr)? },
            InstrKind::Post => {
                let rest = &instrs[*at as usize..];
                let row = rest.iter().take_while(|instr| instr.kind == InstrKind::Post).count();
                effects.post(stream, &rest[..row])?;
                *at += row as u32 - 1;
            }
            InstrKind::Wait => {
                let waiting = Waiting { stream, at: *at, channel: instr.arg };
                if !effects.take(waiting)? {
                    return Ok(Some(waiting));
                }
            }
            InstrKind::Panic => panic!("an injected fault"),
            InstrKind::Sleep => thread::sleep(Duration::from_millis(instr.arg.into())),
        }
        *at += 1;
        effects.moved()?;
    }
    Ok(None)
}

/// Runs the streams of a rank until all have ended.
///
/// # Safety
/// As for [`Effects::data`], for all streams.
pub(crate) unsafe fn run_streams<E: Waits>(
    code: &Code,
    streams: Range<u32>,
    effects: &mut E,
) -> Result<(), E::Stop> {
    let first = |stream: u32| code.tasks[stream as usize].first;
    // Most ranks have one stream: no list of streams is made for it.
    if streams.len() == 1 {
        let mut at = first(streams.start);
        // SAFETY: the caller's promise.
        while let Some(waiting) = unsafe { advance(code, streams.start, &mut at, effects)? } {
            effects.wait(&[waiting])?;
        }
        return Ok(());
    }
    let mut open: Vec<(u32, u32)> = streams.map(|stream| (stream, first(stream))).collect();
    while !open.is_empty() {
        let mut blocked = Vec::with_capacity(open.len());
        let mut moved = false;
        for (stream, mut at) in std::mem::take(&mut open) {
            let before = at;
            // SAFETY: the caller's promise.
            let waiting = unsafe { advance(code, stream, &mut at, effects)? };
            moved |= at != before || waiting.is_none();
            blocked.extend(waiting);
        }
        if !moved {
            effects.wait(&blocked)?;
        }
        open.extend(blocked.iter().map(|waiting| (waiting.stream, waiting.at)));
    }
    Ok(())
}
