//! The walk of a kernel: the instructions that one warp of a block executes to find each op, before the other warps do it.

use roundelay_core::schedule::{Op, OpKind, Schedule};
use roundelay_export::cuda::{Form, Protocol};

/// Instructions of PTX that the warp that walks executes. `tests/golden/counts.txt` has the counts of kernels from which
/// these numbers are fitted, and a test holds them against the counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WalkCost {
    /// At the start of a launch.
    pub start: f64,
    /// Of a move.
    pub r#move: f64,
    /// Of each operand of a move, too.
    pub operand: f64,
    /// Of a post or a wait.
    pub signal: f64,
}

impl WalkCost {
    /// The walk of a form of kernels.
    pub const fn for_form(form: Form, protocol: Protocol) -> Self {
        match (form, protocol) {
            (Form::Table | Form::Switch, _) => {
                Self { start: 124.0, r#move: 123.0, operand: 32.0, signal: 88.0 }
            }
            (Form::Loops, Protocol::Direct) => {
                Self { start: 56.0, r#move: 58.0, operand: 26.0, signal: 97.0 }
            }
            (Form::Loops, Protocol::Simple | Protocol::Ll | Protocol::Ll128) => {
                Self { start: 0.0, r#move: 132.0, operand: 0.0, signal: 111.0 }
            }
        }
    }

    /// The instructions of an op.
    pub(super) fn of_op(&self, schedule: &Schedule, op: &Op) -> f64 {
        match op.kind {
            OpKind::Move => {
                let operands = schedule.srcs(op).len() + schedule.dsts(op).len();
                self.r#move + self.operand * operands as f64
            }
            OpKind::Post | OpKind::Wait => self.signal,
        }
    }
}
