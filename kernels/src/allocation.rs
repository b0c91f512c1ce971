//! The end of a command to which the system gives no memory: a message and an exit code, where the standard library
//! would end the process by a signal.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ffi::c_int;

/// The exit code of a command that the system refuses a resource.
const REFUSED: c_int = 2;

thread_local! {
    /// Whether the system has refused memory to this thread.
    static IS_REFUSED: Cell<bool> = const { Cell::new(false) };
}

/// The message of the end; the standard library has printed the number of bytes before.
const MESSAGE: &[u8] = b"error[E0407]: the system has no memory left for this process\n  = help: raise its limit (`ulimit -v`), or lower the counts, the sizes or the number of ranks\n";

/// The system's allocator, which remembers that it refused memory. A program that can do without memory goes on as before.
pub struct RememberingAllocator;

/// Remembers an allocation that is refused.
fn remembered(place: *mut u8) -> *mut u8 {
    if place.is_null() {
        // A thread that is ending has nothing to remember it in.
        _ = IS_REFUSED.try_with(|refused| refused.set(true));
    }
    place
}

// SAFETY: all calls are passed to the system's allocator.
unsafe impl GlobalAlloc for RememberingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the rules of this function.
        remembered(unsafe { System.alloc(layout) })
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the rules of this function.
        unsafe { System.dealloc(place, layout) };
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the rules of this function.
        remembered(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: the caller keeps the rules of this function.
        remembered(unsafe { System.realloc(place, layout, bytes) })
    }
}

/// Has this process end with a message and exit code 2 if it is aborted after it was refused memory.
pub fn end_with_a_message() {
    let handler: extern "C" fn(c_int) = aborted;
    // SAFETY: the handler calls functions alone that a handler of signals may call.
    unsafe { libc::signal(libc::SIGABRT, handler as libc::sighandler_t) };
}

/// Says that memory was refused, and ends the process. After another abort it returns, and the process ends by the
/// signal.
extern "C" fn aborted(_: c_int) {
    if IS_REFUSED.try_with(Cell::get).unwrap_or(false) {
        // SAFETY: the text is readable, and both functions may be called by a handler of signals.
        unsafe {
            libc::write(2, MESSAGE.as_ptr().cast(), MESSAGE.len());
            libc::_exit(REFUSED);
        }
    }
}
