//! A move as ops of the executor. A `put` and a `copy` write one place; a reduction reads a chunk of its own rank
//! first, then chunks of the rank or of peers, and writes a chunk of the rank and chunks of peers.

use super::execution_plan::{Chunk, Data};

/// The reason for which the executor has no ops for a move.
pub(super) type UnsupportedMove = &'static str;

/// Returns the ops of a move of rank `own`; `spare` returns room for a partial sum.
///
/// A sum of two operands has the same bits in either order, so the first two sources may change places.
///
/// # Errors
/// A move between two peers.
pub(super) fn ops(
    own: u32,
    srcs: &[Chunk],
    dsts: &[Chunk],
    spare: &mut dyn FnMut(u32) -> Chunk,
) -> Result<Vec<Data>, UnsupportedMove> {
    let (near, far): (Vec<Chunk>, Vec<Chunk>) = dsts.iter().partition(|dst| dst.rank == own);
    let mut all = Vec::new();
    if let [src] = srcs {
        if src.rank == own {
            spread(*src, &near, &far, &mut all);
            return Ok(all);
        }
        let Some((first, rest)) = near.split_first() else {
            return Err("a move from peer to peer");
        };
        all.push(get(*src, *first));
        spread(*first, rest, &far, &mut all);
        return Ok(all);
    }
    let size = srcs.first().map_or(0, |src| src.size);
    let (result, rest) = match near.split_first() {
        Some((first, rest)) => (*first, rest),
        None => (spare(size), &[][..]),
    };
    let mut sources = srcs.to_vec();
    if sources[0].rank != own && sources[1].rank == own {
        sources.swap(0, 1);
    }
    let mut sum = sources.remove(0);
    let runs = runs(own, &sources);
    // A partial sum must not overwrite a later source.
    let later = |sum: &Chunk| sources.iter().any(|src| meet(src, sum));
    let mut between = None;
    let mut partial = |sum: Chunk| {
        if later(&sum) { *between.get_or_insert_with(|| spare(size)) } else { sum }
    };
    if sum.rank != own {
        let place = partial(result);
        all.push(get(sum, place));
        sum = place;
    }
    let last = runs.len() - 1;
    for (turn, run) in runs.into_iter().enumerate() {
        let sends = turn == last && !far.is_empty();
        let name = match (run[0].rank == own, sends) {
            (true, false) => "re",
            (true, true) => "res",
            (false, false) => "rre",
            (false, true) => "rres",
        };
        let dst = if turn == last { result } else { partial(result) };
        let mut dsts = vec![dst];
        if sends {
            dsts.extend(&far);
        }
        all.push(Data { name, srcs: [&[sum][..], &run].concat(), dsts });
        sum = dst;
    }
    spread(result, rest, &[], &mut all);
    Ok(all)
}

/// Copies a chunk of the rank to other chunks of the rank and to peers.
fn spread(src: Chunk, near: &[Chunk], far: &[Chunk], all: &mut Vec<Data>) {
    for dst in near.iter().filter(|dst| **dst != src) {
        all.push(Data { name: "copy", srcs: vec![src], dsts: vec![*dst] });
    }
    if !far.is_empty() {
        all.push(Data { name: "put", srcs: vec![src; far.len()], dsts: far.to_vec() });
    }
}

fn get(src: Chunk, dst: Chunk) -> Data {
    Data { name: "get", srcs: vec![src], dsts: vec![dst] }
}

/// Groups successive sources that are all of the rank, or all of peers.
fn runs(own: u32, sources: &[Chunk]) -> Vec<Vec<Chunk>> {
    let runs = sources.chunk_by(|one, next| (one.rank == own) == (next.rank == own));
    runs.map(<[Chunk]>::to_vec).collect()
}

/// Whether two chunks have memory in common.
pub(super) fn meet(one: &Chunk, other: &Chunk) -> bool {
    (one.rank, one.memory) == (other.rank, other.memory)
        && one.index < other.index + other.size
        && other.index < one.index + one.size
}
