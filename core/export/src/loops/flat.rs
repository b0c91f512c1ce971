//! The loop form of a schedule, for programs whose own loops do not survive: repeated ops become loops, and numbers that
//! differ between ranks or iterations are recognised as arithmetic, or become tables.

use super::columns::ColumnPlace;
use super::form::{LoopFunction, Loops};
use super::ir::{At, LoopNode, LoopPlace, Number, binary};
use super::machine::{EventPlace, LoopEvent, events};
use super::repeats::{self, RepeatNode, variable};
use roundelay_core::schedule::{Buffer, Schedule, SignalKind};
use roundelay_core::syntax::ast::BinOp;

/// An op without its numbers, which differ between ranks and iterations.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FlatKey {
    line: u32,
    op: FlatOp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum FlatOp {
    /// A post or a wait: its kind, and whether it has a lane.
    Signal(bool, SignalKind, bool),
    /// A move: whether it is a chain, and its sources and destinations: their buffers, whether they are remote, and
    /// whether a pass takes them.
    Move(bool, [Vec<(Buffer, bool, bool)>; 2]),
}

/// The ranks whose streams have the same ops, and each rank's numbers.
type FlatShape = (Vec<FlatKey>, Vec<u32>, Vec<Vec<Vec<i64>>>);

impl Loops {
    /// Adds the statements of all streams of a schedule.
    pub(super) fn add_flat(&mut self, schedule: &Schedule, lanes: bool) {
        let streams = schedule.streams.iter().map(|s| s.index + 1).max().unwrap_or(0);
        let named = lanes && schedule.lanes.len() > 1;
        for index in 0..streams {
            let mut shapes: Vec<FlatShape> = Vec::new();
            for stream in schedule.streams.iter().filter(|s| s.index == index && s.len > 0) {
                let ops = &schedule.ops[stream.first.index()..];
                let events = events(schedule, stream, self.pieces, false);
                let parts = events.iter().zip(ops).map(|(event, op)| {
                    let line = schedule.location(op.at).line;
                    let (mut key, mut numbers) = parts(event, stream.rank.0, line, lanes);
                    if let FlatOp::Signal(_, kind, in_lane) = &mut key.op
                        && named
                        && kind.has_lane()
                    {
                        *in_lane = true;
                        numbers.push(schedule.channel(op).lane.0.into());
                    }
                    (key, numbers)
                });
                let (keys, numbers): (Vec<_>, Vec<_>) = parts.unzip();
                match shapes.iter_mut().find(|(known, ..)| *known == keys) {
                    Some((_, ranks, all)) => {
                        ranks.push(stream.rank.0);
                        all.push(numbers);
                    }
                    None => shapes.push((keys, vec![stream.rank.0], vec![numbers])),
                }
            }
            let mut rest = self.nranks as usize;
            let mut arms = Vec::new();
            let mut all = Vec::new();
            let alone = shapes.len() == 1;
            for (nth, (keys, ranks, numbers)) in shapes.into_iter().enumerate() {
                let node = |(at, key): (usize, FlatKey)| {
                    let column =
                        |nth: usize| vec![numbers.iter().map(|own| own[at][nth]).collect()];
                    let columns = (0..numbers[0][at].len()).map(column).collect();
                    RepeatNode::Once { key, columns }
                };
                let nodes = keys.into_iter().enumerate().map(node).collect();
                let mut place = ColumnPlace::new(&ranks, self.nranks);
                let mut body = self.nodes(repeats::found(nodes), &mut place);
                rest -= ranks.len();
                if !alone {
                    let name = format!("stream_{index}_{nth}");
                    self.functions.push(LoopFunction { name, params: Vec::new(), body });
                    let function = self.functions.len() - 1;
                    body = vec![LoopNode::Do { at: At::default(), function, args: Vec::new() }];
                }
                if rest == 0 {
                    all = body;
                } else {
                    arms.push((self.is_any(&ranks), body));
                }
            }
            if !arms.is_empty() {
                all = vec![LoopNode::If(arms, all)];
            }
            match index as usize {
                0 => self.body.append(&mut all),
                stream => self.body.push(LoopNode::On { stream, body: all }),
            }
        }
    }

    /// Returns the condition that the executing rank is one of these.
    fn is_any(&mut self, ranks: &[u32]) -> Number {
        if let [rank] = ranks {
            return binary(BinOp::Eq, Number::Me, Number::Const((*rank).into()));
        }
        let is = |rank| vec![ranks.contains(&rank).into()];
        let table = self.tables.table(Vec::new(), true, (0..self.nranks).map(is).collect());
        Number::Entry(table, Vec::new())
    }

    fn nodes(
        &mut self,
        nodes: Vec<RepeatNode<FlatKey, i64>>,
        place: &mut ColumnPlace<'_>,
    ) -> Vec<LoopNode> {
        let mut all = Vec::new();
        for node in nodes {
            match node {
                RepeatNode::Loop { times, body } => {
                    let var = self.vars.len();
                    self.vars.push(variable(place.loops.len()));
                    place.enter(times, var);
                    let body = self.nodes(body, place);
                    place.leave();
                    let (lo, hi) = (Number::Const(0), Number::Const(times as i64));
                    all.push(LoopNode::Loop { var, lo, hi, body });
                }
                RepeatNode::Once { key: FlatKey { line, op }, columns } => {
                    let at = At::line(line);
                    let mut columns = &columns[..];
                    all.push(match op {
                        FlatOp::Signal(post, kind, in_lane) => {
                            let peer = place.number(&mut self.tables, &columns[0]);
                            let lane = in_lane.then(|| place.number(&mut self.tables, &columns[1]));
                            LoopNode::Signal { at, post, kind, peer, lane }
                        }
                        FlatOp::Move(chain, operands) => {
                            let [srcs, dsts] = operands.map(|operands| {
                                let one = |(buffer, remote, passed): (Buffer, bool, bool)| {
                                    let own = usize::from(remote);
                                    let of =
                                        remote.then(|| place.number(&mut self.tables, &columns[0]));
                                    let piece = place.piece(&mut self.tables, &columns[own..]);
                                    columns = &columns[own + 4..];
                                    let step =
                                        passed.then(|| place.number(&mut self.tables, &columns[0]));
                                    columns = &columns[usize::from(passed)..];
                                    LoopPlace { of, buffer, piece, step }
                                };
                                operands.into_iter().map(one).collect()
                            });
                            LoopNode::Move { at, chain, srcs, dsts }
                        }
                    });
                }
            }
        }
        all
    }
}

/// Splits an op into its key and its numbers: a peer, or of each operand the rank if it is remote, the first piece, the
/// number of pieces, the slot and the base, and with `passes` the number of passes before.
fn parts(event: &LoopEvent, me: u32, line: u32, passes: bool) -> (FlatKey, Vec<i64>) {
    let mut numbers = Vec::new();
    let op = match event {
        LoopEvent::Signal(post, kind, peer, _) => {
            numbers.push((*peer).into());
            FlatOp::Signal(*post, *kind, false)
        }
        LoopEvent::Move(chain, srcs, dsts) => {
            let mut place = |(rank, buffer, [lo, hi, slot, base], step): &EventPlace| {
                numbers.extend((*rank != me).then_some(i64::from(*rank)));
                numbers.extend([*lo, hi - lo, *slot, *base].map(|number| number as i64));
                let step = step.filter(|_| passes);
                numbers.extend(step.map(|step| step as i64));
                (*buffer, *rank != me, step.is_some())
            };
            FlatOp::Move(*chain, [srcs, dsts].map(|all| all.iter().map(&mut place).collect()))
        }
    };
    (FlatKey { line, op }, numbers)
}
