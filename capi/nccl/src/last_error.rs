//! The text of the last error: one for a process, as NCCL has it. It is this library's while the last error was.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::name::Name;
use crate::process::process;
use crate::real::{real, version_text};
use crate::types::Text;

/// The text of this library; null while the last error was the real library's.
static LAST: AtomicPtr<c_char> = AtomicPtr::new(null_mut());

/// Keeps the reason why a function is refused: the real library lacks it, or there is none.
pub(crate) fn refuse(name: Name) {
    static TEXTS: [OnceLock<CString>; Name::COUNT] = [const { OnceLock::new() }; Name::COUNT];
    let text = TEXTS[name as usize].get_or_init(|| {
        let why = match real() {
            Err(why) => {
                let why = format!("every call of NCCL answers 5: there is no NCCL behind this library: {why}");
                process().said.say(&why);
                format!("Roundelay: {name}: {why}")
            }
            Ok(real) => {
                let since = version_text(name.since());
                format!("Roundelay: {name} came with NCCL {since} or earlier, and {} has no such function", real.text())
            }
        };
        CString::new(why).unwrap_or_default()
    });
    LAST.store(text.as_ptr().cast_mut(), Ordering::Release);
}

/// The most texts that are kept: pointers to them stay good.
const KEPT: usize = 1000;

/// Keeps the text of a call that failed here.
pub(crate) fn tell(text: &str) {
    static TEXTS: Mutex<BTreeMap<String, &'static CStr>> = Mutex::new(BTreeMap::new());
    let mut texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    let known = texts.get(text).copied();
    let kept = known.unwrap_or_else(|| {
        if texts.len() >= KEPT {
            return c"Roundelay: a call failed, as many others before";
        }
        let kept = CString::new(format!("Roundelay: {text}")).unwrap_or_default();
        let kept: &'static CStr = Box::leak(kept.into_boxed_c_str());
        texts.insert(text.to_owned(), kept);
        kept
    });
    LAST.store(kept.as_ptr().cast_mut(), Ordering::Release);
}

/// Leaves the last error to the real library.
pub(crate) fn is_theirs() {
    if !LAST.load(Ordering::Relaxed).is_null() {
        LAST.store(null_mut(), Ordering::Release);
    }
}

/// Makes a call whose error is not told.
pub(crate) fn keep<R>(call: impl FnOnce() -> R) -> R {
    let before = LAST.load(Ordering::Acquire);
    let answer = call();
    LAST.store(before, Ordering::Release);
    answer
}

/// The text of this library, if the last error was its.
pub(crate) fn own() -> Option<Text> {
    let text = LAST.load(Ordering::Acquire);
    (!text.is_null()).then(|| text.cast_const())
}
