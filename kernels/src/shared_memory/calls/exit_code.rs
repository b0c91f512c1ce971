//! The exit code of this process, for an error that no call can return any more.

use std::ptr::null_mut;
use std::sync::Once;

/// Has this process end with code 1, also where its program ends well.
pub(crate) fn fail() {
    extern "C" fn end() {
        // SAFETY: null stands for all streams of C, and the process ends here.
        unsafe {
            libc::fflush(null_mut());
            libc::_exit(1);
        }
    }
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the function stays, and unwinds nowhere.
        unsafe { libc::atexit(end) };
    });
}
