//! What passes between ranks: every data move and every signal as a use of an ordered pair of ranks.

use super::{Op, OpKind, Schedule};
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
    /// The data that passes, in units of the count; `None` for a signal.
    pub units: Option<Rat>,
}

impl Schedule {
    /// Every use of a link, in the order of the ops. A signal is counted where it is posted.
    pub fn traffic(&self) -> impl Iterator<Item = Use> {
        self.streams.iter().flat_map(move |stream| {
            let by = stream.rank;
            let ops = (stream.first.0..stream.first.0 + stream.len).map(OpId);
            ops.flat_map(move |id| self.uses(id, by))
        })
    }

    /// The data that passes through the busiest port, in units of the count, where each rank has one port each way.
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

    /// What a move of rank `by` carries between ranks: from whom, to whom, and a region of as many elements.
    pub(crate) fn crossing(
        &self,
        by: RankId,
        op: &Op,
    ) -> impl Iterator<Item = (RankId, RankId, RegionId)> + use<'_> {
        let pulled = self.srcs(op).iter().map(move |src| (src.rank, by, src.region));
        let pushed = self.dsts(op).iter().map(move |dst| (by, dst.rank, dst.region));
        pulled.chain(pushed).filter(|(from, to, _)| from != to)
    }

    /// How many times its length a move reduces, and copies within its rank.
    pub(crate) fn within(&self, op: &Op) -> (f64, f64) {
        let copies = op.srcs == 1 && !self.crosses(op);
        (f64::from(op.srcs - 1), if copies { f64::from(op.dsts) } else { 0.0 })
    }

    fn uses(&self, id: OpId, by: RankId) -> impl Iterator<Item = Use> {
        let op = self.op(id);
        let signal = (op.kind == OpKind::Post).then(|| {
            let channel = self.channel(op);
            Use { op: id, by, from: channel.from, to: channel.to, units: None }
        });
        let (srcs, dsts) = match op.kind {
            OpKind::Move => (self.srcs(op), self.dsts(op)),
            OpKind::Post | OpKind::Wait => Default::default(),
        };
        let data = move |from, to, operand| {
            let region = self.region(operand);
            let units = Some(region.hi.minus(region.lo).unwrap_or(Rat::ZERO));
            Use { op: id, by, from, to, units }
        };
        let pulled = srcs.iter().filter(move |o| o.rank != by).map(move |o| data(o.rank, by, *o));
        let pushed = dsts.iter().filter(move |o| o.rank != by).map(move |o| data(by, o.rank, *o));
        signal.into_iter().filter(|used| used.from != used.to).chain(pulled).chain(pushed)
    }
}
