//! Functions for the statements of steps and of called programs. Equal statements are one function, so a form is not longer
//! than the program, however often a step is called; statements that are called once stay in their place.

use std::collections::BTreeMap;

use super::form::{LoopFunction, Loops};
use super::ir::{At, LoopNode, Number, Op};
use super::prune::prune;

/// The most statements of a call that stay in their place, if they call no function.
const MOST_IN_PLACE: usize = 3;

/// The functions of a form that is being made.
#[derive(Default)]
pub(super) struct StepFunctions {
    all: Vec<Outlined>,
}

struct Outlined {
    function: LoopFunction,
    /// The statements with variables numbered in the order of the text, by which equal ones are known.
    canonical: Vec<LoopNode>,
    calls: usize,
}

impl StepFunctions {
    /// Returns the call of a function with these statements, which come after the declarations of its arguments.
    pub(super) fn call(
        &mut self,
        name: &str,
        at: At,
        args: Vec<LoopNode>,
        mut body: Vec<LoopNode>,
    ) -> LoopNode {
        prune(&mut body);
        if count(&mut body).is_some_and(|many| many <= MOST_IN_PLACE) {
            return LoopNode::Block { at, body: [args, body].concat() };
        }
        // The variables of other places are parameters.
        let mut canonical = body.clone();
        let (mut known, mut params) = (BTreeMap::new(), Vec::new());
        for node in &mut canonical {
            node.visit_vars(&mut |var, declared| {
                let next = known.len();
                let own = *var;
                *var = *known.entry(own).or_insert(next);
                if known.len() > next && !declared {
                    params.push(own);
                }
            });
        }
        let values: Vec<Number> = params.iter().map(|param| Number::var(*param)).collect();
        let found = self
            .all
            .iter()
            .position(|known| (&*known.function.name, &known.canonical) == (name, &canonical));
        let number = found.unwrap_or_else(|| {
            let function = LoopFunction { name: name.to_owned(), params, body };
            self.all.push(Outlined { function, canonical, calls: 0 });
            self.all.len() - 1
        });
        self.all[number].calls += 1;
        let call = LoopNode::Do { at, function: number, args: values };
        if args.is_empty() {
            return call;
        }
        LoopNode::Block { at: At::default(), body: [args, vec![call]].concat() }
    }

    /// Moves the functions into a form; those that are called once go to the places of their calls.
    pub(super) fn finish(self, loops: &mut Loops) {
        let mut places: Vec<Result<usize, Vec<LoopNode>>> = Vec::new();
        for outlined in self.all {
            let LoopFunction { name, mut params, mut body } = outlined.function;
            settle(&mut body, &places);
            if outlined.calls == 1 {
                places.push(Err(body));
                continue;
            }
            // Parameters are variables of their own, since other calls may be among the variables of the first.
            let mut own = BTreeMap::new();
            for param in &mut params {
                own.insert(*param, loops.vars.len());
                loops.vars.push(loops.vars[*param].clone());
                *param = own[param];
            }
            for node in &mut body {
                node.visit_vars(&mut |var, _| *var = own.get(var).copied().unwrap_or(*var));
            }
            places.push(Ok(loops.functions.len()));
            loops.functions.push(LoopFunction { name, params, body });
        }
        settle(&mut loops.body, &places);
    }
}

/// Puts the statements of functions that are called once in place of their calls, and gives the others their numbers.
fn settle(nodes: &mut Vec<LoopNode>, places: &[Result<usize, Vec<LoopNode>>]) {
    for node in nodes {
        for block in node.blocks_mut() {
            settle(block, places);
        }
        if let LoopNode::Do { at, function, .. } = node {
            match &places[*function] {
                Ok(number) => *function = *number,
                Err(body) => *node = LoopNode::Block { at: *at, body: body.clone() },
            }
        }
        if let LoopNode::Block { body, .. } = node
            && let Some(call) = with_values(body)
        {
            *node = call;
        }
    }
}

/// Returns the call behind declarations, with their values in place of their variables, if a block is nothing else.
fn with_values(body: &[LoopNode]) -> Option<LoopNode> {
    let (call @ LoopNode::Do { .. }, lets) = body.split_last()? else { return None };
    let mut values = BTreeMap::new();
    for node in lets {
        let LoopNode::Let(var, value) = node else { return None };
        values.insert(*var, value);
    }
    let mut call = call.clone();
    call.visit(&mut |number| {
        if let Op::Var(var) = number.op
            && let Some(value) = values.get(&var.index())
        {
            *number = (*value).clone();
        }
    });
    Some(call)
}

/// Returns the number of statements, or nothing if one of them calls a function.
fn count(nodes: &mut [LoopNode]) -> Option<usize> {
    nodes.iter_mut().try_fold(0, |sum, node| {
        if matches!(node, LoopNode::Do { .. }) {
            return None;
        }
        let inner = node.blocks_mut().into_iter().map(|block| count(block)).sum::<Option<usize>>();
        Some(sum + 1 + inner?)
    })
}
