//! A proved schedule as an algorithm of the language without loops: the lines that each rank runs.
//!
//! It is written from the two-sided form. A sender signals that its data is there; the receiver pulls it and signals
//! that it has taken it. Two ranks signal messages in the order in which these begin, in any lane: so one counter for
//! each signal is enough. To wait for a message before a later one from the same rank costs no time and cannot block,
//! since its sender also signals it before the later one. The text is read again and proved before it is returned.

mod move_lines;
mod regions;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;

use move_lines::Move;
use regions::Regions;
use roundelay_core::check::Frontend;
use roundelay_core::diagnostics::{Code, Diagnostic, Finding};
use roundelay_core::ids::{RankId, SpanId};
use roundelay_core::layout::Configured;
use roundelay_core::messages::{Action, Message, MessageId, TwoSided};
use roundelay_core::schedule::Operand;
use roundelay_core::stages::stage;
use roundelay_core::syntax::{Source, parse, printer};
use roundelay_core::units::wrap;
use roundelay_core::{compile, prove_source};

/// A schedule for export.
#[derive(Clone, Copy, Debug)]
pub struct Export<'a> {
    /// The form with sends and receives.
    pub form: &'a TwoSided,
    /// The name of the file that the algorithm was read from.
    pub file: &'a str,
}

/// Returns the algorithm, in canonical form.
///
/// # Errors
/// E0704 for a move that the language has no line for, for cuts that are too fine, and for a text that cannot be
/// proved.
pub fn unroll(export: &Export<'_>) -> Result<String, Vec<Finding>> {
    stage("export", || made(export)).map_err(|why| vec![*why])
}

fn made(export: &Export<'_>) -> Result<String, Box<Finding>> {
    let schedule = export.form.schedule();
    let regions = Regions::new(export.form)?;
    let mut body = String::new();
    for rank in (0..schedule.nranks).map(RankId) {
        let lines = Lines::of(export.form, &regions, rank)?;
        if !lines.is_empty() {
            let _ = write!(body, "\nif rank == {rank} {{\n{lines}}}\n");
        }
    }
    let text = head(export) + &regions.declared() + &body + "}\n";
    read_back(export, &text)
}

/// Returns an error for a schedule that cannot be written as an algorithm.
fn unfit(title: impl Into<String>) -> Box<Finding> {
    Box::new(Finding::new(Code::NotExportable, SpanId(0), title))
}

/// Returns the text before the buffers' declarations.
fn head(export: &Export<'_>) -> String {
    let schedule = export.form.schedule();
    let (name, collective, nranks) = (&schedule.algorithm, schedule.collective, schedule.nranks);
    let file = one_line(export.file);
    let counts = match schedule.multiple {
        1 => "every count".to_owned(),
        multiple => format!("counts that are multiples of {multiple}"),
    };
    let modes =
        if export.form.proof().in_place { "out of place and in place" } else { "out of place" };
    let told = format!(
        "Written by `roundelay emit coll`, which proved it for {counts}, {modes}: no deadlock, no data race, every \
         contribution exactly once. `TxDataSignal` says that data is there, its peer pulls it, and `TxAck` says that it \
         was taken.",
    );
    let name_there = one_line(name);
    let mut text = format!(
        "/// `{name_there}` of {file}, line by line for each of its {nranks} ranks.\n///\n"
    );
    for line in wrap(&told, 100) {
        let _ = writeln!(text, "/// {line}");
    }
    let _ = writeln!(text, "#[verify(nranks = {nranks})]");
    if schedule.out_of_place {
        text.push_str("#[out_of_place]\n");
    }
    let root = schedule.root;
    let params =
        if collective.is_rooted() { format!("root: Rank = {root}") } else { String::new() };
    let _ = writeln!(text, "pub algorithm {}({params}) -> {collective} {{", identifier(name));
    let _ = writeln!(text, "require nranks == {nranks}, \"written for {nranks} ranks\";");
    if collective.is_rooted() {
        let _ = writeln!(text, "require root == {root}, \"written for the root {root}\";");
    }
    if schedule.multiple > 1 {
        let why = "chunks are equally long";
        let _ = writeln!(text, "require count % {} == 0, \"{why}\";", schedule.multiple);
    }
    text
}

/// Returns a name on one line, for a comment.
fn one_line(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Returns a name as an algorithm's: `allreduce_ring` becomes `AllreduceRing`.
fn identifier(name: &str) -> String {
    let mut all = String::new();
    for word in name.split(|c: char| !c.is_ascii_alphanumeric()) {
        let mut letters = word.chars();
        all.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        all.push_str(letters.as_str());
    }
    if all.starts_with(|c: char| c.is_ascii_alphabetic()) { all } else { format!("Program{all}") }
}

/// Returns the text in canonical form, if it compiles and its proof is not weaker than the schedule's.
fn read_back(export: &Export<'_>, text: &str) -> Result<String, Box<Finding>> {
    let schedule = export.form.schedule();
    let refused = |errors: &[Diagnostic]| {
        let why = errors.first().map_or_else(String::new, |first| {
            format!("the compiler says of it: {} [{}]", first.title, first.code)
        });
        unfit("written line by line, it is not proved").note(why)
    };
    let (file, errors) = parse(&Source::from_text("unrolled.coll", text));
    if !errors.is_empty() {
        return Err(Box::new(refused(&errors)));
    }
    let text = printer::print_with_trivia(&file, &Source::from_text("unrolled.coll", text));
    let source = Source::from_text("unrolled.coll", &text);
    let checked = compile(&source, Frontend::File).map_err(|errors| Box::new(refused(&errors)))?;
    let Some(algorithm) = checked.algorithms.into_iter().next() else {
        return Err(Box::new(refused(&[])));
    };
    let proved = prove_source(&Configured::new(algorithm, &source), schedule.nranks)
        .map_err(|errors| Box::new(refused(&errors)))?;
    let (theirs, ours) = (export.form.proof(), proved.proof());
    if theirs.in_place && !ours.in_place || theirs.one_mode.is_none() && ours.one_mode.is_some() {
        let title = "written line by line, it no longer runs in place";
        return Err(unfit(title));
    }
    Ok(text)
}

/// The lines of a rank under construction.
struct Lines<'a> {
    form: &'a TwoSided,
    regions: &'a Regions<'a>,
    rank: RankId,
    peers: BTreeSet<RankId>,
    /// Messages on their way, by whether this rank sends them and by peer, in the order in which they began.
    open: BTreeMap<(bool, RankId), VecDeque<MessageId>>,
    /// The move to write next, which a later one may extend.
    next: Option<Move>,
    text: String,
}

impl<'a> Lines<'a> {
    fn of(
        form: &'a TwoSided,
        regions: &'a Regions<'a>,
        rank: RankId,
    ) -> Result<String, Box<Finding>> {
        let (peers, open) = (BTreeSet::new(), BTreeMap::new());
        let mut all = Self { form, regions, rank, peers, open, next: None, text: String::new() };
        for action in form.actions(rank) {
            all.action(*action)?;
        }
        all.done()?;
        let peers = all.peers.iter().map(|peer| format!("let p{peer} = peer({peer});\n"));
        Ok(peers.collect::<String>() + &all.text)
    }

    fn action(&mut self, action: Action) -> Result<(), Box<Finding>> {
        match action {
            Action::Send(id) => {
                let Message { to, source, .. } = *self.form.message(id);
                self.done()?;
                self.peers.insert(to);
                let source = Operand { rank: self.rank, region: source };
                let what = self.regions.whole(source);
                let _ = writeln!(self.text, "p{to}.TxDataSignal(); // {what}");
                self.open.entry((true, to)).or_default().push_back(id);
            }
            Action::Receive(id) => {
                let Message { from, .. } = *self.form.message(id);
                self.peers.insert(from);
                self.open.entry((false, from)).or_default().push_back(id);
            }
            Action::Sent(id) => self.ends((true, self.form.message(id).to), id)?,
            Action::Received(id) => self.ends((false, self.form.message(id).from), id)?,
            Action::Move(id) => {
                let schedule = self.form.schedule();
                let op = schedule.op(id);
                self.then(Move::new(self.regions, schedule, op))?;
            }
        }
        Ok(())
    }

    /// Adds a move; joined with the previous move if both are one move.
    fn then(&mut self, next: Move) -> Result<(), Box<Finding>> {
        let both = self.next.as_ref().and_then(|before| before.and(&next));
        if both.is_none() {
            self.done()?;
        }
        self.next = Some(both.unwrap_or(next));
        Ok(())
    }

    /// Writes the pending move.
    fn done(&mut self) -> Result<(), Box<Finding>> {
        if let Some(next) = self.next.take() {
            self.text.push_str(&next.lines(self.regions, self.rank)?);
        }
        Ok(())
    }

    /// Ends a message, and earlier messages of the same way and peer.
    fn ends(&mut self, way: (bool, RankId), id: MessageId) -> Result<(), Box<Finding>> {
        let Some(open) = self.open.get_mut(&way).filter(|open| open.contains(&id)) else {
            // It ended together with a later message.
            return Ok(());
        };
        let behind = open.iter().position(|other| *other == id).map_or(0, |at| at + 1);
        let ended: Vec<_> = open.drain(..behind).collect();
        let (sends, peer) = way;
        self.done()?;
        for id in ended {
            if sends {
                let _ = writeln!(self.text, "p{peer}.RxAck();");
                continue;
            }
            let Message { from, to, source, target, .. } = *self.form.message(id);
            let source = Operand { rank: from, region: source };
            let target = Operand { rank: to, region: target };
            let _ = writeln!(self.text, "p{peer}.RxDataSignal();");
            self.then(Move::copy(self.regions, source, target))?;
            self.done()?;
            let _ = writeln!(self.text, "p{peer}.TxAck();");
        }
        Ok(())
    }
}
