//! Signal elision.
