//! The resources of a machine that may be limited.

use roundelay_base::named_enum;
use std::fmt;

named_enum! {
    /// A resource that a schedule takes from a machine, which may have a limited amount of it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum Resource {
        /// Scratch of a rank, in units of the count.
        Scratch = "scratch",
        /// Streams of a rank, including its main stream.
        Streams = "streams",
        /// Signal counters from one rank to another.
        Notifies = "notifies",
        /// Peers that a rank sends to, or receives from, in one step.
        Ports = "ports",
        /// Slots of a link of a fifo that must hold data at once.
        Fifo = "fifo",
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
