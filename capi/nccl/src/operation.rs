//! An operation as the program called it, and what takes operations.

use std::ffi::c_int;
use std::ptr::{null, null_mut};

use crate::name::Name;
use crate::types::{Code, Comm, In, Out, Stream};
use crate::why::Why;

/// A call that moves or combines data on a stream. An argument that its function does not have is null or zero.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operation {
    pub(crate) name: Name,
    pub(crate) send: In,
    pub(crate) recv: Out,
    /// Elements.
    pub(crate) count: usize,
    pub(crate) dtype: c_int,
    pub(crate) op: c_int,
    /// The root, or the peer of a send or a receive.
    pub(crate) root: c_int,
    pub(crate) comm: Comm,
    pub(crate) stream: Stream,
    /// `ncclCollConfig_t`.
    pub(crate) config: In,
    /// The call of the real library.
    pub(crate) pass: unsafe fn(&Self) -> Code,
}

impl Operation {
    /// An operation without arguments.
    pub(crate) const fn new(name: Name, pass: unsafe fn(&Self) -> Code) -> Self {
        Self {
            name,
            send: null(),
            recv: null_mut(),
            count: 0,
            dtype: 0,
            op: 0,
            root: 0,
            comm: null_mut(),
            stream: null_mut(),
            config: null(),
            pass,
        }
    }

    /// Has the real library make the call.
    pub(crate) fn pass(&self) -> Code {
        // SAFETY: the arguments are the program's for this function, which promises that they are valid.
        unsafe { (self.pass)(self) }
    }
}

/// An operation that was taken: it runs here, and not in the real library.
pub(crate) trait Taken: Sized {
    /// Takes an operation, which starts now or at the end of a group.
    ///
    /// # Errors
    /// Why it does not run here.
    fn take(operation: &Operation, in_group: bool) -> Result<Self, Left>;

    /// Makes the operations of a group ready to start.
    ///
    /// # Errors
    /// Why they do not run here, alike on all ranks: none has started.
    fn prepare(group: &mut [Self]) -> Result<(), Left>;

    /// Starts the operations of a group, in their order, each on its stream.
    fn run(group: Vec<Self>) -> Code;

    /// Has the real library make a call that starts operations of communicators on streams.
    fn pass(on: &[(Comm, Stream)], call: impl FnOnce() -> Code) -> Code;
}

/// Why an operation does not run here.
#[derive(Clone, Debug)]
pub(crate) enum Left {
    /// It is the real library's.
    Passed(Why),
    /// It failed with this error, which is told.
    Refused(Code),
}
