//! The Roundelay compiler: a page of per-rank step loops becomes a schedule that is proved before it runs.
//!
//! The pipeline is this page, in the order of the modules:
//! **syntax -> check -> schedule -> verify -> optimize -> simulate / emit / run**.
//! Nothing here knows an engine, a thread or a proc macro's bridge.

pub mod source;
pub mod syntax;

pub mod check;

pub mod topology;

pub mod schedule;

pub mod verify;

pub mod optimize;

pub mod simulate;

pub mod executor;

pub mod expansion;

pub mod emit;

pub mod collective;
pub mod cost;
pub mod diagnostics;
pub mod dtype;
pub mod ids;
pub mod lints;
pub mod render;
pub mod stages;

use check::Door;
use check::hir::Program;
use check::others::Others;
use diagnostics::{Diagnostic, Finding};
use schedule::Algorithm;
use schedule::interpret::Interpreted;
use source::Source;
use verify::{Proved, Signals};

/// Syntax and check: from text or tokens to a program that makes sense, or all that is wrong with it.
///
/// It calls no algorithms but its own: see [`compile_with`].
pub fn compile(source: &Source, door: Door) -> Result<Program, Vec<Diagnostic>> {
    compile_with(source, door, &Others::none())
}

/// The same for a source that may call the algorithms of others: of the library, and of files that it uses.
pub fn compile_with(
    source: &Source,
    door: Door,
    others: &Others<'_>,
) -> Result<Program, Vec<Diagnostic>> {
    let (file, mut errors) = syntax::parse(source);
    let checked = check::check(&file, source, door, others, vec![source.name().to_owned()]);
    if errors.is_empty() {
        return checked;
    }
    // What the parser could read is checked too: the author sees all errors at once.
    errors.extend(checked.err().into_iter().flatten());
    Err(errors)
}

/// The checked tree of an algorithm that a macro expanded, with the values of its parameters: for engines that
/// start from the author's loops. `others` are the algorithms of the library.
pub fn reread<A: Algorithm + ?Sized>(
    algorithm: &A,
    others: &Others<'_>,
) -> Result<Interpreted, Vec<Diagnostic>> {
    let text = [&[algorithm.source()][..], algorithm.callees()].concat().join("\n\n");
    let source = Source::from_text(format!("{}.coll", algorithm.name()), &text);
    let program = compile_with(&source, Door::Macro, others)?;
    let own = program.algorithms.into_iter().find(|known| known.name == algorithm.name());
    let own = own.expect("a source in canonical form holds its algorithm");
    let mut read = Interpreted::new(own, &source).standing_where(algorithm);
    for (name, value) in algorithm.given() {
        read.set(name, value).expect("the struct has the fields of the parameters");
    }
    Ok(read)
}

/// Schedule and verify: from an algorithm and a number of ranks to ops that are proved right.
pub fn prove<A: Algorithm + ?Sized>(algorithm: &A, nranks: u32) -> Result<Proved, Vec<Finding>> {
    Proved::new(algorithm.schedule(nranks)?)
}

/// The same for a checked source, with problems at their exact place.
pub fn prove_source(algorithm: &Interpreted, nranks: u32) -> Result<Proved, Vec<Diagnostic>> {
    let place = |all: Vec<Finding>| all.into_iter().map(|f| algorithm.diagnostic(f, nranks));
    prove(algorithm, nranks).map_err(|all| place(all).collect())
}

/// The same for a runtime whose signals are less than counters of their own.
pub fn prove_source_with(
    algorithm: &Interpreted,
    nranks: u32,
    signals: Signals,
) -> Result<Proved, Vec<Diagnostic>> {
    let proved = prove_source(algorithm, nranks)?;
    if signals != Signals::default() {
        verify::verify_with(proved.schedule(), signals).map_err(|findings| {
            let model = format!("with {signals} signals");
            let place = |f| algorithm.diagnostic(f, nranks).note(model.clone());
            findings.into_iter().map(place).collect::<Vec<_>>()
        })?;
    }
    Ok(proved)
}
