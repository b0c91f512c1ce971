//! The proof for every number of ranks of programs whose loops run over the bits of nranks, such as recursive doubling
//! and Bruck's algorithm.
//!
//! **The class.** All ranks run one text of straight statements and of loops over `k in 0..ceil_log2(nranks)`, without
//! parameters. In round k peers are `rank ^ 2^k`, for a power of two nranks, or `(rank ± 2^k) % nranks`. Blocks are the
//! block of such a rank, an aligned group of `2^k` blocks with such a block in it, or a run of `min(2^k, nranks - 2^k)`
//! blocks from such a block on, modulo nranks. A run is a copy up to the last block with a copy of the rest behind it
//! (`guarded`). So every rank does the same: xor with a number, or a rotation, maps the program to itself.
//!
//! **The argument.** The rounds are 0..K with `2^(K-1) < nranks <= 2^K`. The distance `2^k` is a name, of which only
//! these facts are used: it is 1 in round 0, it doubles from round to round, and it is below nranks in each round.
//!
//! 1. *Signals* (`signals` of the folder above). Posts and waits of a kind are compared in text order. So the posts of
//!    a rank to another and the waits of the other are one list of (part, round, statement), and this order is kept by
//!    the program: no deadlock occurs and no signal is left over.
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

mod bit_order;
mod bit_values;
mod numbers;

use std::cmp::Ordering;

use super::rounds::{Action, Answer, Covered as _, Naming, NotCovered, Owned, RoundStep, Rounds};
use super::walk::{Arm, Loops, Walk};
use crate::collective::Collective;
use crate::program::ir::{self, Expr, Op, Stmt, StmtKind};
use crate::source::Span;
use crate::syntax::ast::BinOp;
use crate::values::arith::IntFn;
use numbers::RoundSeat::{self, Ahead, Behind, Own, Partner};
use numbers::{ROUND, ROUNDS, Term};

/// The class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Doubling {
    /// Whether the program refuses an nranks that is no power of two.
    pub(super) powers_of_two: bool,
}

impl Doubling {
    /// Returns the class of a program that may have loops over the bits of nranks.
    pub(super) fn of(source: &ir::Program) -> Option<Self> {
        let gathers = matches!(source.collective, Collective::AllReduce | Collective::AllGather);
        let powers_of_two = source.body.iter().any(requires_power_of_two);
        (gathers && counts_bits(source)).then_some(Self { powers_of_two })
    }
}

/// The form of several blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// The block with the number of that rank.
    One,
    /// The aligned group of 2^k blocks that contains the block of that rank, for a power of two nranks.
    Group,
    /// The blocks from that rank's on, as many as `numbers::LACKING` says, modulo nranks.
    Run,
    /// The blocks of a run up to the last block of the buffer.
    Front,
    /// The blocks of a run behind the last block of the buffer, from block 0 on.
    Wrapped,
}

/// Blocks of a buffer; the seat counts from the rank that runs the statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Blocks {
    shape: Shape,
    seat: RoundSeat,
}

/// A region, with its blocks named by a seat.
type Region = super::rounds::Region<Blocks>;

/// Blocks of the buffer of a rank.
type SeatPlace = Owned<Doubling>;

impl Naming for Doubling {
    type Peer = RoundSeat;
    type Block = Blocks;
    /// Whether these are all rounds of a loop; another part runs once.
    type Rounds = bool;
    type Facts = ();

    const ONCE: bool = false;
    const OWN: RoundSeat = Own;
    const GUARDS_SCRATCH: bool = true;

    fn facts(self, _rounds: bool) {}

    fn block_of(seat: RoundSeat) -> Blocks {
        Blocks { shape: Shape::One, seat }
    }

    fn is_one(block: Blocks) -> bool {
        block.shape == Shape::One
    }

    /// Two seats may be one rank, but none is the rank itself.
    fn never_same_peer((): &(), a: RoundSeat, b: RoundSeat) -> bool {
        a != b && (a == Own || b == Own)
    }

    fn never_same_block((): &(), a: &SeatPlace, b: &SeatPlace) -> bool {
        a.owner == b.owner && bit_order::apart(a, b, Ordering::Equal)
    }

    fn back(peer: RoundSeat) -> RoundSeat {
        match peer {
            Ahead => Behind,
            Behind => Ahead,
            seat => seat,
        }
    }
}

/// Whether an expression of the program asks for the logarithm of a number, or whether it is a power of two.
fn counts_bits(source: &ir::Program) -> bool {
    source.stmts().any(|stmt| match &stmt.kind {
        StmtKind::For(_, _, hi, _) => asks(hi),
        StmtKind::Let(_, value) | StmtKind::Require(value, _) => asks(value),
        _ => false,
    })
}

fn asks(expr: &Expr) -> bool {
    matches!(expr.op, Op::IsPowerOfTwo | Op::Function(IntFn::Log2 | IntFn::CeilLog2))
        || expr.args.iter().any(asks)
}

/// Whether the statement refuses every nranks that is no power of two.
fn requires_power_of_two(stmt: &Stmt) -> bool {
    let StmtKind::Require(holds, _) = &stmt.kind else { return false };
    holds.op == Op::IsPowerOfTwo && holds.args[0].op == Op::Nranks
}

impl Loops for Doubling {
    const NESTED: &'static str = "a loop within a loop over the bits of nranks";
    const STREAMS: bool = false;
    const ROUND: Term = ROUND;

    fn rounds(self, first: &Term, end: &Term, at: Span) -> Answer<bool> {
        let all = (*first == Term::ZERO && *end == ROUNDS).then_some(true);
        all.covered(at, "these are not the rounds 0..log2(nranks)")
    }

    /// Lowers the copy of the rest of a run of blocks, which stands behind the copy of its blocks up to the last
    /// block: both are one copy of the run, whose blocks pass the last block exactly where the condition holds.
    fn guarded<'a>(walk: &mut Walk<'a, Self>, arm: &'a Arm, at: Span) -> Answer<bool> {
        let (condition, body) = arm;
        let Op::Binary(op @ (BinOp::Gt | BinOp::Lt)) = condition.op else { return Ok(false) };
        let [left, right] = [0, 1].map(|i| walk.scope.number(&condition.args[i]));
        let more = (left? - right?) * if op == BinOp::Gt { 1 } else { -1 };
        let Some(seat) = walk.scope.class.beyond(more) else { return Ok(false) };
        let before = walk.program.steps.len();
        walk.block(body)?;
        let steps = &mut walk.program.steps;
        if steps.len() == before + 1
            && let [.., first, last] = &mut steps[..]
            && let Some(front) = run(first, Blocks { shape: Shape::Front, seat })
            && run(last, Blocks { shape: Shape::Wrapped, seat }).as_ref() == Some(&front)
        {
            (first.action, _) = front;
            steps.truncate(before);
            return Ok(true);
        }
        let what = "in some rounds and on some ranks only, and not the rest of the run of blocks \
                    that the statement before copies";
        Err(NotCovered::new(at, what))
    }

    /// Checks that peers are all `rank ^ 2^k`, with blocks in groups, or all `rank ± 2^k`, with blocks in runs; and
    /// that each run of blocks has its second copy.
    fn check(program: &Rounds<Self>) -> Answer<()> {
        let (mut by_xor, mut by_shift) = (false, false);
        for (i, step) in program.steps.iter().enumerate() {
            let named: Vec<Blocks> = match &step.action {
                Action::Post(_, seat) | Action::Wait(_, seat) => vec![Self::block_of(*seat)],
                Action::Move(srcs, dsts) => (srcs.iter().chain(dsts))
                    .flat_map(|p| p.region.block.into_iter().chain([Self::block_of(p.owner)]))
                    .collect(),
            };
            for Blocks { shape, seat } in named {
                if matches!(shape, Shape::Front | Shape::Wrapped) {
                    let what = "a run of blocks that may pass the last block: the copy of the rest \
                                has to stand behind this one";
                    return Err(program.fault(i, what));
                }
                by_xor |= shape == Shape::Group || seat == Partner;
                by_shift |= shape == Shape::Run || matches!(seat, Ahead | Behind);
                if by_xor && by_shift {
                    let what = "peers `rank ^ 2^k` with groups of blocks, and peers `rank ± 2^k` \
                                with runs of blocks, in one program";
                    return Err(program.fault(i, what));
                }
            }
        }
        Ok(())
    }
}

/// Returns the copy of a whole run of blocks in place of the copy of `part` of it alone, and the part of the program.
fn run(step: &RoundStep<Doubling>, part: Blocks) -> Option<(Action<Doubling>, usize)> {
    let mut action = step.action.clone();
    let Action::Move(srcs, dsts) = &mut action else { return None };
    // A reduce has its destination among its sources.
    let copies = srcs.len() == 1;
    let whole = Some(Blocks { shape: Shape::Run, ..part });
    let mut all = srcs.iter_mut().chain(dsts).map(|place| &mut place.region.block);
    (copies && all.all(|block| std::mem::replace(block, whole) == Some(part)))
        .then_some((action, step.part))
}
