//! Communicators that are made: at once, or at the end of the group of a thread, which may make those of several ranks.

use std::cell::RefCell;
use std::ffi::c_int;
use std::mem::take;
use std::thread;

use crate::call_errors::{Refusal, answer, caught};
use crate::stream_order::in_own_context;
use crate::types::{Code, Comm};

/// The last part of making a communicator, which waits for its other ranks.
pub(crate) struct NewComm {
    /// The place of the handle.
    at: usize,
    finish: Finish,
}

/// Finishes a communicator; `true` where NCCL has not made it yet. Gets the handle, and returns it.
type Finish = Box<dyn FnOnce(Comm, bool) -> Result<Comm, Refusal> + Send>;

thread_local! {
    /// Those of the group of this thread.
    static WAITING: RefCell<Vec<NewComm>> = const { RefCell::new(Vec::new()) };
}

impl NewComm {
    /// A communicator whose handle is at `at`, or comes there.
    pub(crate) fn new(
        at: *mut Comm,
        finish: impl FnOnce(Comm, bool) -> Result<Comm, Refusal> + Send + 'static,
    ) -> Self {
        Self { at: at.addr(), finish: Box::new(finish) }
    }

    fn place(&self) -> *mut Comm {
        std::ptr::with_exposed_provenance_mut(self.at)
    }
}

/// Returns the device of a rank of `ncclCommInitAll`: where none are given, that of its number.
///
/// # Safety
/// `devices` is null or has one for each rank.
pub(crate) unsafe fn device_of(devices: *const c_int, rank: u32) -> c_int {
    if devices.is_null() {
        return rank as c_int;
    }
    // SAFETY: the caller's promise.
    unsafe { devices.add(rank as usize).read_unaligned() }
}

/// Finishes communicators, now or at the end of the group; `code` is that of the calls which began them.
///
/// # Safety
/// The places of the handles are there until the group ends.
pub(crate) unsafe fn make(made: Vec<NewComm>, code: Code, in_group: bool) -> Code {
    if code.is_wrong() || made.is_empty() {
        return code;
    }
    if in_group {
        return WAITING
            .try_with(|all| all.borrow_mut().extend(made))
            .map_or(Code::SYSTEM, |()| code);
    }
    // SAFETY: the caller's promise.
    unsafe { finish(made, code) }
}

/// Finishes the communicators of a group that has ended with this code, or forgets them.
///
/// # Safety
/// The places of the handles are there.
pub(crate) unsafe fn end_group(code: Code, is_simulated: bool) -> Code {
    let made = WAITING.try_with(|all| take(&mut *all.borrow_mut())).unwrap_or_default();
    if code.is_wrong() || is_simulated || made.is_empty() {
        return code;
    }
    // SAFETY: the caller's promise.
    unsafe { finish(made, code) }
}

/// Finishes communicators, each of which waits for the others.
unsafe fn finish(made: Vec<NewComm>, code: Code) -> Code {
    let goes_on = code != Code::SUCCESS;
    // SAFETY: the caller's promise.
    let with_handles = made
        .into_iter()
        .map(|new| (unsafe { new.place().read_unaligned() }.expose_provenance(), new));
    let one = move |(comm, NewComm { at, finish }): (usize, NewComm)| {
        let comm = std::ptr::with_exposed_provenance_mut(comm);
        let finished = caught(|| finish(comm, goes_on)).map(Comm::expose_provenance);
        (at, finished)
    };
    let with_handles: Vec<_> = with_handles.collect();
    if goes_on {
        for new in with_handles {
            // Without a thread the communicator stays without a world, and its other ranks do not wait for long.
            drop(thread::Builder::new().spawn(move || one(new)));
        }
        return code;
    }
    let several = with_handles.len() > 1;
    let finish_all = || {
        if !several {
            return in_own_context(|| with_handles.into_iter().map(one).collect());
        }
        thread::scope(|threads| {
            let begun: Vec<_> =
                with_handles.into_iter().map(|new| threads.spawn(move || one(new))).collect();
            begun.into_iter().filter_map(|thread| thread.join().ok()).collect()
        })
    };
    answer(|| {
        let finished: Vec<_> = caught(|| Ok(finish_all()))?;
        finished.into_iter().try_for_each(|(at, finished)| {
            let place: *mut Comm = std::ptr::with_exposed_provenance_mut(at);
            // SAFETY: the caller's promise.
            unsafe { place.write_unaligned(std::ptr::with_exposed_provenance_mut(finished?)) };
            Ok(())
        })
    })
}
