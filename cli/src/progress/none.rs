//! Progress where no terminal is: nothing is drawn.

/// Returns the result of `work`.
pub(crate) fn shown<T>(work: impl FnOnce() -> T) -> T {
    work()
}

/// Sets the subject of the work under way.
pub(crate) fn about(_: String) {}

/// The progress of a number of steps.
pub(crate) struct Bar;

impl Bar {
    pub(crate) fn new(_: usize) -> Self {
        Self
    }

    pub(crate) fn step(&self) {}

    pub(crate) fn message(&self, _: String) {}

    pub(crate) fn apart(&self, print: impl FnOnce()) {
        print();
    }

    pub(crate) fn clear(&self) {}
}
