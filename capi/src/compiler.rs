//! The compiler and the command, behind texts.

use std::ffi::{CString, c_char, c_int};

use roundelay::Algorithm as _;
use roundelay::tools::{self, Settings, words_of};
use roundelay_core::diagnostics::Code;
use roundelay_core::layout::Configured;

use crate::buffers::{text, texts};
use crate::codes;
use crate::status::{Fault, Outcome, bad};

/// The code that stands for any collective.
const ANY: c_int = -1;

/// Where an algorithm comes from.
pub(crate) struct Source {
    /// A text in the language, or a path, or the name of an algorithm of the library.
    page: String,
    algorithm: Option<String>,
    settings: Settings,
}

impl Source {
    /// A text in the language, or a path, or the name of an algorithm of the library; and words that choose one of its
    /// algorithms and set its parameters.
    ///
    /// # Safety
    /// `source` ends with a zero; `algorithm` is null or ends with one.
    pub(crate) unsafe fn new(source: *const c_char, algorithm: *const c_char) -> Outcome<Self> {
        // SAFETY: the caller's promise.
        let page = unsafe { text(source, "source") }?.to_owned();
        let words = if algorithm.is_null() {
            ""
        } else {
            // SAFETY: the caller's promise.
            unsafe { text(algorithm, "algorithm") }?
        };
        let (algorithm, settings) =
            words_of(words).map_err(|what| Fault::new(Code::BadFlag, what))?;
        Ok(Self { page, algorithm, settings })
    }

    /// The one algorithm of this collective.
    pub(crate) fn algorithm(&self, collective: c_int) -> Outcome<Configured> {
        let wanted = if collective == ANY { None } else { Some(codes::collective(collective)?) };
        let Self { page, algorithm, settings } = self;
        let mut found = tools::algorithms(page, algorithm.as_deref(), settings)
            .map_err(|(code, message)| Fault::new(code, message))?;
        found.retain(|algorithm| wanted.is_none_or(|wanted| algorithm.collective() == wanted));
        let names: Vec<_> = found.iter().map(|algorithm| algorithm.name().to_owned()).collect();
        match (found.pop(), found.is_empty(), wanted) {
            (Some(one), true, _) => Ok(one),
            (Some(_), false, _) => {
                let what = format!("the source has several algorithms: {}", names.join(", "));
                Err(bad(what, "name the one that is meant"))
            }
            (None, _, Some(wanted)) => {
                let what = format!("the source has no algorithm for {wanted}");
                Err(Fault::new(Code::UnknownAlgorithm, what))
            }
            (None, _, None) => {
                Err(Fault::new(Code::UnknownAlgorithm, "the source has no algorithm".to_owned()))
            }
        }
    }
}

/// Runs the command as a function.
///
/// # Safety
/// There are so many arguments; the others are null, or point to what is written, and `input` ends with a zero.
pub(crate) unsafe fn command(
    nargs: u64,
    args: *const *const c_char,
    input: *const c_char,
    written: [*mut *mut c_char; 2],
    code: *mut c_int,
) -> Outcome<()> {
    // SAFETY: the caller's promise.
    let args = unsafe { texts(args, nargs, "args") }?;
    // SAFETY: the caller's promise.
    let input = if input.is_null() { "" } else { unsafe { text(input, "input") }? };
    let output = roundelay_cli::output(args, input);
    for (to, text) in written.into_iter().zip([output.out, output.err]) {
        if !to.is_null() {
            let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
            // SAFETY: the caller's promise.
            unsafe { to.write_unaligned(text.into_raw()) };
        }
    }
    if !code.is_null() {
        // SAFETY: the caller's promise.
        unsafe { code.write_unaligned(c_int::from(output.code)) };
    }
    Ok(())
}

/// # Safety
/// The text is null, or was made by [`command`] and not freed.
pub(crate) unsafe fn free(text: *mut c_char) {
    if !text.is_null() {
        // SAFETY: the caller's promise.
        drop(unsafe { CString::from_raw(text) });
    }
}

/// Runs the command in the place of this program.
pub(crate) fn main(again: &[&str], args: &[&str]) -> c_int {
    let words = |words: &[&str]| words.iter().map(Into::into).collect();
    c_int::from(roundelay_cli::main_of(words(again), words(args)))
}
