//! The Roundelay compiler: a source of step loops, written for one rank, becomes a schedule that is proved before it
//! runs.
//!
//! The pipeline is this crate, in the order of the modules:
//! **syntax -> check -> program -> layout -> schedule -> verify -> optimize -> messages / expansion / run**.
//! Its words are those of `roundelay_base`, and its machines are graphs of `roundelay_topology`. The time of a schedule
//! and its other forms (kernels, C, pictures, files of other runtimes) are crates beside it. This crate knows no engine,
//! no thread and no bridge of a proc macro.

pub mod syntax;

pub mod values;

pub mod check;

pub mod topology;

pub mod program;

pub mod layout;

pub mod schedule;

pub mod verify;

pub mod optimize;

pub mod messages;

pub mod trace;

pub mod symmetry;

pub mod executor;

pub mod explanation;

pub mod certificate;

pub mod verdict;

pub mod expansion;

pub mod render;
pub mod uneven;

pub use roundelay_base::{
    collective, counts, diagnostics, dtype, foreign, ids, json, line, lints, random, rational,
    source, stages, turns, units,
};

use check::dependencies::{Dependencies, Sources};
use check::{CheckedSource, Frontend};
use diagnostics::{Diagnostic, Finding};
use ids::RankId;
use layout::{Algorithm, Configured};
use program::CompiledSource;
use schedule::Schedule;
use symmetry::{Asymmetric, NoProof, SymmetricProof};
use syntax::Source;
use verify::{Proved, Signals};

/// Parses and checks a source: from text or tokens to programs whose names and types are right.
///
/// The source may call only its own algorithms; [`compile_with`] admits others.
///
/// # Errors
/// All errors of the source, each at its place: E00xx and E01xx.
pub fn compile(source: &Source, frontend: Frontend) -> Result<CompiledSource, Vec<Diagnostic>> {
    compile_with(source, frontend, &Dependencies::none())
}

/// Parses and checks a source that may call the algorithms of `dependencies`: those of the library, and of files that
/// the source uses.
///
/// # Errors
/// All errors of the source, each at its place: E00xx and E01xx (E0122 where a used file cannot be read, or is
/// wrong).
pub fn compile_with(
    source: &Source,
    frontend: Frontend,
    dependencies: &Dependencies<'_>,
) -> Result<CompiledSource, Vec<Diagnostic>> {
    let (checked, errors) = examine(source, frontend, dependencies);
    if errors.is_empty() { Ok(program::lower(&checked, source)) } else { Err(errors) }
}

/// Parses and checks a source, and returns its declarations, as far as they could be checked, with all its errors. An
/// editor shows names and types of a program that is not right yet; every other caller takes [`compile_with`].
pub fn examine(
    source: &Source,
    frontend: Frontend,
    dependencies: &Dependencies<'_>,
) -> (CheckedSource, Vec<Diagnostic>) {
    let (file, mut errors) = syntax::parse(source);
    // The part that the parser could read is checked too: the author sees all errors at once.
    let sources = Sources::new(dependencies);
    let open = vec![sources.start(source)];
    let (checked, found) = check::checked(&file, source, frontend, &sources, open, &[]);
    errors.extend(found);
    (checked, errors)
}

/// Lays out an algorithm for `nranks` ranks, and proves the schedule.
///
/// # Errors
/// All findings, the worst first: E02xx where it cannot be laid out for `nranks` ranks, E03xx where it is wrong.
pub fn prove<A: Algorithm + ?Sized>(algorithm: &A, nranks: u32) -> Result<Proved, Vec<Finding>> {
    Proved::new(algorithm.schedule(nranks)?)
}

/// Lays out an algorithm of a checked source for `nranks` ranks, and proves the schedule.
///
/// # Errors
/// The errors of [`prove`], each at its exact place in the source.
pub fn prove_source(algorithm: &Configured, nranks: u32) -> Result<Proved, Vec<Diagnostic>> {
    prove(algorithm, nranks).map_err(|all| explanation::explain(algorithm, all, nranks))
}

/// The number of ranks from which on one rank is tried to stand for all.
pub const MANY: u32 = 256;
/// The number of ranks up to which a mistake is told by the proof of all ranks.
const TOLD: u32 = 1024;

/// The proof of an algorithm for a number of ranks.
#[derive(Clone, Debug)]
pub enum AnyProof {
    /// The ops of all ranks were replayed; where one rank was tried to stand for all, with the construct by which the
    /// ranks do not all do the same, and its line.
    Direct(Proved, Option<String>),
    /// The ops of one rank, which stands for all, were replayed.
    Symmetric(Box<SymmetricProof>),
}

impl AnyProof {
    /// Returns the root of the schedule.
    pub fn root(&self) -> RankId {
        match self {
            Self::Direct(all, _) => all.schedule().root,
            Self::Symmetric(one) => one.of.own.root,
        }
    }

    /// Returns the number of ops of all ranks.
    pub fn ops(&self) -> u64 {
        match self {
            Self::Direct(all, _) => all.schedule().ops.len() as u64,
            Self::Symmetric(one) => one.ops(),
        }
    }
}

/// Returns the ops of one rank, in a schedule without those of the others. Where the ranks must be laid out together and
/// are many, they are those of the rank that stands for all, if one does.
///
/// # Errors
/// Those of [`layout::one_rank`].
pub fn one_rank<A: Algorithm + ?Sized>(
    algorithm: &A,
    nranks: u32,
    rank: RankId,
) -> Result<Schedule, Vec<Finding>> {
    if nranks >= MANY
        && rank.0 < nranks
        && layout::is_together(algorithm, nranks)?
        && let Ok(of) = symmetry::representative(algorithm, nranks)
        && let Some(own) = of.of_rank(rank)
    {
        return Ok(own);
    }
    layout::one_rank(algorithm, nranks, rank)
}

/// Proves an algorithm of a checked source as [`prove_source_with`] does; where there are many ranks and one stands for
/// all, by the ops of this one.
///
/// # Errors
/// The errors of [`prove_source_with`]; where the ops of all ranks are beyond a limit, with the construct by which the
/// ranks do not all do the same.
pub fn prove_many(
    algorithm: &Configured,
    nranks: u32,
    signals: Signals,
) -> Result<AnyProof, Vec<Diagnostic>> {
    let direct = || prove_source_with(algorithm, nranks, signals);
    if nranks < MANY || signals != Signals::default() || algorithm.topology().is_some() {
        return direct().map(|proved| AnyProof::Direct(proved, None));
    }
    let left = match symmetry::prove(algorithm, nranks) {
        Ok(proof) => return Ok(AnyProof::Symmetric(Box::new(proof))),
        Err(NoProof::Wrong(_)) if nranks <= TOLD => {
            return direct().map(|proved| AnyProof::Direct(proved, None));
        }
        Err(NoProof::Wrong(found)) => {
            let told = |finding| algorithm.diagnostic(finding, nranks);
            return Err(found.into_iter().map(told).collect());
        }
        Err(NoProof::Asymmetric(left)) => left,
    };
    let place = match &left {
        Asymmetric::Leaves(leaves) => algorithm.program().locations.get(leaves.at.index()),
        _ => None,
    };
    let line = place.map_or_else(String::new, |place| format!("line {}: ", place.line));
    let why = format!("{line}{}", left.why());
    match direct() {
        Ok(proved) => Ok(AnyProof::Direct(proved, Some(why))),
        Err(errors) => {
            let note = format!("no rank stands for all: {why}");
            let told = |error: Diagnostic| match error.code {
                diagnostics::Code::StepLimit => error.note(note.clone()),
                _ => error,
            };
            Err(errors.into_iter().map(told).collect())
        }
    }
}

/// Lays out an algorithm of a checked source for `nranks` ranks, and proves the schedule also for a runtime with the
/// given `signals`, which may be weaker than a counter for each pair of ranks, such as flags that hold one signal.
///
/// # Errors
/// The errors of [`prove_source`], with a note on the model of signals; E0314 where a signal is lost.
pub fn prove_source_with(
    algorithm: &Configured,
    nranks: u32,
    signals: Signals,
) -> Result<Proved, Vec<Diagnostic>> {
    kept_with(algorithm, prove_source(algorithm, nranks)?, signals)
}

/// Returns a proved schedule of an algorithm if it is right with other `signals`, too.
fn kept_with(
    algorithm: &Configured,
    proved: Proved,
    signals: Signals,
) -> Result<Proved, Vec<Diagnostic>> {
    let place = |f| algorithm.diagnostic(f, proved.schedule().nranks);
    let errors = lost_with(&proved, signals, |found| found.into_iter().map(place).collect());
    if errors.is_empty() { Ok(proved) } else { Err(errors) }
}

/// Returns the errors of a proved schedule with other `signals`, which `place` gives their places; none where these are
/// those of its proof.
fn lost_with(
    proved: &Proved,
    signals: Signals,
    place: impl FnOnce(Vec<Finding>) -> Vec<Diagnostic>,
) -> Vec<Diagnostic> {
    if signals == Signals::default() {
        return Vec::new();
    }
    let found = verify::verify_with(proved.schedule(), signals).err().unwrap_or_default();
    let model = format!("with {signals} signals");
    place(found).into_iter().map(|error| error.note(&model)).collect()
}
