//! Assigns a distinct successor to every rank. The result falls apart into several rings, of which the heuristic
//! makes one. It is a module of its own, because its failure is a proof by itself.

use super::pairs::{Pairs, members};
use roundelay_base::ids::RankId;

/// Ranks that send, and all ranks that they may send to, which are fewer.
type Crowd = (Vec<RankId>, Vec<RankId>);

/// Returns each rank's successor. Ranks choose in `order`, the next in number first.
pub(super) fn successors(pairs: &Pairs, order: &[RankId]) -> Result<Vec<RankId>, Crowd> {
    let n = pairs.nranks() as usize;
    let mut next: Vec<Option<RankId>> = vec![None; n];
    let mut before: Vec<Option<RankId>> = vec![None; n];
    for &rank in order {
        let natural = RankId((rank.0 + 1) % pairs.nranks());
        if pairs.has(rank, natural) && before[natural.index()].is_none() {
            (next[rank.index()], before[natural.index()]) = (Some(natural), Some(rank));
        }
    }
    for &rank in order {
        if next[rank.index()].is_none() {
            augment(pairs, rank, &mut next, &mut before)?;
        }
    }
    Ok(next.into_iter().flatten().collect())
}

/// Finds a successor for `rank`, and new ones for the ranks that must give theirs up.
fn augment(
    pairs: &Pairs,
    rank: RankId,
    next: &mut [Option<RankId>],
    before: &mut [Option<RankId>],
) -> Result<(), Crowd> {
    let mut seen = pairs.set(&[]);
    let mut asked_by = vec![None; next.len()];
    let mut askers = vec![rank];
    let mut at = 0;
    while let Some(&asker) = askers.get(at) {
        at += 1;
        for (i, row) in pairs.row(asker).iter().enumerate() {
            let mut fresh = row & !seen[i];
            seen[i] |= fresh;
            while fresh != 0 {
                let to = RankId((i * 64) as u32 + fresh.trailing_zeros());
                fresh &= fresh - 1;
                asked_by[to.index()] = Some(asker);
                if let Some(owner) = before[to.index()] {
                    askers.push(owner);
                    continue;
                }
                let mut to = Some(to);
                while let Some(taken) = to {
                    let Some(asker) = asked_by[taken.index()] else { break };
                    to = next[asker.index()].replace(taken);
                    before[taken.index()] = Some(asker);
                    if asker == rank {
                        break;
                    }
                }
                return Ok(());
            }
        }
    }
    askers.sort_unstable();
    Err((askers, members(&seen).collect()))
}
