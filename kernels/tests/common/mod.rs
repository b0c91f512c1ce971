//! Schedules built by hand, so that the engine is tested without the compiler's front end.

use std::sync::Arc;

use roundelay_core::collective::Collective;
use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_core::ids::{LaneId, OpId, RankId, RegionId, ScratchId, SpanId};
use roundelay_core::rational::Rat;
use roundelay_core::schedule::demands::Demands;
use roundelay_core::schedule::{
    Buffer, Channel, Op, OpKind, Operand, Region, Schedule, Scratch, SignalKind, Stream,
};
use roundelay_core::source::Location;
use roundelay_core::verify::{Ports, Proof};
use roundelay_kernels::Plan;

pub struct Builder {
    pub schedule: Schedule,
    pub proof: Proof,
}

impl Builder {
    pub fn new(algorithm: &str, collective: Collective, nranks: u32) -> Self {
        Self {
            schedule: Schedule {
                elements: None,
                algorithm: algorithm.into(),
                collective,
                nranks,
                root: RankId(0),
                out_of_place: false,
                multiple: 1,
                scratch: Vec::new(),
                streams: Vec::new(),
                ops: Vec::new(),
                operands: Vec::new(),
                regions: Vec::new(),
                channels: Vec::new(),
                lanes: vec![Vec::new()],
                locations: (0..100)
                    .map(|line| Location { line, column: 1, end_line: line, end_column: 2 })
                    .collect(),
                origins: Vec::new(),
                file: "test.coll".into(),
                demands: Demands::default(),
            },
            proof: Proof {
                finish: Vec::new(),
                scale_outputs: false,
                in_place: true,
                reduce_depth: nranks - 1,
                steps: 0,
                ports: Ports::default(),
                one_mode: None,
                reduction: None,
                orders: Arc::default(),
            },
        }
    }

    pub fn scratch(&mut self, slots: u32, width: Rat) -> Buffer {
        self.schedule.scratch.push(Scratch { name: "inbox".into(), slots, width, wide: false });
        Buffer::Scratch(ScratchId(self.schedule.scratch.len() as u32 - 1))
    }

    pub fn stream(&mut self, rank: u32, index: u32) {
        let first = OpId(self.schedule.ops.len() as u32);
        self.schedule.streams.push(Stream { rank: RankId(rank), index, first, len: 0 });
    }

    fn push(&mut self, kind: OpKind, srcs: usize, dsts: usize, arg: usize) -> OpId {
        let stream = self.schedule.streams.last_mut().expect("a stream");
        // The source line of an op is its step, from 1.
        let at = SpanId(stream.len + 1);
        stream.len += 1;
        let (srcs, dsts) = (srcs as u8, dsts as u8);
        self.schedule.ops.push(Op { srcs, dsts, ..Op::new(kind, at, arg as u32) });
        OpId(self.schedule.ops.len() as u32 - 1)
    }

    fn channel(&mut self, from: u32, to: u32, kind: SignalKind) -> usize {
        let channel = Channel { from: RankId(from), to: RankId(to), kind, lane: LaneId(0) };
        let channels = &mut self.schedule.channels;
        channels.iter().rposition(|c| *c == channel).unwrap_or_else(|| {
            channels.push(channel);
            channels.len() - 1
        })
    }

    pub fn post(&mut self, from: u32, to: u32, kind: SignalKind) {
        let channel = self.channel(from, to, kind);
        self.push(OpKind::Post, 0, 0, channel);
    }

    pub fn wait(&mut self, from: u32, to: u32, kind: SignalKind) {
        let channel = self.channel(from, to, kind);
        self.push(OpKind::Wait, 0, 0, channel);
    }

    /// Piece `i` of `n` of the whole `units` of a buffer.
    pub fn piece(&mut self, buffer: Buffer, units: u32, i: u32, n: u32) -> RegionId {
        let end = Rat::whole(units.into());
        let lo = Rat::ZERO.boundary(end, i.into(), n.into()).expect("a small fraction");
        let hi = Rat::ZERO.boundary(end, u64::from(i) + 1, n.into()).expect("a small fraction");
        self.region(Region { buffer, slot: 0, base: Rat::ZERO, lo, hi })
    }

    pub fn region(&mut self, region: Region) -> RegionId {
        let regions = &mut self.schedule.regions;
        let at = regions.iter().position(|r| *r == region).unwrap_or_else(|| {
            regions.push(region);
            regions.len() - 1
        });
        RegionId(at as u32)
    }

    pub fn data(&mut self, srcs: &[(u32, RegionId)], dsts: &[(u32, RegionId)]) -> OpId {
        let first = self.schedule.operands.len();
        let operand = |&(rank, region)| Operand { rank: RankId(rank), region };
        self.schedule.operands.extend(srcs.iter().chain(dsts).map(operand));
        self.push(OpKind::Move, srcs.len(), dsts.len(), first)
    }

    pub fn plan(self, count: u64, dtype: DType, op: ReduceOp) -> Plan {
        // SAFETY: the schedules of these tests are right but for signals that never come, which stop a run.
        unsafe {
            Plan::assume_proved(Arc::new(self.schedule), Arc::new(self.proof), count, dtype, op)
        }
        .expect("a plan")
    }
}

/// The canonical ring: see the design, section 4. `skip(rank, op)` leaves out ops by their place in the full program.
pub fn ring_without(nranks: u32, skip: impl Fn(u32, u32) -> bool) -> Builder {
    let mut b = Builder::new("Ring", Collective::AllReduce, nranks);
    let whole = [Buffer::Input, Buffer::Output].map(|buffer| b.piece(buffer, 1, 0, 1));
    let block: Vec<RegionId> = (0..nranks).map(|i| b.piece(Buffer::Output, 1, i, nranks)).collect();
    for me in 0..nranks {
        let (left, right) = ((me + nranks - 1) % nranks, (me + 1) % nranks);
        b.stream(me, 0);
        let mut at = 0;
        let mut kept = |_: &str| {
            at += 1;
            !skip(me, at - 1)
        };
        if kept("copy") {
            b.data(&[(me, whole[0])], &[(me, whole[1])]);
        }
        for round in 0..2 * (nranks - 1) {
            let reducing = round < nranks - 1;
            if kept("right.TxAck") {
                b.post(me, right, SignalKind::Ack);
            }
            if kept("left.RxAck") {
                b.wait(left, me, SignalKind::Ack);
            }
            if kept("data") {
                if reducing {
                    let piece = block[((me + 2 * nranks - round - 1) % nranks) as usize];
                    let op = b.data(&[(me, piece), (left, piece)], &[(me, piece)]);
                    if round == nranks - 2 {
                        b.proof.finish.push(op);
                    }
                } else {
                    let piece =
                        block[((me + 2 * nranks - (round - (nranks - 1))) % nranks) as usize];
                    b.data(&[(left, piece)], &[(me, piece)]);
                }
            }
            if kept("left.TxDataSignal") {
                b.post(me, left, SignalKind::Data);
            }
            if kept("right.RxDataSignal") {
                b.wait(right, me, SignalKind::Data);
            }
        }
    }
    b
}

pub fn ring(nranks: u32) -> Builder {
    ring_without(nranks, |_, _| false)
}

/// All ranks signal all others; what stands between two of these is after and before everything else.
fn barrier(b: &mut Builder, me: u32, kind: SignalKind) {
    let others: Vec<u32> = (0..b.schedule.nranks).filter(|&r| r != me).collect();
    for &r in &others {
        b.post(me, r, kind);
    }
    for &r in &others {
        b.wait(r, me, kind);
    }
}

/// Every rank folds its unit of all inputs, up to eight sources an op.
pub fn direct_reduce_scatter(nranks: u32) -> Builder {
    let mut b = Builder::new("Direct", Collective::ReduceScatter, nranks);
    let output = b.piece(Buffer::Output, 1, 0, 1);
    for me in 0..nranks {
        b.stream(me, 0);
        barrier(&mut b, me, SignalKind::Ack);
        let unit = b.piece(Buffer::Input, nranks, me, nranks);
        let others: Vec<(u32, RegionId)> =
            (0..nranks).filter(|&r| r != me).map(|r| (r, unit)).collect();
        let mut last = None;
        let mut acc = (me, unit);
        for some in others.chunks(7) {
            let srcs: Vec<_> = std::iter::once(acc).chain(some.iter().copied()).collect();
            last = Some(b.data(&srcs, &[(me, output)]));
            acc = (me, output);
        }
        match last {
            Some(last) => b.proof.finish.push(last),
            None => drop(b.data(&[acc], &[(me, output)])),
        }
        barrier(&mut b, me, SignalKind::Data);
    }
    b
}

/// Partners at doubling distance swap whole vectors through scratch; completion is left to a scale pass.
pub fn recursive_doubling(nranks: u32) -> Builder {
    let mut b = Builder::new("Doubling", Collective::AllReduce, nranks);
    let scratch = b.scratch(1, Rat::ONE);
    let [input, output, inbox] =
        [Buffer::Input, Buffer::Output, scratch].map(|buffer| b.piece(buffer, 1, 0, 1));
    b.proof.scale_outputs = true;
    for me in 0..nranks {
        b.stream(me, 0);
        b.data(&[(me, input)], &[(me, output)]);
        for step in 0..nranks.ilog2() {
            let partner = me ^ (1 << step);
            b.post(me, partner, SignalKind::Ack);
            b.wait(partner, me, SignalKind::Ack);
            b.data(&[(partner, output)], &[(me, inbox)]);
            b.post(me, partner, SignalKind::Data);
            b.wait(partner, me, SignalKind::Data);
            b.data(&[(me, output), (me, inbox)], &[(me, output)]);
        }
    }
    b
}
