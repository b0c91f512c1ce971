//! Cuts the columns of a flow into pieces, and assigns each to a rank.

use std::collections::BTreeMap;

use crate::ids::RankId;
use crate::rational::Rat;
use crate::schedule::{Buffer, Schedule};

use super::flow::{Column, Flow};
use crate::verify::Callers;

/// A stretch of the inputs, and the items of it that one rank makes.
pub(super) struct Piece<'f> {
    pub(super) column: &'f Column,
    /// The positions of the piece's items in the column.
    pub(super) items: Vec<usize>,
    /// The bounds within the inputs, in units.
    pub(super) lo: Rat,
    pub(super) hi: Rat,
    pub(super) owner: RankId,
}

/// Items of a column that have inputs in common, directly or through other items, and the ranks that they read or
/// write.
struct Component<'f> {
    column: &'f Column,
    items: Vec<usize>,
    ranks: Vec<RankId>,
}

/// Returns all pieces of a flow. For one caller there are no more cuts than the flow has. Where each rank calls, each
/// rank gets a share of the bytes of the components that involve all ranks.
pub(super) fn pieces<'f>(schedule: &Schedule, flow: &'f Flow, callers: Callers) -> Vec<Piece<'f>> {
    let nranks = schedule.nranks as usize;
    let components: Vec<Component<'f>> =
        flow.columns.iter().flat_map(|column| components(flow, column)).collect();
    let mut loads = vec![0_u64; nranks];
    let mut pieces = Vec::new();
    // The bytes of the components that involve all ranks, which any rank may make; they are cut into equal shares, in
    // order.
    let weight =
        |component: &Component<'_>| u64::from(component.column.len) * component.ranks.len() as u64;
    let anyone =
        |component: &Component<'_>| callers != Callers::One && component.ranks.len() == nranks;
    let common: u64 = components.iter().filter(|component| anyone(component)).map(weight).sum();
    let mut before = 0_u64;
    for component in components {
        let column = component.column;
        let (lo, hi) = (start(flow, column.first), start(flow, column.first + column.len));
        if !anyone(&component) {
            let owner =
                *component.ranks.iter().min_by_key(|rank| loads[rank.index()]).expect("a reader");
            loads[owner.index()] += weight(&component);
            pieces.push(Piece { column, items: component.items, lo, hi, owner });
            continue;
        }
        // Shares that begin or end within this component.
        let here = weight(&component);
        let share = |at: u64| (u128::from(at) * nranks as u128 / u128::from(common)) as usize;
        let (first, last) = (share(before), share(before + here - 1));
        let mut from = lo;
        for owner in first..=last {
            // The end of the share, in weights of this component: (owner + 1) * common / nranks - before.
            let to = if owner == last {
                hi
            } else {
                let end = (owner as u64 + 1) * common - before * nranks as u64;
                lo.boundary(hi, end, here * nranks as u64).unwrap_or(hi)
            };
            if from < to {
                let items = component.items.clone();
                pieces.push(Piece { column, items, lo: from, hi: to, owner: RankId(owner as u32) });
            }
            from = to;
        }
        before += here;
    }
    pieces
}

/// Returns the position where a cell of the inputs begins.
fn start(flow: &Flow, cell: u32) -> Rat {
    flow.cells.region(cell, Buffer::Input).lo
}

/// Returns the components of a column. Items with no input in common can be made separately: neither writes a place
/// that the other reads.
fn components<'f>(flow: &Flow, column: &'f Column) -> Vec<Component<'f>> {
    // The item that met each expression first, and the union-find parent of each item.
    let mut met: BTreeMap<u32, usize> = BTreeMap::new();
    let mut joined: Vec<usize> = (0..column.items.len()).collect();
    fn root(joined: &[usize], mut item: usize) -> usize {
        while joined[item] != item {
            item = joined[item];
        }
        item
    }
    let mut leaves: Vec<Vec<u32>> = vec![Vec::new(); column.items.len()];
    for (at, item) in column.items.iter().enumerate() {
        let mut open = vec![item.expr];
        while let Some(expr) = open.pop() {
            if let Some(&other) = met.get(&expr) {
                let (a, b) = (root(&joined, other), root(&joined, at));
                joined[a.max(b)] = a.min(b);
                continue;
            }
            met.insert(expr, at);
            match flow.values.parts(expr) {
                Some((operands, _)) => open.extend(operands),
                None => leaves[at].push(expr),
            }
        }
    }
    let mut components: BTreeMap<usize, Component<'f>> = BTreeMap::new();
    for (at, leaves) in leaves.iter().enumerate() {
        let new = || Component { column, items: Vec::new(), ranks: Vec::new() };
        let component = components.entry(root(&joined, at)).or_insert_with(new);
        component.items.push(at);
        component.ranks.extend(column.items[at].dsts.iter().map(|place| place.rank));
        component.ranks.extend(leaves.iter().map(|rank| RankId(*rank)));
    }
    let mut components: Vec<Component<'f>> = components.into_values().collect();
    for component in &mut components {
        component.ranks.sort_unstable();
        component.ranks.dedup();
    }
    components
}
