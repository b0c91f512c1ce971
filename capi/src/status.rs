//! The codes that functions return, and the text of an error.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use roundelay::EngineError;
use roundelay_core::diagnostics::Code;

/// A call that was started is not done.
pub(crate) const UNDER_WAY: c_int = -1;

/// An error: its code, and its text.
pub struct CallError {
    code: Code,
    message: String,
}

/// The result of a function's work.
pub type Outcome<T> = Result<T, CallError>;

impl CallError {
    pub(crate) fn new(code: Code, message: String) -> Self {
        Self { code, message }
    }

    /// Returns the text, if the error is about the arguments of a call, which is not made.
    pub(crate) fn of_arguments(&self) -> Option<&str> {
        roundelay::Error::is_of_arguments(self.code).then_some(&*self.message)
    }
}

impl From<roundelay::Error> for CallError {
    fn from(error: roundelay::Error) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

impl From<EngineError> for CallError {
    fn from(error: EngineError) -> Self {
        roundelay::Error::from(error).into()
    }
}

/// Returns the error of an argument that makes no sense.
pub(crate) fn bad(what: String, fix: &'static str) -> CallError {
    EngineError::BadOption { what, fix }.into()
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
    /// The text that a function returned to this thread last.
    static TOLD: RefCell<CString> = RefCell::default();
}

/// Returns the address of a text that is valid until this thread is told another one.
pub(crate) fn told(text: &str) -> *const c_char {
    let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
    TOLD.with_borrow_mut(|told| {
        *told = text;
        told.as_ptr()
    })
}

/// Returns the text of this thread's last error: empty where there was none.
pub(crate) fn last() -> *const c_char {
    const NONE: &CStr = c"";
    // While the thread ends there is no text any more.
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(NONE.as_ptr())
}

/// Runs the work of a function, and returns 0 or the number of its error; a panic is an error, too.
pub fn guard(run: impl FnOnce() -> Outcome<()>) -> c_int {
    let outcome = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|what| {
        let text = what.downcast_ref::<&str>().copied().map(str::to_owned);
        let text = text.or_else(|| what.downcast_ref::<String>().cloned());
        let message = text.unwrap_or_else(|| "a panic without a text".to_owned());
        Err(EngineError::WorkerPanicked { message }.into())
    });
    let Err(CallError { code, message }) = outcome else { return 0 };
    // A text of C ends at its first zero.
    let text = CString::new(message.replace('\0', " ")).unwrap_or_default();
    _ = LAST.try_with(|last| *last.borrow_mut() = text);
    number(code)
}

/// Returns the number of a code: 405 of E0405.
fn number(code: Code) -> c_int {
    code.as_str().trim_start_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(c_int::MAX)
}

/// Stores the result of a function at the caller's address.
///
/// # Safety
/// `to` is null, or valid for a write.
pub(crate) unsafe fn returning<T>(to: *mut T, name: &str, made: Outcome<T>) -> Outcome<()> {
    let made = made?;
    if to.is_null() {
        return Err(null(name));
    }
    // SAFETY: the caller's promise; it need not be aligned.
    unsafe { to.write_unaligned(made) };
    Ok(())
}

/// Returns the error of a pointer that is null.
pub(crate) fn null(name: &str) -> CallError {
    bad(format!("`{name}` is a null pointer"), "give memory of the size that roundelay.h says")
}
