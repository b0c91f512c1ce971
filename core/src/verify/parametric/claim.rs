//! The proof of one program of a class: signals, order and values, out of place and in place.

use super::access_order::{Ordered, RoundOrder};
use super::places::{Effect, effects};
use super::rounds::{Answer, NotCovered, Rounds};
use super::signals::links;
use crate::verify::layout::BufferMode;

/// The values in memory, in a class of programs.
pub(super) trait Values: Ordered {
    /// Whether every output holds the promised values at the end.
    fn complete(program: &Rounds<Self>, effects: &[Effect<Self>], mode: BufferMode)
    -> Answer<bool>;

    /// Whether the operands of each move are parts of one block, cut at the same fractions.
    fn keeps_blocks(program: &Rounds<Self>) -> bool;
}

/// Proves a program; returns whether each move keeps blocks together.
pub(super) fn prove<C: Values>(program: &Rounds<C>) -> Answer<bool> {
    let links_once = links(program)?;
    let order = RoundOrder { program, links: &links_once };
    let in_place = program.collective.has_in_place() && !program.out_of_place;
    for mode in BufferMode::BOTH.into_iter().take(1 + usize::from(in_place)) {
        let effects = effects(program, mode)?;
        order.caller(&effects)?;
        order.races(&effects, None)?;
        if !C::complete(program, &effects, mode)? {
            let what = format!("not every block ends as the {} wants it", program.collective);
            return Err(NotCovered::new(program.header, what));
        }
    }
    if program.uses_scratch() && !C::GUARDS_SCRATCH {
        let twice = program.twice();
        let links = links(&twice)?;
        let effects = effects(&twice, BufferMode::OutOfPlace)?;
        let order = RoundOrder { program: &twice, links: &links };
        order.races(&effects, Some(program.steps.len()))?;
    }
    Ok(C::keeps_blocks(program))
}
