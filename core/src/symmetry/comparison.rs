//! Symmetry by comparison: the ops of every rank are laid out, and compared with those of rank 0, turned.

use super::moves::MoveSet;
use super::space::Space;
use super::{Asymmetric, Representative, Totals, Way};
use crate::ids::{OpId, RankId};
use crate::layout::Algorithm;
use crate::layout::assembly::alone;
use crate::rational::Rat;
use crate::schedule::{Buffer, Channel, OpKind, Region, Schedule, SignalKind, Stream};
use crate::turns::Turns;

/// The most ops of all ranks that are compared.
const OPS: u64 = 1 << 25;

/// Compares the ops of all ranks with those of rank 0; `None` where they are too many.
pub(super) fn compare<A: Algorithm + ?Sized>(
    algorithm: &A,
    nranks: u32,
) -> Option<Result<Representative, Asymmetric>> {
    let own = match alone(algorithm, nranks, RankId(0)) {
        Ok(own) => own?,
        Err(found) => return Some(Err(Asymmetric::Faulty(found))),
    };
    if (own.ops.len() as u64).saturating_mul(nranks.into()) > OPS
        || own.demands.topology.is_some()
        || own.demands.rings
    {
        return None;
    }
    let groups = Turns::xor(nranks).into_iter().chain([Turns::rotation(nranks)]);
    let mut worst = Asymmetric::Other("its ranks do not do the same".to_owned());
    for turns in groups {
        match with(algorithm, &own, &turns) {
            Ok(found) => return Some(Ok(found)),
            Err(faulty @ Asymmetric::Faulty(_)) => return Some(Err(faulty)),
            Err(other) => worst = other,
        }
    }
    Some(Err(worst))
}

fn with<A: Algorithm + ?Sized>(
    algorithm: &A,
    own: &Schedule,
    turns: &Turns,
) -> Result<Representative, Asymmetric> {
    let space = Space::guessed(own, turns).map_err(Asymmetric::Other)?;
    let unlike = |rank| Asymmetric::Differs { rank, turns: turns.to_string() };
    let mine = Parts::of(own, &space, 0).ok_or_else(|| unlike(0))?;
    let began = bases(own);
    if began.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        return Err(unlike(0));
    }
    let mut totals = Totals::default();
    for rank in 0..turns.nranks() {
        let theirs = alone(algorithm, turns.nranks(), RankId(rank)).map_err(Asymmetric::Faulty)?;
        let theirs = theirs.ok_or_else(|| unlike(rank))?;
        let same = (&own.scratch, own.root, own.multiple)
            == (&theirs.scratch, theirs.root, theirs.multiple)
            && own.demands == theirs.demands
            && bases(&theirs) == began
            // A finer cut has no place on the grid of rank 0.
            && theirs.regions.iter().all(|region| space.holds(region));
        let parts = same.then(|| Parts::of(&theirs, &space, rank)).flatten();
        if parts.is_none_or(|parts| !parts.are(&mine, &space, turns.back(rank))) {
            return Err(unlike(rank));
        }
        let messages = crate::optimize::join::messages(&theirs);
        totals.ops += theirs.ops.len() as u64;
        totals.messages += messages.messages;
        totals.pieces += messages.pieces;
    }
    Ok(Representative { own: own.clone(), turns: turns.clone(), way: Way::Compared, totals, space })
}

/// Returns the positions at which the data of scratch slots begins, of which each scratch buffer must have one.
fn bases(own: &Schedule) -> Vec<(Buffer, Rat)> {
    let scratch = |region: &&Region| matches!(region.buffer, Buffer::Scratch(_));
    let all = own.regions.iter().filter(scratch).map(|region| (region.buffer, region.base));
    let mut all: Vec<_> = all.collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// A signal, with its ends as turns from the rank that has the op.
type Signal = (OpKind, SignalKind, [u32; 2], Vec<i64>);

/// A signal, or the moves between two signals: the other of the two is empty.
type Segment = (MoveSet, Option<Signal>);

/// The ops of one rank: for each stream its number, and its signals and moves in their order.
struct Parts(Vec<(u32, Vec<Segment>)>);

impl Parts {
    /// Returns the parts of a rank's ops; `None` where the order of moves matters.
    fn of(own: &Schedule, space: &Space, rank: u32) -> Option<Self> {
        let of = |stream: &Stream| {
            let mut parts = Vec::new();
            let mut moves = Vec::new();
            for at in (stream.first.0..stream.first.0 + stream.len).map(OpId) {
                let op = own.op(at);
                if op.kind == OpKind::Move {
                    moves.push(at);
                    continue;
                }
                split(own, space, &mut moves, rank, &mut parts)?;
                let Channel { from, to, kind, lane } = *own.channel(op);
                let ends = [from, to].map(|end| space.turns.turn_between(rank, end.0));
                // Between a stream and its child, the lane is the number of the child.
                let lane = if kind.has_lane() {
                    own.lanes[lane.index()].clone()
                } else {
                    vec![lane.0.into()]
                };
                parts.push((MoveSet::default(), Some((op.kind, kind, ends, lane))));
            }
            split(own, space, &mut moves, rank, &mut parts)?;
            Some((stream.index, parts))
        };
        own.streams.iter().map(of).collect::<Option<_>>().map(Self)
    }

    /// Whether a turn takes these parts to others.
    fn are(&self, others: &Self, space: &Space, by: u32) -> bool {
        self.0.len() == others.0.len()
            && self.0.iter().zip(&others.0).all(|((index, parts), (other, theirs))| {
                index == other
                    && parts.len() == theirs.len()
                    && parts.iter().zip(theirs).all(|((moves, signal), (set, other))| {
                        signal == other && moves.turned(space, by) == *set
                    })
            })
    }
}

/// Adds the moves since the last signal as one set, or one by one where their order matters.
fn split(
    own: &Schedule,
    space: &Space,
    moves: &mut Vec<OpId>,
    rank: u32,
    parts: &mut Vec<Segment>,
) -> Option<()> {
    if moves.is_empty() {
        return Some(());
    }
    match MoveSet::new(own, space, moves.iter().copied(), rank) {
        Some(set) => parts.push((set, None)),
        None => {
            for at in moves.iter() {
                parts.push((MoveSet::new(own, space, std::iter::once(*at), rank)?, None));
            }
        }
    }
    moves.clear();
    Some(())
}
