//! Algorithms by the texts that name them.

use std::ffi::{c_char, c_int};

use roundelay::Algorithm as _;
use roundelay::tools::{self, Settings, words_of};
use roundelay_core::diagnostics::Code;
use roundelay_core::layout::Configured;

use crate::buffers::text;
use crate::codes;
use crate::status::{CallError, Outcome, bad};

/// The code that stands for any collective.
const ANY: c_int = -1;

/// The source of an algorithm: a text, a path or a name, with settings.
pub(crate) struct AlgorithmSource {
    /// A text in the language, or a path, or the name of an algorithm of the library.
    page: String,
    algorithm: Option<String>,
    settings: Settings,
}

impl AlgorithmSource {
    /// Makes a source of a text in the language, or a path, or the name of an algorithm of the library; and words that
    /// choose one of its algorithms and set its parameters.
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
            words_of(words).map_err(|what| CallError::new(Code::BadFlag, what))?;
        Ok(Self { page, algorithm, settings })
    }

    /// Returns the one algorithm of this collective.
    pub(crate) fn algorithm(&self, collective: c_int) -> Outcome<Configured> {
        let wanted = if collective == ANY { None } else { Some(codes::collective(collective)?) };
        let Self { page, algorithm, settings } = self;
        let mut found = tools::algorithms(page, algorithm.as_deref(), settings)
            .map_err(|(code, message)| CallError::new(code, message))?;
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
                Err(CallError::new(Code::UnknownAlgorithm, what))
            }
            (None, _, None) => Err(CallError::new(
                Code::UnknownAlgorithm,
                "the source has no algorithm".to_owned(),
            )),
        }
    }
}
