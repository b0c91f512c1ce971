//! What a launch of a generated kernel takes and leaves, whoever launches it: plain arithmetic, no driver.

mod layout;
mod watch;

pub use layout::{Buffers, Layout, TooLarge};
pub use watch::stuck;
