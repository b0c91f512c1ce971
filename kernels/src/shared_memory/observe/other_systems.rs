//! Looks at worlds from outside on systems other than Linux, where there are no worlds.

/// A circle of waits.
#[derive(PartialEq, Eq)]
pub(crate) enum Circle {}

impl Circle {
    pub(crate) fn of_process(_: u32) -> Option<Self> {
        None
    }

    pub(crate) fn is_certain(&self) -> bool {
        match *self {}
    }

    pub(crate) fn text(&self) -> String {
        match *self {}
    }

    pub(crate) fn end(&self, _: u32, _: &str) {
        match *self {}
    }
}
