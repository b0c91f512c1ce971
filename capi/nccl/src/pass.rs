//! Calls of the real library, and the guard of a thread that is inside it.

use std::cell::Cell;

use crate::last_error;
use crate::mode::is_alone;
use crate::name::Name;
use crate::real::real;
use crate::types::Answer;

thread_local! {
    /// Whether this thread is in a function of the real library, whose calls of its own public functions may come here.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is in a function of the real library.
pub(crate) fn is_inside() -> bool {
    INSIDE.get()
}

/// Has the real library make a call, by its function of that name; refuses the call where the library has none.
///
/// # Safety
/// `F` is the type of the function in NCCL's header.
pub(crate) unsafe fn pass<F: Copy, R: Answer>(name: Name, call: impl FnOnce(F) -> R) -> R {
    // SAFETY: the caller's promise.
    let Some(function) = real().ok().and_then(|real| unsafe { real.function(name) }) else {
        last_error::refuse(name);
        return R::REFUSED;
    };
    let before = INSIDE.replace(true);
    let answer = call(function);
    INSIDE.set(before);
    if answer.is_wrong() {
        last_error::is_theirs();
    }
    answer
}

/// Whether there is a real library that has a function.
pub(crate) fn has(name: Name) -> bool {
    if is_alone() {
        return false;
    }
    // SAFETY: every function is an address, which is not called.
    real().ok().and_then(|real| unsafe { real.function::<*const ()>(name) }).is_some()
}

/// Whether a call of the program is refused, because the real library that it wants has no such function.
pub(crate) fn lacks(name: Name) -> bool {
    !is_inside() && !is_alone() && !has(name)
}
