//! CUDA: a kernel's text from a checked algorithm or from a flat schedule, and the facts that it reads.
//!
//! One text serves every rank count, count and parameter of an algorithm: the author's loops stay loops, and their data
//! comes as [`Facts`]. The text calls the device library in `roundelay-kernels`.

mod facts;
mod parts;
mod print;
mod prune;
mod summary;
mod switch;
mod text;
mod whole_lines;
mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use crate::loops::Loops;
use crate::loops::machine::{self, RunFacts};
use roundelay_core::diagnostics::{Code, Diagnostic};
use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_core::ids::{OpId, RankId, ScratchId};
use roundelay_core::layout::Configured;
use roundelay_core::optimize::Optimized;
use roundelay_core::schedule::switch::reason_against;
use roundelay_core::schedule::{Buffer, Op, OpKind, Operand, Schedule, SignalKind};
use roundelay_core::source::Span;
use roundelay_core::verify::Callers;
use roundelay_core::verify::{Proof, Proved};
pub use whole_lines::WHOLE_LINES;
pub use words::Header;

/// The protocol by which data and signals travel between ranks in a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// Peers' memory is read and written in place, in the order of the program's own signals.
    Direct,
    /// Slots at the receiver with credits: NCCL's Simple.
    Simple,
    /// Slots of lines that carry data and flag in one store: NCCL's LL. For small messages.
    Ll,
    /// Slots of lines of 128 bytes, of which 8 are the flag: NCCL's LL128. For messages of medium size. It relies on
    /// [`WHOLE_LINES`].
    Ll128,
}

impl Protocol {
    /// All protocols.
    pub const ALL: [Self; 4] = [Self::Direct, Self::Simple, Self::Ll, Self::Ll128];

    /// The name on the command line, such as `simple`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Simple => "simple",
            Self::Ll => "ll",
            Self::Ll128 => "ll128",
        }
    }

    /// Whether slots hold lines, whose flags tell that they have arrived.
    pub const fn has_lines(self) -> bool {
        matches!(self, Self::Ll | Self::Ll128)
    }

    /// The bytes that a warp moves at once as lines, and the bytes of data in them; of vectors of 16 bytes, where the
    /// protocol has no lines.
    pub const fn unit(self) -> (u64, u64) {
        match self {
            Self::Direct | Self::Simple => (16, 16),
            Self::Ll => (16, 8),
            Self::Ll128 => (512, 480),
        }
    }

    /// Returns the protocol of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|protocol| protocol.name() == name)
    }

    /// Returns the protocol that a program needs: [`Self::Simple`] if it sends and receives through a fifo, else
    /// [`Self::Direct`].
    pub fn for_algorithm(algorithm: &Configured) -> Self {
        if algorithm.program().passes() { Self::Simple } else { Self::Direct }
    }

    /// Returns the protocols that the loops of a program have, the one that it needs first.
    pub fn of_loops(algorithm: &Configured) -> &'static [Self] {
        let program = algorithm.program();
        match (program.passes(), program.passes_lists()) {
            (false, _) => &[Self::Direct],
            (true, false) => &[Self::Simple, Self::Ll, Self::Ll128],
            (true, true) => &[Self::Simple],
        }
    }
}

/// The advice for schedules with sums that are wider than their elements.
const NEEDS_WIDE: &str =
    "make the kernel for elements of f32, or choose an algorithm without `as f32`";

/// The advice where links tear the lines of [`Protocol::Ll128`].
pub const NEEDS_WHOLE_LINES: &str = "take protocol ll, whose lines are right on every link, or simple; ll128 needs NVLink of sm_70 or newer, or one device";

/// Checks that kernels for these elements can give the results of a schedule.
///
/// # Errors
/// E0423 if the elements are narrower than f32, and the schedule has sums that are not.
pub fn check_width(schedule: &Schedule, element: DType) -> Result<(), Box<Diagnostic>> {
    match element.is_narrow_float().then(|| schedule.needs_wide()).flatten() {
        None => Ok(()),
        Some(why) => {
            let title = format!("{} has no kernel for {element}: {why}", schedule.algorithm);
            let refused = Diagnostic::new(Code::NoSuchKernel, Span::default(), title);
            Err(Box::new(refused.help(NEEDS_WIDE)))
        }
    }
}

/// The form of the algorithm in a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// The author's loops, as code of the kernel.
    Loops,
    /// A table of ops that a fixed loop walks.
    Table,
    /// A table of ops, of which a switch makes those of all ranks, by `multimem`. Each rank has a device of its own.
    Switch,
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Loops => "loops",
            Self::Table => "table",
            Self::Switch => "switch",
        })
    }
}

/// The specification of a kernel: element type, reduce op, protocol, and the way of launching it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Spec {
    /// The type of the elements.
    pub element: DType,
    /// The reduce op.
    pub op: ReduceOp,
    /// The protocol of data and signals.
    pub protocol: Protocol,
    /// The width in bytes of the widest load: 16 for today's GPUs.
    pub vector: u32,
    /// The launching of ranks: one launch for all, or one for each device.
    pub callers: Callers,
}

/// The text of a kernel, with the schedule that it performs and the schedule's proof.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// The name of the kernel's entry.
    pub name: String,
    /// The text in CUDA C++, for NVRTC.
    pub text: String,
    /// The form of the algorithm in the kernel.
    pub form: Form,
    /// The specification.
    pub spec: Spec,
    /// The schedule that the kernel performs, op by op.
    pub schedule: Arc<Schedule>,
    /// The proof of that schedule.
    pub proof: Arc<Proof>,
    /// The moves after which `avg` divides.
    finish: BTreeSet<OpId>,
    /// The scratch that fifos pass data through.
    fifos: BTreeSet<ScratchId>,
    /// For loops: their form, and the facts of its runs.
    loops: Option<(Loops, RunFacts)>,
}

/// A group of CTAs: one stream of one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// The rank of the stream.
    pub rank: RankId,
    /// The number of the stream at that rank.
    pub stream: u32,
}

/// The data that a launch of a kernel needs besides its text and its buffers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The words of the table that the kernel reads.
    pub words: Vec<i64>,
    /// The streams, in the order of the grid.
    pub groups: Vec<Group>,
    /// The lanes by their numbers in the kernel; their numbers in the schedule may differ.
    pub lanes: Vec<Vec<i64>>,
    /// The number of 8-byte counters at each rank.
    pub posted_words: u64,
    /// Whether each CTA counts the launches, for the flags of its lines.
    pub counts_launches: bool,
    /// The scratch of each rank, in elements.
    pub scratch_elements: u64,
    /// Whether `avg` divides whole outputs after the kernel.
    pub scale_outputs: bool,
    /// The ranks of each group whose memory a switch reaches at once, in ascending order. The memory of a group follows that
    /// of the ranks in the tables of addresses.
    pub switches: Vec<Vec<RankId>>,
}

impl Facts {
    /// Returns the first element of a scratch buffer in the scratch of each rank, and the elements of a slot.
    pub fn scratch(&self, id: ScratchId) -> (u64, u64) {
        let at = words::HEADER_WORDS + words::SCRATCH_WORDS * id.index();
        (self.words[at] as u64, self.words[at + 1] as u64)
    }
}

impl Kernel {
    /// Returns the author's loops as a kernel. Its schedule is the proved one without signals that others imply.
    ///
    /// # Errors
    /// E0423 if the loops do not fit a kernel or the protocol, each at its place; E0431 if the elements do not have the
    /// op.
    pub fn of_loops(
        algorithm: &Configured,
        proved: &Proved,
        spec: Spec,
    ) -> Result<Self, Vec<Diagnostic>> {
        let program = algorithm.program();
        let (name, header) = (&program.name, program.header());
        let refuse = |title: String, help: &str| {
            vec![Diagnostic::new(Code::NoSuchKernel, header, title).help(help)]
        };
        spec.op.check(spec.element).map_err(|none| vec![Diagnostic::no_such_op(none, header)])?;
        check_width(proved.schedule(), spec.element)
            .map_err(|refused| vec![Diagnostic { primary: header, ..*refused }])?;
        if proved.schedule().elements.is_some() {
            let title = format!("loops of {name} have one count, and not one for each block");
            return Err(refuse(title, "make the kernel of the schedule for equal counts"));
        }
        let passes = program.passes();
        if passes != (spec.protocol != Protocol::Direct) {
            let protocol = spec.protocol.name();
            return Err(if passes {
                refuse(
                    format!(
                        "{name} sends and receives through slots, which protocol {protocol} has not"
                    ),
                    "take protocol simple, or for smaller messages ll128 or ll",
                )
            } else {
                refuse(
                    format!("{name} has no fifo, and protocol {protocol} is one of slots"),
                    "take protocol direct, or write the algorithm with `send`, `recv` and their kin",
                )
            });
        }
        if spec.protocol.has_lines() && program.passes_lists() {
            return Err(refuse(
                format!("{name} passes the data of several peers in one move"),
                "take protocol simple: a pass of lines has one link on either side",
            ));
        }
        let schedule = Schedule::clone(proved.schedule());
        let unfit = |why: &str| {
            let title = format!("the loops of {name} do not fit one kernel: {why}");
            refuse(title, "take the table form")
        };
        let pieces = crate::loops::pieces(&schedule).map_err(|all| unfit(&all[0].title))?;
        if !links_have_one_stream(&schedule) {
            return Err(unfit("several streams of a rank use one link of a fifo"));
        }
        let (mut loops, facts) =
            Loops::with_lanes(algorithm, &schedule, pieces).map_err(|all| unfit(&all[0].title))?;
        let fifos = fifos(&mut loops);
        if spec.protocol.has_lines() && reaches_out(&schedule, &fifos) {
            return Err(refuse(
                format!("{name} reads or writes peers' memory beside its fifo"),
                "take protocol simple: the flags of lines say only that a slot's data has arrived",
            ));
        }
        if let (Protocol::Ll128, Some(topology)) = (spec.protocol, algorithm.topology())
            && let Some(why) = whole_lines::reason_against(topology, &schedule)
        {
            return Err(refuse(
                format!("{name} has no kernel of protocol ll128 there: {why}"),
                NEEDS_WHOLE_LINES,
            ));
        }
        let dropped = prune::needless(&schedule, &facts.nodes, spec.callers);
        let left_out = summary::left_out(&mut loops, &dropped);
        let pruned = prune::without(&schedule, &facts.nodes, &dropped, spec.callers);
        let pruned = pruned.and_then(|(schedule, proof)| {
            let loops = loops.clone().without(&dropped);
            let facts = machine::check(&loops, &schedule).ok()?;
            Some((loops, facts, schedule, proof))
        });
        debug_assert!(pruned.is_some(), "elision leaves out only needless signals");
        let (loops, facts, schedule, proof, left_out) = match pruned {
            Some((loops, facts, schedule, proof)) => {
                (loops, facts, schedule, Arc::new(proof), left_out)
            }
            None => (loops, facts, schedule, proved.proof().clone(), None),
        };
        let meets = parts::statements(&schedule, &facts.nodes, &fifos);
        let name = name.clone();
        let mut about =
            summary::about(&name, algorithm.docs(), Form::Loops, spec, (&schedule, &proof));
        about.extend(left_out);
        let scale = scales(spec, &proof);
        let slot = |operand: &Operand| is_slot(&schedule, &fifos, *operand);
        let is_move =
            |op: &Op| !spec.protocol.has_lines() || !schedule.operands_of(op).iter().any(slot);
        let form = (&loops, &facts);
        let text = text::loops(form, (&schedule, is_move), spec, &meets, &about, scale);
        let (schedule, loops) = (Arc::new(schedule), Some((loops, facts)));
        let finish = finishing(spec, &proof);
        Ok(Self { name, text, form: Form::Loops, spec, schedule, proof, finish, fifos, loops })
    }

    /// Returns a kernel that walks a table of a schedule's ops, such as a schedule of the optimizer.
    ///
    /// # Errors
    /// E0431 if the elements do not have the op; E0423 if they are narrower than f32, and the schedule has sums that are
    /// not.
    pub fn of_table(optimized: &Optimized, spec: Spec) -> Result<Self, Box<Diagnostic>> {
        spec.op
            .check(spec.element)
            .map_err(|none| Box::new(Diagnostic::no_such_op(none, Span::default())))?;
        check_width(&optimized.schedule, spec.element)?;
        let (schedule, proof) = (optimized.schedule.clone(), optimized.proof.clone());
        Ok(Self::from_table(Form::Table, (schedule, proof), spec))
    }

    /// Returns the kernel that walks a table of the ops of a schedule, which its elements and op fit.
    fn from_table(form: Form, (schedule, proof): (Arc<Schedule>, Arc<Proof>), spec: Spec) -> Self {
        let name = schedule.algorithm.clone();
        let spec = Spec { protocol: Protocol::Direct, ..spec };
        let about = summary::about(&name, &[], form, spec, (&schedule, &proof));
        let text = text::table(&schedule, spec, &about, scales(spec, &proof));
        let (finish, fifos) = (finishing(spec, &proof), BTreeSet::new());
        Self { name, text, form, spec, schedule, proof, finish, fifos, loops: None }
    }

    /// Returns a kernel that walks a table of the ops of a schedule as its author wrote it, and has a switch make the moves of
    /// all ranks.
    ///
    /// # Errors
    /// E0423 if no switch moves data, or none folds elements of this type by this op; E0431 if the elements do not have the
    /// op.
    pub fn of_switch(proved: &Proved, spec: Spec) -> Result<Self, Box<Diagnostic>> {
        let at = Span::default();
        spec.op.check(spec.element).map_err(|none| Box::new(Diagnostic::no_such_op(none, at)))?;
        let name = proved.schedule().algorithm.clone();
        let refuse = |title: String, help: &str| {
            Box::new(Diagnostic::new(Code::NoSuchKernel, at, title).help(help))
        };
        let Some(proved) = proved.by_switch() else {
            let title = format!("{name} has no move of all ranks, which a switch could make");
            return Err(refuse(title, "take the form loops or table"));
        };
        let (schedule, proof) = (proved.schedule().clone(), proved.proof().clone());
        check_width(&schedule, spec.element)?;
        let folds = schedule.ops.iter().any(|op| op.switch && op.srcs > 1);
        if let Some(why) = reason_against(spec.element, spec.op).filter(|_| folds) {
            let (op, element) = (spec.op, spec.element);
            let title = format!("{name} has no kernel by a switch for {op} of {element}: {why}");
            return Err(refuse(title, "take the form table, in which the ranks move the data"));
        }
        Ok(Self::from_table(Form::Switch, (schedule, proof), spec))
    }

    /// Whether `avg` divides whole outputs, after the kernel.
    fn scales(&self) -> bool {
        scales(self.spec, &self.proof)
    }
}

/// Whether an operand is in one of these fifos.
fn is_slot(schedule: &Schedule, fifos: &BTreeSet<ScratchId>, operand: Operand) -> bool {
    matches!(schedule.region(operand).buffer, Buffer::Scratch(id) if fifos.contains(&id))
}

/// Returns the scratch whose slots the passes of a form take.
fn fifos(loops: &mut Loops) -> BTreeSet<ScratchId> {
    let mut fifos = BTreeSet::new();
    for node in loops.nodes_mut() {
        node.visit_places(&mut |place| {
            if let (Buffer::Scratch(id), Some(_)) = (place.buffer, &place.step) {
                fifos.insert(id);
            }
        });
    }
    fifos
}

/// Whether a move passes data between ranks without a fifo.
fn reaches_out(schedule: &Schedule, fifos: &BTreeSet<ScratchId>) -> bool {
    schedule.streams.iter().any(|stream| {
        let ops = &schedule.ops[stream.first.index()..][..stream.len as usize];
        let moves = ops.iter().filter(|op| op.kind == OpKind::Move);
        moves
            .flat_map(|op| schedule.operands_of(op))
            .any(|operand| operand.rank != stream.rank && !is_slot(schedule, fifos, *operand))
    })
}

/// Whether each end of each link of a fifo is used by one stream: each stream counts only its own steps.
fn links_have_one_stream(schedule: &Schedule) -> bool {
    let mut users = BTreeMap::new();
    schedule.streams.iter().all(|stream| {
        let ops = &schedule.ops[stream.first.index()..][..stream.len as usize];
        let tails = ops
            .iter()
            .filter(|op| op.kind != OpKind::Move && schedule.channel(op).kind == SignalKind::Tail);
        tails
            .map(|op| (op.arg, op.kind == OpKind::Post))
            .all(|end| *users.entry(end).or_insert(stream.index) == stream.index)
    })
}

fn finishing(spec: Spec, proof: &Proof) -> BTreeSet<OpId> {
    let finish = proof.finish.iter().copied();
    finish.filter(|_| spec.op == ReduceOp::Avg).collect()
}

fn scales(spec: Spec, proof: &Proof) -> bool {
    spec.op == ReduceOp::Avg && proof.scale_outputs
}
