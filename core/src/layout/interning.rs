//! The state that the ranks of a schedule share while it is built: interned regions, channels and lanes, scratch,
//! budgets, and the problems found so far.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::call_identity::{BoundBuffer, CallOf};
use super::slots::FifoSlots;
use super::turning::Turning;
use crate::collective::Collective;
use crate::diagnostics::{Code, Finding};
use crate::ids::{ChannelId, LaneId, RankId, RegionId, ScratchId, SpanId};
use crate::schedule::demands::Demands;
use crate::schedule::interner::Interner;
use crate::schedule::{Buffer, Channel, Operand, Region, Scratch};
use crate::topology::Topology;
use crate::values::groups::{Groups, Partition};
use crate::values::ring::{Ring, RingOrder};
use crate::values::rings::Rings;
use crate::values::tree::{Rooted, Tree};
use crate::values::trees::{Forest, Trees};
use roundelay_topology::Problem;
use roundelay_topology::shape::Shape;

/// The most problems kept; more problems of one kind do not help.
const MAX_PROBLEMS: usize = 16;

/// The tables of one schedule that is being built.
pub(crate) struct Tables {
    pub(crate) algorithm: String,
    pub(crate) collective: Collective,
    pub(crate) nranks: u32,
    pub(crate) root: RankId,
    pub(crate) scratch: Vec<Scratch>,
    pub(crate) operands: Vec<Operand>,
    /// The slots of fifos.
    pub(crate) slots: FifoSlots,
    pub(super) regions: Interner<Region>,
    pub(super) channels: Interner<Channel>,
    pub(super) lanes: Interner<Vec<i64>>,
    pub(super) ring_orders: Vec<(Ring, u32, Arc<RingOrder>)>,
    pub(super) rings: Vec<(Rings, u32, Arc<[RingOrder]>)>,
    topologies: Vec<(Shape, Arc<Topology>)>,
    /// Each with the number of ranks, which need not be all ranks.
    trees: Vec<(Tree, u32, Arc<Rooted>)>,
    forests: Vec<(Trees, u32, Arc<Forest>)>,
    groups: Vec<(Groups, u32, Arc<Partition>)>,
    pub(crate) demands: Demands,
    /// A number that every count is a multiple of.
    pub(crate) multiple: u64,
    /// The rank that made a call first, and the regions of that call.
    pub(crate) calls: FxHashMap<CallOf, (RankId, (BoundBuffer, BoundBuffer))>,
    /// Scratch by its declaration: the calls that lead to it, the lane, and the number of the declaration.
    pub(crate) declared: FxHashMap<(Vec<u32>, LaneId, usize), ScratchId>,
    /// The changes of values from rank to rank, where a walk follows them.
    pub(crate) turning: Option<Turning>,
    /// The topology that the whole run was placed on.
    pub(crate) placed: Option<Arc<Topology>>,
    limits: Limits,
    steps: u64,
    ops: u64,
    pub(super) problems: Vec<Finding>,
}

/// Returns the value of a key for that many ranks; each is made once.
fn once<K: Clone + PartialEq, V: Clone>(
    known: &mut Vec<(K, u32, V)>,
    key: &K,
    nranks: u32,
    make: impl FnOnce() -> Result<V, Problem>,
) -> Result<V, Problem> {
    if let Some((.., value)) = known.iter().find(|(known, n, _)| *n == nranks && known == key) {
        return Ok(value.clone());
    }
    let value = make()?;
    known.push((key.clone(), nranks, value.clone()));
    Ok(value)
}

/// The most work that a schedule may be. Work is counted, not timed, so the limit is equal on all machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Iterations of all loops on all ranks.
    pub steps: u64,
    /// Ops of all ranks.
    pub ops: u64,
}

impl Limits {
    /// The limits for plans and the command line.
    pub const FULL: Self = Self { steps: 1 << 26, ops: 1 << 26 };
    /// The limits for a macro, which runs unoptimized and at every keystroke in an editor.
    pub const EXPANSION: Self = Self { steps: 1 << 12, ops: 1 << 14 };

    /// Returns the message for a schedule with more ops.
    pub(crate) fn too_many_ops(self) -> String {
        format!("the schedule has more than {} ops", self.ops)
    }
}

impl Tables {
    /// The most streams of a rank.
    pub(crate) const STREAM_LIMIT: usize = 1 << 10;
    /// The most slots of a scratch buffer.
    pub(crate) const SLOT_LIMIT: u64 = 1 << 20;
    /// The most ranks of a schedule.
    pub(crate) const RANK_LIMIT: u32 = crate::schedule::RANK_LIMIT;

    pub(super) fn new(
        algorithm: &str,
        collective: Collective,
        nranks: u32,
        limits: Limits,
    ) -> Self {
        let mut lanes = Interner::default();
        lanes.intern(Vec::new());
        Self {
            algorithm: algorithm.to_owned(),
            collective,
            nranks,
            root: RankId(0),
            scratch: Vec::new(),
            operands: Vec::new(),
            slots: FifoSlots::default(),
            regions: Interner::default(),
            channels: Interner::default(),
            lanes,
            ring_orders: Vec::new(),
            rings: Vec::new(),
            topologies: Vec::new(),
            trees: Vec::new(),
            forests: Vec::new(),
            groups: Vec::new(),
            demands: Demands::default(),
            multiple: 1,
            calls: FxHashMap::default(),
            declared: FxHashMap::default(),
            turning: None,
            placed: None,
            limits,
            steps: 0,
            ops: 0,
            problems: Vec::new(),
        }
    }

    pub(crate) fn region(&mut self, region: Region) -> RegionId {
        RegionId(self.regions.intern(region))
    }

    pub(crate) fn channel(&mut self, channel: Channel) -> ChannelId {
        ChannelId(self.channels.intern(channel))
    }

    pub(crate) fn ring_order(
        &mut self,
        ring: &Ring,
        nranks: u32,
    ) -> Result<Arc<RingOrder>, Problem> {
        once(&mut self.ring_orders, ring, nranks, || Ok(Arc::new(ring.resolve(nranks)?)))
    }

    pub(crate) fn ring_orders(
        &mut self,
        rings: &Rings,
        nranks: u32,
    ) -> Result<Arc<[RingOrder]>, Problem> {
        once(&mut self.rings, rings, nranks, || Ok(rings.resolve(nranks)?.into()))
    }

    pub(crate) fn tree(&mut self, tree: &Tree, nranks: u32) -> Result<Arc<Rooted>, Problem> {
        once(&mut self.trees, tree, nranks, || Ok(Arc::new(tree.grow(nranks)?)))
    }

    pub(crate) fn forest(&mut self, trees: &Trees, nranks: u32) -> Result<Arc<Forest>, Problem> {
        once(&mut self.forests, trees, nranks, || Ok(Arc::new(trees.grow(nranks)?)))
    }

    pub(crate) fn groups(
        &mut self,
        groups: &Groups,
        nranks: u32,
    ) -> Result<Arc<Partition>, Problem> {
        once(&mut self.groups, groups, nranks, || Ok(Arc::new(groups.divide(nranks)?)))
    }

    /// Returns the topology of a shape, laid out once for all ranks.
    pub(crate) fn topology(&mut self, shape: Shape) -> Result<Arc<Topology>, Problem> {
        if let Some((_, topology)) = self.topologies.iter().find(|(known, _)| *known == shape) {
            return Ok(topology.clone());
        }
        let topology = Arc::new(Topology::from(shape.build()?));
        self.topologies.push((shape, topology.clone()));
        Ok(topology)
    }

    pub(crate) fn spend(&mut self, steps: u64) -> bool {
        self.steps = self.steps.saturating_add(steps);
        self.steps <= self.limits.steps
    }

    pub(crate) fn count_op(&mut self) -> bool {
        self.ops += 1;
        self.ops <= self.limits.ops
    }

    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    pub(crate) fn input_units(&self, rank: RankId) -> u32 {
        self.collective.input_units(rank, self.nranks, self.root)
    }

    pub(crate) fn output_units(&self, rank: RankId) -> u32 {
        self.collective.output_units(rank, self.nranks, self.root)
    }

    /// Describes a region in the author's words.
    pub(crate) fn describe_area(&self, region: &Region) -> String {
        let name = match region.buffer {
            Buffer::Input => "input",
            Buffer::Output => "output",
            Buffer::Scratch(id) => &self.scratch[id.index()].name,
        };
        format!("{name}[{}..{}]", region.lo, region.hi)
    }

    /// Describes a region of a rank in the author's words.
    pub(crate) fn describe(&self, rank: RankId, region: &Region) -> String {
        format!("rank {rank} {}", self.describe_area(region))
    }

    /// Records a problem, unless an earlier rank had one at this statement already, which may be another form of it;
    /// returns whether it was recorded.
    pub(crate) fn fail(&mut self, rank: RankId, mut finding: Finding) -> bool {
        let ends = finding.code == Code::StepLimit || finding.code.refuses();
        let known = |f: &Finding| {
            let alike = !ends && f.at != SpanId(0) || f.code == finding.code;
            f.at == finding.at && alike
        };
        let new = self.problems.len() < MAX_PROBLEMS && !self.problems.iter().any(known);
        if new {
            finding.notes.insert(0, format!("found at rank {rank}"));
            self.problems.push(finding);
        }
        new
    }

    /// Adds the values of the loops around the last problem.
    pub(super) fn place_last(&mut self, values: &str) {
        let found = self.problems.last_mut().and_then(|problem| problem.notes.first_mut());
        if let Some(found) = found {
            *found = format!("{found} ({values})");
        }
    }

    /// Whether some numbers depend on other ranks: those of slots of a fifo, or of scratch of a callee.
    pub(super) fn numbers_together(&self) -> bool {
        let calls = self.declared.keys().any(|(path, _, _)| !path.is_empty());
        calls || self.slots.links().next().is_some()
    }

    /// Whether objects were laid out for all ranks at once, which each rank laid out alone would lay out again.
    pub(super) fn has_objects(&self) -> bool {
        !(self.ring_orders.is_empty()
            && self.rings.is_empty()
            && self.topologies.is_empty()
            && self.trees.is_empty()
            && self.forests.is_empty()
            && self.groups.is_empty())
    }

    /// Whether the next rank can only repeat the problems found.
    pub(super) fn hopeless(&self) -> bool {
        self.problems.iter().any(|f| f.code == Code::StepLimit || f.code.refuses())
    }
}

/// The lane of signals: the values of the enclosing `parallel`s, from the outermost on; an empty list outside of
/// them.
#[derive(Default)]
pub(crate) struct Lane {
    values: Vec<i64>,
    /// The lane of each enclosing `parallel`.
    ids: Vec<LaneId>,
}

impl Lane {
    /// Returns the lane; lane 0 is outside every `parallel`.
    pub(crate) fn id(&self) -> LaneId {
        self.ids.last().copied().unwrap_or_default()
    }

    pub(crate) fn push(&mut self, value: i64, tables: &mut Tables) {
        self.values.push(value);
        self.ids.push(LaneId(tables.lanes.intern(self.values.clone())));
    }

    pub(crate) fn pop(&mut self) {
        self.values.pop();
        self.ids.pop();
    }
}
