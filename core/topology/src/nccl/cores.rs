//! A machine without GPUs: its cores are the ranks, below the caches that they share and the memory of their node.
//!
//! NCCL's format has no element for a core, and its reader passes over elements that it does not know: a `<core>` stands
//! in an `<l3>` or in a `<cpu>`.

use super::core_ranks::CoreRanks;
use super::element::Element;
use super::graph::{Attachment, GraphReader};
use super::speeds;
use crate::{LinkKind, NodeId, NodeKind, Problem};

impl<'a> GraphReader<'a> {
    /// Adds the cores of a memory node, each below its cache where that is one of several caches with several cores. The
    /// islands are the caches, or else the memory nodes.
    pub(super) fn cores(&mut self, cpu: &'a Element, place: Attachment) -> Result<(), Problem> {
        let Some(mut ranks) = self.cores.take() else { return Ok(()) };
        let cores = |element: &'a Element| element.all("core").collect::<Vec<_>>();
        let caches: Vec<_> = cpu.all("l3").map(|cache| (cache, cores(cache))).collect();
        let split = caches.len() > 1 && caches.iter().any(|(_, cores)| cores.len() > 1);
        for (cache, cores) in caches {
            if !split {
                self.below_one(&mut ranks, &cores, place.parent)?;
                continue;
            }
            let name = self.named(format!("L3 {}", ranks.caches), place.host);
            let node = self.node(cache, name, NodeKind::Cache, Some(place.group))?;
            ranks.caches += 1;
            let all = speeds::CORE * cores.len().max(1) as u64;
            self.cable(place.parent, node, LinkKind::Memory, all);
            self.below_one(&mut ranks, &cores, node)?;
            ranks.island += 1;
        }
        self.below_one(&mut ranks, &cores(cpu), place.parent)?;
        ranks.island += u32::from(ranks.apart);
        self.cores = Some(ranks);
        Ok(())
    }

    /// Adds cores as ranks below a cache or a memory node.
    fn below_one(
        &mut self,
        ranks: &mut CoreRanks,
        cores: &[&Element],
        parent: NodeId,
    ) -> Result<(), Problem> {
        for core in cores {
            let node = self.rank(core)?;
            self.draft.group(node, ranks.island);
            self.cable(parent, node, LinkKind::Memory, speeds::CORE);
            ranks.count += 1;
        }
        Ok(())
    }
}
