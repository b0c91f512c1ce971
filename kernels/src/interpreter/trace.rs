//! The record of ops that a kernel writes where `ROUNDELAY_TRACED` is defined, in the words of the shim's trace.

use std::fmt::Write as _;

use roundelay_core::schedule::SignalKind;
use roundelay_export::cuda::Group;

use super::windows::words_of;

/// The variable that holds the record.
pub(super) const RECORD: &str = "roundelay_trace";

/// Returns the ops of the first block of each group, from the bytes of the record; nothing for a record that ends within
/// an op.
pub(super) fn text(record: &[u8], groups: &[Group], parts: u32) -> Option<String> {
    let blocks = groups.len() * parts as usize;
    let each = record.len() / blocks.max(1);
    let mut text = String::new();
    for (at, group) in groups.iter().enumerate() {
        let _ = writeln!(text, "group {} {}", group.rank, group.stream);
        let mut words = words_of(&record[at * parts as usize * each..][..each]);
        let count = words.next()?;
        ops(&mut text, &mut words.take(count as usize))?;
    }
    Some(text)
}

fn ops(text: &mut String, words: &mut impl Iterator<Item = u64>) -> Option<()> {
    while let Some(op) = words.next() {
        if op < 2 {
            let verb = if op == 1 { "post" } else { "wait" };
            let kind = SignalKind::ALL.get(words.next()? as usize)?;
            let [from, to, lane] = [words.next()?, words.next()?, words.next()?];
            let _ = writeln!(text, "{verb} {kind:?} {from} {to} {lane}");
            continue;
        }
        let [sources, targets] = [words.next()?, words.next()?];
        let [len, finish] = [words.next()?, words.next()?];
        let _ = write!(text, "move {sources} {targets}");
        for _ in 0..sources + targets {
            let rank = words.next()?;
            let name = ['i', 'o', 's'].get(words.next()? as usize)?;
            let _ = write!(text, " {rank}.{name}+{}", words.next()?);
        }
        let _ = writeln!(text, " x{len}{}", if finish == 0 { "" } else { " finish" });
    }
    Some(())
}
