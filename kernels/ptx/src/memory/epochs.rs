//! The epochs of all threads that are known, as clocks of threads and of releases have them.

use std::rc::Rc;

/// Threads of a page, a multiple of the lanes of a warp.
const PAGE: usize = 256;

type Page = Rc<[u32; PAGE]>;

/// For every thread, the last epoch of it that is known. Clocks have the pages in common in which they are equal: threads of
/// a block learn of each other, and of few threads of other blocks.
#[derive(Clone, Debug)]
pub(crate) struct Clock(Rc<[Page]>);

impl Clock {
    /// The clock of threads of whose epochs none is known.
    pub(crate) fn new(threads: usize) -> Self {
        let page = Rc::new([0; PAGE]);
        Self((0..threads.div_ceil(PAGE)).map(|_| Rc::clone(&page)).collect())
    }

    /// The epoch of a thread.
    pub(crate) fn of(&self, thread: u32) -> u32 {
        self.0[thread as usize / PAGE][thread as usize % PAGE]
    }

    /// The epochs of `count` threads from `first` on, which are in one page.
    pub(crate) fn slice(&self, first: u32, count: u32) -> &[u32] {
        let at = first as usize % PAGE;
        &self.0[first as usize / PAGE][at..at + count as usize]
    }

    /// Whether both are one clock; equal ones need not be.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }

    /// Sets the epoch of a thread.
    pub(crate) fn set(&mut self, thread: u32, epoch: u32) {
        let page = &mut Rc::make_mut(&mut self.0)[thread as usize / PAGE];
        Rc::make_mut(page)[thread as usize % PAGE] = epoch;
    }

    /// Raises the epoch of a thread to `epoch`.
    pub(crate) fn raise(&mut self, thread: u32, epoch: u32) {
        if self.of(thread) < epoch {
            self.set(thread, epoch);
        }
    }

    /// Raises each epoch to that of another clock.
    pub(crate) fn join(&mut self, other: &Self) {
        if self.is(other) {
            return;
        }
        for (page, more) in other.0.iter().enumerate() {
            let known = &self.0[page];
            if Rc::ptr_eq(known, more) {
                continue;
            }
            if known.iter().zip(&**more).all(|(known, more)| known >= more) {
                continue;
            }
            let ahead = known.iter().zip(&**more).any(|(known, more)| known > more);
            let page = &mut Rc::make_mut(&mut self.0)[page];
            if ahead {
                for (known, more) in Rc::make_mut(page).iter_mut().zip(&**more) {
                    *known = (*more).max(*known);
                }
            } else {
                page.clone_from(more);
            }
        }
    }
}
