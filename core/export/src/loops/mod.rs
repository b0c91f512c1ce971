//! The loop form: an algorithm at one number of ranks as one text of statements with loops, for exports that print the
//! loops of a program.
//!
//! | module | holds |
//! |---|---|
//! | `form`, `ir` | a form; its statements, numbers and tables |
//! | `lift` | makes the form of a program, with the values that each rank looked up |
//! | `flat`, `repeats` | makes the form of a schedule, by finding its loops |
//! | `lanes` | the numbers of lanes in a text |
//! | `recognise`, `grids`, `tables`, `columns` | arithmetic in values, and tables of all other values |
//! | `machine`, `events` | runs a form at every rank, and compares its ops with those of the schedule |
//! | `prune` | leaves out variables and blocks without a use |
//! | `text` | the text of a form, and its reader |
//! | `print` | the printer of statements in a language, of which a dialect has what differs |
//! | `cpp`, `scopes`, `reserved` | numbers as expressions of C and C++, and names of variables |
//!
//! A form is made of the program where its loops survive, and of the schedule otherwise. In both cases the machine runs
//! it at every rank, and each op is compared with the proved schedule, before anything is printed. A form of messages is
//! made of their statements, and is compared with the actions of its ranks.

pub(crate) mod columns;
pub(crate) mod cpp;
pub(crate) mod cpp_names;
pub(crate) mod events;
mod flat;
mod form;
mod functions;
mod grids;
pub(crate) mod ir;
pub(crate) mod lanes;
mod lift;
pub(crate) mod machine;
pub(crate) mod printer;
mod prune;
mod recognise;
pub(crate) mod repeats;
pub(crate) mod scopes;
pub(crate) mod tables;
pub mod text;

pub(crate) use form::LoopFunction;
pub use form::Loops;

use flat::FlatStream;
use ir::LoopNode;
use lanes::lanes_in_order;
use lift::Lift;
use machine::RunFacts;
use roundelay_core::diagnostics::{Code, Finding};
use roundelay_core::ids::SpanId;
use roundelay_core::layout::{Algorithm as _, Configured};
use roundelay_core::rational::Rat;
use roundelay_core::schedule::Schedule;
use roundelay_core::syntax::expr_text::Target;
use tables::Tables;

/// The most pieces of a unit: with as many units, no product of the generated code leaves 64 bits.
const MOST_PIECES: u64 = 1 << 24;

/// Returns the number of equal pieces of a unit for which all boundaries of a schedule are whole.
///
/// # Errors
/// E0704 where there are too many.
pub(crate) fn pieces(schedule: &Schedule) -> Result<u64, Vec<Finding>> {
    let ends = schedule.regions.iter().flat_map(|region| [region.base, region.lo, region.hi]);
    whole_pieces(ends, MOST_PIECES).ok_or_else(|| too_fine(MOST_PIECES, "unit"))
}

/// Returns the number of equal pieces of a unit for which all these boundaries are whole. `None` if there are more than
/// `most`.
pub(crate) fn whole_pieces(ends: impl Iterator<Item = Rat>, most: u64) -> Option<u64> {
    let mut ends = ends.map(Rat::den);
    ends.try_fold(1_u64, |pieces, den| {
        let times = Rat::new(den, pieces).map_or(1, Rat::num);
        pieces.checked_mul(times).filter(|pieces| *pieces <= most)
    })
}

/// Returns the finding, E0704, of buffers with more than `most` pieces.
pub(crate) fn too_fine(most: u64, of: &str) -> Vec<Finding> {
    let title = "the buffers are cut at boundaries that no few equal pieces have";
    let finding = Finding::new(Code::NotExportable, SpanId(0), title)
        .note(format!("more than {most} pieces of a {of}"))
        .help("let the splits have numbers of pieces with a small common multiple");
    vec![finding]
}

/// Returns the finding, E0704, of a form that differs from what was proved, which no program is known to cause.
pub(crate) fn differs() -> Vec<Finding> {
    let title = "its form with loops differs from its schedule";
    vec![Finding::new(Code::NotExportable, SpanId(0), title)]
}

impl Loops {
    /// Returns a form without statements.
    fn empty(schedule: &Schedule, pieces: u64) -> Self {
        Self {
            algorithm: schedule.algorithm.clone(),
            collective: schedule.collective,
            nranks: schedule.nranks,
            root: schedule.root,
            of_program: false,
            files: Vec::new(),
            pieces,
            scratch: schedule.scratch.iter().map(|scratch| scratch.name.clone()).collect(),
            vars: Vec::new(),
            tables: Tables { all: Vec::new(), nranks: schedule.nranks },
            functions: Vec::new(),
            body: Vec::new(),
        }
    }

    /// Returns the form of a program, which was not run yet. `None` if its loops do not survive.
    pub(crate) fn lifted(algorithm: &Configured, schedule: &Schedule, pieces: u64) -> Option<Self> {
        let nranks = schedule.nranks;
        let traces = algorithm.traces(nranks).ok()?;
        let collective = algorithm.collective();
        let units = [collective.max_input_units(nranks), collective.max_output_units(nranks)];
        let mut lift = Lift::new(algorithm.program(), &traces, nranks, pieces, units);
        let body = lift.body().ok()?;
        let Lift { files, vars, tables, functions, .. } = lift;
        let form = Self::empty(schedule, pieces);
        let mut loops = Self { of_program: true, files, vars, tables, body, ..form };
        functions.finish(&mut loops);
        Some(loops)
    }

    /// Returns the form of a schedule, which was not run yet, with the lanes of its signals and the numbers of its passes or
    /// without.
    #[doc(hidden)]
    pub fn flat(schedule: &Schedule, pieces: u64, lanes: bool) -> Self {
        let mut flat = Self::empty(schedule, pieces);
        flat.add_flat(schedule, lanes);
        flat
    }

    /// Returns the form of an algorithm with the lanes of all signals, after its run at every rank.
    ///
    /// # Errors
    /// E0704 where the form of the schedule differs from the schedule, which no program is known to cause.
    pub(crate) fn with_lanes(
        algorithm: &Configured,
        schedule: &Schedule,
        pieces: u64,
    ) -> Result<(Self, RunFacts), Vec<Finding>> {
        let lifted = Self::lifted(algorithm, schedule, pieces);
        Self::checked(lifted, || Self::flat(schedule, pieces, true), schedule)
    }

    /// Whether statements may fork streams.
    pub(crate) fn forks(&self, body: &[LoopNode]) -> bool {
        let forks = |node: &LoopNode| match node {
            LoopNode::Streams { .. } => true,
            LoopNode::Do { function, .. } => self.forks(&self.functions[*function].body),
            _ => false,
        };
        body.iter().any(|node| node.any(&forks))
    }

    /// Returns the lanes by their numbers in a text of the form.
    pub(crate) fn lane_numbers(&self, facts: &RunFacts, schedule: &Schedule) -> Vec<Vec<i64>> {
        if self.of_program { lanes_in_order(&facts.lanes) } else { schedule.lanes.clone() }
    }

    /// Whether a signal names its lane.
    pub(crate) fn has_lanes(&self) -> bool {
        let named = |node: &LoopNode| matches!(node, LoopNode::Signal { lane: Some(_), .. });
        let bodies = self.functions.iter().map(|function| &function.body).chain([&self.body]);
        bodies.flatten().any(|node| node.any(&named))
    }

    /// Returns the form of messages and moves, of `many` ranks, which was not run yet. Its numbers are plain, for C.
    pub(crate) fn of_messages(
        schedule: &Schedule,
        pieces: u64,
        of: impl Iterator<Item = FlatStream>,
        many: usize,
    ) -> Self {
        let mut loops = Self::empty(schedule, pieces);
        loops.add_stream(0, of, many, true);
        loops.finish()
    }

    /// Returns the form of an algorithm that was laid out as `schedule`.
    ///
    /// # Errors
    /// E0704 where boundaries need too many equal pieces.
    pub fn from_schedule(
        algorithm: &Configured,
        schedule: &Schedule,
    ) -> Result<Self, Vec<Finding>> {
        Ok(Self::with_lanes(algorithm, schedule, pieces(schedule)?)?.0)
    }

    /// Returns the form of a schedule, whose loops are found in it.
    ///
    /// # Errors
    /// E0704 where boundaries need too many equal pieces.
    pub fn of_schedule(schedule: &Schedule) -> Result<Self, Vec<Finding>> {
        let pieces = pieces(schedule)?;
        Ok(Self::checked(None, || Self::flat(schedule, pieces, false), schedule)?.0)
    }

    /// Runs the form at every rank, and compares it with a schedule, for tests: the most passes of a link, or `None` where
    /// the form differs.
    #[doc(hidden)]
    pub fn passes(&self, schedule: &Schedule) -> Option<u64> {
        machine::check(self, schedule).ok().map(|facts| facts.passes)
    }

    /// Whether the loops are those of the program, and were not found in its schedule.
    pub const fn of_program(&self) -> bool {
        self.of_program
    }

    /// Returns the form after its run at every rank: `lifted`, or the flat form of the schedule if `lifted` differs.
    ///
    /// # Errors
    /// E0704 where the form of the schedule differs from the schedule, which no program is known to cause.
    pub(crate) fn checked(
        lifted: Option<Self>,
        flat: impl FnOnce() -> Self,
        schedule: &Schedule,
    ) -> Result<(Self, RunFacts), Vec<Finding>> {
        let run = |loops: Self| {
            let loops = loops.finish();
            let facts = machine::check(&loops, schedule).ok()?;
            Some((loops, facts))
        };
        lifted.and_then(run).or_else(|| run(flat())).ok_or_else(differs)
    }
}

/// Returns the expression in C of a number that is given by iteration and rank, of loops with these `times`, for tests.
/// `None` where no simple expression is found.
#[doc(hidden)]
pub fn expression(nranks: u32, times: &[usize], of: impl Fn(i64, i64) -> i64) -> Option<String> {
    let ranks: Vec<u32> = (0..nranks).collect();
    let mut place = columns::ColumnPlace::new(&ranks, nranks);
    times.iter().enumerate().for_each(|(var, times)| place.enter(*times, var));
    let row = |at| ranks.iter().map(|rank| of(at, i64::from(*rank))).collect();
    let values = (0..times.iter().product::<usize>() as i64).map(row).collect();
    let text = cpp::NumberText {
        target: Target::Cpp,
        me: "rank",
        shifted: |value| value.to_string(),
        nranks: (nranks, "RANKS"),
        var: &repeats::variable,
        entry: &|table, _| format!("t{table}"),
        least: &machine::LeastSides::new(),
    };
    place.recognised(&values, true).map(|number| text.text(&number).code)
}
