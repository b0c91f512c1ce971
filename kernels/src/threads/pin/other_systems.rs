//! Systems on which no thread is kept on a core: each thread stays where the system puts it, which is slower at worst.

/// The variable that switches affinity off where there is any.
pub const AFFINITY: &str = "ROUNDELAY_AFFINITY";

/// Keeps the calling thread on one core on Linux; here the thread stays where the system puts it.
pub fn stay_on_core(_: u32) {}

/// Keeps the calling thread on the core of a rank on Linux; here the thread stays where the system puts it.
pub fn stay_in_place(_: u32, _: u32) {}

/// Keeps the calling thread on the share of a rank on Linux; here the thread stays where the system puts it.
pub fn stay_in_share(_: u32, _: u32) {}

/// Returns the processors of a rank's share on Linux; none here.
pub fn share(_: u32, _: u32) -> Vec<u32> {
    Vec::new()
}

#[allow(dead_code, reason = "only ranks of Linux are processes with a GPU each")]
pub(crate) fn stay_near(_: &str) {}

/// The cores that a thread may run on, which are not known here.
#[derive(Default)]
pub(super) struct Affinity {}

impl Affinity {
    #[allow(clippy::unused_self, reason = "on Linux it has cores")]
    pub(super) fn go(&mut self, _: Option<u32>) {}
}
