//! The groups of ranks whose blocks a switch reaches at one address.

use roundelay_core::ids::RankId;

use super::super::error::Error;
use super::super::multicast::Multicast;
use super::super::shared_block::SharedBlock;
use super::agreement::agree;
use super::rank::CudaRank;

/// Has a switch reach the blocks of each group of ranks, and returns the memory of those that this rank is one of. All ranks
/// call it.
pub(super) fn reach_groups(
    rank: &CudaRank,
    groups: &[Vec<RankId>],
    block: &SharedBlock,
    bytes: usize,
) -> Result<Vec<Option<Multicast>>, Error> {
    let (world, device, mine) = (&*rank.shared().world, &rank.device, rank.rank());
    let mut reached = Vec::new();
    for group in groups {
        let leads = group[0] == mine;
        let made = leads.then(|| Multicast::create(device, group.len(), bytes)).transpose();
        let (made, _) = agree(world, made, |_| Vec::new())?;
        let files: Vec<_> = made.as_ref().and_then(Multicast::descriptor).into_iter().collect();
        let mut files = world.exchange_descriptors(&files)?;
        let object = if group.contains(&mine) && !leads {
            Multicast::import(device, files[group[0].index()].pop(), bytes).map(Some)
        } else {
            Ok(made)
        };
        let joined = object.and_then(|object| {
            object.as_ref().map_or(Ok(()), |object| object.join(device))?;
            Ok(object)
        });
        // The driver binds memory when all devices have joined, and waits for them: none may lack then.
        let (mut object, _) = agree(world, joined, |_| Vec::new())?;
        let bound = object.as_mut().map_or(Ok(()), |object| object.bind(device, block));
        agree(world, bound, |()| Vec::new())?;
        reached.push(object);
    }
    Ok(reached)
}
