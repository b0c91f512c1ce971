//! The traffic between ranks: every data move and every signal as a use of an ordered pair of ranks.

use super::{Op, OpKind, Operand, Region, Schedule, Stream};
use crate::ids::{OpId, RankId, RegionId};
use crate::rational::Rat;

/// One op's use of the link between two ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    /// The op.
    pub op: OpId,
    /// The rank that carries the op out.
    pub by: RankId,
    /// The rank that data or the signal comes from.
    pub from: RankId,
    /// The rank that data or the signal goes to.
    pub to: RankId,
    /// The data that passes, in units of the count; `None` for a signal. The destination of a reduce at another rank is
    /// read there, and does not travel: 0 units.
    pub units: Option<Rat>,
}

/// The messages between ranks: see [`Schedule::messages`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Messages {
    /// The number of messages.
    pub messages: u64,
    /// The number of pieces: at least one a message, which share its latency.
    pub pieces: u64,
}

impl Schedule {
    /// Returns every use of a link, in the order of the ops. A signal is counted where it is posted.
    pub fn traffic(&self) -> impl Iterator<Item = Use> {
        self.streams.iter().flat_map(move |stream| {
            let by = stream.rank;
            let ops = (stream.first.0..stream.first.0 + stream.len).map(OpId);
            ops.flat_map(move |id| self.uses(id, by))
        })
    }

    /// Returns the data that passes through the busiest port, in units of the count, where each rank has one port each
    /// way.
    pub fn busiest_port(&self) -> f64 {
        let mut ports = vec![[0.0_f64; 2]; self.nranks as usize];
        let widths: Vec<f64> = self
            .regions
            .iter()
            .map(|region| region.hi.minus(region.lo).unwrap_or(Rat::ZERO))
            .map(|width| width.num() as f64 / width.den() as f64)
            .collect();
        for stream in &self.streams {
            let by = stream.rank;
            let ops = &self.ops[stream.first.index()..][..stream.len as usize];
            for op in ops.iter().filter(|op| op.kind == OpKind::Move) {
                for (from, to, region) in self.crossing(by, op) {
                    ports[from.index()][0] += widths[region.index()];
                    ports[to.index()][1] += widths[region.index()];
                }
            }
        }
        ports.into_iter().flatten().fold(0.0, f64::max)
    }

    /// Returns the transfers of a move of rank `by` between ranks: source rank, destination rank, and a region of as
    /// many elements. An empty region does not travel, nor does the old value of a destination, which is there.
    pub fn crossing(
        &self,
        by: RankId,
        op: &Op,
    ) -> impl Iterator<Item = (RankId, RankId, RegionId)> + use<'_> {
        let (pulled, dsts) = (self.added(op), self.dsts(op));
        let pulled = pulled.iter().map(move |src| (src.rank, by, src.region));
        let pushed = dsts.iter().map(move |dst| (by, dst.rank, dst.region));
        let travels = |region: &Region| region.lo != region.hi;
        let crossing = pulled.chain(pushed).filter(|(from, to, _)| from != to);
        crossing.filter(move |(.., region)| travels(&self.regions[region.index()]))
    }

    /// Returns the sources of a move without the destination of a reduce, whose value is there.
    pub(crate) fn added(&self, op: &Op) -> &[Operand] {
        let srcs = self.srcs(op);
        let folds = srcs.len() > 1 && !op.switch && self.dsts(op).contains(&srcs[0]);
        &srcs[usize::from(folds)..]
    }

    /// Returns the operands that must be final before a move of rank `by` sends: all added operands where it pushes,
    /// else the operands that it pulls.
    pub fn needed_operands(&self, by: RankId, op: &Op) -> impl Iterator<Item = &Operand> {
        let pushes = self.dsts(op).iter().any(|dst| dst.rank != by);
        self.added(op).iter().filter(move |src| pushes || src.rank != by)
    }

    /// Returns the number of messages between ranks, and the number of their pieces. A message is the data that a
    /// stream moves from one rank to another between two of its signals; a piece is one region of it.
    pub fn messages(&self) -> Messages {
        let mut all = Messages::default();
        self.streams.iter().for_each(|stream| self.count_messages(stream, &mut all));
        all
    }

    /// Returns the messages that each rank moves, from or to others.
    pub fn messages_by_rank(&self) -> Vec<Messages> {
        let mut ranks = vec![Messages::default(); self.nranks as usize];
        for stream in &self.streams {
            self.count_messages(stream, &mut ranks[stream.rank.index()]);
        }
        ranks
    }

    fn count_messages(&self, stream: &Stream, found: &mut Messages) {
        let mut ends: Vec<(RankId, RankId)> = Vec::new();
        let ops = &self.ops[stream.first.index()..][..stream.len as usize];
        for moves in ops.split(|op| op.kind != OpKind::Move) {
            let crossing = moves.iter().flat_map(|op| self.crossing(stream.rank, op));
            ends.clear();
            ends.extend(crossing.map(|(from, to, _)| (from, to)));
            found.pieces += ends.len() as u64;
            ends.sort_unstable();
            ends.dedup();
            found.messages += ends.len() as u64;
        }
    }

    /// Returns how many times its length a move reduces, and how many times it copies within its rank.
    pub fn moved_lengths(&self, op: &Op) -> (f64, f64) {
        if op.switch {
            return (0.0, 0.0);
        }
        let copies = op.srcs == 1 && !self.crosses(op);
        (f64::from(op.srcs - 1), if copies { f64::from(op.dsts) } else { 0.0 })
    }

    fn uses(&self, id: OpId, by: RankId) -> impl Iterator<Item = Use> {
        let op = self.op(id);
        let signal = (op.kind == OpKind::Post).then(|| {
            let channel = self.channel(op);
            Use { op: id, by, from: channel.from, to: channel.to, units: None }
        });
        let carries = (op.kind == OpKind::Move).then(|| self.crossing(by, op));
        let data = move |(from, to, region): (RankId, RankId, RegionId)| {
            let Region { lo, hi, .. } = self.regions[region.index()];
            Use { op: id, by, from, to, units: Some(hi.minus(lo).unwrap_or(Rat::ZERO)) }
        };
        let signal = signal.into_iter().filter(|used| used.from != used.to);
        let into = (op.kind == OpKind::Move && self.added(op).len() < op.srcs as usize)
            .then(|| self.srcs(op)[0].rank)
            .filter(|owner| *owner != by)
            .map(|owner| Use { op: id, by, from: owner, to: by, units: Some(Rat::ZERO) });
        signal.chain(into).chain(carries.into_iter().flatten().map(data))
    }
}
