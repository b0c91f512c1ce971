//! The GPUs that are the ranks of a topology: their maker and model, as a file, a text or the command line names them.

use std::fmt;
use std::ops::RangeInclusive;

use std::collections::{BTreeMap, BTreeSet};

use super::{Fabric, NodeId, NodeKind};
use roundelay_base::ids::RankId;

/// The CUDA capabilities that a text may name.
pub const CAPABILITIES: RangeInclusive<u32> = 30..=999;

/// The GPUs of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Gpus {
    /// Their maker and model.
    pub model: GpuModel,
    /// The most ranks that are parts of one GPU, and share its memory.
    pub parts: u32,
}

/// The maker and model of GPUs, the lowest one where they differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GpuModel {
    /// NVIDIA's, of this compute capability: 90 for Hopper.
    Cuda(u32),
    /// AMD's, of this number where it is known: 0x942 for `gfx942`.
    Amd(Option<u32>),
}

impl GpuModel {
    /// Returns NVIDIA's model of a compute capability; `None` where no GPU can have it.
    pub fn cuda(capability: i64) -> Option<Self> {
        u32::try_from(capability).ok().filter(|sm| CAPABILITIES.contains(sm)).map(Self::Cuda)
    }

    /// Returns AMD's model of a name: `gfx` and three or four digits of base 16, such as `gfx942`.
    pub fn amd(name: &str) -> Option<Self> {
        let is_name = name.starts_with("gfx") && !name.contains(':');
        gfx(name).filter(|_| is_name).map(|model| Self::Amd(Some(model)))
    }
}

/// Returns the number of a model of AMD's, such as 0x942; RCCL writes `gfx942:sramecc+`, and in older files 910 for
/// `gfx90a`.
pub(super) fn gfx(gcn: &str) -> Option<u32> {
    let digits = gcn.strip_prefix("gfx").unwrap_or(gcn).split(':').next().unwrap_or_default();
    let number = u32::from_str_radix(digits, 16).ok();
    let number = number.filter(|_| (3..=4).contains(&digits.len()) && !digits.starts_with('+'));
    number.map(|model| if model == 0x910 { 0x90a } else { model })
}

impl fmt::Display for GpuModel {
    /// Writes the model as topologies and `--assume` name it: `sm=90` or `gfx942`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cuda(sm) => write!(f, "sm={sm}"),
            Self::Amd(Some(model)) => write!(f, "gfx{model:x}"),
            Self::Amd(None) => f.write_str("gfx"),
        }
    }
}

/// The switches that fold and copy data of some ranks on its way, one or a tree of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReducingTree {
    /// The switch above each rank, and above each switch but the root.
    above: BTreeMap<NodeId, NodeId>,
    root: NodeId,
}

impl ReducingTree {
    /// Returns the switch above all ranks.
    pub fn root(&self) -> NodeId {
        self.root
    }

    /// Returns for each of some ranks the switch at which its data joins that of the ranks before it: the root for the first
    /// one. The other way round, the switch from which its copy parts from theirs.
    pub fn joins(&self, ranks: impl Iterator<Item = RankId>) -> impl Iterator<Item = NodeId> {
        let mut met = BTreeSet::new();
        ranks.filter_map(move |rank| {
            let mut at = *self.above.get(&rank.into())?;
            while met.insert(at) && at != self.root {
                at = self.above[&at];
            }
            Some(at)
        })
    }
}

impl Fabric {
    /// The GPUs, where the ranks are GPUs of a known model.
    pub fn gpus(&self) -> Option<Gpus> {
        self.gpus
    }

    /// Whether a node folds and copies data on the way: a switch that the topology's text or file says to reduce, and
    /// NVIDIA's switches of NVLink from compute capability 9.0 on. Ranks that share a GPU cannot use the latter, as a GPU is
    /// in a multicast group once.
    fn reduces(&self, node: NodeId) -> bool {
        let hopper = |gpus: &Gpus| matches!(gpus.model, GpuModel::Cuda(90..)) && gpus.parts == 1;
        let is_nvswitch = self.nodes()[node.index()].kind == NodeKind::NvSwitch;
        is_nvswitch && self.gpus.as_ref().is_some_and(hopper) || self.reducing.contains(&node)
    }

    /// Returns the switch that folds and copies data of some ranks on its way: one to which all of them are linked, or the
    /// one switch of a network that all of them reach, as through PCI and their network cards. `None` where there is no such
    /// switch; [`Fabric::reducing_tree`] has trees of switches that each reduce a part.
    pub fn reducing_switch(&self, ranks: &[RankId]) -> Option<NodeId> {
        let (first, others) = ranks.split_first()?;
        let mut linked = self.out((*first).into()).iter().map(|link| link.to);
        let joins = |rank: &RankId, node| self.out((*rank).into()).iter().any(|l| l.to == node);
        let linked =
            linked.find(|to| self.reduces(*to) && others.iter().all(|rank| joins(rank, *to)));
        let is_alone = |node| self.out(node).iter().all(|link| !self.reduces(link.to));
        let reaches = |node| ranks.iter().all(|rank| self.reach.behind(node, (*rank).into()));
        let mut behind = self.reducing.iter().copied();
        linked.or_else(|| behind.find(|node| is_alone(*node) && reaches(*node)))
    }

    /// Returns the switches that fold and copy data of some ranks on its way: the one of [`Fabric::reducing_switch`], or a
    /// tree, in which the ranks below a switch have one sum on its way up, as InfiniBand's switches have it. `None` where
    /// some rank has no switch that reduces, or no root is above all of them.
    pub fn reducing_tree(&self, ranks: &[RankId]) -> Option<ReducingTree> {
        if let Some(root) = self.reducing_switch(ranks) {
            let above = ranks.iter().map(|rank| ((*rank).into(), root)).collect();
            return Some(ReducingTree { above, root });
        }
        let mut above: BTreeMap<NodeId, NodeId> = BTreeMap::new();
        let mut level: BTreeSet<NodeId> = ranks.iter().map(|rank| (*rank).into()).collect();
        loop {
            let next: BTreeMap<NodeId, Vec<NodeId>> = level
                .iter()
                .map(|node| {
                    let links = self.out(*node).iter().map(|link| link.to);
                    let is_new = |to: &NodeId| !above.contains_key(to) && !level.contains(to);
                    (*node, links.filter(|to| self.reduces(*to) && is_new(to)).collect())
                })
                .collect();
            let common = |to: &&NodeId| next.values().all(|switches| switches.contains(to));
            let root = next.values().next()?.iter().find(common).copied();
            for (node, switches) in &next {
                above.insert(*node, root.or(switches.first().copied())?);
            }
            if let Some(root) = root {
                return Some(ReducingTree { above, root });
            }
            level = level.iter().map(|node| above[node]).collect();
        }
    }

    /// Whether a switch of the topology folds and copies data of two or more of the first `nranks` ranks on the way.
    pub fn has_reducing_switch(&self, nranks: u32) -> bool {
        let links = self.links().iter().take_while(|link| link.from.0 < nranks);
        let mut switches: Vec<_> = links.map(|link| link.to).collect();
        switches.sort_unstable();
        let several =
            |node| self.reach.ranks(node).iter().filter(|rank| rank.0 < nranks).count() > 1;
        switches.windows(2).any(|pair| pair[0] == pair[1] && self.reduces(pair[0]))
            || self.reducing.iter().any(|node| several(*node))
    }

    /// The same topology, each switch of which reduces.
    #[must_use]
    pub fn with_reducing_switches(mut self) -> Self {
        let switches = self
            .nodes
            .iter()
            .zip(0..)
            .filter(|(node, _)| matches!(node.kind, NodeKind::NvSwitch | NodeKind::Net));
        self.reducing = switches.map(|(_, id)| NodeId(id)).collect();
        self
    }

    /// The same topology, each rank of which is a GPU of a model.
    #[must_use]
    pub fn with_gpus(mut self, model: GpuModel) -> Self {
        self.gpus = Some(Gpus { model, parts: 1 });
        self
    }
}
