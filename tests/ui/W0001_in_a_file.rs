//! The warning of a file stands where the file is named, with its own place spelled out.
#![deny(deprecated)]

roundelay::include_collective!("data/warned.coll");
