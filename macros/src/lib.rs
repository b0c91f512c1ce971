//! The procedural macros of Roundelay.
