//! A collective as one C99 file that calls MPI: non-blocking sends and receives between ranks, copies and
//! `MPI_Reduce_local` within a rank.
//!
//! The text is printed from the [loop form](crate::loops) of the statements of the two-sided form of a proved schedule.
//! Ranks with the same statements and different numbers share a function; repeated statements become loops; numbers that
//! differ between ranks or iterations are expressions, or tables if no simple expression gives them. Before anything is
//! printed, the loop form is run at every rank, and compared with the actions that were proved.

mod about;
mod check;
mod entry;
mod mpi_program;
mod names;
mod print;
mod statements;

use std::collections::{BTreeMap, BTreeSet};

use crate::loops::printer::Printer;
use crate::loops::{Loops, differs, too_fine, whole_pieces};
use names::{FIELDS, calls, free, function};
use roundelay_core::diagnostics::Finding;
use roundelay_core::messages::FormPart;
use roundelay_core::rational::Rat;
use roundelay_core::schedule::Schedule;
use roundelay_core::syntax::Source;
use roundelay_core::verify::Proof;
use statements::{RankPlaces, statements};

/// The functions that the text may call, each after a line with its name. The called functions come in this order.
const HELPERS: &str = include_str!("helpers.h");

/// The most pieces of a rank's buffers: with any count, no product in the text exceeds 64 bits.
const MOST_PIECES: u64 = 1 << 30;

/// An algorithm for export.
#[derive(Clone, Copy, Debug)]
pub struct Export<'a> {
    /// The ranks of the form with sends and receives that are written, and the proof of the form.
    pub form: &'a FormPart<'a>,
    /// The proof of the author's schedule, in whose steps messages are counted.
    pub author: &'a Proof,
    /// The command that writes this text, for its first line.
    pub command: &'a str,
    /// Lines of the algorithm's doc comment.
    pub docs: &'a [String],
    /// The text that the statements' lines refer to.
    pub source: Option<&'a Source>,
}

/// A C file.
#[derive(Clone, Debug)]
pub struct File {
    /// The name of its function.
    pub function: String,
    /// The text of the file.
    pub text: String,
    /// The most elements of a message, as a multiple of the count.
    pub longest: u64,
}

/// Returns the file of an algorithm.
///
/// # Errors
/// E0704 if buffers are cut too finely for a program that computes with 64 bits.
pub fn mpi(export: &Export<'_>) -> Result<File, Vec<Finding>> {
    let schedule = export.form.schedule;
    let parts = Parts::new(export.form)?;
    let longest = schedule.regions.iter().map(|region| {
        let [lo, hi] = [region.lo, region.hi].map(|end| piece(end, parts.pieces));
        hi - lo
    });
    let longest = longest.max().unwrap_or(0);
    let loops = loops(export.form, parts.pieces);
    let facts = check::check(&loops, export.form).map_err(|_| differs())?;
    let (roles, peers) = (BTreeMap::new(), [None, None]);
    let dialect = print::Mpi { parts: &parts, roles, peers };
    let printer = Printer::new((&loops, &facts.run), export.source, dialect);
    let exchange = printer.functions(export.form);
    let program = entry::Program {
        schedule,
        proof: export.form.proof,
        only: export.form.only(),
        parts: &parts,
        facts: &facts,
        longest,
    };
    let entry = program.entry();
    let before = program.declarations();
    let used = helpers(&(exchange.clone() + &entry));
    let mut file = about::comment(export, &parts.name);
    file += &program.includes(&used);
    file += &before;
    file += &used;
    file += &exchange;
    file += &entry;
    let longest = longest.div_ceil(parts.pieces);
    Ok(File { function: parts.name, text: file, longest })
}

/// The names and sizes of a file.
struct Parts {
    /// The name of the function.
    name: String,
    /// The number of equal pieces of a unit for which all boundaries are whole.
    pieces: u64,
    /// The names of the scratch buffers in C.
    scratch: Vec<String>,
}

impl Parts {
    fn new(form: &FormPart<'_>) -> Result<Self, Vec<Finding>> {
        let schedule = form.schedule;
        let mut taken: BTreeSet<String> = FIELDS.split(' ').map(str::to_owned).collect();
        let scratch = schedule.scratch.iter().map(|s| {
            let name = free(&s.name, |name| taken.contains(name));
            taken.insert(name.clone());
            name
        });
        Ok(Self {
            scratch: scratch.collect(),
            name: function(&schedule.algorithm),
            pieces: pieces(schedule)?,
        })
    }
}

fn pieces(schedule: &Schedule) -> Result<u64, Vec<Finding>> {
    let Schedule { collective, nranks, .. } = *schedule;
    let units = [collective.max_input_units(nranks), collective.max_output_units(nranks)];
    let units = units.map(|units| Rat::whole(units.into()));
    let ends = schedule.regions.iter().flat_map(|region| [region.base, region.lo, region.hi]);
    let widths = schedule.scratch.iter().map(|scratch| scratch.width);
    let all: Vec<Rat> = ends.chain(widths).chain(units).collect();
    let fits = |pieces: &u64| {
        let whole = |end: &Rat| (pieces / end.den()).checked_mul(end.num());
        all.iter().all(|end| whole(end).is_some_and(|piece| piece <= MOST_PIECES))
    };
    let pieces = whole_pieces(all.iter().copied(), MOST_PIECES).filter(fits);
    pieces.ok_or_else(|| too_fine(MOST_PIECES, "buffer"))
}

/// Returns a boundary as a whole number of pieces.
fn piece(end: Rat, pieces: u64) -> u64 {
    end.num() * (pieces / end.den())
}

/// Returns the loop form of the statements of all ranks that are written, which was not run yet.
fn loops(form: &FormPart<'_>, pieces: u64) -> Loops {
    let of = form.of.iter().map(|(rank, actions)| {
        let places = RankPlaces { schedule: form.schedule, rank: *rank, pieces };
        (rank.0, statements(form, places, actions))
    });
    Loops::of_messages(form.schedule, pieces, of, form.of.len())
}

/// Returns the helpers that a text calls, and the helpers that those call.
fn helpers(text: &str) -> String {
    let mut blocks: Vec<(&str, &str)> = vec![];
    let mut parts = HELPERS.split("@@ ");
    let first = parts.next().unwrap_or_default();
    for part in parts {
        blocks.push(part.split_once('\n').unwrap_or((part, "")));
    }
    let mut used = String::new();
    for (name, block) in blocks.iter().rev() {
        if calls(text, name) || calls(&used, name) {
            used = format!("{block}\n{used}");
        }
    }
    format!("{first}\n{used}")
}

/// Returns the loop form of the statements of a form, for tests.
///
/// # Errors
/// E0704 where buffers are cut too finely.
#[doc(hidden)]
pub fn form(of: &FormPart<'_>) -> Result<Loops, Vec<Finding>> {
    Ok(loops(of, pieces(of.schedule)?))
}

/// Whether a loop form does what was proved of a form, for tests.
#[doc(hidden)]
pub fn is_form(loops: &Loops, of: &FormPart<'_>) -> bool {
    check::check(loops, of).is_ok()
}
