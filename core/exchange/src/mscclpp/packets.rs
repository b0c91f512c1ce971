//! Packets. Each packet carries a flag, so an op that reads it waits for the op that writes it. Packets take twice the
//! room of their data, and so lie elsewhere in scratch than chunks of the same numbers.

use std::collections::BTreeMap;

use super::Program;
use super::program::Chunk;
use super::steps::{All, Grid, StepAt, Word, streams};
use crate::report::span;
use crate::terms::Memory;
use roundelay_core::diagnostics::{Code, Diagnostic};
use roundelay_core::ids::SpanId;
use roundelay_core::schedule::{OpKind, SignalKind};

/// The scratch of each rank that steps use: the cells, and the step.
type PacketCells = BTreeMap<u32, Vec<(Chunk, StepAt)>>;

/// Adds posts and waits between ops that write packets and ops that read them.
///
/// # Errors
/// Packets that two ops write (E0305), that no op writes (E0302) or that their reader writes later (E0301), and packets
/// at the place of other data (E0801).
pub(super) fn connect(program: &Program, grid: Grid, all: &mut All) -> Vec<Diagnostic> {
    let [mut reads, mut writes, mut plain] =
        [PacketCells::new(), PacketCells::new(), PacketCells::new()];
    for (rank, blocks) in all.iter().enumerate() {
        for (block, steps) in blocks.iter().enumerate() {
            for (index, step) in steps.iter().enumerate() {
                for (parts, cells) in step.what.parts().into_iter().zip([&mut reads, &mut writes]) {
                    for part in parts.iter().filter(|part| part.memory == Memory::Scratch) {
                        let cells = if part.packets { &mut *cells } else { &mut plain };
                        cells.entry(part.rank).or_default().push((*part, (rank, block, index)));
                    }
                }
            }
        }
    }
    if reads.is_empty() && writes.is_empty() {
        return Vec::new();
    }
    let place = |all: &All, (rank, block, index): StepAt| all[rank][block][index].at;
    let mut wrong = Vec::new();
    for rank in 0..program.header.nranks {
        let [of_rank, written, plain] = [&mut reads, &mut writes, &mut plain]
            .map(|cells| cells.remove(&rank).unwrap_or_default());
        let mut written = written;
        written.sort_by_key(|(part, _)| part.index);
        let packets = of_rank.iter().chain(&written);
        if let Some(((part, at), _)) = meet(packets, &plain) {
            let title = format!("packets lie where chunks of the same scratch lie: gpu {rank}");
            let chunk = part.index / grid.cells;
            let error = Diagnostic::new(Code::RefusedByRuntime, span(place(all, at)), title);
            wrong.push(error.note(format!(
                "packets of chunk {chunk} take the room of two chunks, from chunk {} on",
                2 * chunk
            )));
            continue;
        }
        if let Some(pair) = written.windows(2).find(|pair| pair[1].0.index < pair[0].0.end()) {
            let [first, second] = [pair[0].1, pair[1].1].map(|at| span(place(all, at)));
            let title = format!("two ops write packets of one chunk of gpu {rank}");
            let error = Diagnostic::new(Code::Race, second, title).other(first, "the other op");
            wrong.push(error.note("which of them a reader sees is open"));
            continue;
        }
        let mut pairs: BTreeMap<(StepAt, StepAt), usize> = BTreeMap::new();
        for (part, reader) in of_rank {
            // A queue carries packets as they lie, and does not wait for them.
            let queue = reader.1 >= program.gpus[reader.0].blocks.len();
            let from = written.partition_point(|(other, _)| other.end() <= part.index);
            let mut covered = part.index;
            for (other, writer) in &written[from..] {
                if other.index > covered || covered >= part.end() {
                    break;
                }
                covered = other.end();
                let next = pairs.len();
                if !queue {
                    pairs.entry((*writer, reader)).or_insert(next);
                }
            }
            if covered < part.end() {
                let title = format!("packets of chunk {} that nobody writes", covered / grid.cells);
                let at = span(place(all, reader));
                let label = if queue { "sends old packets" } else { "waits for ever" };
                wrong.push(Diagnostic::new(Code::UnmatchedWait, at, title).label(label));
            }
        }
        for ((writer, reader), number) in pairs {
            wrong.extend(pair(all, (writer, reader), i64::from(rank), number as i64));
        }
    }
    wrong
}

/// Returns the first of `packets` that overlaps one of `plain`.
fn meet<'p>(
    packets: impl Iterator<Item = &'p (Chunk, StepAt)>,
    plain: &'p [(Chunk, StepAt)],
) -> Option<((Chunk, StepAt), (Chunk, StepAt))> {
    let mut sorted: Vec<&(Chunk, StepAt)> = plain.iter().collect();
    sorted.sort_by_key(|(part, _)| part.index);
    let mut most = 0;
    // The farthest end of the parts up to each position.
    let ends: Vec<u32> = sorted
        .iter()
        .map(|(part, _)| {
            most = most.max(part.end());
            most
        })
        .collect();
    for (part, at) in packets {
        let (lo, hi) = (part.index.saturating_mul(2), part.end().saturating_mul(2));
        let before = sorted.partition_point(|(other, _)| other.index < hi);
        if before > 0 && ends[before - 1] > lo {
            return Some(((*part, *at), *sorted[before - 1]));
        }
    }
    None
}

/// Adds the post and the wait for an op that reads the packets of another op.
fn pair(
    all: &mut All,
    (writer, reader): (StepAt, StepAt),
    rank: i64,
    number: i64,
) -> Option<Diagnostic> {
    let at = |all: &All, (rank, block, index): StepAt| -> SpanId { all[rank][block][index].at };
    if (writer.0, writer.1) == (reader.0, reader.1) {
        if writer.2 < reader.2 {
            return None;
        }
        let title = "deadlock: a block reads packets that it writes later itself";
        let error = Diagnostic::new(Code::Deadlock, span(at(all, reader)), title);
        return Some(error.other(span(at(all, writer)), "writes them"));
    }
    let ends = (writer.0 as u32, reader.0 as u32);
    let (signal, lane) = if writer.0 == reader.0 {
        let numbers = streams(&all[writer.0]);
        let ends = [numbers[writer.1], numbers[reader.1]].map(i64::from);
        (SignalKind::Local, [ends, [3, number]].concat())
    } else {
        (SignalKind::Data, vec![2, rank, number])
    };
    let word = |kind| Word { kind, ends, signal, lane: lane.clone(), anew: true };
    all[writer.0][writer.1][writer.2].after.push(word(OpKind::Post));
    all[reader.0][reader.1][reader.2].before.push(word(OpKind::Wait));
    None
}
