//! The proof for every number of ranks of programs whose peers, blocks and loop bounds are linear terms in nranks.
//!
//! **The class.** All ranks run one text. Peers, blocks and loop bounds are linear terms in the round s and n = nranks;
//! a peer is the rank plus an offset modulo n, a block is the rank plus a term modulo n. A rotation of all ranks and
//! blocks by one maps a program of this class to itself, so a fact that is shown for rank 0 holds for every rank.
//! Positions in a ring serve as well as ranks: the facts then hold for every order of that ring.
//!
//! **The argument.** Each step is a set of linear inequalities in n and s that must have no solution with
//! `n >= from` (`terms`); nothing is concluded from particular values of n.
//!
//! 1. *Signals* (`signals`). In each loop body, a post statement to `+o(s)` stands against a wait statement from
//!    `-o(s)` that is later in the text. So the k-th post meets the k-th wait, in the same round, and (part, round,
//!    statement) is an order that the program keeps: no deadlock occurs and no signal is left over.
//! 2. *Order* (`order`). Two accesses share memory where their blocks, counted from the owner, are equal
//!    modulo n. For each pair of statements with a write, in any two rounds, a chain of signals leads from
//!    one statement to its partner. Another rank's buffers are touched after its `enter` and before its `exit`;
//!    scratch is checked over two runs.
//! 3. *Values* (`values`). As there is no race, any order that the program keeps gives the result; the proof takes
//!    the order of 1. A read sees the last write before it: the proof solves for that write, and splits cases where
//!    the answer changes. Values are arcs of ranks. For each move of a loop a value in round s is guessed and
//!    proved by induction on that order. At the end all blocks are read, and must hold the promised values.
//!
//! Steps 2 and 3 are done in place too.

mod arc_order;
mod arc_values;
mod arcs;
mod numbers;
mod whole_blocks;

use numbers::Int;

use super::claim::Values;
use super::eval::{Frame, Value};
use super::places::Effect;
use super::rounds::{Answer, Naming, NotCovered, Owned, Rounds};
use super::terms::{Affine, Facts, N, S};
use super::walk::Loops;
use crate::program::ir::{self, Expr, Op};
use crate::source::Span;
use crate::syntax::ast::BinOp;
use crate::values::params::ParamTy;
use crate::verify::layout::BufferMode;

/// The class for `nranks >= from`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Linear {
    from: u32,
    /// The frame of all coordinates; the first use of a coordinate decides it.
    frame: Option<Frame>,
}

impl Linear {
    pub(super) fn from(from: u32) -> Self {
        Self { from, frame: None }
    }

    /// Returns the facts that hold in every round.
    fn ranks(self) -> Facts {
        Facts::ranks(self.from)
    }
}

/// A region, with its block counted from the rank.
type Region = super::rounds::Region<Affine>;

/// A place, with its owner and block counted from the rank.
type Place = Owned<Linear>;

/// Returns the block of a place, counted from its owner; 0 where there is none.
fn own_block(place: &Place) -> Affine {
    place.region.block.map_or(Affine::ZERO, |block| block - place.owner)
}

/// Whether a distance is no multiple of nranks in any case.
fn never(facts: &Facts, between: Affine) -> bool {
    facts.multiples(between).is_some_and(|multiples| multiples.is_empty())
}

impl Naming for Linear {
    /// The rank counted from the rank that runs the statement, modulo nranks.
    type Peer = Affine;
    type Block = Affine;
    /// The first round and the last one.
    type Rounds = (Affine, Affine);
    type Facts = Facts;

    const ONCE: (Affine, Affine) = (Affine::ZERO, Affine::ZERO);
    const OWN: Affine = Affine::ZERO;
    const GUARDS_SCRATCH: bool = false;

    fn facts(self, (first, last): (Affine, Affine)) -> Facts {
        self.ranks().within(S, first, last)
    }

    fn is_own(peer: Affine) -> bool {
        peer.residue() == Affine::ZERO
    }

    fn block_of(owner: Affine) -> Affine {
        owner
    }

    fn is_one(_block: Affine) -> bool {
        true
    }

    fn same_peer(facts: &Facts, a: Affine, b: Affine) -> bool {
        facts.prove_congruent(a - b)
    }

    fn same_block(facts: &Facts, a: Affine, b: Affine) -> bool {
        facts.prove_congruent(a - b)
    }

    fn never_same_peer(facts: &Facts, a: Affine, b: Affine) -> bool {
        never(facts, a - b)
    }

    fn never_same_block(facts: &Facts, a: &Place, b: &Place) -> bool {
        let block = |place: &Place| place.region.block.unwrap_or(Affine::ZERO);
        never(facts, block(a) - block(b))
    }

    fn back(peer: Affine) -> Affine {
        (-peer).residue()
    }

    /// Whether all peers are constants that stand for different ranks unless they are equal.
    fn told_apart(self, peers: &[Affine]) -> bool {
        let facts = self.ranks();
        let differ = |a: Affine, b: Affine| a == b || never(&facts, a - b);
        peers.iter().all(|a| a.constant().is_some() && peers.iter().all(|b| differ(*a, *b)))
    }
}

impl Loops for Linear {
    const NESTED: &'static str = "a loop over nranks within another";
    const STREAMS: bool = true;
    const ROUND: Int = Int::exactly(S);

    fn check_bound(bound: &Int, at: Span) -> Answer<()> {
        let alike = bound.term().map(|_| ());
        alike.ok_or_else(|| NotCovered::new(at, "this bound differs from rank to rank"))
    }

    fn between(first: &Int, end: &Int) -> Option<i64> {
        (end.term()? - first.term()?).constant()
    }

    fn rounds(self, first: &Int, end: &Int, at: Span) -> Answer<(Affine, Affine)> {
        let (Some(first), Some(end)) = (first.term(), end.term()) else {
            return Err(NotCovered::new(at, "this bound differs from rank to rank"));
        };
        let facts = self.ranks();
        let last = end - Affine::int(1);
        if !facts.prove(last - first) {
            return Err(NotCovered::new(at, "for some nranks this loop has no round"));
        }
        if !facts.prove(N - Affine::int(1) - last + first) {
            return Err(NotCovered::new(at, "this loop may have more than nranks rounds"));
        }
        Ok((first, last))
    }

    fn param(source: &ir::Program, param: &ir::Param) -> Answer<Value<Self>> {
        let span = source.vars[param.var.index()].span;
        if param.ty != ParamTy::Ring {
            return Err(NotCovered::new(span, "its value decides what ranks do"));
        }
        if let Some(default) = &param.default
            && !always_a_ring(default, None)
        {
            return Err(NotCovered::new(default.span, "this is no ring for every nranks"));
        }
        Ok(Value::Ring(Frame::Ring(param.var)))
    }
}

impl Values for Linear {
    fn complete(
        program: &Rounds<Self>,
        effects: &[Effect<Self>],
        mode: BufferMode,
    ) -> Answer<bool> {
        arc_values::complete(program, effects, mode)
    }

    fn keeps_blocks(program: &Rounds<Self>) -> bool {
        whole_blocks::keeps_blocks(program)
    }
}

/// Whether a ring parameter's default is a ring of all ranks for every nranks.
fn always_a_ring(default: &Expr, nranks: Option<i64>) -> bool {
    match (default.op, &default.args[..]) {
        (Op::RingNatural, _) => true,
        (Op::RingTwisted, _) => nranks == Some(8),
        (Op::If, [condition, then, otherwise]) => {
            let named = match (condition.op, &condition.args[..]) {
                (Op::Binary(BinOp::Eq), [left, right]) => match (left.op, right.op) {
                    (Op::Nranks, Op::Int(n)) => Some(n),
                    _ => None,
                },
                _ => None,
            };
            named.is_some() && always_a_ring(then, named) && always_a_ring(otherwise, nranks)
        }
        _ => false,
    }
}
