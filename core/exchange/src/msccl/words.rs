//! Waits between blocks of a rank. A block posts its level after some of its operations, and other blocks wait for a
//! level; any number of blocks may wait. Here each pair of blocks has a signal of its own, posted after the first
//! operation that reaches the level; so the k-th post meets the k-th wait.

use std::collections::HashMap;

use super::program::Await;
use super::report::span;
use super::{Gpu, Program};
use roundelay_core::diagnostics::{Code, Diagnostic};
use roundelay_core::ids::RankId;

/// An operation: rank, block and its number in the block.
type OperationAt = (u32, u32, u32);

/// The blocks that each operation waits for before it begins, and the blocks that it signals when it is done.
#[derive(Default)]
pub(super) struct BlockWaits(HashMap<OperationAt, [Vec<u32>; 2]>);

impl BlockWaits {
    /// Returns the waits of all ranks.
    ///
    /// # Errors
    /// E0302 for a wait that no operation ends, E0301 for a wait that its own block would end later.
    pub(super) fn new(program: &Program) -> Result<Self, Vec<Diagnostic>> {
        let (mut words, mut wrong) = (Self::default(), Vec::new());
        for (rank, gpu) in (0..).zip(&program.gpus) {
            words.rank(program, (rank, gpu), &mut wrong);
        }
        if wrong.is_empty() { Ok(words) } else { Err(wrong) }
    }

    /// Returns the blocks whose signal an operation waits for, and the blocks that it signals.
    pub(super) fn at(&self, rank: RankId, block: usize, index: usize) -> [&[u32]; 2] {
        let both = self.0.get(&(rank.0, block as u32, index as u32));
        both.map_or([&[]; 2], |both| both.each_ref().map(Vec::as_slice))
    }

    fn rank(&mut self, program: &Program, (rank, gpu): (u32, &Gpu), wrong: &mut Vec<Diagnostic>) {
        let levels: Vec<Vec<(u64, u32)>> = gpu
            .blocks
            .iter()
            .map(|block| {
                let all = (0..).zip(&block.operations).filter(|(_, operation)| operation.posts);
                all.map(|(index, operation)| (operation.level, index)).collect()
            })
            .collect();
        // The progress of another block that each block knows: the number of operations.
        let mut known: HashMap<(u32, u32), u32> = HashMap::new();
        for (id, block) in (0..).zip(&gpu.blocks) {
            for (index, operation) in (0..).zip(&block.operations) {
                for wait in &operation.waits {
                    let levels = levels.get(wait.block as usize).map_or(&[][..], Vec::as_slice);
                    let after = levels.partition_point(|(level, _)| *level < wait.level);
                    let Some((_, post)) = levels.get(after).copied() else {
                        wrong.push(unmatched(program, wait));
                        continue;
                    };
                    if wait.block == id {
                        if post >= index {
                            wrong.push(itself(wait));
                        }
                        continue;
                    }
                    let known = known.entry((wait.block, id)).or_insert(0);
                    // Counted from 1; 0 means none.
                    if post < *known {
                        continue;
                    }
                    *known = post + 1;
                    self.0.entry((rank, id, index)).or_default()[0].push(wait.block);
                    self.0.entry((rank, wait.block, post)).or_default()[1].push(id);
                }
            }
        }
    }
}

fn unmatched(program: &Program, wait: &Await) -> Diagnostic {
    let Await { block, level, at } = *wait;
    let title = format!("a wait for step {level} of tb {block}, which no step of it ends");
    let diagnostic = Diagnostic::new(Code::UnmatchedWait, span(at), title).label("waits for ever");
    let step = program.names.get(at).map_or_else(String::new, |step| format!("{step}: "));
    diagnostic.note(format!(
        "{step}a block says how far it has come after steps with `hasdep=\"1\"` alone, and tb {block} has none \
         from step {level} on"
    ))
}

fn itself(wait: &Await) -> Diagnostic {
    let title = format!("deadlock: a wait for step {} of the same block", wait.level);
    let diagnostic = Diagnostic::new(Code::Deadlock, span(wait.at), title);
    diagnostic.label("the block never gets past this wait")
}
