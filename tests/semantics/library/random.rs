//! Random values.
