//! The places of a program in memory: the places that share memory, out of place and in place, and the proof that every
//! move is well formed for every nranks.

use super::linear::{Affine, Facts, S, T};
use super::rounds::{Action, Interval, NotCovered, Owned, Region, Rounds, WHOLE, covers, meet};
use crate::collective::Collective;
use crate::schedule::Buffer;
use crate::source::Span;
use crate::verify::layout::BufferMode;

/// A move with an effect, with its places as they lie in memory.
#[derive(Clone, Debug)]
pub(super) struct Effect {
    pub(super) step: usize,
    pub(super) reads: Vec<Owned>,
    pub(super) writes: Vec<Owned>,
}

/// The relation of two regions of one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    /// The regions never share memory.
    Apart,
    /// The regions always share memory.
    Meet,
    /// The regions share memory if their blocks are equal.
    SameBlock,
}

/// Returns the relation of `a` and `b` if their owner is one rank.
pub(super) fn relate(a: &Region, b: &Region, at: Span) -> Result<Relation, NotCovered> {
    if a.buffer != b.buffer || !meet(a.outer, b.outer) {
        return Ok(Relation::Apart);
    }
    if a.block.is_none() || b.block.is_none() {
        return Ok(Relation::Meet);
    }
    if a.outer != b.outer {
        return Err(NotCovered::new(at, "blocks of two different cuts of the same buffer"));
    }
    Ok(if meet(a.inner, b.inner) { Relation::SameBlock } else { Relation::Apart })
}

/// Whether `whole` covers all of `part`, given that they share memory.
pub(super) fn all_of(whole: &Region, part: &Region) -> bool {
    match (whole.block, part.block) {
        (None, _) => covers(whole.outer, part.outer),
        (Some(_), Some(_)) => covers(whole.inner, part.inner),
        (Some(_), None) => false,
    }
}

/// Returns the block of a place, counted from its owner; 0 where there is none.
pub(super) fn own_block(place: &Owned) -> Affine {
    place.region.block.map_or(Affine::ZERO, |block| block - place.owner)
}

/// Returns the cases in which `a` in round s and `b` in round t share memory.
pub(super) fn coincide(
    a: &Owned,
    b: &Owned,
    facts: &Facts,
    at: Span,
) -> Result<Vec<Facts>, NotCovered> {
    match relate(&a.region, &b.region, at)? {
        Relation::Apart => Ok(Vec::new()),
        Relation::Meet => Ok(vec![facts.clone()]),
        Relation::SameBlock => {
            let between = own_block(a) - own_block(b).at(T);
            let multiples = facts.multiples(between).ok_or_else(|| {
                NotCovered::new(at, "this block runs around the ring more than once")
            })?;
            Ok(multiples.into_iter().map(|j| facts.multiple(between, j)).collect())
        }
    }
}

/// Returns the place as it lies in memory in `mode`: in place, the smaller buffer is a piece of the larger.
pub(super) fn locate(
    mut place: Owned,
    collective: Collective,
    mode: BufferMode,
    at: Span,
) -> Result<Owned, NotCovered> {
    if mode == BufferMode::OutOfPlace {
        return Ok(place);
    }
    let (small, large) = match collective {
        Collective::ReduceScatter => (Buffer::Output, Buffer::Input),
        _ => (Buffer::Input, Buffer::Output),
    };
    if place.region.buffer != small {
        return Ok(place);
    }
    place.region.buffer = large;
    if collective != Collective::AllReduce {
        if place.region.block.is_some() {
            let what = "in place, this is a block of a block of the larger buffer";
            return Err(NotCovered::new(at, what));
        }
        let (inner, block) = (place.region.outer, Some(place.owner));
        place.region = Region { many: true, outer: WHOLE, block, inner, ..place.region };
    }
    Ok(place)
}

/// Returns the places that the moves of `program` read and write in `mode`.
pub(super) fn effects(
    program: &Rounds,
    facts: &Facts,
    mode: BufferMode,
) -> Result<Vec<Effect>, NotCovered> {
    let mut effects = Vec::new();
    for (i, step) in program.steps.iter().enumerate() {
        let Action::Move(srcs, dsts) = &step.action else { continue };
        let part = &program.parts[step.part];
        let facts = facts.within(S, part.first, part.last);
        let place = |p: &Owned| locate(*p, program.collective, mode, step.at);
        let reads = srcs.iter().map(place).collect::<Result<Vec<_>, _>>()?;
        let writes = dsts.iter().map(place).collect::<Result<Vec<_>, _>>()?;
        if let ([src], [dst]) = (&reads[..], &writes[..])
            && same(src, dst, &facts)
        {
            if mode == BufferMode::InPlace {
                continue;
            }
            return Err(NotCovered::new(step.at, "a copy onto itself"));
        }
        let own = usize::from(srcs.len() > 1);
        if mode == BufferMode::OutOfPlace {
            well_formed(&srcs[own..], dsts, &facts, step.at)?;
        }
        for (k, write) in writes.iter().enumerate() {
            for other in reads[own..].iter().chain(&writes[..k]) {
                let mine = facts.clone();
                let apart = coincide_now(write, other, &mine, step.at)?;
                let itself = mode == BufferMode::InPlace && same(write, other, &facts);
                if !apart && !itself {
                    let what = "two operands of this move are the same memory in some case";
                    return Err(NotCovered::new(step.at, what));
                }
            }
        }
        effects.push(Effect { step: i, reads, writes });
    }
    Ok(effects)
}

/// Whether two places of one statement are equal in every round.
fn same(a: &Owned, b: &Owned, facts: &Facts) -> bool {
    let (x, y) = (&a.region, &b.region);
    facts.prove_congruent(a.owner - b.owner)
        && (x.buffer, x.outer, x.inner) == (y.buffer, y.outer, y.inner)
        && match (x.block, y.block) {
            (Some(x), Some(y)) => facts.prove_congruent(x - y),
            (x, y) => x == y,
        }
}

/// Whether two places of one statement never share memory.
fn coincide_now(a: &Owned, b: &Owned, facts: &Facts, at: Span) -> Result<bool, NotCovered> {
    let relation = relate(&a.region, &b.region, at)?;
    let never = |term| facts.multiples(term).is_some_and(|multiples| multiples.is_empty());
    Ok(match relation {
        Relation::Apart => true,
        _ if never(a.owner - b.owner) => true,
        Relation::Meet => false,
        Relation::SameBlock => {
            never(a.region.block.unwrap_or(Affine::ZERO) - b.region.block.unwrap_or(Affine::ZERO))
        }
    })
}

/// Checks the rules of a move, for operands other than the destination of a reduce.
fn well_formed(srcs: &[Owned], dsts: &[Owned], facts: &Facts, at: Span) -> Result<(), NotCovered> {
    let mut all = srcs.iter().chain(dsts);
    if dsts.iter().any(|dst| dst.region.buffer == Buffer::Input) {
        return Err(NotCovered::new(at, "an input is written"));
    }
    if dsts.len() > 8 {
        return Err(NotCovered::new(at, "a copy to more than 8 destinations"));
    }
    if !all.clone().any(|place| place.owner.residue() == Affine::ZERO) {
        return Err(NotCovered::new(at, "no operand of this move is always the rank's own"));
    }
    let first = &dsts[0].region;
    if all.any(|place| !equally_long(first, &place.region, facts)) {
        let what = "two operands differ in length for some count or nranks";
        return Err(NotCovered::new(at, what));
    }
    Ok(())
}

/// Whether two regions have equally many elements, cut alike, for every count and nranks.
fn equally_long(a: &Region, b: &Region, facts: &Facts) -> bool {
    // A stretch of one unit, at any position: all units are cut alike.
    let unit = |r: &Region| -> Option<Interval> {
        match (r.many, r.block) {
            (false, None) => Some(r.outer),
            (true, Some(_)) if r.outer == WHOLE => Some(r.inner),
            _ => None,
        }
    };
    match (unit(a), unit(b)) {
        (Some(a), Some(b)) => a == b,
        (None, None) => {
            (a.many, a.outer, a.inner) == (b.many, b.outer, b.inner)
                && match (a.block, b.block) {
                    (Some(a), Some(b)) => facts.prove_congruent(a - b),
                    (a, b) => a == b,
                }
        }
        _ => false,
    }
}
