//! The threads of a block. A few threads post signals and wait, all threads move data, and threads wait for each other
//! only at a `nop` or a barrier. So without a `nop` a signal does not imply that earlier data is moved, and later data
//! need not come after a wait. A stream has a total order, so unordered steps are laid out in the least helpful order:
//! the signal first and the wait last.

use super::steps::{ChunkPart, MscclppStep, StepAction};
use crate::exchange::report::span;
use roundelay_core::diagnostics::{Code, Diagnostic};
use roundelay_core::ids::RankId;
use roundelay_core::schedule::Region;

/// Returns the rank and region of a part.
pub(super) type Lies<'l> = &'l dyn Fn(&ChunkPart) -> (RankId, Region);

/// The steps of a block between two synchronizations.
#[derive(Default)]
struct Stretch {
    out: Vec<MscclppStep>,
    /// Waits that only some threads have finished.
    waits: Vec<MscclppStep>,
    /// Moves since the last synchronization of the threads.
    moved: Vec<MscclppStep>,
    /// Whether a wait came before a signal.
    waited: bool,
}

/// Returns the steps of a block in the order in which they are laid out.
///
/// # Errors
/// E0305 if data overlaps data that other threads may still move, or if a wait, data and a signal follow each other
/// without a `nop`.
pub(super) fn arrange(
    steps: Vec<MscclppStep>,
    lies: Lies<'_>,
) -> Result<Vec<MscclppStep>, Box<Diagnostic>> {
    let (mut all, mut stretch) = (Vec::new(), Stretch::default());
    for step in steps {
        match step.what {
            StepAction::Sync | StepAction::Barrier { .. } => {
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
        match &step.what {
            StepAction::Wait(_) | StepAction::Acquire(_) => self.waits.push(step),
            StepAction::Signal(_) | StepAction::Release(_) => {
                if !self.waits.is_empty() || self.waited {
                    if !self.moved.is_empty() {
                        return Err(Box::new(unsynchronized(&step, "a wait, data and a signal")));
                    }
                    self.waited = true;
                    self.out.append(&mut self.waits);
                }
                let plain = |step: &MscclppStep| {
                    matches!(step.what, StepAction::Data { .. }) && !blocks(step)
                };
                let behind = self.out.iter().rev().take_while(|step| plain(step)).count();
                self.out.insert(self.out.len() - behind, step);
            }
            _ if blocks(&step) => {
                self.out.append(&mut self.waits);
                self.out.push(step);
            }
            _ => {
                if self.waited {
                    return Err(Box::new(unsynchronized(&step, "a wait, a signal and data")));
                }
                let early = self.moved.iter().find(|early| collide(early, &step, lies));
                if let Some(early) = early {
                    let error = unsynchronized(&step, "two ops on the same chunks");
                    return Err(Box::new(
                        error.other(span(early.at), "other threads may still be here"),
                    ));
                }
                self.moved.push(step.clone());
                self.out.push(step);
            }
        }
        Ok(())
    }
}

/// Whether a step waits for packets.
fn blocks(step: &MscclppStep) -> bool {
    step.parts()[0].iter().any(|part| part.packets)
}

fn unsynchronized(step: &MscclppStep, what: &str) -> Diagnostic {
    let title = format!("{what} without a `nop` between them");
    let error = Diagnostic::new(Code::Race, span(step.at), title);
    error.note("threads of a block wait for each other at a `nop` or a barrier alone")
}

/// Whether two steps conflict in memory: one of them writes, and the ranges differ. Equal ranges do not conflict, since
/// each thread accesses the same elements in both.
fn collide(early: &MscclppStep, late: &MscclppStep, lies: Lies<'_>) -> bool {
    let [reads, writes] = late.parts();
    let [were_read, were_written] = early.parts();
    let meet = |left: &[ChunkPart], right: &[ChunkPart]| {
        left.iter().filter(|part| !part.packets).any(|left| {
            let (rank, own) = lies(left);
            right.iter().filter(|part| !part.packets).any(|right| {
                let (other_rank, other) = lies(right);
                rank == other_rank
                    && (own.buffer, own.slot) == (other.buffer, other.slot)
                    && (own.lo, own.hi) != (other.lo, other.hi)
                    && own.lo < other.hi
                    && other.lo < own.hi
            })
        })
    };
    meet(reads, were_written) || meet(writes, were_read) || meet(writes, were_written)
}
