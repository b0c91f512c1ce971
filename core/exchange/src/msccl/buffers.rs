//! The buffers of a program, and the errors of its operations that a schedule cannot express. The data of a call is cut
//! into `nchunksperloop` chunks.

use super::program::{Operation, OperationKind};
use super::report::span;
use super::{Gpu, Program};
use crate::memory::{Memories, MemoryShape};
use crate::terms::{Memory, Mode, Place};
use roundelay_core::diagnostics::{Code, Diagnostic};
use roundelay_core::ids::{RankId, SpanId};
use roundelay_core::schedule::Buffer;

/// Returns the buffers of a program that is called in one mode.
pub(super) fn memories(program: &Program, mode: Mode) -> Memories {
    let header = &program.header;
    let [input, output, scratch] =
        [Memory::Input, Memory::Output, Memory::Scratch].map(|memory| program.most_chunks(memory));
    let chunks = header.own.chunks;
    let chunks = if header.collective.is_some() { chunks } else { chunks.max(input).max(output) };
    Memories::new(&MemoryShape {
        collective: header.collective,
        nranks: header.nranks,
        chunks,
        scratch,
        mode,
    })
}

/// Returns the chunks of all buffers of all ranks that the program uses.
pub(super) fn places(memories: &Memories, program: &Program) -> u64 {
    let end = |place: Place, count: u32| match place.memory {
        Memory::Scratch => place.offset.saturating_add(count.into()),
        _ => 0,
    };
    let ends = program
        .blocks()
        .flat_map(|block| &block.operations)
        .map(|o| end(o.src, o.count).max(end(o.dst, o.count)));
    let scratch = u64::try_from(ends.max().unwrap_or(0)).unwrap_or(0);
    memories.places(scratch)
}

/// Returns the chunks of a rank's memory.
fn room(memories: &Memories, rank: RankId, gpu: &Gpu, memory: Memory) -> u64 {
    let buffer = match memory {
        Memory::Input => Buffer::Input,
        Memory::Output => Buffer::Output,
        Memory::Scratch => return gpu.chunks_of(memory).into(),
    };
    if !memories.promised {
        return gpu.chunks_of(memory).into();
    }
    memories.room(rank, buffer)
}

/// Returns the errors of operations that a schedule cannot express.
pub(super) fn wrong(memories: &Memories, program: &Program) -> Vec<Diagnostic> {
    let mut wrong = Vec::new();
    for (rank, gpu) in (0..).map(RankId).zip(&program.gpus) {
        for operation in gpu.blocks.iter().flat_map(|block| &block.operations) {
            wrong.extend(wrong_operation(memories, program, (rank, gpu), operation));
            if wrong.len() >= MOST {
                return wrong;
            }
        }
    }
    wrong
}

fn wrong_operation(
    memories: &Memories,
    program: &Program,
    (rank, gpu): (RankId, &Gpu),
    operation: &Operation,
) -> Option<Diagnostic> {
    let Operation { kind, src, dst, count, at, .. } = *operation;
    let name = |at| program.names.text(at);
    let more = operation.more.iter().map(|(offset, at)| (Place { offset: *offset, ..src }, *at));
    let sources = kind.reads().then_some((src, at)).into_iter().chain(more);
    let target = kind.writes().then_some((dst, at));
    for (place, at) in sources.clone().chain(target) {
        let room = room(memories, rank, gpu, place.memory);
        let end = place.offset.saturating_add(count.into());
        if count > 0 && (place.offset < 0 || end as u64 > room) {
            let letter = place.memory.letter();
            let title = format!(
                "chunks {}..{end} of `{letter}`, of which gpu {rank} has {room}",
                place.offset
            );
            let diagnostic = Diagnostic::new(Code::OutOfBounds, span(at), title);
            return Some(diagnostic.note(name(at)));
        }
    }
    let (dst, at) = target?;
    if dst.memory == Memory::Input && memories.keeps_input() && count > 0 {
        let title = "out of place, the input is written";
        return Some(Diagnostic::new(Code::InputWritten, span(at), title).note(name(at)).help(
            "write `o`, or say that the program is called in place alone: `outofplace=\"0\"`",
        ));
    }
    let overlapping = |(src, at): (Place, SpanId)| {
        memories.overlap(rank, (src, dst), count).then(|| {
            let title = format!("a `{}` whose source and destination overlap", kind.name());
            Diagnostic::new(Code::RepeatedDestination, span(at), title).note(name(at))
        })
    };
    // An operation that receives and does not reduce reads from the connection, not from its source.
    sources.filter(|_| kind != OperationKind::ReceiveCopySend).find_map(overlapping)
}

/// The most errors that are reported.
const MOST: usize = 16;
