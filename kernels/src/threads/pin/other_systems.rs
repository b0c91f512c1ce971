//! Systems on which no thread is kept on a core: each thread stays where the system puts it, which is slower at worst.

/// Keeps the calling thread on one core on Linux; here the thread stays where the system puts it.
pub fn stay_on_core(_: u32) {}

/// The cores that a thread may run on, which are not known here.
#[derive(Default)]
pub(super) struct Affinity {}

impl Affinity {
    #[allow(clippy::unused_self, reason = "on Linux it has cores")]
    pub(super) fn go(&mut self, _: Option<u32>) {}
}
