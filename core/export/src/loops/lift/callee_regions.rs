//! Calls of other programs, with regions of the caller as input and output.

use std::collections::HashMap;

use super::regions::{BufferPart, Cut};
use super::scopes::LiftScope;
use super::{Around, Frame, Lift, LiftResult, Unfit};
use crate::loops::ir::{At, LoopNode, Number, Op};
use roundelay_core::program::ir::{Call, Kind, Program, Stmt, VarId};

impl<'p> Lift<'p> {
    /// Adds the statements of a called program.
    pub(super) fn call(
        &mut self,
        stmt: &Stmt,
        call: &'p Call,
        nodes: &mut Vec<LoopNode>,
    ) -> LiftResult<()> {
        let seen: Vec<_> = self.traces.iter().map(|trace| trace.bounds(stmt)).collect();
        let seen = self.here(&seen);
        let mut all = seen.iter().flatten().map(|(_, blocks)| *blocks);
        let Some(blocks) = all.next() else { return Ok(()) };
        if all.any(|other| other != blocks) {
            return Err(Unfit);
        }
        let program: &'p Program = &call.program;
        let mut given = HashMap::new();
        for (index, arg) in &call.args {
            if Kind::of_param(program.params[*index].ty) == Kind::Number {
                given.insert(*index, self.number(arg)?);
            }
        }
        let (input, output) = (self.cut(&call.input)?, self.cut(&call.output)?);
        let buffers = match blocks {
            [false, false] => [input, output],
            [true, _] => [self.block_of(input, &output), output],
            [false, true] => [input.clone(), self.block_of(output, &input)],
        };
        let scope = self.frame.scope.clone();
        let frame = self.program_frame(program, scope, buffers);
        let caller = std::mem::replace(&mut self.frame, frame);
        self.around.push(Around::Step(stmt.at.0.into()));
        let body = self.called(program, given);
        self.around.pop();
        self.frame = caller;
        let (values, body) = body?;
        let at = self.at(stmt);
        nodes.push(self.functions.call(&program.name, at, values, body));
        Ok(())
    }

    /// Returns the callee's number parameters and then its statements.
    fn called(
        &mut self,
        program: &'p Program,
        mut given: HashMap<usize, Number>,
    ) -> LiftResult<(Vec<LoopNode>, Vec<LoopNode>)> {
        let mut nodes = Vec::new();
        for (index, param) in program.params.iter().enumerate() {
            if Kind::of_param(param.ty) != Kind::Number {
                continue;
            }
            let value = match (given.remove(&index), &param.default) {
                (Some(value), _) => value,
                (None, Some(default)) => self.number(default)?,
                (None, None) => return Err(Unfit),
            };
            self.assign_number(param.var, value, &mut nodes);
        }
        let mut body = self.block(&program.body)?;
        self.end(program, &mut body)?;
        Ok((nodes, body))
    }

    /// Returns the frame of a program, with new variables of the text.
    pub(super) fn program_frame(
        &mut self,
        program: &'p Program,
        scope: LiftScope,
        buffers: [Cut; 2],
    ) -> Frame<'p> {
        let begin = self.vars.len();
        self.vars.extend(program.vars.iter().map(|var| var.name.clone()));
        let numbers = (0..program.vars.len()).map(|at| (VarId(at as u32), begin + at)).collect();
        let (regions, aliases) = (HashMap::new(), HashMap::new());
        Frame { program, scope, buffers, numbers, regions, fifo_at: At::default(), aliases }
    }

    /// Returns each rank's own block, in the larger one of two regions of a call: that region holds the blocks of all
    /// ranks.
    fn block_of(&self, own: Cut, other: &Cut) -> Cut {
        let (Cut::Region(own), Cut::Region(other)) = (own, other) else { return Cut::Other };
        let (Op::Int(width), Op::Int(beside)) = (own.width.op, other.width.op) else {
            return Cut::Other;
        };
        let (width, large) = if width < beside { (beside, other) } else { (width, &own) };
        let many = self.constant(&self.frame.scope.size);
        let Some(many) = many.filter(|many| width % many == 0) else { return Cut::Other };
        let mut large = large.clone();
        large.blocks.push((self.frame.scope.clone(), width / many));
        Cut::Region(BufferPart { width: Number::int(width / many), ..large })
    }
}
