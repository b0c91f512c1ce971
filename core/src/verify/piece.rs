//! The names of a piece of a buffer and of an op.

use crate::diagnostics::NamedOp;
use crate::ids::OpId;
use crate::rational::Rat;
use crate::schedule::{Buffer, Region, Schedule};

/// Returns the text of a region, such as `output[1/4..2/4]`.
pub(crate) fn piece_text(schedule: &Schedule, region: &Region) -> String {
    let slot = match region.buffer {
        Buffer::Scratch(id) if schedule.scratch[id.index()].slots > 1 => {
            format!(" slot {}", region.slot)
        }
        _ => String::new(),
    };
    let name = schedule.buffer_name(region.buffer);
    let (lo, hi) = common(region.lo, region.hi, schedule.multiple);
    format!("{name}{slot}[{lo}..{hi}]")
}

/// Returns both boundaries over one denominator: `1/4..2/4` reads better than `1/4..1/2`. Where every count is a
/// multiple of a number, the denominator is that number.
fn common(lo: Rat, hi: Rat, multiple: u64) -> (String, String) {
    let den = lo.den().max(hi.den()).max(multiple);
    if den == 1 || !den.is_multiple_of(lo.den()) || !den.is_multiple_of(hi.den()) {
        return (lo.to_string(), hi.to_string());
    }
    let over = |at: Rat| format!("{}/{den}", at.num() * (den / at.den()));
    (over(lo), over(hi))
}

/// Returns an op that notes name in these words.
pub(crate) fn named_op(schedule: &Schedule, op: OpId, name: String) -> NamedOp {
    let stream = schedule.streams[schedule.stream_of(op).index()];
    let (at, before) = (schedule.op(op).at, op.0 - stream.first.0);
    NamedOp { name, at, rank: stream.rank, stream: stream.index, before, of: stream.len }
}
