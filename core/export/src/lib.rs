//! Exports of a program or a schedule of Roundelay: texts for other compilers and runtimes, files of other languages
//! of collectives, and pictures.
//!
//! | module | from | makes |
//! |---|---|---|
//! | [`cuda`] | a checked algorithm | the text of a CUDA kernel, with the facts that its launch needs |
//! | [`loops`] | a program, or a schedule | one text of statements with loops for all ranks |
//! | [`contest`] | a program, by its loop form | a C++ class in the form of a contest's executors |
//! | [`mpi`] | a proved schedule | a C file that an MPI job calls |
//! | [`goal`] | a proved schedule | a GOAL file, for simulators of networks |
//! | [`unrolled`] | a proved schedule | a page of statements without loops |
//! | [`steps`] | a proved schedule | each rank's statements, as a table |
//! | [`exchange`] | files of MSCCL and MSCCL++ | the schedule that those runtimes run; and back |
//! | [`spacetime`], [`topology_svg`] | a simulated run, a topology | pictures |
//!
//! This crate depends on the compiler, `roundelay-core`, and not the reverse.

use roundelay_core::diagnostics::{Code, Finding};
use roundelay_core::schedule::Schedule;

pub mod contest;
pub mod cuda;
pub mod exchange;
pub mod goal;
pub mod loops;
pub mod mpi;
#[doc(hidden)]
pub mod picture;
pub mod rust;
pub mod spacetime;
pub mod steps;
pub mod topology_svg;
pub mod trees;
pub mod unrolled;

/// Returns the finding, E0704, of a schedule whose sums are wider than its elements, for a runtime that rounds each sum of
/// two elements to their type.
fn rounds_late(schedule: &Schedule) -> Option<Box<Finding>> {
    let (at, why) = schedule.rounds_late()?;
    let title = format!("{why}, and the runtime rounds after each reduce");
    let finding = Finding::new(Code::NotExportable, at, title);
    Some(Box::new(finding.help("write one `reduce` for each source, and scratch without `as f32`")))
}
