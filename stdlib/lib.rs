//! Roundelay.
