//! A rank's buffers in its own memory.

/// A rank's input and output in its own memory, for one call.
#[derive(Clone, Copy)]
pub struct UserBuffers {
    pub(crate) input: *const u8,
    pub(crate) output: *mut u8,
    /// Whether the call is a check on known data, which meets no other call.
    pub(crate) check: bool,
}

impl UserBuffers {
    /// Takes the addresses of a rank's buffers.
    pub fn new(input: *const u8, output: *mut u8) -> Self {
        Self { input, output, check: false }
    }

    /// Makes the call on these buffers a check.
    pub(crate) fn for_a_check(self) -> Self {
        Self { check: true, ..self }
    }
}
