//! The types of NCCL's functions. What the library does not look at is an address.

use std::ffi::{c_char, c_int, c_void};

/// A buffer that is read.
pub(crate) type In = *const c_void;
/// A buffer that is written, or a handle.
pub(crate) type Out = *mut c_void;
/// A communicator of NCCL.
pub(crate) type Comm = *mut c_void;
/// A stream of CUDA.
pub(crate) type Stream = *mut c_void;
/// A registered window.
pub(crate) type Window = *mut c_void;
/// A text that ends with a zero.
pub(crate) type Text = *const c_char;

/// `ncclUniqueId`, which goes by its value.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct UniqueId([u8; 128]);

impl UniqueId {
    pub(crate) const fn new(bytes: [u8; 128]) -> Self {
        Self(bytes)
    }

    pub(crate) const fn bytes(&self) -> [u8; 128] {
        self.0
    }
}

/// `ncclTeam_t`, which goes by its value.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Team {
    nranks: c_int,
    rank: c_int,
    stride: c_int,
}

/// `ncclResult_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Code(pub(crate) c_int);

impl Code {
    pub(crate) const SUCCESS: Self = Self(0);
    pub(crate) const CUDA: Self = Self(1);
    pub(crate) const SYSTEM: Self = Self(2);
    pub(crate) const INTERNAL: Self = Self(3);
    pub(crate) const INVALID_ARGUMENT: Self = Self(4);
    pub(crate) const INVALID_USAGE: Self = Self(5);
    pub(crate) const REMOTE: Self = Self(6);
    pub(crate) const IN_PROGRESS: Self = Self(7);

    /// Whether something is wrong. A call that goes on is not wrong.
    pub(crate) fn is_wrong(self) -> bool {
        self != Self::SUCCESS && self != Self::IN_PROGRESS
    }
}

/// The result of a function.
pub(crate) trait Answer {
    /// The answer where the real library has no such function.
    const REFUSED: Self;

    /// Whether it says that something is wrong.
    fn is_wrong(&self) -> bool {
        false
    }
}

impl Answer for Code {
    const REFUSED: Self = Self::INVALID_USAGE;

    fn is_wrong(&self) -> bool {
        Self::is_wrong(*self)
    }
}

impl Answer for c_int {
    const REFUSED: Self = -1;
}

impl Answer for () {
    const REFUSED: Self = ();
}

/// No team has no rank.
impl Answer for Team {
    const REFUSED: Self = Self { nranks: 0, rank: 0, stride: 0 };
}

impl Answer for Text {
    const REFUSED: Self = c"".as_ptr();
}
