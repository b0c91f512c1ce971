//! Common parts of the models of protocols: memory whose accesses loom checks, and the bounds of loom's search.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use loom::cell::UnsafeCell;
use loom::model::Builder;

/// Memory that two threads must not touch at once; loom checks it.
pub(crate) struct ModelledMemory(UnsafeCell<u32>);

// SAFETY: loom reports every access that is not ordered with a write.
unsafe impl Sync for ModelledMemory {}
// SAFETY: loom reports every access that is not ordered with a write.
unsafe impl Send for ModelledMemory {}

impl ModelledMemory {
    pub(crate) fn new() -> Self {
        Self(UnsafeCell::new(0))
    }

    pub(crate) fn raise(&self) {
        // SAFETY: loom checks the access.
        self.0.with_mut(|at| unsafe { *at += 1 });
    }

    pub(crate) fn get(&self) -> u32 {
        // SAFETY: loom checks the access.
        self.0.with(|at| unsafe { *at })
    }
}

/// Explores a model with 3 preemptions, more than any known lost wake-up needs; without a bound the larger models take
/// minutes.
pub(crate) fn check(model: impl Fn() + Sync + Send + 'static) {
    within(3, model);
}

/// Explores a model with at most `preemptions` preemptions: for models of whole calls, which are longer.
pub(crate) fn within(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = 10_000;
    builder.check(model);
}

/// Bytes that are one piece of memory to loom.
const LINE: usize = 64;

thread_local! {
    /// A thread-local suffices, because the threads of a model take turns on one thread of the system.
    static SHARED: RefCell<Shared> = RefCell::default();
}

/// Memory that threads of a model share and that is no loom value: the memory of copies and folds.
#[derive(Default)]
struct Shared {
    /// The ranges at which the memory is mapped, one or several times.
    mappings: Vec<Range<usize>>,
    lines: BTreeMap<usize, Rc<UnsafeCell<()>>>,
}

/// Forgets the memory that the previous model shared.
pub(crate) fn share_nothing() {
    let before = SHARED.take();
    drop(before);
}

/// Has loom check accesses to the memory mapped at this range.
pub(crate) fn share(mapping: Range<usize>) {
    SHARED.with_borrow_mut(|shared| shared.mappings.push(mapping));
}

/// Tells loom of a read of `bytes` bytes at each of the sources, and of a write at each of the destinations.
pub(crate) fn touched(srcs: &[*const u8], dsts: &[*mut u8], bytes: usize) {
    for src in srcs {
        lines(src.addr(), bytes, |line| line.with(|_| ()));
    }
    for dst in dsts {
        lines(dst.addr(), bytes, |line| line.with_mut(|_| ()));
    }
}

fn lines(address: usize, bytes: usize, access: impl Fn(&UnsafeCell<()>)) {
    let found: Vec<Rc<UnsafeCell<()>>> = SHARED.with_borrow_mut(|shared| {
        let Some(mapping) = shared.mappings.iter().find(|mapping| mapping.contains(&address))
        else {
            return Vec::new();
        };
        let at = address - mapping.start;
        let lines = at / LINE..(at + bytes).div_ceil(LINE);
        let new = || Rc::new(UnsafeCell::new(()));
        lines.map(|line| shared.lines.entry(line).or_insert_with(new).clone()).collect()
    });
    found.iter().for_each(|line| access(line));
}
