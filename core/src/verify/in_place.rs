//! Whether the proof in place follows from the proof out of place. Most algorithms that reduce begin with a copy of the
//! input to the place where it lies in place anyway, and never read the input again: then one proof serves both.

use rustc_hash::FxHashSet;

use super::layout::{BufferMode, Cells, MemoryLayout};
use crate::collective::Alias;
use crate::ids::{OpId, RankId};
use crate::schedule::{Buffer, Op, OpKind, Schedule, SignalKind};

/// Whether each input that shares memory with an output is only ever copied home, before any other op touches memory
/// there.
///
/// In place, a copy home is no op, and the memory holds its result from the beginning. Out of place, no event comes
/// before it: its stream has waited for nothing yet, and nothing races. So from the copy on the values are equal, and
/// the accesses in place are a part of the accesses out of place.
///
/// # Errors
/// Where cells cannot be numbered, the number of cells that a unit would have.
pub(crate) fn follows(schedule: &Schedule) -> Result<bool, u32> {
    let cells = Cells::new(schedule)?;
    let layout = MemoryLayout::new(schedule, &cells, BufferMode::InPlace).ok_or(cells.per_unit)?;
    let shared: Vec<bool> = (0..schedule.nranks)
        .map(|rank| schedule.collective.alias(RankId(rank), schedule.root) != Alias::Apart)
        .collect();
    // Streams of a rank that begin before it waits for anything; a parent comes before its children.
    let mut begun: FxHashSet<(RankId, u32)> = FxHashSet::default();
    Ok(schedule.streams.iter().all(|stream| {
        let rank = stream.rank;
        let ops = (stream.first.0..stream.first.0 + stream.len).map(|op| schedule.op(OpId(op)));
        // A forked stream begins with the wait for the fork.
        let forked = |op: &Op| {
            let channel = schedule.channel(op);
            op.kind == OpKind::Wait
                && (channel.kind, channel.lane.0) == (SignalKind::Fork, stream.index)
                && begun.contains(&(rank, stream.index))
        };
        let mut ops = ops.peekable();
        let forked = ops.next_if(|op| op.kind != OpKind::Move && forked(op)).is_some();
        let mut at_head = stream.index == 0 || forked;
        ops.all(|op| match op.kind {
            OpKind::Move if at_head && home(schedule, op, rank, &cells, &layout) => true,
            OpKind::Post if at_head && schedule.channel(op).kind == SignalKind::Fork => {
                begun.insert((rank, schedule.channel(op).lane.0));
                true
            }
            OpKind::Move => {
                at_head = false;
                let operands = schedule.operands_of(op).iter();
                operands.clone().all(|operand| {
                    schedule.region(*operand).buffer != Buffer::Input
                        || !shared[operand.rank.index()]
                })
            }
            OpKind::Post | OpKind::Wait => {
                at_head = false;
                true
            }
        })
    }))
}

/// Whether a move is a copy of a rank's own input onto itself, in place.
fn home(
    schedule: &Schedule,
    op: &Op,
    rank: RankId,
    cells: &Cells,
    in_place: &MemoryLayout,
) -> bool {
    let ([src], [dst]) = (schedule.srcs(op), schedule.dsts(op)) else { return false };
    let place = |operand: &crate::schedule::Operand| {
        let (first, len) = cells.of(*operand);
        (in_place.buffer(operand.rank, schedule.region(*operand).buffer) + first, len)
    };
    (src.rank, dst.rank) == (rank, rank)
        && schedule.region(*src).buffer == Buffer::Input
        && place(src) == place(dst)
}

#[cfg(test)]
mod tests {
    use super::follows;
    use crate::check::Frontend;
    use crate::compile;
    use crate::layout::{Algorithm as _, Configured};
    use crate::schedule::text;
    use crate::syntax::Source;

    fn of(head: &str, body: &str) -> bool {
        let text = format!("algorithm A(root: Rank = 0) -> {head} {{ {body} }}");
        let source = Source::from_text("test.coll", &text);
        let program = compile(&source, Frontend::File).expect("the source is valid");
        let schedule = Configured::new(program.algorithms[0].clone(), &source);
        follows(&schedule.schedule(3).expect("the algorithm fits")).expect("few cells")
    }

    const SIGNALS: &str = "peer((rank + 1) % nranks).TxAck(); peer((rank - 1) % nranks).RxAck();";

    #[test]
    fn only_what_is_copied_home_first() {
        let home = "copy(local.input, local.output);";
        assert!(of("AllReduce", home));
        assert!(of(
            "AllReduce",
            &format!("{home} {SIGNALS} copy(peer((rank + 1) % nranks).output, local.output);")
        ));
        assert!(!of("AllReduce", &format!("{SIGNALS} {home}")), "the copy is not first");
        assert!(!of(
            "AllReduce",
            &format!("{home} {SIGNALS} copy(peer((rank + 1) % nranks).input, local.output);")
        ));
        let home = "copy(local.input, local.output.block(rank));";
        let next = "copy(local.output.block(rank), local.output.block((rank + 1) % nranks));";
        assert!(of("AllGather", &format!("{home} {next}")));
        assert!(!of("AllGather", &format!("{home} {next} {home}")), "the copy is not first");
        assert!(of("AllGather", "copy(local.input, local.output.block(rank));"));
        assert!(!of("AllGather", "copy(local.input, local.output.block(0));"));
    }

    #[test]
    fn streams_that_begin_before_anything_is_waited_for() {
        let half = "copy(local.input.split(2)[way], local.output.split(2)[way]);";
        assert!(of("AllReduce", &format!("parallel way in 0..2 {{ {half} {SIGNALS} }}")));
        assert!(!of("AllReduce", &format!("{SIGNALS} parallel way in 0..2 {{ {half} }}")));
        let twice =
            format!("parallel way in 0..2 {{ {SIGNALS} }} parallel way in 0..2 {{ {half} }}");
        assert!(!of("AllReduce", &twice), "the second time the streams have been joined");
    }

    #[test]
    fn a_stream_that_nobody_forks_is_looked_at_from_its_first_op() {
        let read =
            |text: &str| follows(&text::parse(text).expect("a schedule")).expect("few cells");
        let head = "
schedule A AllReduce nranks 2 root 0
rank 0 stream 0
  copy 0.input[0..1] -> 0.output[0..1] @0
rank 1 stream 0
  copy 1.input[0..1] -> 1.output[0..1] @0
";
        assert!(read(head));
        assert!(!read(&format!(
            "{head}rank 1 stream 1\n  copy 0.input[0..1] -> 1.output[0..1] @0\n"
        )));
    }

    #[test]
    fn inputs_that_lie_apart_do_not_matter() {
        let pull = "if rank == root { copy(local.input, local.output.block(rank)); copy(peer((rank + 1) % nranks).input, local.output.block(1)); }";
        assert!(of("Gather", pull), "only the root's input shares memory");
        let pull = "if rank == 1 { copy(peer(root).input.block(1), local.output); }";
        assert!(!of("Scatter", pull));
    }
}
