//! Messages between hosts by UCX, an engine for the networks of clusters: its library is found when the program runs, and
//! called through pointers. The crate links no library, and needs no header.
//!
//! functions (pointers to the library's functions, and their structures) -> library (where it is) -> worker (its
//! endpoints and operations) -> carrier (messages between the ranks of a job that have met by TCP).

mod carrier;
mod functions;
mod library;
#[cfg(test)]
mod tests;
mod worker;

pub use carrier::UcxCarrier;
