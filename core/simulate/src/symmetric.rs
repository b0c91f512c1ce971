//! Simulates a run of which the ops of one rank are known, where all ranks do the same, turned.
//!
//! The signals that a rank waits for are the images of its own posts, and the messages of all ranks are the images of
//! its own messages. So the engine runs the streams of one rank, with its own posts as those of its peers, and a
//! message has the load of the messages of all ranks on its links. All of them set out at one time, and where turns
//! take the machine to itself, all have one rate. Where only some turns do, as those that take whole leaves of a fabric
//! to others, a rank of each kind is run.

use super::Simulated;
use super::engine::{self, Engine};
use super::machine::{Machine, Streams};
use super::machine_turns::MachineTurns;
use super::paths::RankPaths;
use roundelay_base::dtype::DType;
use roundelay_base::ids::{OpId, RankId};
use roundelay_base::rational::Rat;
use roundelay_base::turns::Turns;
use roundelay_core::optimize::join;
use roundelay_core::schedule::interner::Interner;
use roundelay_core::schedule::{Channel, Op, OpKind, Operand, Region, Schedule, Stream};
use roundelay_core::symmetry::Representative;

const CUT: &str = "some ranks do in several moves, one after another, what rank 0 does in one";
const APART: &str =
    "pieces cost time, and those that lie side by side at one rank may be apart at another";

/// The most ops that are run, of all ranks that stand for others.
const OPS: u64 = 1 << 24;

/// Simulates a run of all ranks on a machine for `count` elements a unit, by the ops of the rank that stands for all.
///
/// The result is that of [`simulate`](super::simulate) of the joined schedule, with the critical path among the ranks
/// that were run, and with as many pieces of each rank as rank 0 has. Pieces have their lengths in parts of an element: where blocks differ by an element, because the
/// count is no multiple of their number, the times of the other simulation differ by the time of such elements.
///
/// # Errors
/// The reason in words: a machine that makes no sense for the run or whose ranks are of too many kinds, ranks that are
/// not linked, counts of each block, pieces that cost time where other ranks may have fewer of them, and streams that
/// never end.
pub fn symmetric(
    of: &Representative,
    machine: &Machine,
    count: u64,
    dtype: DType,
) -> Result<Simulated, String> {
    let Representative { own, turns, .. } = of;
    machine.check(own.nranks).map_err(|problem| problem.title)?;
    if turns.nranks() != own.nranks {
        return Err(format!("the {turns} does not turn the {} ranks of the run", own.nranks));
    }
    if own.elements.is_some() {
        return Err("blocks with a count each differ from rank to rank".to_owned());
    }
    let ops: u64 = own.streams.iter().map(|stream| u64::from(stream.len)).sum();
    if machine.streams == Streams::InOrder && of.totals.ops != ops * u64::from(own.nranks) {
        return Err(CUT.to_owned());
    }
    if machine.piece > 0.0 && of.totals.pieces > of.totals.messages {
        return Err(APART.to_owned());
    }
    let joined;
    let own = match machine.streams {
        Streams::InOrder => own,
        Streams::ByData => {
            joined = join(own);
            &joined
        }
    };
    let bytes = super::bytes(own, count, dtype).map_err(|finding| finding.title)?;
    let same = MachineTurns::new(machine, turns);
    let ranks: Vec<u32> = same.standing().collect();
    let ops: u64 = own.streams.iter().map(|stream| u64::from(stream.len)).sum();
    if ops * ranks.len() as u64 > OPS {
        let of = machine.topology.name();
        return Err(format!(
            "the ranks of {of} are of {} kinds under the {turns}, with {ops} ops each: more than {OPS} ops in all",
            ranks.len()
        ));
    }
    let schedule = standing(own, turns, &same, &ranks);
    let Some(paths) = RankPaths::new(&schedule, machine, Some(&same)) else {
        return Err(format!("two ranks talk that are not linked in {}", machine.topology.name()));
    };
    let position = |at: Rat| at.num() as f64 / at.den() as f64;
    let length = |region: &Region| {
        let units = position(region.hi) - position(region.lo);
        units * count as f64 * schedule.element_bytes(region, dtype) as f64
    };
    let lengths = schedule.regions.iter().map(length).collect();
    let mut engine = Engine::new(&schedule, machine, &paths, lengths, false);
    engine.run();
    if !engine.ended() {
        return Err("the streams wait for each other, or signals are left over".to_owned());
    }
    let critical = engine::path(&engine);
    Ok(engine.result(bytes, critical))
}

/// Returns the schedule of the ranks that stand for others. A signal goes to the rank that stands for its receiver,
/// from the sender turned alike, for both its post and its wait.
fn standing(own: &Schedule, turns: &Turns, same: &MachineTurns, ranks: &[u32]) -> Schedule {
    let (mut streams, mut ops, mut operands) = (Vec::new(), Vec::new(), Vec::new());
    let mut channels = Interner::default();
    for &rank in ranks {
        for stream in &own.streams {
            let first = OpId(ops.len() as u32);
            streams.push(Stream { rank: RankId(rank), first, ..*stream });
            for op in &own.ops[stream.first.index()..][..stream.len as usize] {
                let arg = if op.kind == OpKind::Move {
                    let turned = |operand: &Operand| Operand {
                        rank: RankId(turns.turn(operand.rank.0, rank)),
                        ..*operand
                    };
                    let arg = operands.len() as u32;
                    operands.extend(own.operands_of(op).iter().map(turned));
                    arg
                } else {
                    let channel = own.channel(op);
                    let [from, to] = [channel.from, channel.to].map(|r| turns.turn(r.0, rank));
                    let (from, to) = same.to_standing(from, to);
                    channels.intern(Channel { from: RankId(from), to: RankId(to), ..*channel })
                };
                ops.push(Op { arg, ..*op });
            }
        }
    }
    Schedule { streams, ops, operands, channels: channels.items, ..own.clone() }
}
