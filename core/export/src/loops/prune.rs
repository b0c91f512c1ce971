//! Makes a form final: leaves out variables, blocks and tables without a use, and gives ids in the order of the text.

use std::collections::{BTreeMap, BTreeSet};

use super::form::Loops;
use super::ir::{LoopNode, NodeId, Piece, division, opposite};
use roundelay_core::program::ir::Op;

impl Loops {
    /// Makes the form final: without unused variables, tables and empty blocks, and with ids in the order of its text.
    #[doc(hidden)]
    #[must_use]
    pub fn finish(mut self) -> Self {
        for function in &mut self.functions {
            prune(&mut function.body);
        }
        prune(&mut self.body);
        self.keep_used_vars();
        self.keep_used_tables();
        self.numbered()
    }

    /// Returns the final form without the signals with these numbers.
    pub(crate) fn without(mut self, dropped: &BTreeSet<NodeId>) -> Self {
        let stays = |node: &LoopNode| match node {
            LoopNode::Signal { at, .. } => !dropped.contains(&at.id),
            _ => true,
        };
        let bodies = self.functions.iter_mut().map(|function| &mut function.body);
        for body in bodies.chain([&mut self.body]) {
            retain(body, &stays);
        }
        self.finish()
    }

    /// Gives statements, quotients and remainders their ids.
    pub(super) fn numbered(mut self) -> Self {
        let (mut next, mut statements) = (0, 0);
        for node in self.nodes_mut() {
            node.visit_nodes(&mut |node| {
                if let Some(at) = node.at_mut() {
                    at.id = NodeId(statements);
                    statements += 1;
                }
            });
            node.visit(&mut |number| {
                if division(number).is_some() {
                    (number.span.lo, number.span.hi) = (next, next);
                    next += 1;
                }
            });
        }
        self
    }

    pub(crate) fn nodes_mut(&mut self) -> impl Iterator<Item = &mut LoopNode> {
        let bodies = self.functions.iter_mut().map(|function| &mut function.body);
        bodies.chain([&mut self.body]).flatten()
    }

    fn keep_used_vars(&mut self) {
        let old = std::mem::take(&mut self.vars);
        let (mut names, mut known) = (Vec::new(), BTreeMap::new());
        let mut rename = |var: &mut usize, _| {
            *var = *known.entry(*var).or_insert_with(|| {
                names.push(old[*var].clone());
                names.len() - 1
            });
        };
        for function in &mut self.functions {
            function.params.iter_mut().for_each(|param| rename(param, true));
            function.body.iter_mut().for_each(|node| node.visit_vars(&mut rename));
        }
        self.body.iter_mut().for_each(|node| node.visit_vars(&mut rename));
        self.vars = names;
    }

    fn keep_used_tables(&mut self) {
        let old = std::mem::take(&mut self.tables.all);
        let (mut tables, mut known) = (Vec::new(), BTreeMap::new());
        let mut rename = |table: &mut usize| {
            *table = *known.entry(*table).or_insert_with(|| {
                tables.push(old[*table].clone());
                tables.len() - 1
            });
        };
        for node in self.nodes_mut() {
            node.visit_places(&mut |place| {
                if let Piece::Entry(table, _) = &mut place.piece {
                    rename(table);
                }
            });
            node.visit(&mut |number| {
                if let Op::Entry(table) = &mut number.op {
                    let mut own = *table as usize;
                    rename(&mut own);
                    *table = own as u32;
                }
            });
        }
        self.tables.all = tables;
    }
}

fn retain(nodes: &mut Vec<LoopNode>, stays: &impl Fn(&LoopNode) -> bool) {
    nodes.retain(|node| stays(node));
    for block in nodes.iter_mut().flat_map(LoopNode::blocks_mut) {
        retain(block, stays);
    }
}

/// Removes unused variables, since compilers warn of them, and empty blocks, for example from `require`s.
pub(super) fn prune(nodes: &mut Vec<LoopNode>) {
    loop {
        let mut used = BTreeSet::new();
        for node in nodes.iter_mut() {
            node.visit_vars(&mut |var, declared| {
                if !declared {
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
            *condition = opposite(condition);
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
