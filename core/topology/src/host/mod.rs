//! A host as the files of its system describe it, below a [`Root`]: the processors that its ranks may run on ([`Cores`]).
//!
//! Every path is below the root, which is `/` or a folder with a copy of another host's files. The files are not
//! trusted: they may be missing, huge, of another kind, or contradict each other, and none of that is an error here.

mod cores;
mod root;

pub use cores::{Core, Cores, NODES, folder_numbers, list, numbers};
pub use root::Root;
