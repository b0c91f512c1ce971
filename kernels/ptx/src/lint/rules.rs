//! The rules on the program of a kernel.

use std::collections::BTreeSet;

use super::flow::Flow;
use super::origins::{Origin, Origins};
use super::{Finding, Rule};
use crate::program::{
    ArithmeticOp, Barrier, Base, Function, Logic, MemoryAccess, Module, Operand, Operation,
    Semantics, Space,
};

/// The words of the kernel's parameters that point to data that no thread writes during a launch: the table of facts, and
/// the addresses of the ranks' memories.
const CONSTANT: [Origin; 2] = [Origin::Word(0), Origin::Word(8)];
/// The word that points to what the host reads of waits.
const CONTROL: Origin = Origin::Word(16);
/// Threads that walk, and do not move.
const WALKERS: u64 = 32;
/// Bytes of a vector, of which the low bits of an aligned address are 0.
const VECTOR: u64 = 16;

/// Returns the places of a module where a rule does not hold.
pub(super) fn check(module: &Module) -> Vec<Finding> {
    let origins = Origins::of(module);
    let flows: Vec<Flow> = module.functions.iter().map(Flow::new).collect();
    let tested = tested(&flows);
    let threads = module.functions.iter().find_map(|function| function.most_threads);
    let threads =
        threads.map(|[x, y, z]| u64::from(x).saturating_mul(y.into()).saturating_mul(z.into()));
    let mut findings = Vec::new();
    for (number, flow) in flows.iter().enumerate() {
        let mut found = |rule, at: usize, what: &str| {
            findings.push(finding(module, flow.function, rule, at, what));
        };
        for (at, instruction) in flow.function.instructions.iter().enumerate() {
            match &instruction.operation {
                Operation::Barrier(barrier) if !is_known(barrier, threads) => {
                    found(
                        Rule::Barrier,
                        at,
                        "neither all threads nor the threads that move meet here",
                    );
                }
                Operation::Load { access, .. } if access.non_coherent => {
                    let from = origins.address(number as u32, access);
                    let is_other = |origin: &Origin| {
                        matches!(origin, Origin::Word(_)) && !CONSTANT.contains(origin)
                    };
                    if !CONSTANT.iter().any(|origin| from.contains(origin))
                        || from.iter().any(is_other)
                    {
                        let what = format!(
                            "the address comes from {from:?}, and not from the table of facts alone"
                        );
                        found(Rule::NonCoherent, at, &what);
                    }
                }
                Operation::Reduce { access, .. } if access.semantics != Semantics::Release => {
                    found(Rule::Post, at, "the post does not release the work before it");
                }
                Operation::Store { access, .. }
                    if is_bare_store(access)
                        && !origins.address(number as u32, access).contains(&CONTROL) =>
                {
                    found(Rule::Post, at, "the store does not release the work before it");
                }
                _ => {}
            }
            if let Some(access) = vector(&instruction.operation)
                && !tested[number][at]
                && !is_aligned(flow, access)
            {
                found(Rule::Vector, at, "no test of the alignment is before the access");
            }
        }
        for at in waits_without_acquire(flow, &|access| origins.address(number as u32, access)) {
            found(
                Rule::Wait,
                at,
                "neither the loop nor the code behind it acquires what is waited for",
            );
        }
    }
    findings
}

fn finding(module: &Module, function: &Function, rule: Rule, at: usize, what: &str) -> Finding {
    let instruction = &function.instructions[at];
    let source = module.source_line(instruction).map(|(file, line)| (file.to_owned(), line));
    let (function, line, what) = (function.name.clone(), instruction.line, what.to_owned());
    Finding { rule, function, line, source, what }
}

/// Whether a barrier is number 0 of all threads of the block, or number 1 of the threads that move: all, or all but a
/// warp.
fn is_known(barrier: &Barrier, threads: Option<u64>) -> bool {
    match (barrier.id, barrier.count) {
        (Operand::Value(0), None) => true,
        (Operand::Value(1), Some(Operand::Value(count))) => {
            threads.is_none_or(|all| count == all || count.checked_add(WALKERS) == Some(all))
        }
        _ => false,
    }
}

/// Whether an access is a relaxed store of a single word. A line of the LL protocol is a vector, whose words have their
/// flags in themselves.
fn is_bare_store(access: &MemoryAccess) -> bool {
    matches!(access.semantics, Semantics::Relaxed | Semantics::Volatile) && access.elements == 1
}

/// Returns the access of 16 bytes to global memory that an operation has.
fn vector(operation: &Operation) -> Option<&MemoryAccess> {
    let (Operation::Load { access, .. } | Operation::Store { access, .. }) = operation else {
        return None;
    };
    let bytes = u64::from(access.ty.bytes()) * u64::from(access.elements);
    (access.space == Space::Global && bytes == VECTOR).then_some(access)
}

/// Returns, for each instruction of each function, whether a branch on the low bits of an address is on every way to it,
/// in the function or in all its callers.
fn tested(flows: &[Flow]) -> Vec<Vec<bool>> {
    let mut inside: Vec<Vec<bool>> = flows
        .iter()
        .map(|flow| flow.reached_without(&tests(flow)).iter().map(|reached| !reached).collect())
        .collect();
    // A function is tested if all its calls are; calls are not recursive, so as many rounds as functions do.
    for _ in flows {
        let mut untested = vec![false; flows.len()];
        for (flow, tested) in flows.iter().zip(&inside) {
            for (at, instruction) in flow.function.instructions.iter().enumerate() {
                if let Operation::Call(call) = &instruction.operation {
                    untested[call.function as usize] |= !tested[at];
                }
            }
        }
        for (number, flow) in flows.iter().enumerate() {
            if !flow.function.is_kernel && !untested[number] {
                inside[number].fill(true);
            }
        }
    }
    inside
}

/// Returns the branches whose condition depends on the low bits of a value.
fn tests(flow: &Flow) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    for (at, instruction) in flow.function.instructions.iter().enumerate() {
        if let (Some(guard), Operation::Branch { .. }) = (instruction.guard, &instruction.operation)
            && flow.slice([guard.slot], None).into_iter().any(|at| masks(flow, at, VECTOR - 1))
        {
            found.insert(at);
        }
    }
    found
}

/// Whether an instruction takes those bits of a value.
fn masks(flow: &Flow, at: usize, bits: u64) -> bool {
    let Operation::Arithmetic(arithmetic) = &flow.function.instructions[at].operation else {
        return false;
    };
    matches!(arithmetic.op, ArithmeticOp::Logic(Logic::And, _))
        && arithmetic.from[..2].contains(&Operand::Value(bits))
}

/// Whether the address of a vector is a multiple of 16 bytes by its computation: rounded down, or a multiple of 16 behind
/// a slot of lines.
fn is_aligned(flow: &Flow, access: &MemoryAccess) -> bool {
    let Base::Slot(slot) = access.address.base else { return false };
    let slice = flow.slice([slot], None);
    let rounds = slice.iter().any(|at| masks(flow, *at, VECTOR.wrapping_neg()));
    let scales = |at: &usize| match &flow.function.instructions[*at].operation {
        Operation::Arithmetic(arithmetic) => match (arithmetic.op, arithmetic.from[1]) {
            (ArithmeticOp::Shl(_), Operand::Value(by)) => by >= 4,
            (ArithmeticOp::MulWide(_) | ArithmeticOp::Mul(_), Operand::Value(by)) => {
                by % VECTOR == 0
            }
            _ => false,
        },
        _ => false,
    };
    let is_line = access.semantics == Semantics::Relaxed;
    (access.address.offset as u64).is_multiple_of(VECTOR)
        && (rounds || (is_line && slice.iter().any(scales)))
}

/// Returns the loads of loops that wait without an acquire: a relaxed word decides whether the loop goes on, and a weak
/// access is reached behind the loop before a fence, or no way out has a fence.
fn waits_without_acquire(
    flow: &Flow,
    origins: &dyn Fn(&MemoryAccess) -> BTreeSet<Origin>,
) -> Vec<usize> {
    let loops = flow.loops();
    let mut found = Vec::new();
    for (at, instruction) in flow.function.instructions.iter().enumerate() {
        let Operation::Load { access, .. } = &instruction.operation else { continue };
        // The words of a line of the LL protocol have their flags in themselves.
        let is_relaxed = matches!(access.semantics, Semantics::Relaxed | Semantics::Volatile);
        // The word that tells of a rank that gave up comes without data.
        if !is_relaxed || access.elements > 1 || origins(access).contains(&CONTROL) {
            continue;
        }
        let inner = loops.iter().filter(|body| body.contains(&at)).min_by_key(|body| body.len());
        let Some(body) = inner else { continue };
        let decides = body.iter().any(|branch| {
            let branch = &flow.function.instructions[*branch];
            let depends = |slot| flow.slice([slot], Some(body)).contains(&at);
            matches!(branch.operation, Operation::Branch { .. })
                && branch.guard.is_some_and(|guard| depends(guard.slot))
        });
        if decides && !acquires_behind(flow, body) {
            found.push(at);
        }
    }
    found
}

/// Whether a fence is on a way out of a loop, and no way out has a weak access of shared data before it.
fn acquires_behind(flow: &Flow, body: &BTreeSet<usize>) -> bool {
    let mut next: Vec<usize> = body.iter().flat_map(|at| flow.after(*at)).copied().collect();
    let mut seen = body.clone();
    let mut fenced = false;
    while let Some(at) = next.pop() {
        if !seen.insert(at) {
            continue;
        }
        match &flow.function.instructions[at].operation {
            Operation::Fence(_) => fenced = true,
            Operation::Load { access, .. } | Operation::Store { access, .. }
                if is_shared(access) =>
            {
                return false;
            }
            _ => next.extend(flow.after(at)),
        }
    }
    fenced
}

/// Whether an access is a weak one to memory that other threads may write.
fn is_shared(access: &MemoryAccess) -> bool {
    access.semantics == Semantics::Weak
        && !access.non_coherent
        && matches!(access.space, Space::Global | Space::Shared)
}
