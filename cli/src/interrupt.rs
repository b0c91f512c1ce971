//! Ctrl-C: the first one ends the work with the results so far, the second one ends the process.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// The exit code of a command that Ctrl-C ended, as shells have it.
pub(crate) const ENDED: u8 = 130;

/// Whether Ctrl-C was typed.
fn typed() -> &'static Arc<AtomicBool> {
    static TYPED: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    TYPED.get_or_init(|| {
        let typed = Arc::new(AtomicBool::new(false));
        #[cfg(target_os = "linux")]
        {
            use signal_hook::consts::SIGINT;
            use signal_hook::flag;
            // The process goes on as before where the system refuses: Ctrl-C then ends it at once.
            _ = flag::register_conditional_shutdown(SIGINT, ENDED.into(), typed.clone())
                .and_then(|_| flag::register(SIGINT, typed.clone()));
        }
        typed
    })
}

/// Whether Ctrl-C ended work of this process.
pub(crate) fn happened() -> bool {
    typed().load(Ordering::Relaxed)
}

/// Returns what tells work that Ctrl-C ends it. A program that calls the command as a function handles Ctrl-C by itself.
pub(crate) fn stop() -> Option<fn() -> bool> {
    (!crate::streams::is_kept()).then_some(happened)
}
