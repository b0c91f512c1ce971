//! What the ranks of a schedule share while it is built: interned regions, channels and lanes, scratch,
//! budgets, and the problems found so far.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use super::builder::fifo::Slots;
use super::builder::frame::{Bound, CallOf};
use super::builder::{Builder, Stop};
use super::demands::Demands;
use super::groups::{Groups, Partition};
use super::record::Record;
use super::ring::{Ring, Seating};
use super::rings::Rings;
use super::tree::{Rooted, Tree};
use super::{Algorithm, Buffer, Channel, Op, OpKind, Operand, Region, Schedule, Scratch, Stream};
use crate::collective::Collective;
use crate::diagnostics::{Code, Finding};
use crate::ids::{ChannelId, LaneId, OpId, RankId, RegionId, ScratchId};
use crate::topology::shape::Shape;
use crate::topology::{Problem, Topology};

/// Problems kept; more of the same kind help nobody.
const MAX_PROBLEMS: usize = 16;

/// The tables of one schedule in the making.
pub(crate) struct Tables {
    pub(crate) algorithm: String,
    pub(crate) collective: Collective,
    pub(crate) nranks: u32,
    pub(crate) root: RankId,
    pub(crate) scratch: Vec<Scratch>,
    pub(crate) operands: Vec<Operand>,
    /// Those of a fifo.
    pub(crate) slots: Slots,
    regions: Interner<Region>,
    channels: Interner<Channel>,
    lanes: Interner<Vec<i64>>,
    seatings: Vec<(Ring, u32, Arc<Seating>)>,
    rings: Vec<(Rings, u32, Arc<[Seating]>)>,
    topologies: Vec<(Shape, Arc<Topology>)>,
    /// With the number of ranks, which need not be all.
    trees: Vec<((Tree, u32), Arc<Rooted>)>,
    groups: Vec<((Groups, u32), Arc<Partition>)>,
    pub(crate) demands: Demands,
    /// Who first made a call, and on which regions.
    pub(crate) calls: HashMap<CallOf, (RankId, (Bound, Bound))>,
    /// Scratch by who declares it: the calls that lead there, the lane, and which of its declarations.
    pub(crate) declared: HashMap<(Vec<u32>, LaneId, usize), ScratchId>,
    /// What was asked, where that is wanted.
    pub(crate) record: Option<Record>,
    /// The topology that the whole run is put on.
    pub(crate) placed: Option<Arc<Topology>>,
    limits: Limits,
    steps: u64,
    ops: u64,
    problems: Vec<Finding>,
}

/// How much work a schedule may be: counted, not timed, so the same everywhere.
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
    /// For a macro, which runs unoptimized and at every keystroke in an editor.
    pub const EXPANSION: Self = Self { steps: 1 << 12, ops: 1 << 14 };
}

impl Tables {
    /// Streams of a rank.
    pub(crate) const STREAM_LIMIT: usize = 1 << 10;
    /// Slots of a scratch buffer.
    pub(crate) const SLOT_LIMIT: u64 = 1 << 20;
    /// Ranks of a schedule.
    pub(crate) const RANK_LIMIT: u32 = 1 << 16;

    fn new(algorithm: &str, collective: Collective, nranks: u32, limits: Limits) -> Self {
        let mut lanes = Interner::default();
        lanes.intern(Vec::new());
        Self {
            algorithm: algorithm.to_owned(),
            collective,
            nranks,
            root: RankId(0),
            scratch: Vec::new(),
            operands: Vec::new(),
            slots: Slots::default(),
            regions: Interner::default(),
            channels: Interner::default(),
            lanes,
            seatings: Vec::new(),
            rings: Vec::new(),
            topologies: Vec::new(),
            trees: Vec::new(),
            groups: Vec::new(),
            demands: Demands::default(),
            calls: HashMap::new(),
            declared: HashMap::new(),
            record: None,
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

    pub(crate) fn seating(&mut self, ring: &Ring, nranks: u32) -> Result<Arc<Seating>, Problem> {
        let known = self.seatings.iter().find(|(known, n, _)| *n == nranks && known == ring);
        if let Some((.., seating)) = known {
            return Ok(seating.clone());
        }
        let seating = Arc::new(ring.seat(nranks)?);
        self.seatings.push((ring.clone(), nranks, seating.clone()));
        Ok(seating)
    }

    pub(crate) fn seatings(
        &mut self,
        rings: &Rings,
        nranks: u32,
    ) -> Result<Arc<[Seating]>, Problem> {
        let known = self.rings.iter().find(|(known, n, _)| *n == nranks && known == rings);
        if let Some((.., seatings)) = known {
            return Ok(seatings.clone());
        }
        let seatings: Arc<[Seating]> = rings.seat(nranks)?.into();
        self.rings.push((rings.clone(), nranks, seatings.clone()));
        Ok(seatings)
    }

    pub(crate) fn tree(&mut self, tree: &Tree, nranks: u32) -> Result<Arc<Rooted>, Problem> {
        let known = |((known, n), _): &&(_, _)| (known, *n) == (tree, nranks);
        if let Some((_, rooted)) = self.trees.iter().find(known) {
            return Ok(Arc::clone(rooted));
        }
        let rooted = Arc::new(tree.grow(nranks)?);
        self.trees.push(((tree.clone(), nranks), rooted.clone()));
        Ok(rooted)
    }

    pub(crate) fn groups(
        &mut self,
        groups: &Groups,
        nranks: u32,
    ) -> Result<Arc<Partition>, Problem> {
        let known = |((known, n), _): &&(_, _)| (known, *n) == (groups, nranks);
        if let Some((_, partition)) = self.groups.iter().find(known) {
            return Ok(Arc::clone(partition));
        }
        let partition = Arc::new(groups.divide(nranks)?);
        self.groups.push(((groups.clone(), nranks), partition.clone()));
        Ok(partition)
    }

    /// The topology of a shape, laid out once for all ranks.
    pub(crate) fn topology(&mut self, shape: Shape) -> Result<Arc<Topology>, Problem> {
        if let Some((_, topology)) = self.topologies.iter().find(|(known, _)| *known == shape) {
            return Ok(topology.clone());
        }
        let topology = Arc::new(shape.build()?);
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

    /// A region in the author's words.
    pub(crate) fn describe_area(&self, region: &Region) -> String {
        let name = match region.buffer {
            Buffer::Input => "input",
            Buffer::Output => "output",
            Buffer::Scratch(id) => &self.scratch[id.index()].name,
        };
        format!("{name}[{}..{}]", region.lo, region.hi)
    }

    /// A region of a rank in the author's words.
    pub(crate) fn describe(&self, rank: RankId, region: &Region) -> String {
        format!("rank {rank} {}", self.describe_area(region))
    }

    /// Records a problem; the same one at another rank only once.
    pub(crate) fn fail(&mut self, rank: RankId, mut finding: Finding) {
        let known =
            |f: &Finding| (f.code, f.at, f.exact) == (finding.code, finding.at, finding.exact);
        if self.problems.len() < MAX_PROBLEMS && !self.problems.iter().any(known) {
            finding.notes.insert(0, format!("found at rank {rank}"));
            self.problems.push(finding);
        }
    }

    /// Whether going on with the next rank can only repeat what was found.
    fn hopeless(&self) -> bool {
        self.problems.iter().any(|f| f.code == Code::StepLimit || f.code.refuses())
    }
}

/// The schedule of `algorithm` for `nranks` ranks, put on `topology` if there is one.
pub(crate) fn build<A: Algorithm + ?Sized>(
    algorithm: &A,
    nranks: u32,
    limits: Limits,
    topology: Option<&Arc<Topology>>,
) -> Result<Schedule, Vec<Finding>> {
    Ok(lay_out(algorithm, nranks, limits, topology, None)?.0)
}

/// The schedule of `algorithm` for `nranks` ranks, and the record of what its program asked.
pub(crate) fn build_recording<A: Algorithm + ?Sized>(
    algorithm: &A,
    nranks: u32,
) -> Result<(Schedule, Record), Vec<Finding>> {
    let (schedule, record) =
        lay_out(algorithm, nranks, Limits::FULL, None, Some(Record::default()))?;
    Ok((schedule, record.unwrap_or_default()))
}

fn lay_out<A: Algorithm + ?Sized>(
    algorithm: &A,
    nranks: u32,
    limits: Limits,
    topology: Option<&Arc<Topology>>,
    record: Option<Record>,
) -> Result<(Schedule, Option<Record>), Vec<Finding>> {
    if nranks == 0 || nranks > Tables::RANK_LIMIT {
        let title = format!("nranks is {nranks}, and must be in 1..={}", Tables::RANK_LIMIT);
        return Err(vec![Finding::new(Code::NoRanks, crate::ids::SpanId(0), title)]);
    }
    let mut tables = Tables::new(algorithm.name(), algorithm.collective(), nranks, limits);
    tables.record = record;
    tables.placed = topology.or(algorithm.placed_on()).cloned();
    let mut assembly = Assembly::default();
    for rank in (0..nranks).map(RankId) {
        let mut builder = Builder::new(&mut tables, rank);
        // What stopped a rank has been recorded; the next rank may have more to say.
        let built = builder.on_placed().and_then(|()| algorithm.build(&mut builder));
        let (Ok(()) | Err(Stop)) = built.and_then(|()| builder.end_fifo());
        let streams = builder.into_streams();
        if tables.hopeless() {
            break;
        }
        assembly.add(rank, streams, &mut tables);
    }
    if !tables.problems.is_empty() {
        return Err(tables.problems);
    }
    let mut record = tables.record.take();
    if let Some(record) = &mut record {
        record.complete(&tables.declared, tables.slots.links(), &tables.lanes.items);
    }
    let schedule = assembly.finish(tables, algorithm);
    debug_assert_eq!(
        super::legality::check(&schedule),
        Ok(()),
        "the builder makes legal schedules"
    );
    Ok((schedule, record))
}

/// Streams one after the other, and tables in the order of their first use: so equal programs give equal
/// schedules whichever way they were laid out, and neighbors in a stream are neighbors in memory.
#[derive(Default)]
struct Assembly {
    streams: Vec<Stream>,
    ops: Vec<Op>,
    operands: Vec<Operand>,
    regions: Renumber,
    channels: Renumber,
}

impl Assembly {
    /// Adds a rank while its ops are still at hand; their operands are no longer needed then.
    fn add(&mut self, rank: RankId, streams: Vec<Vec<Op>>, tables: &mut Tables) {
        for (index, list) in streams.into_iter().enumerate() {
            self.streams.push(Stream {
                rank,
                index: index as u32,
                first: OpId(self.ops.len() as u32),
                len: list.len() as u32,
            });
            for mut op in list {
                if op.kind == OpKind::Move {
                    let used = &tables.operands[op.arg as usize..][..(op.srcs + op.dsts) as usize];
                    op.arg = self.operands.len() as u32;
                    self.operands.extend(used.iter().map(|operand| Operand {
                        region: RegionId(self.regions.id(operand.region.0)),
                        ..*operand
                    }));
                } else {
                    op.arg = self.channels.id(op.arg);
                }
                self.ops.push(op);
            }
        }
        tables.operands.clear();
    }

    fn finish<A: Algorithm + ?Sized>(self, tables: Tables, algorithm: &A) -> Schedule {
        let mut lanes = Renumber::default();
        lanes.id(0);
        let mut channels = self.channels.pick(&tables.channels.items);
        for channel in &mut channels {
            if channel.kind.has_lane() {
                channel.lane = LaneId(lanes.id(channel.lane.0));
            }
        }
        Schedule {
            algorithm: tables.algorithm,
            collective: tables.collective,
            nranks: tables.nranks,
            root: tables.root,
            out_of_place: algorithm.out_of_place(),
            scratch: tables.scratch,
            streams: self.streams,
            ops: self.ops,
            operands: self.operands,
            regions: self.regions.pick(&tables.regions.items),
            channels,
            lanes: lanes.pick(&tables.lanes.items),
            locations: algorithm.locations().to_vec(),
            file: algorithm.file().into(),
            demands: Demands {
                rings: tables.demands.topology.is_some()
                    && !(tables.seatings.is_empty() && tables.rings.is_empty()),
                ..tables.demands
            },
        }
    }
}

/// A table in the order of first use.
#[derive(Default)]
pub(crate) struct Renumber {
    ids: Vec<u32>,
    used: Vec<u32>,
}

impl Renumber {
    pub(crate) fn id(&mut self, old: u32) -> u32 {
        let at = old as usize;
        if at >= self.ids.len() {
            self.ids.resize(at + 1, u32::MAX);
        }
        if self.ids[at] == u32::MAX {
            self.ids[at] = self.used.len() as u32;
            self.used.push(old);
        }
        self.ids[at]
    }

    pub(crate) fn pick<T: Clone>(&self, items: &[T]) -> Vec<T> {
        self.used.iter().map(|old| items[*old as usize].clone()).collect()
    }
}

/// The lane that signals travel on: the values of the `parallel`s around, from the outermost on; an empty list
/// outside.
#[derive(Default)]
pub(crate) struct Lane {
    values: Vec<i64>,
    /// Of each `parallel` around.
    ids: Vec<LaneId>,
}

impl Lane {
    /// Lane 0 is the one outside every `parallel`.
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

/// Equal values get equal ids, in order of first use.
pub(crate) struct Interner<T> {
    pub(crate) items: Vec<T>,
    ids: HashMap<T, u32, BuildHasherDefault<Mix>>,
    /// Asked for last: the operands of one op have much in common.
    last: u32,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self { items: Vec::new(), ids: HashMap::default(), last: 0 }
    }
}

impl<T: Clone + Eq + std::hash::Hash> Interner<T> {
    pub(crate) fn intern(&mut self, item: T) -> u32 {
        if self.items.get(self.last as usize) == Some(&item) {
            return self.last;
        }
        self.last = match self.ids.get(&item) {
            Some(&id) => id,
            None => {
                let id = self.items.len() as u32;
                self.items.push(item.clone());
                self.ids.insert(item, id);
                id
            }
        };
        self.last
    }
}

/// Multiply-and-rotate hashing: keys are small integers of our own making, so flooding is no concern.
#[derive(Default)]
pub(crate) struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(23) ^ value).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(u64::from(value));
    }

    fn write_u8(&mut self, value: u8) {
        self.write_u64(u64::from(value));
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    fn write_i64(&mut self, value: i64) {
        self.write_u64(value as u64);
    }

    fn write_isize(&mut self, value: isize) {
        self.write_u64(value as u64);
    }
}
