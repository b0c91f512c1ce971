//! Leaves out variables and blocks that a form does not need, and gives its quotients their ids.

use std::collections::BTreeSet;

use super::form::Loops;
use super::ir::{DivisionId, LoopNode, Number};

impl Loops {
    /// Makes the form final: without unused variables and empty blocks, and with ids of quotients.
    pub(crate) fn finish(&mut self) {
        prune(&mut self.body);
        let mut next = 0;
        let bodies = self.functions.iter_mut().map(|function| &mut function.body);
        for node in bodies.chain([&mut self.body]).flatten() {
            node.visit(&mut |number| {
                if let Number::Division(id, ..) = number {
                    *id = DivisionId(next);
                    next += 1;
                }
            });
        }
    }
}

/// Removes unused variables, since compilers warn of them, and empty blocks, for example from `require`s.
pub(super) fn prune(nodes: &mut Vec<LoopNode>) {
    loop {
        let mut used = BTreeSet::new();
        for node in nodes.iter_mut() {
            node.visit(&mut |number| {
                if let Number::Var(var) = number {
                    used.insert(*var);
                }
            });
        }
        if !drop_unused(nodes, &used) {
            return;
        }
    }
}

fn drop_unused(nodes: &mut Vec<LoopNode>, used: &BTreeSet<usize>) -> bool {
    let before = nodes.len();
    let mut dropped = false;
    for node in &mut *nodes {
        for block in node.blocks_mut() {
            dropped |= drop_unused(block, used);
        }
        if let LoopNode::If(arms, otherwise) = node
            && let [(condition, body)] = &mut arms[..]
            && body.is_empty()
        {
            *condition = condition.opposite();
            std::mem::swap(body, otherwise);
        }
    }
    nodes.retain(|node| match node {
        LoopNode::Let(var, _) => used.contains(var),
        LoopNode::Loop { body, .. } | LoopNode::Block { body, .. } => !body.is_empty(),
        LoopNode::If(arms, otherwise) => {
            !(otherwise.is_empty() && arms.iter().all(|(_, body)| body.is_empty()))
        }
        _ => true,
    });
    dropped || nodes.len() < before
}
