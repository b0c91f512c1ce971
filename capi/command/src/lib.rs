//! The C library of Roundelay with the command as a function, as `roundelay_command.h` declares and describes it. It is
//! a library of its own, because the command is most of the size, and a program that calls collectives does not need
//! it.

use std::ffi::{CString, OsString, c_char, c_int};

use roundelay_capi::{guard, text, texts};

/// The version of this library, which has the functions of the C library, too.
pub const VERSION: &str = roundelay_capi::VERSION;

/// Runs the command as a function.
///
/// # Safety
/// `args` has `nargs` texts that end with zeros; `input` is null or ends with one; `code`, `out` and `err` are null or
/// point to memory that can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roundelay_command(
    nargs: u64,
    args: *const *const c_char,
    input: *const c_char,
    code: *mut c_int,
    out: *mut *mut c_char,
    err: *mut *mut c_char,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's promise: `args` has `nargs` texts that end with zeros.
        let args = unsafe { texts(args, nargs, "args") }?;
        // SAFETY: the caller's promise: `input` is null, or ends with a zero.
        let input = if input.is_null() { "" } else { unsafe { text(input, "input") }? };
        let output = roundelay_cli::output(args, input);
        for (to, text) in [out, err].into_iter().zip([output.out, output.err]) {
            if !to.is_null() {
                let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
                // SAFETY: the caller's promise: `out` and `err` are null, or can be written.
                unsafe { to.write_unaligned(text.into_raw()) };
            }
        }
        if !code.is_null() {
            // SAFETY: the caller's promise: `code` is null, or can be written.
            unsafe { code.write_unaligned(c_int::from(output.code)) };
        }
        Ok(())
    })
}

/// Frees a text of [`roundelay_command`].
///
/// # Safety
/// `text` is null, or a text that [`roundelay_command`] returned and that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roundelay_free_text(text: *mut c_char) {
    if !text.is_null() {
        // SAFETY: the caller's promise: the text was made by `CString::into_raw` above, and is freed once.
        drop(unsafe { CString::from_raw(text) });
    }
}

/// Runs the command in the place of this program, and returns its exit code.
///
/// # Safety
/// `again` has `nagain` texts that end with zeros, `args` has `nargs`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roundelay_main(
    nagain: u64,
    again: *const *const c_char,
    nargs: u64,
    args: *const *const c_char,
) -> c_int {
    let mut code = 0;
    let status = guard(|| {
        // SAFETY: the caller's promise: `again` has `nagain` texts that end with zeros.
        let again = unsafe { texts(again, nagain, "again") }?;
        // SAFETY: the caller's promise: `args` has `nargs` texts that end with zeros.
        let args = unsafe { texts(args, nargs, "args") }?;
        let words = |words: &[&str]| words.iter().map(OsString::from).collect();
        code = c_int::from(roundelay_cli::main_of(words(&again), words(&args)));
        Ok(())
    });
    if status == 0 { code } else { 2 }
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;
    use std::ptr::null_mut;

    use super::*;

    #[test]
    fn the_command_is_a_function() {
        let args = [c"check", c"-", c"--format", c"json"].map(CStr::as_ptr);
        let (mut code, mut out, mut err) = (-1, null_mut(), null_mut());
        let input = c"algorithm X() -> AllReduce { }".as_ptr();
        let (to_code, to_out, to_err) = (&raw mut code, &raw mut out, &raw mut err);
        // SAFETY: there are four arguments, and each pointer is one of a variable of this function.
        let status = unsafe { roundelay_command(4, args.as_ptr(), input, to_code, to_out, to_err) };
        assert_eq!((status, code), (0, 1));
        // SAFETY: the function wrote both texts.
        let texts = [out, err].map(|text| unsafe { CStr::from_ptr(text) }.to_string_lossy());
        assert!(texts[0].contains("\"code\": \"E0304\"") && texts[1].is_empty(), "{texts:?}");
        for text in [out, err, null_mut()] {
            // SAFETY: a text of the function, which is not read any more, or null.
            unsafe { roundelay_free_text(text) };
        }
    }
}
