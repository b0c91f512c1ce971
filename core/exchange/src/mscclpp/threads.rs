//! The threads of a block. Single threads post signals and wait: the k-th channel of an op is thread k's. All threads
//! move data, and threads wait for each other only at a `nop` or a barrier. So without a `nop` a signal does not imply
//! that earlier data is moved or that another thread's wait has ended, and later data need not come after a wait. A
//! stream has a total order, so unordered steps are laid out in the least helpful order: the signal first and the wait
//! last.

use super::program::{Act, Chunk};
use super::steps::MscclppStep;
use crate::report::span;
use roundelay_core::diagnostics::{Code, Diagnostic};
use roundelay_core::ids::RankId;
use roundelay_core::schedule::Region;

/// Returns the rank and region of a part.
pub(super) type Lies<'l> = &'l dyn Fn(&Chunk) -> (RankId, Region);

/// The steps of a block between two synchronizations.
#[derive(Default)]
struct Stretch {
    out: Vec<MscclppStep>,
    /// Waits that a single thread has finished.
    waits: Vec<MscclppStep>,
    /// Moves since the last synchronization of the threads.
    moved: Vec<MscclppStep>,
}

/// Returns the steps of a block in the order in which they are laid out.
///
/// # Errors
/// E0305 if data overlaps data that other threads may still move, or if waits, data and signals follow each other without
/// a `nop` so that no order is the least helpful one.
pub(super) fn arrange(
    steps: Vec<MscclppStep>,
    lies: Lies<'_>,
) -> Result<Vec<MscclppStep>, Box<Diagnostic>> {
    let (mut all, mut stretch) = (Vec::new(), Stretch::default());
    for step in steps {
        match step.what {
            Act::Sync | Act::Barrier { .. } => {
                all.extend(stretch.finish());
                stretch = Stretch::default();
                all.push(step);
            }
            _ => stretch.take(step, lies)?,
        }
    }
    all.extend(stretch.finish());
    Ok(all)
}

impl Stretch {
    fn finish(mut self) -> Vec<MscclppStep> {
        self.out.append(&mut self.waits);
        self.out
    }

    fn take(&mut self, step: MscclppStep, lies: Lies<'_>) -> Result<(), Box<Diagnostic>> {
        if step.waits() {
            self.waits.push(step);
            Ok(())
        } else if step.posts() {
            self.post(step)
        } else {
            self.data(step, lies)
        }
    }

    /// Takes a signal: it comes after its own thread's waits and after the packets that all threads have waited for, and
    /// before everything else.
    fn post(&mut self, step: MscclppStep) -> Result<(), Box<Diagnostic>> {
        // The end of a flush tells of nothing but a put of this rank, so it may stay behind.
        let own = |other: &MscclppStep| {
            other.waits() && other.thread == step.thread && !matches!(other.what, Act::Flush)
        };
        let open = self.waits.iter().any(own);
        if open && !self.moved.is_empty() {
            return Err(Box::new(unsynchronized(&step, "a wait, data and a signal")));
        }
        if open {
            self.out.extend(self.waits.extract_if(.., |wait| own(wait)));
        }
        let last = self.out.iter().rposition(|other| own(other) || other.is_arrival());
        let mut place = last.map_or(0, |last| last + 1);
        let before = &self.out[..place];
        if before.iter().any(|other| other.waits() && other.thread != step.thread) {
            let error = unsynchronized(&step, "waits and signals of several channels");
            return Err(Box::new(error.note("the k-th channel of an op is the k-th thread's")));
        }
        if before.iter().any(|other| matches!(other.what, Act::Data { .. })) {
            return Err(Box::new(unsynchronized(&step, "data, packets and a signal")));
        }
        place += self.out[place..].iter().take_while(|other| other.posts()).count();
        self.out.insert(place, step);
        Ok(())
    }

    /// Takes data that all threads move, each its part: after the packets that it reads, and before the waits of single
    /// threads. Only its packets are sent after these waits, as a thread sends its part of them after its wait.
    fn data(&mut self, mut step: MscclppStep, lies: Lies<'_>) -> Result<(), Box<Diagnostic>> {
        if self.out.iter().any(MscclppStep::waits) {
            return Err(Box::new(unsynchronized(&step, "a wait, a signal and data")));
        }
        if let Some(early) = self.moved.iter().find(|early| collide(early, &step, lies)) {
            let error = unsynchronized(&step, "two ops on the same chunks");
            let early = span(early.at);
            return Err(Box::new(error.other(early, "other threads may still be here")));
        }
        let at = step.at;
        let words = |before, after| MscclppStep { at, what: Act::Sync, thread: 0, before, after };
        if !step.before.is_empty() {
            self.out.push(words(std::mem::take(&mut step.before), Vec::new()));
        }
        let waited = !self.waits.is_empty();
        let sent = if waited { std::mem::take(&mut step.after) } else { Vec::new() };
        let late = (!sent.is_empty()).then(|| words(Vec::new(), sent));
        if matches!(step.what, Act::Data { .. }) {
            self.moved.push(step.clone());
            self.out.push(step);
        }
        if let Some(late) = late {
            self.out.append(&mut self.waits);
            self.out.push(late);
        }
        Ok(())
    }
}

fn unsynchronized(step: &MscclppStep, what: &str) -> Diagnostic {
    let title = format!("{what} without a `nop` between them");
    let error = Diagnostic::new(Code::Race, span(step.at), title);
    error.note("threads of a block wait for each other at a `nop` or a barrier alone")
}

/// Whether two steps conflict in memory: one of them writes, and the ranges differ. Equal ranges do not conflict, since
/// each thread accesses the same elements in both, unless one of the steps counts in packets.
fn collide(early: &MscclppStep, late: &MscclppStep, lies: Lies<'_>) -> bool {
    let [reads, writes] = late.what.parts();
    let [were_read, were_written] = early.what.parts();
    let packets =
        |step: &MscclppStep| step.what.parts().into_iter().flatten().any(|part| part.packets);
    let alike = packets(early) == packets(late);
    let meet = |left: &[Chunk], right: &[Chunk]| {
        left.iter().filter(|part| !part.packets).any(|left| {
            let (rank, own) = lies(left);
            right.iter().filter(|part| !part.packets).any(|right| {
                let (other_rank, other) = lies(right);
                rank == other_rank
                    && (own.buffer, own.slot) == (other.buffer, other.slot)
                    && !(alike && (own.lo, own.hi) == (other.lo, other.hi))
                    && own.lo < other.hi
                    && other.lo < own.hi
            })
        })
    };
    meet(reads, were_written) || meet(writes, were_read) || meet(writes, were_written)
}
