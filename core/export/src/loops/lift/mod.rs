//! Makes the loop form of a program. Arithmetic stays arithmetic; a value that only a table or a searched object
//! provides becomes a table of the values that every rank looked up in its trace.

mod callee_regions;
mod numbers;
mod observations;
mod passes;
mod regions;
mod scopes;

use std::collections::HashMap;

use super::functions::StepFunctions;
use super::ir::{At, LoopNode, Number, Op, binary};
use super::tables::Tables;
use observations::each;
use regions::{BufferPart, Cut};
use roundelay_core::ids::ScratchId;
use roundelay_core::layout::trace::{LoopPath, Operands, Trace};
use roundelay_core::program::ir::{Expr, Kind, Program, Stmt, StmtKind, VarId};
use roundelay_core::schedule::Buffer;
use roundelay_core::syntax::ast::BinOp;
use scopes::LiftScope;

/// This form cannot express the program, for example because of a buffer for each iteration of a loop; the text is then
/// written from the schedule.
pub(super) struct Unfit;

type LiftResult<T> = Result<T, Unfit>;

/// The most statements that are lifted, each call of a step on its own.
const MOST: usize = 50_000;

/// The most sources of a move; a longer fold is several moves.
const MOST_SOURCES: usize = 8;

/// The values that each rank looked up, each with the way that led there.
type Rows<T> = Vec<Vec<(LoopPath, T)>>;

/// The lifting of one program.
pub(super) struct Lift<'p> {
    frame: Frame<'p>,
    /// The source files, that of the program first.
    pub(super) files: Vec<String>,
    traces: &'p [Trace],
    nranks: u32,
    /// Equal pieces of a unit.
    pieces: u64,
    /// The enclosing loops and calls.
    around: Vec<Around>,
    pub(super) tables: Tables,
    pub(super) functions: StepFunctions,
    stmts: usize,
    /// The names of the variables of the text.
    pub(super) vars: Vec<String>,
    /// The values of variables that hold one number at every rank and time.
    known: HashMap<usize, i64>,
}

/// The variables of a program: the exported one, or a called one.
struct Frame<'p> {
    program: &'p Program,
    /// The ranks that the program sees.
    scope: LiftScope,
    /// The program's input and output.
    buffers: [Cut; 2],
    /// The parts that region and piece variables stand for.
    regions: HashMap<VarId, Cut>,
    numbers: HashMap<VarId, usize>,
    /// The place of the program's fifo.
    fifo_at: At,
    /// Variables that are other names for the rank, for the number of ranks, or for another variable.
    aliases: HashMap<VarId, Number>,
}

/// A loop or a call around a statement.
enum Around {
    /// A loop: the number of its iteration.
    Loop(Number),
    /// One stream among streams that differ: the number of its iteration.
    Stream(i64),
    /// The call of a step, or of another program: the statement of the call.
    Step(i64),
}

impl<'p> Lift<'p> {
    pub(super) fn new(
        program: &'p Program,
        traces: &'p [Trace],
        nranks: u32,
        pieces: u64,
        units: [u32; 2],
    ) -> Self {
        let buffers = [
            Cut::Region(BufferPart::whole(Buffer::Input, units[0], pieces)),
            Cut::Region(BufferPart::whole(Buffer::Output, units[1], pieces)),
        ];
        Self {
            frame: Frame {
                program,
                scope: LiftScope::all(),
                buffers,
                regions: HashMap::new(),
                numbers: (0..program.vars.len()).map(|at| (VarId(at as u32), at)).collect(),
                fifo_at: At::default(),
                aliases: HashMap::new(),
            },
            files: vec![program.file.clone()],
            traces,
            nranks,
            pieces,
            around: Vec::new(),
            tables: Tables { all: Vec::new(), nranks },
            functions: StepFunctions::default(),
            stmts: 0,
            vars: program.vars.iter().map(|var| var.name.clone()).collect(),
            known: HashMap::new(),
        }
    }

    pub(super) fn body(&mut self) -> LiftResult<Vec<LoopNode>> {
        // A parameter has the value that the run gave it, the same at every rank.
        let mut nodes = Vec::new();
        let program = self.frame.program;
        for param in &program.params {
            if Kind::of_param(param.ty) == Kind::Number {
                let values = self.traces.iter().map(|trace| trace.param(param.var));
                let values = values.collect::<Option<Vec<_>>>().ok_or(Unfit)?;
                if values.iter().any(|value| *value != values[0]) {
                    return Err(Unfit);
                }
                self.assign_number(param.var, Number::int(values[0]), &mut nodes);
            }
        }
        nodes.extend(self.block(&program.body)?);
        self.end(program, &mut nodes)?;
        Ok(nodes)
    }

    fn block(&mut self, body: &'p [Stmt]) -> LiftResult<Vec<LoopNode>> {
        let mut nodes = Vec::new();
        for stmt in body {
            self.stmts += 1;
            if self.stmts > MOST {
                return Err(Unfit);
            }
            self.stmt(stmt, &mut nodes)?;
        }
        Ok(nodes)
    }

    fn at(&mut self, stmt: &Stmt) -> At {
        let program = self.frame.program;
        let file = self.files.iter().position(|file| **file == program.file);
        let file = file.unwrap_or_else(|| {
            self.files.push(program.file.clone());
            self.files.len() - 1
        });
        let line = program.locations.get(stmt.at.index()).map_or(0, |place| place.line);
        At { file, line, ..At::default() }
    }

    /// Whether any rank took an arm of a statement, on the current calls.
    fn reached(&self, stmt: &Stmt, arm: usize) -> bool {
        let calls = self.around.iter().filter_map(|around| match around {
            Around::Step(call) => Some(*call),
            Around::Loop(_) | Around::Stream(_) => None,
        });
        let calls: Vec<_> = calls.collect();
        self.traces.iter().any(|trace| trace.reaches(stmt, arm, &calls))
    }

    fn stmt(&mut self, stmt: &'p Stmt, nodes: &mut Vec<LoopNode>) -> LiftResult<()> {
        let at = self.at(stmt);
        match &stmt.kind {
            StmtKind::Let(var, value) => self.assign(*var, value, nodes)?,
            StmtKind::Limit(_) | StmtKind::Require(..) | StmtKind::Demand(_) => {}
            // Statements that no rank reaches are left out.
            StmtKind::For(..) | StmtKind::Each(..) | StmtKind::Parallel(..)
                if !self.reached(stmt, 0) => {}
            StmtKind::For(var, lo, hi, body) => {
                let (lo, hi) = (self.number(lo)?, self.number(hi)?);
                let var = self.frame.numbers[var];
                let body = self.inside(iteration(var, &lo), body)?;
                nodes.push(LoopNode::Loop { var, lo, hi, body });
            }
            StmtKind::Parallel(number, lo, hi, body) => {
                let (lo, hi) = (self.number(lo)?, self.number(hi)?);
                let var = self.frame.numbers[number];
                let alike = self.inside(iteration(var, &lo), body);
                let body = alike.or_else(|Unfit| self.streams(*number, (&lo, &hi), body))?;
                nodes.push(LoopNode::Streams { at, var, lo, hi, body });
            }
            StmtKind::Each(var, list, body) => {
                let counter = self.vars.len();
                self.vars.push("nth".to_owned());
                let lists: Vec<_> = self.traces.iter().map(|trace| trace.lists(list)).collect();
                let lists = self.here(&lists);
                let lens = each(&lists, |way, list| vec![(way.clone(), list.len() as i64)]);
                let hi = self.count(&lens)?;
                let items = each(&lists, |way, list| {
                    let item = |(i, value): (i64, &i64)| ([&way[..], &[i]].concat(), *value);
                    (0..).zip(list).map(item).collect()
                });
                self.around.push(Around::Loop(Number::var(counter)));
                let item = self.entry(&items);
                let inner = self.block(body);
                self.around.pop();
                let body = [vec![LoopNode::Let(self.frame.numbers[var], item?)], inner?].concat();
                nodes.push(LoopNode::Loop { var: counter, lo: Number::int(0), hi, body });
            }
            StmtKind::If(arms, otherwise) => self.choice(stmt, arms, otherwise, nodes)?,
            StmtKind::Scratch(var, count, like, _) => {
                let cut = self.scratch(stmt, count.is_some(), like)?;
                self.frame.regions.insert(*var, cut);
            }
            StmtKind::Step(step, args) => {
                let step = &self.frame.program.steps[step.0 as usize];
                let mut values = Vec::new();
                for (param, arg) in step.params.iter().zip(args) {
                    self.assign(*param, arg, &mut values)?;
                }
                let body = self.inside(Around::Step(stmt.at.0.into()), &step.body)?;
                nodes.push(self.functions.call(&step.name, at, values, body));
            }
            StmtKind::Post(kind, peer) | StmtKind::Wait(kind, peer) => {
                let (kind, post) = (*kind, matches!(stmt.kind, StmtKind::Post(..)));
                nodes.push(LoopNode::Signal {
                    at,
                    post,
                    kind,
                    peer: self.number(peer)?,
                    lane: None,
                });
            }
            StmtKind::Copy(src, dsts) => {
                let ops: Vec<_> = self.traces.iter().map(|trace| trace.moves(stmt)).collect();
                let ops = self.here(&ops);
                let none = |op: &Operands| op.len() == 1;
                if ops.iter().flatten().all(|(_, op)| none(op)) {
                    return Ok(());
                }
                let mut srcs = self.places(stmt, std::iter::once(src).chain(dsts))?;
                let dsts = srcs.split_off(1);
                nodes.push(LoopNode::Move { at, chain: false, srcs, dsts });
            }
            StmtKind::Reduce(srcs, dst) => {
                // The destination is also the first source of the op.
                let places = self.places(stmt, std::iter::once(dst).chain(srcs).chain([dst]))?;
                let (into, srcs) = (&places[0], &places[1..=srcs.len()]);
                for part in srcs.chunks(MOST_SOURCES - 1) {
                    let (srcs, dsts) =
                        ([std::slice::from_ref(into), part].concat(), vec![into.clone()]);
                    nodes.push(LoopNode::Move { at, chain: false, srcs, dsts });
                }
            }
            StmtKind::Within(_, body) => {
                let mut inner = Vec::new();
                let Some((condition, scope)) = self.scope(stmt, &mut inner)? else { return Ok(()) };
                let around = std::mem::replace(&mut self.frame.scope, scope);
                let block = self.block(body);
                self.frame.scope = around;
                inner.extend(block?);
                nodes.push(match condition {
                    None => LoopNode::Block { at, body: inner },
                    Some(condition) => LoopNode::If(vec![(condition, inner)], Vec::new()),
                });
            }
            StmtKind::Call(call) => self.call(stmt, call, nodes)?,
            // The moves of ranks that stand for it take their operands in drawn orders.
            StmtKind::Switch(..) => return Err(Unfit),
            StmtKind::Fifo(..) => self.frame.fifo_at = at,
            StmtKind::Pass(pass) => self.pass(stmt, pass, nodes)?,
        }
        Ok(())
    }

    fn choice(
        &mut self,
        stmt: &Stmt,
        arms: &'p [(Expr, Vec<Stmt>)],
        otherwise: &'p [Stmt],
        nodes: &mut Vec<LoopNode>,
    ) -> LiftResult<()> {
        let mut chosen: Vec<_> = (0..arms.len()).filter(|arm| self.reached(stmt, *arm)).collect();
        // If no rank fails all conditions, the last condition needs no test.
        let otherwise = if self.reached(stmt, arms.len()) {
            Some(otherwise)
        } else {
            chosen.pop().map(|last| &arms[last].1[..])
        };
        let asked = chosen.into_iter().map(|arm| {
            let (condition, body) = &arms[arm];
            Ok((self.number(condition)?, self.block(body)?))
        });
        let asked = asked.collect::<LiftResult<Vec<_>>>()?;
        let otherwise = self.block(otherwise.unwrap_or_default())?;
        if asked.is_empty() {
            nodes.extend(otherwise);
        } else {
            nodes.push(LoopNode::If(asked, otherwise));
        }
        Ok(())
    }

    /// Returns a scratch buffer, or its slots, with the shape of a region.
    fn scratch(&mut self, stmt: &Stmt, slots: bool, like: &'p Expr) -> LiftResult<Cut> {
        let ids: Vec<_> = self.traces.iter().map(|trace| trace.scratch(stmt)).collect();
        let ids = self.here(&ids);
        let mut ids = ids.iter().flatten().map(|(_, id)| *id);
        let Some(id) = ids.next() else { return Ok(Cut::Other) };
        // In a loop, each iteration may have another buffer.
        if ids.any(|other| other != id) {
            return Err(Unfit);
        }
        let buffer = Buffer::Scratch(ScratchId(u32::try_from(id).map_err(|_| Unfit)?));
        Ok(match self.cut(like)? {
            Cut::Region(part) => {
                let part = self.placed(part, None)?;
                let part =
                    BufferPart { buffer, slot: Number::int(0), base: part.lo.clone(), ..part };
                if slots { Cut::Slots(part) } else { Cut::Region(part) }
            }
            _ if self.is_pieces(like) => Cut::Shapeless(buffer, None),
            _ => Cut::Other,
        })
    }

    /// Returns the statements of streams that differ, for example in their scratch.
    fn streams(
        &mut self,
        var: VarId,
        (lo, hi): (&Number, &Number),
        body: &'p [Stmt],
    ) -> LiftResult<Vec<LoopNode>> {
        let (Some(lo), Some(hi)) = (self.constant(lo), self.constant(hi)) else {
            return Err(Unfit);
        };
        let at = self.frame.numbers[&var];
        let mut arms = Vec::new();
        for value in lo..hi {
            self.frame.aliases.insert(var, Number::int(value));
            let body = self.inside(Around::Stream(value - lo), body);
            self.frame.aliases.remove(&var);
            arms.push((binary(BinOp::Eq, Number::var(at), Number::int(value)), body?));
        }
        let otherwise = arms.pop().map_or_else(Vec::new, |(_, body)| body);
        Ok(vec![LoopNode::If(arms, otherwise)])
    }

    fn inside(&mut self, around: Around, body: &'p [Stmt]) -> LiftResult<Vec<LoopNode>> {
        self.around.push(around);
        let nodes = self.block(body);
        self.around.pop();
        nodes
    }

    fn assign(&mut self, var: VarId, value: &'p Expr, nodes: &mut Vec<LoopNode>) -> LiftResult<()> {
        match self.frame.program.vars[var.0 as usize].kind {
            Kind::Number => {
                let value = self.number(value)?;
                self.assign_number(var, value, nodes);
            }
            Kind::Region | Kind::Pieces => {
                let cut = self.cut(value)?;
                let cut = self.told(var, cut, nodes);
                self.frame.regions.insert(var, cut);
            }
            // Values of objects and lists become tables.
            _ => {}
        }
        Ok(())
    }

    fn assign_number(&mut self, var: VarId, value: Number, nodes: &mut Vec<LoopNode>) {
        if let Op::Local | Op::Nranks | Op::Var(_) = value.op {
            self.frame.aliases.insert(var, value);
            return;
        }
        self.frame.aliases.remove(&var);
        let at = self.frame.numbers[&var];
        match self.constant(&value) {
            Some(constant) => self.known.insert(at, constant),
            None => self.known.remove(&at),
        };
        nodes.push(LoopNode::Let(at, value));
    }
}

/// Returns a loop with the number of its iteration.
fn iteration(var: usize, lo: &Number) -> Around {
    Around::Loop(match lo.op {
        Op::Int(0) => Number::var(var),
        _ => binary(BinOp::Sub, Number::var(var), lo.clone()),
    })
}
