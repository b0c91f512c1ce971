//! One diagnostic type and one table of codes, for the macro, the command line and plan time alike.

pub mod common_cause;
pub mod display;
pub mod near;
pub mod problem;

use std::fmt;

use crate::ids::{RankId, SpanId};
use crate::source::Span;

macro_rules! codes {
    ($($code:ident $variant:ident $summary:literal,)*) => {
        /// A stable code of an error or a warning, such as E0306: its meaning does not change from version to version.
        ///
        /// The first two digits name the origin: E00 the text, E01 names and types, E02 laying out for a number of
        /// ranks, E03 the proof, E04 plans and runs, E05 the command line, E06 topologies, E07 executors, E08 programs
        /// of other runtimes. W00 are warnings. `roundelay explain E0306` and the book's page
        /// `book/src/errors/E0306.md` explain a code.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Code { $(#[doc = $summary] $variant,)* }

        impl Code {
            /// All codes, in the order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Returns the code as printed, such as `E0301`.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => stringify!($code),)* }
            }

            /// Returns the meaning of the code, in one line.
            pub const fn summary(self) -> &'static str {
                match self { $(Self::$variant => $summary,)* }
            }
        }
    };
}

codes! {
    // The text.
    E0001 UnreadableSource "the source cannot be read",
    E0002 UnknownToken "a character that the language does not have",
    E0003 SyntaxError "the text does not follow the grammar",
    E0004 NestedTooDeep "brackets or expressions are nested too deep",
    E0005 NoAlgorithm "the source holds no algorithm",
    E0006 LiteralTooLarge "an integer literal does not fit 64 bits",
    E0007 UnclosedDelimiter "a bracket, string or comment is not closed",

    // Names and types.
    E0101 UnknownName "a name that nothing declares",
    E0102 AlreadyDeclared "a name that is visible here is declared again",
    E0103 WrongType "an expression has the wrong type",
    E0104 WrongArity "a call with too many or too few arguments",
    E0105 UnknownMember "a value has no field or method of that name",
    E0106 UnknownCollective "not a collective that the language knows",
    E0107 UnknownAttribute "an attribute that the language does not know",
    E0108 SignalOnNonPeer "a signal is sent to something that is not a peer",
    E0109 NotARegion "a data operand that is not a region of a rank",
    E0110 InputWritten "the input is never a destination",
    E0111 NoLocalOperand "a copy or reduce with no operand on this rank",
    E0112 SelfSignal "a rank signals itself",
    E0113 RootMissing "a rooted collective without a parameter `root: Rank`",
    E0114 ScratchPlacement "scratch is declared inside a block",
    E0115 EscapeInFile "a `rust { }` escape outside the macro",
    E0116 ParallelOverList "`parallel` over a list: lanes would not match across ranks",
    E0117 TooManyOperands "a copy or reduce with too many operands",
    E0118 ConstantOutOfRange "a constant expression that always fails",
    E0119 RecursiveStep "a step or an algorithm that calls itself",
    E0120 BadAttribute "an attribute whose arguments make no sense",
    E0121 AttributeConflict "attributes that contradict each other, or their algorithm",
    E0122 BadUse "a used source cannot be read, or has errors",

    // Elaboration: one rank count, one set of parameters.
    E0201 ArithmeticOverflow "integer arithmetic leaves the range of 64 bits",
    E0202 DivisionByZero "a division or remainder by zero",
    E0203 IndexOutOfRange "an index outside the pieces, slots or list",
    E0204 RankOutOfRange "a rank that does not exist",
    E0205 RankCountRefused "a `require` refuses this rank count",
    E0206 StepLimit "the loops take more steps than the limit",
    E0207 BufferAbsent "a buffer that this rank does not have",
    E0208 LengthMismatch "source and destination differ in length for some count",
    E0209 UnknownSlotLength "the length of a scratch slot is not known here",
    E0210 BadArgument "an argument that the function does not accept",
    E0211 BadParameter "a parameter value that does not fit",
    E0212 MisalignedRegions "regions of equal length with different boundaries",
    E0213 RepeatedDestination "a copy or reduce whose operands overlap",
    E0214 CallMismatch "an algorithm is called on regions that do not fit it",

    // Verification.
    E0301 Deadlock "ranks wait for each other in a cycle",
    E0302 UnmatchedWait "a wait that never gets a signal",
    E0303 LeftOverSignal "a signal that no rank waits for",
    E0304 WrongResult "a contribution is missing, double or in the wrong place",
    E0305 Race "two unordered accesses to the same memory",
    E0306 RaceWithCaller "an access that can collide with the caller's use of the buffer",
    E0307 UninitializedRead "memory is read before anything was written to it",
    E0308 InPlaceOnly "right out of place, wrong in place",
    E0309 SlotLength "a slot is read as another piece than was written",
    E0310 SharedSignal "two unordered streams use the same signal",
    E0311 ScratchRace "scratch of one run is overwritten by the next",
    E0312 OutOfBounds "a region reaches beyond its buffer",
    E0313 MissingLink "data or a signal goes where the topology has no link",
    E0314 LostSignal "a one-shot flag is raised again before its wait",
    E0315 OverBudget "the schedule needs more of a resource than there is",
    E0316 PortConflict "a rank sends to, or receives from, too many peers in one step",
    E0317 OrderDiffers "a reduction does not keep a promised order",
    E0318 FifoTooShallow "a fifo with too few credits: ranks wait for each other's slots",
    E0319 EqualCounts "a move that is right for equal counts alone",
    E0320 TooManyRoundings "a result is rounded more often than it may be",

    // Plans and runs.
    E0401 WrongBufferCount "not exactly one buffer for each rank",
    E0402 WrongBufferLength "a buffer of the wrong length",
    E0403 WrongDType "a buffer of another element type than the plan's",
    E0404 MisalignedBuffer "a byte buffer that is not aligned for its element type",
    E0405 Timeout "a wait outlasted its deadline",
    E0406 BadOption "an option with an impossible value",
    E0407 TooLarge "a buffer larger than this machine can hold",
    E0408 NoInPlace "this algorithm has no in-place form",
    E0409 NoRanks "a rank count of zero, or beyond the limit",
    E0410 WorkerPanicked "a worker thread panicked",
    E0411 NoSuchRank "a rank beyond the last one",
    E0412 RankBusy "two calls for one rank at once",
    E0413 Abandoned "another rank gave up",
    E0414 CallsDiffer "ranks make different calls",
    E0415 NoCuda "a part of CUDA is not there",
    E0416 BadArchitecture "an architecture that kernels cannot be compiled for",
    E0417 KernelRefused "the CUDA compiler refuses a kernel",
    E0418 NotResident "a kernel with more thread blocks than the device holds at once",
    E0419 DeviceMemory "the device has not enough memory",
    E0420 WrongDevice "a buffer on another device than its rank",
    E0421 KernelFailed "a kernel was ended by the device",
    E0422 NoPeerAccess "a device that cannot reach another's memory",
    E0423 NoSuchKernel "a program that does not fit the kernel asked for",
    E0424 OneMode "an algorithm whose ranks must all run in place, or none of them",
    E0425 Unproved "the optimizer made a schedule that is not proved: a bug of the compiler",
    E0426 NoTwoSidedForm "an algorithm that cannot be written as sends and receives",
    E0427 NotJoined "processes that could not meet",
    E0428 RankEnded "a rank whose process ended",
    E0429 SystemRefused "the system refuses what ranks as processes need",
    E0430 Corrupt "shared memory holds what no rank writes",
    E0431 NoSuchOp "a reduce op that is not there for these elements, or for an executor",
    E0432 BadCounts "counts that do not fit the ranks, or are too large",
    E0433 WrongData "the check of a plan's first call found wrong data",
    E0434 KernelFault "a compiled kernel that breaks a rule of PTX",
    E0435 BadHarness "a harness of kernels that makes no sense",
    E0436 KernelRace "a kernel whose accesses to memory nothing orders",
    E0437 KernelHang "a kernel that never ends",
    E0438 KernelResult "a kernel that computes something else",
    E0439 KernelAccess "a kernel with an access, barrier or exchange that is not allowed",
    E0440 KernelUnchecked "a kernel that cannot be checked to its end",

    // The command line.
    E0501 BadFlag "a flag value that cannot be read",
    E0502 UnknownSource "neither a file nor an algorithm of the library",
    E0503 UnknownAlgorithm "no algorithm of that name in the source",
    E0504 UnknownCode "not the code of an error or a warning",
    E0505 NothingAdmitted "every rank count asked for was refused",
    E0506 UnknownExecutor "neither a file nor a registered executor",
    E0507 BadCall "a subcommand or flag that is not there, is missing, or does not go with another",
    E0508 Unwritable "a file that cannot be written",

    // Topologies.
    E0601 BadTopology "a topology whose sizes, bandwidths or latencies make no sense",
    E0602 BadLink "a link to itself, a link given twice, or a link of a rank that does not exist",
    E0603 Disconnected "ranks of a topology that cannot reach each other",
    E0604 TopologyTooSmall "a topology with fewer ranks than the run",
    E0605 NoRing "no ring of links passes through all ranks",
    E0606 UnreadableXml "XML that cannot be read",
    E0607 NotATopology "XML that is not an NCCL topology, or contradicts itself",
    E0608 PartialTopology "an NCCL topology without GPUs",
    E0609 CannotWrite "a topology that NCCL cannot read",
    E0610 ForeignFile "a file of another program in place of a topology",

    // Executors.
    E0701 BadSetting "an executor's setting that is unknown, missing, or of the wrong kind",
    E0702 SizeClasses "size classes that overlap, or leave sizes out",
    E0703 WrongCollective "an executor for one collective that names an algorithm for another",
    E0704 NotExportable "what does not fit the form of an export",

    // Programs of other runtimes.
    E0801 RefusedByRuntime "a program that the runtime it is written for refuses",

    // Warnings.
    W0001 UnusedScratch "scratch that no rank reads",
    W0002 UnusedParameter "a parameter that is never used",
    W0003 UnusedLet "a `let` whose value is never used",
    W0004 UnusedView "a view that is never used",
    W0005 UnusedStep "a step that is never called",
    W0006 UnusedFifo "a fifo that no data passes through",
    W0007 PassedOver "a part of a program that the runtime it is written for passes over",
    W0008 KernelRelies "a kernel that relies on more than PTX promises",
}

/// The reason why no input is a destination, and a correction: the checker reports it, and the layout where the checker
/// cannot see it.
pub const INPUT_KEPT: (&str, &str) = (
    "the caller's input keeps its values, unless the run is in place",
    "copy what you need into `output` or scratch first",
);

/// The severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// An error: there is no program.
    Error,
    /// A warning: there is a program, and its author should look at it.
    Warning,
}

impl Severity {
    /// Returns the word before the code in a printed diagnostic.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// Returns the result for a number of ranks; `None` where every finding refuses this number, and says nothing about
/// others.
pub fn unless_refused<T>(found: Result<T, Vec<Finding>>) -> Result<Option<T>, Vec<Finding>> {
    match found {
        Err(why) if why.iter().all(|why| why.code.refuses()) => Ok(None),
        found => found.map(Some),
    }
}

impl Code {
    /// Whether the code refuses one number of ranks and says nothing about others: a `require` that does not hold, or a
    /// topology that cannot be made, or has no ring, for that number of ranks.
    pub fn refuses(self) -> bool {
        self == Self::RankCountRefused || self.as_str().starts_with("E06")
    }

    /// Whether an error of this code shows when an algorithm is laid out for a number of ranks.
    pub fn is_of_layout(self) -> bool {
        self >= Self::ArithmeticOverflow && self < Self::Deadlock
    }

    /// Returns the severity of the code unless the author or the call sets another.
    pub fn severity(self) -> Severity {
        if self.as_str().starts_with('W') { Severity::Warning } else { Severity::Error }
    }

    /// Returns the code that prints as `text`, in capital or small letters.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|c| c.as_str().eq_ignore_ascii_case(text))
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An error in a program, or a warning: the mistake, its place, its reason, and a correction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Stable code.
    pub code: Code,
    /// The code's own severity, except for a denied warning.
    pub severity: Severity,
    /// One line, lower case, no full stop.
    pub title: String,
    /// The exact place.
    pub primary: Span,
    /// The text at the place; may be empty.
    pub label: String,
    /// Other places, each with its relation to the error.
    pub others: Vec<(Span, String)>,
    /// Facts that explain the error.
    pub notes: Vec<String>,
    /// The correction, if there is one.
    pub help: Option<String>,
    /// The correction as edits of the text, where it is one that an editor can make.
    pub edits: Vec<Edit>,
    /// The rank count at which the error shows, if it depends on one.
    pub nranks: Option<u32>,
    /// The thing that is to blame, such as a name that nothing declares: all errors of one cause are told as one.
    pub cause: Option<String>,
}

impl Diagnostic {
    /// Creates a diagnostic with nothing but its place and title.
    pub fn new(code: Code, primary: Span, title: impl Into<String>) -> Self {
        Self {
            code,
            severity: code.severity(),
            title: title.into(),
            primary,
            label: String::new(),
            others: Vec::new(),
            notes: Vec::new(),
            help: None,
            edits: Vec::new(),
            nranks: None,
            cause: None,
        }
    }

    /// Sets the text at the primary place.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// Adds another place.
    #[must_use]
    pub fn other(mut self, span: Span, label: impl Into<String>) -> Self {
        self.others.push((span, label.into()));
        self
    }

    /// Adds a fact.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// Sets the correction.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds an edit that is part of the correction: `text` in place of the tokens of a span.
    #[must_use]
    pub fn edit(mut self, at: Span, text: impl Into<String>) -> Self {
        self.edits.push(Edit { at, text: text.into() });
        self
    }

    /// Sets the thing that is to blame.
    #[must_use]
    pub fn caused_by(mut self, cause: impl Into<String>) -> Self {
        self.cause = Some(cause.into());
        self
    }

    /// Sets the correction to a word that was probably meant in place of the primary span.
    #[must_use]
    pub fn suggest(self, word: &str) -> Self {
        let at = self.primary;
        self.help(format!("did you mean `{word}`?")).edit(at, word)
    }

    /// Returns the notes, and the rank count if the error depends on it.
    pub fn all_notes(&self) -> impl Iterator<Item = String> {
        let at = self.nranks.map(|n| format!("at nranks = {n}"));
        self.notes.iter().cloned().chain(at)
    }
}

/// An edit of the text of a program: `text` in place of the tokens of a span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The tokens that go.
    pub at: Span,
    /// The text in their place.
    pub text: String,
}

/// A mistake of an algorithm at one number of ranks, which the layout (E02xx) or the proof (E03xx) found at a statement
/// of the source.
///
/// [`Self::title`] is the message. `at` is an index into the places of the algorithm's statements
/// (the table `locations` of its schedule).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The stable code.
    pub code: Code,
    /// The mistake, its rank and region, in one line: lower case, no full stop.
    pub title: String,
    /// The statement that is to blame.
    pub at: SpanId,
    /// The place of the expression within the statement, where that is known.
    pub exact: Option<Span>,
    /// The text below the statement when it is shown; may be empty.
    pub label: String,
    /// Other statements, each with its relation to the mistake.
    pub others: Vec<(SpanId, String)>,
    /// Facts that explain the mistake: rank and step, the cycle of waits, the history of the region.
    pub notes: Vec<String>,
    /// The correction, if there is one.
    pub help: Option<String>,
    /// Whether the correction stands, so that no other one is looked for.
    pub has_remedy: bool,
    /// The regions that the finding names, and their operands.
    pub operands: Vec<Operand>,
    /// The ops that the notes name, in the order of the notes.
    pub ops: Vec<NamedOp>,
}

/// An op that the notes of a finding name, with its place in the schedule. The schedule does not keep the values of
/// loop variables: `layout::with_loop_values` of the compiler finds them again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedOp {
    /// The words for it, such as `rank 2, step 1, line 12`.
    pub name: String,
    /// Its statement.
    pub at: SpanId,
    /// Its rank.
    pub rank: RankId,
    /// The number of its stream at the rank.
    pub stream: u32,
    /// The number of ops before it in the stream.
    pub before: u32,
    /// The number of ops of the stream.
    pub of: u32,
}

/// A region that a finding names by its buffer and fractions, and the operand that its author wrote for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operand {
    /// The region's name in the finding, such as `rank 3 output[1/4..2/4]`.
    pub region: String,
    /// The statement.
    pub at: SpanId,
    /// The number of the operand in the op, sources first; the first source of a reduce is its destination.
    pub index: usize,
    /// The number of operands of the op.
    pub of: usize,
    /// Whether the region is only a part of that operand, or overlaps it.
    pub part: bool,
}

impl Finding {
    /// Creates a finding with nothing but its place and title.
    pub fn new(code: Code, at: SpanId, title: impl Into<String>) -> Self {
        Self {
            code,
            title: title.into(),
            at,
            exact: None,
            label: String::new(),
            others: Vec::new(),
            notes: Vec::new(),
            help: None,
            has_remedy: false,
            operands: Vec::new(),
            ops: Vec::new(),
        }
    }

    /// Sets the text at the statement.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// Adds a fact.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// Sets the correction.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Sets a correction in place of which no other one is looked for.
    #[must_use]
    pub fn remedy(self, help: impl Into<String>) -> Self {
        Self { has_remedy: true, ..self.help(help) }
    }
}
