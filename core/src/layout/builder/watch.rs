//! Ops whose loop variables are wanted while a rank is laid out: a schedule does not keep their values.

use crate::diagnostics::NamedOp;

/// The ops of one rank whose values are wanted, while the rank is laid out.
#[derive(Debug)]
pub(in crate::layout) struct Watch {
    /// The ops, each with its values in words once the walk has left its statement.
    pub(in crate::layout) wanted: Vec<(NamedOp, Option<String>)>,
    /// The ops among them that were laid out, and whose statement is still running.
    met: Vec<usize>,
}

impl Watch {
    pub(in crate::layout) fn new(ops: impl Iterator<Item = NamedOp>) -> Self {
        Self { wanted: ops.map(|op| (op, None)).collect(), met: Vec::new() }
    }

    /// Notes that an op is laid out, which has `before` ops before it in its stream.
    pub(super) fn lay_out(&mut self, stream: usize, before: usize) {
        let here = |op: &NamedOp| (op.stream as usize, op.before as usize) == (stream, before);
        let met = self.wanted.iter().enumerate().filter(|(_, (op, _))| here(op));
        self.met.extend(met.map(|(index, _)| index));
    }

    /// Gives the ops of the statement `at`, which ends, its values; `values` is called where there are such ops.
    pub(super) fn end(&mut self, at: u32, values: impl FnOnce() -> Option<String>) {
        let Self { wanted, met } = self;
        if !met.iter().any(|op| wanted[*op].0.at.0 == at) {
            return;
        }
        let values = values();
        met.retain(|op| {
            let (op, known) = &mut wanted[*op];
            let ends = op.at.0 == at;
            if ends {
                known.clone_from(&values);
            }
            !ends
        });
    }
}
