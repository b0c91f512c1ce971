//! A collective as GOAL, the text that `LogGOPSim` and similar programs simulate: the sends, receives and computations
//! of each rank, and the dependences between them.
//!
//! A send or receive depends on the tasks that last wrote, or still read, the memory that it reads or writes; so do
//! copies and folds, which become times. Messages that are empty at the given count are left out at both ends. Messages
//! with the same two ranks and tag start in their order. Other orders than those of data, for example that in which one
//! thread would start the tasks, are left out: simulators have their own threads.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use roundelay_core::diagnostics::{Code, Finding};
use roundelay_core::ids::{LaneId, RankId, SpanId};
use roundelay_core::messages::{Action, FormPart, MessageId};
use roundelay_core::schedule::{Buffer, Operand, Schedule};
use roundelay_simulate::cost::Costs;

/// An algorithm for simulation.
#[derive(Clone, Copy, Debug)]
pub struct Export<'a> {
    /// The ranks of the form with sends and receives that are written.
    pub form: &'a FormPart<'a>,
    /// Elements of a unit.
    pub count: u64,
    /// Bytes of an element.
    pub element: u64,
    /// The speeds at which a rank reduces and copies.
    pub costs: &'a Costs,
    /// The command that writes this text, for its first line.
    pub command: &'a str,
}

/// Returns the text.
///
/// # Errors
/// E0704 if the bytes of a message do not fit 64 bits.
pub fn goal(export: &Export<'_>) -> Result<String, Vec<Finding>> {
    let schedule = export.form.schedule;
    let mut text = format!(
        "// {}, {} of {} ranks, {} elements of {} bytes.\n// Written by `{}`.\n// Times are nanoseconds, of {}.\nnum_ranks {}\n",
        schedule.algorithm,
        schedule.collective,
        schedule.nranks,
        export.count,
        export.element,
        export.command,
        export.costs.name,
        schedule.nranks,
    );
    for (rank, actions) in &export.form.of {
        let own = GoalRank::new(export, *rank, actions)?;
        let _ = write!(text, "\nrank {rank} {{\n{}}}\n", own.text);
    }
    Ok(text)
}

/// The last accesses to a stretch of a rank's memory.
#[derive(Clone, Debug, Default)]
struct Touched {
    /// The task that wrote it.
    wrote: Option<u32>,
    /// The tasks that have read it since.
    read: Vec<u32>,
}

/// Stretches of a buffer, each from its key to the next.
type TouchedMemory = BTreeMap<u64, Touched>;

/// The program of a rank under construction.
struct GoalRank<'a> {
    export: &'a Export<'a>,
    at: RankId,
    memory: BTreeMap<Buffer, TouchedMemory>,
    tasks: u32,
    /// The last message for each way (whether it is sent), peer and tag.
    last: BTreeMap<(bool, RankId, LaneId), u32>,
    text: String,
}

impl<'a> GoalRank<'a> {
    fn new(export: &'a Export<'a>, rank: RankId, actions: &[Action]) -> Result<Self, Vec<Finding>> {
        let (memory, last) = (BTreeMap::new(), BTreeMap::new());
        let mut all = Self { export, at: rank, memory, tasks: 0, last, text: String::new() };
        for action in actions {
            match action {
                Action::Send(id) => all.message(*id, true)?,
                Action::Receive(id) => all.message(*id, false)?,
                // Dependences on memory express both waits.
                Action::Sent(_) | Action::Received(_) => {}
                Action::Move(id) => {
                    let schedule = all.schedule();
                    let op = schedule.op(*id);
                    let (srcs, dsts) = (schedule.srcs(op), schedule.dsts(op));
                    let bytes = all.bytes(srcs[0], op.at)?;
                    if bytes == 0 {
                        continue;
                    }
                    let bytes = bytes as f64;
                    let costs = export.costs;
                    // Each source but the first is reduced; the result is copied to the other destinations.
                    let reduces = (srcs.len() - 1) as f64;
                    let place = dsts.contains(&srcs[0]);
                    let copies = (dsts.len() - usize::from(place)) as f64;
                    let seconds = bytes * (reduces / costs.reduce + copies / costs.copy);
                    let nanoseconds = (seconds * 1e9).round() as u64;
                    let (srcs, dsts) = (srcs.to_vec(), dsts.to_vec());
                    all.task(&format!("calc {nanoseconds}"), &srcs, &dsts, None);
                }
            }
        }
        Ok(all)
    }

    fn schedule(&self) -> &'a Schedule {
        self.export.form.schedule
    }

    fn bytes(&self, operand: Operand, at: SpanId) -> Result<u64, Vec<Finding>> {
        let schedule = self.schedule();
        let (_, len) = schedule.extent(schedule.region(operand), self.export.count);
        len.checked_mul(self.export.element)
            .filter(|bytes| i64::try_from(*bytes).is_ok())
            .ok_or_else(|| {
                let title = "a message has more bytes than 64 bits count";
                vec![Finding::new(Code::NotExportable, at, title).help("take a smaller size")]
            })
    }

    fn message(&mut self, id: MessageId, sends: bool) -> Result<(), Vec<Finding>> {
        let message = self.export.form.messages[id.index()];
        let (peer, region) =
            if sends { (message.to, message.source) } else { (message.from, message.target) };
        let operand = Operand { rank: self.at, region };
        let bytes = self.bytes(operand, message.at)?;
        if bytes == 0 {
            return Ok(());
        }
        let way = if sends { "send" } else { "recv" };
        let to = if sends { "to" } else { "from" };
        let what = format!("{way} {bytes}b {to} {peer} tag {}", message.lane);
        let (reads, writes): (&[_], &[_]) =
            if sends { (&[operand], &[]) } else { (&[], &[operand]) };
        let before = self.last.insert((sends, peer, message.lane), self.tasks + 1);
        self.task(&what, reads, writes, before);
        Ok(())
    }

    /// Adds a line for a task, and one for each task that it depends on; `after` must start before it.
    fn task(&mut self, what: &str, reads: &[Operand], writes: &[Operand], after: Option<u32>) {
        self.tasks += 1;
        let task = self.tasks;
        let mut needs = Vec::new();
        // In place, input and output are one buffer. No dependence is lost: reads of the input precede writes of the
        // output in either mode.
        for (operands, write) in [(reads, false), (writes, true)] {
            for operand in operands {
                let schedule = self.schedule();
                let region = schedule.region(*operand);
                let (first, len) = schedule.extent(region, self.export.count);
                if len > 0 {
                    let memory = self.memory.entry(region.buffer).or_default();
                    touch(memory, first..first + len, task, write, &mut needs);
                }
            }
        }
        needs.sort_unstable();
        needs.dedup();
        needs.retain(|need| *need != task);
        let _ = writeln!(self.text, "l{task}: {what}");
        for need in &needs {
            let _ = writeln!(self.text, "l{task} requires l{need}");
        }
        if let Some(after) = after.filter(|after| !needs.contains(after)) {
            let _ = writeln!(self.text, "l{task} irequires l{after}");
        }
    }
}

/// Adds the tasks that must precede an access to a stretch of memory to `needs`, and records the access.
fn touch(
    memory: &mut TouchedMemory,
    stretch: std::ops::Range<u64>,
    task: u32,
    write: bool,
    needs: &mut Vec<u32>,
) {
    for end in [stretch.start, stretch.end] {
        let before = memory.range(..=end).next_back().map(|(_, touched)| touched.clone());
        memory.entry(end).or_insert_with(|| before.unwrap_or_default());
    }
    for (_, touched) in memory.range_mut(stretch) {
        needs.extend(touched.wrote);
        if write {
            needs.append(&mut touched.read);
            touched.wrote = Some(task);
        } else {
            touched.read.push(task);
        }
    }
}
