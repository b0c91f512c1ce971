//! Algorithms as programs for MSCCL's runtime. The two-sided form of a proved schedule is cut into chunks; its sends,
//! receives and folds become steps of blocks; the text is read again and proved before it is returned.
//!
//! A program is tried in two shapes. In the first, a block receives, reduces and sends in one step wherever a rank
//! forwards data, as in rings. Such blocks can wait for each other if a step takes several messages. Then the second
//! shape is better: each end of a connection has a block of its own, and calls of every size end.

mod chunks;
mod fusion;
mod global_ops;
mod limits;
mod thread_blocks;
mod write;

use std::sync::Arc;

use super::{Connections, Runtime, names, read};
use crate::terms::Protocol;
use crate::{Verdict, first_of_many};
use chunks::Grid;
use fusion::FusionShape;
use roundelay_core::collective::Collective;
use roundelay_core::diagnostics::{Code, Diagnostic, Finding};
use roundelay_core::ids::{RankId, SpanId};
use roundelay_core::layout::Algorithm;
use roundelay_core::messages::TwoSided;
use roundelay_core::optimize::join;
use roundelay_core::stages::stage;
use roundelay_core::syntax::Source;
use thread_blocks::{Ends, Plan};

/// The target of an exported program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The protocol of the connections.
    pub protocol: Protocol,
    /// Copies of the algorithm, each on a part of the data and in channels of its own.
    pub instances: u32,
    /// The runtime, whose limits and buffer sizes the program keeps.
    pub runtime: Runtime,
}

/// A program that was written, read again and proved.
#[derive(Clone, Debug)]
pub struct Exported {
    /// The XML.
    pub text: String,
    /// The XML with the places that warnings point at.
    pub source: Arc<Source>,
    /// Warnings of text that the runtime passes over.
    pub warnings: Vec<Diagnostic>,
    /// The verdict on the program that was read again.
    pub verdict: Verdict,
}

/// The least and most bytes of calls that a program declares.
///
/// The least is a byte for each chunk: with fewer bytes some chunks have no element. The most is the size in
/// [`Verdict::safe`], or the runtime's number for any size if all calls end.
#[derive(Clone, Copy, Debug, Default)]
struct Sizes {
    min: u64,
    max: u64,
}

/// Returns the algorithm as a program.
///
/// # Errors
/// E0704 for a collective without counterpart, for cuts that are not whole chunks, and for a limit of the runtime;
/// E0425 for a fault of this module.
pub fn export(form: &TwoSided, options: Options) -> Result<Exported, Vec<Finding>> {
    stage("export", || made(form, options)).map_err(|why| vec![*why])
}

/// Checks whether the program of an algorithm for `nranks` ranks keeps the limits of the runtime, as far as the
/// schedule of rank 0 shows: for many ranks this is much faster than a proof of the whole schedule.
///
/// # Errors
/// The E0704 errors of [`export`] that rank 0 has.
pub fn fits<A: Algorithm + ?Sized>(
    algorithm: &A,
    nranks: u32,
    options: Options,
) -> Result<(), Vec<Finding>> {
    let Some(own) = first_of_many(algorithm, nranks) else { return Ok(()) };
    name(own.collective, options.runtime)
        .and_then(|_| limits::of_rank(&join(&own), RankId(0), options))
        .map_err(|why| vec![*why])
}

fn made(form: &TwoSided, options: Options) -> Result<Exported, Box<Finding>> {
    if let Some(late) = form.schedule().rounds_late() {
        return Err(late);
    }
    let grid = Grid::new(form, options)?;
    let (ops, channels) = global_ops::all(form, &grid, options)?;
    limits::of_links(&ops.links, options)?;
    let mut best: Result<Exported, Box<Finding>> = Err(unfit("it has no shape"));
    for shape in [FusionShape::Through, FusionShape::Apart] {
        let order = fusion::order(&ops, &grid, options, shape)?;
        let places = Ends::new(&ops, &order, grid.nranks as usize);
        let one = limits::of_blocks(&places.blocks, options).and_then(|()| {
            let plan = thread_blocks::plan(places, &ops, &order, &grid);
            limits::check(&plan, channels, options)?;
            proved(form, &grid, &plan, channels, options)
        });
        match (one, &best) {
            (Ok(one), _) if ends(&one) => return Ok(one),
            // The first shape that ends at some size is kept, or else the error of the first shape.
            (Ok(one), Err(_)) => best = Ok(one),
            (Err(why), Err(_)) if shape == FusionShape::Through => best = Err(why),
            _ => {}
        }
    }
    best
}

/// Whether calls of every size end.
fn ends(exported: &Exported) -> bool {
    exported.verdict.safe.is_some_and(|safe| safe.bytes.is_none())
}

/// Returns the proved program of a plan, with the sizes of calls that end.
fn proved(
    form: &TwoSided,
    grid: &Grid,
    plan: &Plan,
    channels: u32,
    options: Options,
) -> Result<Exported, Box<Finding>> {
    let unlimited = match options.runtime {
        // This runtime has no number for any size.
        Runtime::Microsoft => LARGEST,
        Runtime::Rccl | Runtime::Azure => 0,
    };
    let mut sizes = Sizes { min: grid.chunks(), max: unlimited };
    let connections = Connections { runtime: options.runtime, buffer: None };
    for _ in 0..2 {
        let text = write::write(form, grid, plan, channels, options, sizes);
        let back = read("export", text.as_bytes(), Some(options.runtime));
        let program = match (back.program, back.errors.first()) {
            (Some(program), None) => program,
            (_, why) => return Err(fault(form, why)),
        };
        let verdict = program.verdict(&back.source, &connections);
        if verdict.is_right() {
            let (source, warnings) = (back.source, back.warnings);
            return Ok(Exported { text, source, warnings, verdict });
        }
        match verdict.safe.and_then(|safe| safe.bytes).filter(|bytes| *bytes != sizes.max) {
            Some(bytes) if verdict.modes.iter().all(|mode| mode.errors.is_empty()) => {
                sizes.max = bytes;
            }
            _ => return Err(fault(form, verdict.errors().next())),
        }
    }
    Err(fault(form, None))
}

/// The bytes of a call that stand for any size in a runtime that has no number for it: a tebibyte.
const LARGEST: u64 = 1 << 40;

/// Returns the name that the runtime reads for a collective.
fn name(collective: Collective, runtime: Runtime) -> Result<&'static str, Box<Finding>> {
    names::written(collective, runtime).ok_or_else(|| {
        let title = format!("{collective} has a root, and programs for MSCCL have none");
        let why = "the runtime takes a program by collective, ranks and size, so this one would run for other roots";
        Box::new(Finding { notes: vec![why.to_owned()], ..*unfit(title) })
    })
}

/// Returns an error for an algorithm that this form cannot express.
fn unfit(title: impl Into<String>) -> Box<Finding> {
    Box::new(Finding::new(Code::NotExportable, SpanId(0), title))
}

/// Returns an error for a program that differs from its schedule.
fn fault(form: &TwoSided, why: Option<&Diagnostic>) -> Box<Finding> {
    let why =
        why.map_or("it has no verdict".to_owned(), |why| format!("{} [{}]", why.title, why.code));
    let title = format!("the program for MSCCL of {}: {why}", form.schedule().algorithm);
    let finding = Finding::new(Code::Unproved, SpanId(0), title);
    Box::new(finding.note("this is a fault of the compiler, not of the program"))
}
