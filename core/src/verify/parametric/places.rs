//! The places of a program in memory: the places that share memory, out of place and in place, and the proof that every
//! move is well formed for every nranks.

use super::rounds::{
    Action, Answer, Interval, Naming, NotCovered, Owned, Region, Rounds, WHOLE, meet,
};
use crate::collective::Collective;
use crate::schedule::Buffer;
use crate::source::Span;
use crate::verify::layout::BufferMode;

/// The most destinations of a copy.
const MOST_DESTINATIONS: usize = 8;

/// A move with an effect, with its places as they lie in memory.
#[derive(Clone, Debug)]
pub(super) struct Effect<C: Naming> {
    pub(super) step: usize,
    pub(super) reads: Vec<Owned<C>>,
    pub(super) writes: Vec<Owned<C>>,
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
pub(super) fn relate<B>(a: &Region<B>, b: &Region<B>, at: Span) -> Answer<Relation> {
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

/// Returns the place as it lies in memory in `mode`: in place, the smaller buffer is a piece of the larger.
pub(super) fn locate<C: Naming>(
    mut place: Owned<C>,
    collective: Collective,
    mode: BufferMode,
    at: Span,
) -> Answer<Owned<C>> {
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
        let (inner, block) = (place.region.outer, Some(C::block_of(place.owner)));
        place.region = Region { many: true, outer: WHOLE, block, inner, ..place.region };
    }
    Ok(place)
}

/// Returns the places that the moves of `program` read and write in `mode`.
pub(super) fn effects<C: Naming>(program: &Rounds<C>, mode: BufferMode) -> Answer<Vec<Effect<C>>> {
    let mut effects = Vec::new();
    for (i, step) in program.steps.iter().enumerate() {
        let Action::Move(srcs, dsts) = &step.action else { continue };
        let facts = program.class.facts(program.rounds(i));
        let place = |p: &Owned<C>| locate(*p, program.collective, mode, step.at);
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
                let apart = never_coincide(write, other, &facts, step.at)?;
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
fn same<C: Naming>(a: &Owned<C>, b: &Owned<C>, facts: &C::Facts) -> bool {
    let (x, y) = (&a.region, &b.region);
    C::same_peer(facts, a.owner, b.owner)
        && (x.buffer, x.outer, x.inner) == (y.buffer, y.outer, y.inner)
        && same_blocks::<C>(x, y, facts)
}

/// Whether both regions have no block, or one block in all cases.
fn same_blocks<C: Naming>(a: &Region<C::Block>, b: &Region<C::Block>, facts: &C::Facts) -> bool {
    match (a.block, b.block) {
        (Some(a), Some(b)) => C::same_block(facts, a, b),
        (a, b) => a.is_none() && b.is_none(),
    }
}

/// Whether two places of one statement never share memory.
fn never_coincide<C: Naming>(
    a: &Owned<C>,
    b: &Owned<C>,
    facts: &C::Facts,
    at: Span,
) -> Answer<bool> {
    Ok(match relate(&a.region, &b.region, at)? {
        Relation::Apart => true,
        _ if C::never_same_peer(facts, a.owner, b.owner) => true,
        Relation::Meet => false,
        Relation::SameBlock => C::never_same_block(facts, a, b),
    })
}

/// Checks the rules of a move, for operands other than the destination of a reduce.
fn well_formed<C: Naming>(
    srcs: &[Owned<C>],
    dsts: &[Owned<C>],
    facts: &C::Facts,
    at: Span,
) -> Answer<()> {
    let mut all = srcs.iter().chain(dsts);
    if dsts.iter().any(|dst| dst.region.buffer == Buffer::Input) {
        return Err(NotCovered::new(at, "an input is written"));
    }
    if dsts.len() > MOST_DESTINATIONS {
        return Err(NotCovered::new(at, "a copy to more than 8 destinations"));
    }
    if !all.clone().any(|place| C::is_own(place.owner)) {
        return Err(NotCovered::new(at, "no operand of this move is always the rank's own"));
    }
    let first = &dsts[0].region;
    if all.any(|place| !equally_long::<C>(first, &place.region, facts)) {
        let what = "two operands differ in length for some count or nranks";
        return Err(NotCovered::new(at, what));
    }
    Ok(())
}

/// Whether two regions have equally many elements, cut alike, for every count and nranks.
fn equally_long<C: Naming>(a: &Region<C::Block>, b: &Region<C::Block>, facts: &C::Facts) -> bool {
    // A stretch of one unit, at any position: all units are cut alike.
    let unit = |r: &Region<C::Block>| -> Option<Interval> {
        match (r.many, r.block) {
            (false, None) => Some(r.outer),
            (true, Some(block)) if r.outer == WHOLE && C::is_one(block) => Some(r.inner),
            _ => None,
        }
    };
    match (unit(a), unit(b)) {
        (Some(a), Some(b)) => a == b,
        (None, None) => {
            (a.many, a.outer, a.inner) == (b.many, b.outer, b.inner)
                && same_blocks::<C>(a, b, facts)
        }
        _ => false,
    }
}
