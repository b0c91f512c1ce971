//! The words of an arena in a model, and the sleep on them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use crate::call_numbers::WINDOW;
use crate::shared_memory::world::memory::arena::ArenaLayout;
use crate::shared_memory::world::memory::words::Words;
use crate::sync::{AtomicU32, AtomicU64, Condvar, Mutex, Ordering, lock};

/// The words that models use, by their positions in the arena. They are made before any thread of a model, as loom
/// requires.
pub(crate) struct ModelWords {
    words: BTreeMap<usize, AtomicU64>,
    halves: BTreeMap<usize, Half>,
}

thread_local! {
    /// The threads of a model take turns on one system thread.
    static CURRENT: RefCell<Option<Arc<ModelWords>>> = const { RefCell::new(None) };
}

impl ModelWords {
    /// Makes the words for the model that begins.
    pub(super) fn begin(layout: ArenaLayout) {
        // Words of the first page: whether the world has failed, and the number of refused calls.
        let mut words = vec![64, 192];
        // Records of the first few refused calls, with all of their words.
        words.extend((0..6).flat_map(|number| (0..9).map(move |at| layout.void(number) + 8 * at)));
        let mut halves = vec![128, 132];
        for rank in 0..layout.nranks {
            words.extend(
                (0..WINDOW).flat_map(|call| (0..8).map(move |at| layout.call(rank, call) + 8 * at)),
            );
            words.extend((0..3).map(|at| layout.own(rank, 0) + 8 * at));
            words.extend((0..2).map(|at| layout.own(rank, 2) + 8 * at));
            words.extend((2..5).map(|at| layout.own(rank, 6) + 8 * at));
            halves.extend((0..2).map(|at| layout.own(rank, 1) + 4 * at));
            for to in 0..layout.nranks {
                words.extend((0..4).map(|which| layout.signal(rank, to, which)));
            }
        }
        words.extend((0..2).flat_map(|tile| layout.claims(tile)));
        let words = words.into_iter().map(|at| (at, AtomicU64::new(0))).collect();
        let halves = halves.into_iter().map(|at| (at, Half::new())).collect();
        CURRENT.set(Some(Arc::new(Self { words, halves })));
    }
}

/// The words of the running model.
pub(crate) type ArenaWords = Arc<ModelWords>;

impl Words for ArenaWords {
    unsafe fn over(_base: *mut u8, _bytes: usize) -> Self {
        CURRENT.with_borrow(Clone::clone).expect("a model has begun")
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        self.words.get(&at).unwrap_or_else(|| panic!("no model has a word at {at}"))
    }

    fn half(&self, at: usize) -> &Half {
        self.halves.get(&at).unwrap_or_else(|| panic!("no model has half a word at {at}"))
    }
}

/// Half a word, and the system's list of the threads that sleep on it.
pub(crate) struct Half {
    value: AtomicU32,
    list: Mutex<()>,
    woken: Condvar,
}

impl Half {
    fn new() -> Self {
        Self { value: AtomicU32::new(0), list: Mutex::new(()), woken: Condvar::new() }
    }
}

impl Deref for Half {
    type Target = AtomicU32;

    fn deref(&self) -> &AtomicU32 {
        &self.value
    }
}

/// Wakes sleepers as the system does: a thread that changed the word before finds the sleeper in the list, or the
/// sleeper sees the change.
pub(crate) fn wake(half: &Half) {
    drop(lock(&half.list));
    half.woken.notify_all();
}

/// Sleeps until a wake-up, if the word has the value `heard`: in a model the time does not run out.
pub(crate) fn wait(half: &Half, heard: u32, _nanoseconds: i64) {
    let list = lock(&half.list);
    if half.value.load(Ordering::Relaxed) == heard {
        drop(half.woken.wait(list));
    }
}
