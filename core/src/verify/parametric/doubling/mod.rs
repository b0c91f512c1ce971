//! The proof for every number of ranks of programs whose loops run over the bits of nranks, such as recursive doubling
//! and Bruck's algorithm.
//!
//! **The class.** All ranks run one text of straight statements and of loops over `k in 0..ceil_log2(nranks)`, without
//! parameters. In round k peers are `rank ^ 2^k`, for a power of two nranks, or `(rank ± 2^k) % nranks`. Blocks are the
//! block of such a rank, an aligned group of `2^k` blocks with such a block in it, or a run of
//! `min(2^k, nranks - 2^k)` blocks from such a block on, modulo nranks. A run is a copy up to the last block with a copy
//! of the rest behind it (`lower`). So every rank does the same: xor with a number, or a rotation, maps the
//! program to itself.
//!
//! **The argument.** The rounds are 0..K with `2^(K-1) < nranks <= 2^K`. The distance `2^k` is a name, of which only
//! these facts are used: it is 1 in round 0, it doubles from round to round, and it is below nranks in each round.
//!
//! 1. *Signals* (`signals`). Posts and waits of a kind are compared in text order. So the posts of a rank to another
//!    and the waits of the other are one list of (part, round, statement), and this order is kept by the program:
//!    no deadlock occurs and no signal is left over.
//! 2. *Order* (`order`). For two accesses to one rank's memory, in two rounds of which the first is earlier, equal or
//!    later, the blocks are apart, or a signal to the owner and a signal from the owner order them. The ranks known in
//!    round k are `{r}` doubled k times: the group or arc of `2^k` ranks. What a round adds is apart from what is known
//!    up to this round, and from what another round adds.
//! 3. *Values* (`values`). All ranks run each statement at once, which the order of 1 permits. At the start of round k
//!    a rank has the sum or the blocks of the `2^k` ranks known; the round must add those of the next ranks, each once.
//!    After K rounds these are all ranks: a group of `2^K = nranks` ranks, or an arc of
//!    `min(2^K, nranks)` ranks. A sum has to be doubled exactly, so a sum needs a power of two.
//!
//! Steps 2 and 3 are done in place too.

mod eval;
mod lower;
mod order;
mod program;
mod signals;
mod terms;
mod values;

use super::rounds::NotCovered;
use crate::collective::Collective;
use crate::program::ir;
use order::DoublingOrder;

/// The claim for a program with loops over the bits of nranks.
pub(super) struct DoublingClaim {
    /// Whether the claim is for powers of two alone.
    pub(super) powers_of_two: bool,
    /// Whether each move keeps blocks together.
    pub(super) blocks: bool,
}

/// Proves the algorithm of `source` for every `nranks >= 2`, or for every power of two. `outside` is the construct that
/// leaves the other class: it is named unless a construct further in the text leaves this class, as the program is
/// then nearer to this class.
pub(super) fn prove(
    source: &ir::Program,
    outside: NotCovered,
) -> Result<DoublingClaim, NotCovered> {
    if !lower::counts_bits(source) {
        return Err(outside);
    }
    let program = lower::lower(source)
        .map_err(|found| if found.at.lo > outside.at.lo { found } else { outside })?;
    let links = signals::links(&program)?;
    let order = DoublingOrder { program: &program, links: &links };
    for in_place in [false, true].into_iter().take(2 - usize::from(program.out_of_place)) {
        let effects = order::effects(&program, in_place)?;
        order.races(&effects)?;
        values::complete(&program, &effects, in_place)?;
    }
    // Each move of an AllGather has the same blocks on both sides, but scratch is not followed.
    let blocks = program.collective == Collective::AllGather && program.scratch.is_empty();
    Ok(DoublingClaim { powers_of_two: program.powers_of_two, blocks })
}
