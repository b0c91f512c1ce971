//! The loop form of a schedule, for programs whose own loops do not survive: repeated ops become loops, and numbers that
//! differ between ranks or iterations are recognised as arithmetic, or become tables.

use super::columns::ColumnPlace;
use super::events::{EventPlace, LoopEvent, events};
use super::form::{LoopFunction, Loops};
use super::ir::{
    At, LoopNode, LoopPlace, MessageStep, Number, Op, Piece, binary, entry, executing,
};
use super::repeats::{self, Column, RepeatNode, variable};
use roundelay_core::schedule::Schedule;
use roundelay_core::syntax::ast::BinOp;

/// The ops of a rank's stream, each with its line in the source.
pub(crate) type FlatStream = (u32, Vec<(LoopEvent, u32)>);

/// Statements without numbers, the ranks whose streams are such statements, and each rank's numbers.
type FlatShape = (Vec<LoopNode>, Vec<u32>, Vec<Vec<Vec<i64>>>);

impl Loops {
    /// Adds the statements of all streams of a schedule.
    pub(super) fn add_flat(&mut self, schedule: &Schedule, lanes: bool) {
        let streams = schedule.streams.iter().map(|s| s.index + 1).max().unwrap_or(0);
        let named = lanes && schedule.lanes.len() > 1;
        for index in 0..streams {
            let pieces = self.pieces;
            let of = schedule.streams.iter().filter(|s| s.index == index && s.len > 0);
            let of = of.map(|stream| {
                let ops = &schedule.ops[stream.first.index()..];
                let mut events = events(schedule, stream, pieces, false);
                for (event, op) in events.iter_mut().zip(ops) {
                    match event {
                        LoopEvent::Signal(_, kind, _, lane) if named && kind.has_lane() => {
                            lane.push(schedule.channel(op).lane.0.into());
                        }
                        LoopEvent::Move(_, srcs, dsts) if !lanes => {
                            srcs.iter_mut().chain(dsts).for_each(|place| place.3 = None);
                        }
                        _ => {}
                    }
                }
                let lines = ops.iter().map(|op| schedule.location(op.at).line);
                (stream.rank.0, events.into_iter().zip(lines).collect())
            });
            self.add_stream(index as usize, of, self.nranks as usize, false);
        }
    }

    /// Adds the statements of the streams with a number. `rest` is the number of ranks that run the form; `plain` is that
    /// of [`ColumnPlace`].
    pub(super) fn add_stream(
        &mut self,
        index: usize,
        of: impl Iterator<Item = FlatStream>,
        mut rest: usize,
        plain: bool,
    ) {
        let mut shapes: Vec<FlatShape> = Vec::new();
        for (rank, events) in of.filter(|(_, events)| !events.is_empty()) {
            let parts = events.into_iter().map(|(event, line)| parts(event, rank, line));
            let (keys, numbers): (Vec<_>, Vec<_>) = parts.unzip();
            match shapes.iter_mut().find(|(known, ..)| *known == keys) {
                Some((_, ranks, all)) => {
                    ranks.push(rank);
                    all.push(numbers);
                }
                None => shapes.push((keys, vec![rank], vec![numbers])),
            }
        }
        let mut arms = Vec::new();
        let mut all = Vec::new();
        let alone = shapes.len() == 1;
        for (nth, (keys, ranks, numbers)) in shapes.into_iter().enumerate() {
            let node = |(at, key): (usize, LoopNode)| {
                let column = |nth: usize| vec![numbers.iter().map(|own| own[at][nth]).collect()];
                let columns = (0..numbers[0][at].len()).map(column).collect();
                RepeatNode::Once { key, columns }
            };
            let nodes = keys.into_iter().enumerate().map(node).collect();
            let mut place = ColumnPlace::new(&ranks, self.nranks);
            place.plain = plain;
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
        match index {
            0 => self.body.append(&mut all),
            stream => self.body.push(LoopNode::On { stream, body: all }),
        }
    }

    /// Returns the condition that the executing rank is one of these.
    fn is_any(&mut self, ranks: &[u32]) -> Number {
        if let [rank] = ranks {
            return binary(BinOp::Eq, executing(), Number::int((*rank).into()));
        }
        let is = |rank| vec![ranks.contains(&rank).into()];
        let table = self.tables.table(Vec::new(), true, (0..self.nranks).map(is).collect());
        entry((table, Vec::new()))
    }

    fn nodes(
        &mut self,
        nodes: Vec<RepeatNode<LoopNode, i64>>,
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
                    let (lo, hi) = (Number::int(0), Number::int(times as i64));
                    all.push(LoopNode::Loop { var, lo, hi, body });
                }
                RepeatNode::Once { mut key, columns } => {
                    self.fill(&mut key, place, &columns);
                    all.push(key);
                }
            }
        }
        all
    }

    /// Gives a statement its numbers.
    fn fill(&mut self, node: &mut LoopNode, place: &ColumnPlace<'_>, columns: &[Column<i64>]) {
        let heads = match node {
            LoopNode::Signal { peer, lane, .. } => [peer].into_iter().chain(lane).collect(),
            LoopNode::Message { request, step, .. } => match step {
                MessageStep::Begin { peer, tag, .. } => vec![request, peer, tag],
                MessageStep::Finish(many) if many.op == Op::Int(1) => vec![request],
                MessageStep::Finish(many) => vec![request, many],
            },
            _ => Vec::new(),
        };
        let mut at = heads.len();
        for (number, column) in heads.into_iter().zip(columns) {
            *number = place.number(&mut self.tables, column);
        }
        node.visit_places(&mut |operand| {
            if let Some(of) = &mut operand.of {
                *of = place.number(&mut self.tables, &columns[at]);
                at += 1;
            }
            operand.piece = place.piece(&mut self.tables, &columns[at..]);
            at += 4;
            if let Some(step) = &mut operand.step {
                *step = place.number(&mut self.tables, &columns[at]);
                at += 1;
            }
        });
    }
}

/// Splits an op into a statement without its numbers, which differ between ranks and iterations, and these numbers. Only
/// the wait for one message keeps that number.
fn parts(event: LoopEvent, me: u32, line: u32) -> (LoopNode, Vec<i64>) {
    let at = At::line(line);
    let mut numbers = Vec::new();
    let mut hole = |value: u64| {
        numbers.push(value as i64);
        Number::int(0)
    };
    let place = |hole: &mut dyn FnMut(u64) -> Number, (rank, buffer, piece, step): EventPlace| {
        let of = (rank != me).then(|| hole(rank.into()));
        let [lo, hi, slot, base] = piece;
        let [lo, width, slot, base] = [lo, hi - lo, slot, base].map(&mut *hole);
        let step = step.map(hole);
        let piece = Piece::Computed { lo, width, slot, base };
        LoopPlace { of, buffer, piece, step }
    };
    let node = match event {
        LoopEvent::Signal(post, kind, peer, lane) => {
            let peer = hole(peer.into());
            let lane = lane.first().map(|lane| hole(*lane as u64));
            LoopNode::Signal { at, post, kind, peer, lane }
        }
        LoopEvent::Move(chain, srcs, dsts) => {
            let [srcs, dsts] = [srcs, dsts]
                .map(|all| all.into_iter().map(|operand| place(&mut hole, operand)).collect());
            LoopNode::Move { at, chain, srcs, dsts }
        }
        LoopEvent::Begin(send, request, peer, tag, operand) => {
            let [request, peer, tag] = [request, peer.into(), tag.into()].map(&mut hole);
            let place = Box::new(place(&mut hole, operand));
            let step = MessageStep::Begin { peer, tag, place };
            LoopNode::Message { at, send, request, step }
        }
        LoopEvent::Finish(send, request, many) => {
            let request = hole(request);
            let many = if many == 1 { Number::int(1) } else { hole(many) };
            LoopNode::Message { at, send, request, step: MessageStep::Finish(many) }
        }
    };
    (node, numbers)
}
