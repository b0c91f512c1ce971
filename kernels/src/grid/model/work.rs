//! The traffic of a schedule's moves.

use roundelay_core::ids::{RankId, ScratchId};
use roundelay_core::schedule::{Buffer, OpKind, Operand, Schedule};
use roundelay_export::cuda::Protocol;

/// The bytes that a move loads and stores.
#[derive(Clone, Copy, Default)]
pub(super) struct Bytes {
    pub(super) loaded: u64,
    pub(super) stored: u64,
}

pub(super) struct Work {
    /// By op; zero for ops that are no moves.
    pub(super) moves: Vec<Bytes>,
    /// Bytes of all buffers and of all scratch.
    pub(super) touched: u64,
}

impl Work {
    /// `lined`: whether the slots of a scratch buffer hold the protocol's lines.
    pub(super) fn of(
        schedule: &Schedule,
        (count, element): (u64, u64),
        (protocol, lined): (Protocol, impl Fn(ScratchId) -> bool),
    ) -> Self {
        let (unit, data_in_unit) = protocol.unit();
        let stored = |bytes: u64, buffer| match buffer {
            Buffer::Scratch(id) if lined(id) => bytes.div_ceil(data_in_unit) * unit,
            _ => bytes,
        };
        let bytes = |operand: &Operand| {
            let region = schedule.region(*operand);
            stored(schedule.extent(region, count).1 * element, region.buffer)
        };
        let moves = schedule.ops.iter().map(|op| match op.kind {
            OpKind::Move => Bytes {
                loaded: schedule.srcs(op).iter().map(bytes).sum(),
                stored: schedule.dsts(op).iter().map(bytes).sum(),
            },
            OpKind::Post | OpKind::Wait => Bytes::default(),
        });
        let moves = moves.collect();
        let scratch = (0..schedule.scratch.len()).map(|id| Buffer::Scratch(ScratchId(id as u32)));
        let buffers: Vec<Buffer> =
            [Buffer::Input, Buffer::Output].into_iter().chain(scratch).collect();
        let of_rank = |rank| -> u64 {
            let bytes = |buffer| schedule.elements(buffer, RankId(rank), count) * element;
            buffers.iter().map(|buffer| stored(bytes(*buffer), *buffer)).sum()
        };
        Self { moves, touched: (0..schedule.nranks).map(of_rank).sum() }
    }

    /// Returns the bytes that are loaded and stored.
    pub(super) fn traffic(&self) -> u64 {
        self.moves.iter().map(|bytes| bytes.loaded + bytes.stored).sum()
    }
}
