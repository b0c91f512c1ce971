//! Errors of our own, as MPI's: through the communicator's handler, with a text.

use std::ffi::{CString, c_int};
use std::sync::OnceLock;

use roundelay_kernels::mpi::{Handle, Mpi};

/// The longest text of an error that every library takes: `MPI_MAX_ERROR_STRING` is 256 in the smallest.
const LONGEST: usize = 255;

/// The error code of this library; -1 where MPI gave none.
static CODE: OnceLock<c_int> = OnceLock::new();

/// Calls the communicator's error handler with an error of this text, which may end the program, and returns the code.
pub(crate) fn raise(mpi: &Mpi, comm: Handle, text: &str) -> c_int {
    let functions = mpi.functions();
    let other = mpi.abi().err_other();
    let code = *CODE.get_or_init(|| {
        let mut code = 0;
        // SAFETY: there is room for the code; MPI is begun.
        let wrong = unsafe { (functions.add_error_code)(other, &raw mut code) };
        if wrong == 0 { code } else { -1 }
    });
    let mut code = code;
    if code == -1 {
        code = other;
    } else {
        let text = text.replace('\0', " ");
        let end = (0..=LONGEST.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
        let text = CString::new(&text[..end.unwrap_or_default()]).unwrap_or_default();
        // SAFETY: the text ends with a zero and is copied; the code is our own.
        unsafe { (functions.add_error_string)(code, text.as_ptr()) };
    }
    eprintln!("roundelay: {text}");
    hand_over(mpi, comm, code)
}

/// Calls the communicator's error handler with a code, which may end the program, and returns the code.
pub(crate) fn hand_over(mpi: &Mpi, comm: Handle, code: c_int) -> c_int {
    // SAFETY: the communicator is the caller's.
    unsafe { (mpi.functions().comm_call_errhandler)(comm, code) };
    code
}
