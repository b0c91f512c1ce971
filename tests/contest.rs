//! Executors in the contest's form: exported C++ under a stub runtime leaves the host's bits, and what a published
//! entry did wrong goes wrong here and not in what is exported.

#[path = "contest/executable.rs"]
mod executable;
#[path = "contest/export.rs"]
mod export;
#[path = "contest/exports.rs"]
mod exports;
#[path = "contest/mistakes.rs"]
mod mistakes;
