//! The errors of plans and runs: each has a code, and a message that says what would be right.

use std::fmt;
use std::time::Duration;

use roundelay_core::diagnostics::Code;
use roundelay_core::dtype::{DType, NoSuchOp, ReduceOp};
use roundelay_core::ids::RankId;
use roundelay_core::optimize::Unproved;
use roundelay_core::schedule::RANK_LIMIT;

use crate::reference::WrongData;
use crate::stuck::Stuck;

/// The reason for which the engine makes no plan, or a run failed.
///
/// Each variant names its code, which [`Self::code`] returns and a page of the book explains. `Debug` prints the text
/// of `Display`, so a `main` that returns the error shows a readable message.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// E0401: a call with another number of buffers than there are ranks.
    WrongBufferCount {
        /// "inputs", "outputs" or "buffers".
        what: &'static str,
        /// The number of buffers given.
        given: usize,
        /// The number of ranks, and so of buffers that there should be.
        nranks: u32,
    },
    /// E0402: a buffer of another length than the count of the plan gives it.
    WrongBufferLength {
        /// "input", "output" or "buffer".
        what: &'static str,
        /// The rank whose buffer it is.
        rank: RankId,
        /// The length given, in `unit`.
        given: u64,
        /// The length that it must have, in `unit`.
        expected: u64,
        /// The unit of lengths: "elements" or "bytes".
        unit: &'static str,
    },
    /// E0403: buffers of another element type than the plan's.
    WrongDType {
        /// The element type of the buffers given.
        given: DType,
        /// The element type of the plan.
        expected: DType,
    },
    /// E0404: a byte buffer that is not aligned for its element type.
    MisalignedBuffer {
        /// "input", "output" or "buffer".
        what: &'static str,
        /// The rank whose buffer it is.
        rank: RankId,
        /// The element type of the plan, whose size the address must be a multiple of.
        dtype: DType,
    },
    /// E0405: a wait outlasted the deadline, or no rank is left that could end it.
    Timeout(Box<Stuck>),
    /// E0405: a rank did not make a call that other ranks made, for as long as the deadline. For ranks that call by
    /// themselves.
    Missing(Box<Missing>),
    /// E0406: an option that no run can have.
    BadOption {
        /// The option that was asked for, in words.
        what: String,
        /// The advice: an option to ask for instead.
        fix: &'static str,
    },
    /// E0407: a buffer larger than this machine can hold.
    TooLarge {
        /// The buffer, and its size.
        what: String,
    },
    /// E0408: a run in place of an algorithm or a collective that has no in-place form.
    NoInPlace {
        /// The reason for which there is none.
        why: &'static str,
    },
    /// E0409: a communicator of no ranks, or of more than a schedule can have ([`RANK_LIMIT`]).
    NoRanks {
        /// The rank count asked for.
        nranks: u32,
    },
    /// E0410: a worker thread panicked during the run; the outputs are undefined.
    WorkerPanicked {
        /// The panic's message.
        message: String,
    },
    /// E0411: a rank beyond the last one was asked for; ranks count from 0.
    NoSuchRank {
        /// The rank asked for.
        rank: RankId,
        /// The number of ranks.
        nranks: u32,
    },
    /// E0412: a thread calls for a rank while another thread is in a call of it.
    RankBusy {
        /// The rank that both call for.
        rank: RankId,
    },
    /// E0413: another rank gave up, so this one cannot go on.
    Abandoned {
        /// The rank that gets this error.
        rank: RankId,
        /// The rank that gave up first.
        by: RankId,
        /// The message of the error for which it gave up.
        why: String,
    },
    /// E0432: counts that do not fit a call with a count for each block.
    BadCounts {
        /// The counts, in words.
        what: String,
    },
    /// E0319: an algorithm that is right for equal counts alone, in a call with a count for each block.
    EqualCounts {
        /// The algorithm, and its first move that is right for equal counts alone.
        what: String,
    },
    /// E0424: ranks that call by themselves could run in different modes, and results would depend on the modes.
    OneMode {
        /// The finding of the proof, and its place.
        what: String,
    },
    /// E0425: a schedule of the optimizer that cannot be proved: a fault of the compiler, not of the program.
    Unproved(Unproved),
    /// E0414: a call that ranks make differently, which is void for all ranks.
    CallsDiffer(Box<Differ>),
    /// E0402, or E0403 where the element types differ: a message for which the receiver expected another length or
    /// type. It is gone, and the next message works as before.
    WrongMessage {
        /// The sender and the receiver.
        ranks: [RankId; 2],
        /// The message that was sent.
        sent: Message,
        /// The message that the receiver had room for.
        received: Message,
    },
    /// E0405: a wait of a rank for another rank, beside all calls, that outlasted the deadline.
    Late {
        /// The rank that waited, the time, and the rank and the event that it waited for.
        what: String,
    },
    /// E0427: the processes that are to be ranks of one world could not meet.
    NotJoined {
        /// The attempt, its result, and the advice.
        what: String,
    },
    /// E0428: the process of a rank ended, in a call or before a call that other ranks made.
    RankEnded(Box<Ended>),
    /// E0429: the system refuses a resource that ranks as processes need: shared memory, sockets, descriptors.
    SystemRefused {
        /// The request to the system, its answer, and the advice.
        what: String,
    },
    /// E0430: memory that ranks share holds a value that no rank writes: another program wrote there, or a rank ran
    /// wild.
    Corrupt {
        /// The value that was found, and its place.
        what: String,
    },
    /// E0426, E0206, E0425: a schedule that cannot be brought to sends and receives, which ranks of several hosts need.
    NotTwoSided {
        /// The code of the obstacle.
        code: Code,
        /// The obstacle, and its place.
        what: String,
    },
    /// E0433: a plan that gives wrong data: the check of its first call found an element that differs. The call that was
    /// to follow is not made.
    WrongData(Box<WrongData>),
    /// E0431: an op for integers alone, for elements that are floats.
    NoSuchOp(NoSuchOp),
    /// E0431: an op that executors do not have, as the contest's framework does not have it.
    NotForExecutors {
        /// The op that was asked for.
        op: ReduceOp,
    },
    /// E0315: an executor uses more of a resource than it asked for.
    Exceeded {
        /// The resource, the amount asked for, and the amount used.
        what: String,
    },
    /// E0208, E0310, E0312, …: a schedule for which no proof can hold.
    BadSchedule {
        /// The code of the rule that the schedule breaks.
        code: Code,
        /// The breach, in words.
        what: String,
    },
}

/// The details of [`Error::CallsDiffer`] (E0414): ranks made different calls where all should make the same, or a rank
/// refused to make one.
///
/// The call is void: it moved nothing. Every rank gets this error once, with the same two ranks and calls, and the
/// communicator works as before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Differ {
    /// The number of the call: each rank counts the calls that it makes, from 1; 0 where calls have no numbers.
    pub number: u64,
    /// Two ranks whose calls differ.
    pub ranks: [RankId; 2],
    /// The call of each of the two, in words.
    pub calls: [String; 2],
    /// The reason in words, where a rank refused to make the call: both ranks are this one, and there are no calls.
    pub reason: Option<String>,
    /// Set where the rank that gets this error had left the call before other ranks found that they differ: it is told
    /// in place of its next call, which is then not made.
    pub late: Option<RankId>,
}

/// The details of [`Error::Missing`] (E0405): a rank did not make a call that another rank waited in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The rank that waited.
    pub rank: RankId,
    /// The number of the call in which it waited; each rank counts its calls from 1.
    pub waits_in: u64,
    /// The rank that did not make the call.
    pub missing: RankId,
    /// The number of the call that it did not make.
    pub number: u64,
    /// The call that the other ranks made under that number, in words.
    pub call: String,
    /// The number and the words of the last call that the missing rank made, if it ever made one.
    pub last: Option<(u64, String)>,
    /// Whether the missing rank is still in that last call.
    pub busy: bool,
    /// The time that the rank waited: the deadline, unless the wait could never end.
    pub after: Duration,
    /// The circle of waits of which this wait is one, in words, if there is one.
    pub circle: Option<String>,
}

/// The length and the type of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its length in elements.
    pub len: usize,
    /// The type of its elements.
    pub dtype: DType,
}

/// The details of [`Error::RankEnded`] (E0428): a rank whose process ended while other ranks needed it. All survivors
/// get the same error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The rank that ended.
    pub rank: RankId,
    /// The number of its process, as the rank knew it.
    pub pid: u32,
    /// The number of the call in which, or before which, the rank was missed; each rank counts its calls from 1. Where
    /// it was missed beside all calls, for a message, the number of the last call that it made.
    pub number: u64,
    /// The way in which the rank ended, its place in the call, and the rank that waited for it, in words.
    pub what: String,
}

impl From<NoSuchOp> for Error {
    fn from(none: NoSuchOp) -> Self {
        Self::NoSuchOp(none)
    }
}

impl From<Unproved> for Error {
    fn from(unproved: Unproved) -> Self {
        Self::Unproved(unproved)
    }
}

impl Error {
    /// Returns the stable code, for example E0402.
    pub fn code(&self) -> Code {
        match self {
            Self::WrongBufferCount { .. } => Code::WrongBufferCount,
            Self::WrongMessage { sent, received, .. } if sent.dtype != received.dtype => {
                Code::WrongDType
            }
            Self::WrongBufferLength { .. } | Self::WrongMessage { .. } => Code::WrongBufferLength,
            Self::WrongDType { .. } => Code::WrongDType,
            Self::MisalignedBuffer { .. } => Code::MisalignedBuffer,
            Self::Timeout(_) | Self::Missing(_) | Self::Late { .. } => Code::Timeout,
            Self::BadOption { .. } => Code::BadOption,
            Self::CallsDiffer(_) => Code::CallsDiffer,
            Self::TooLarge { .. } => Code::TooLarge,
            Self::NoSuchRank { .. } => Code::NoSuchRank,
            Self::RankBusy { .. } => Code::RankBusy,
            Self::Abandoned { .. } => Code::Abandoned,
            Self::NoInPlace { .. } => Code::NoInPlace,
            Self::NoRanks { .. } => Code::NoRanks,
            Self::WorkerPanicked { .. } => Code::WorkerPanicked,
            Self::BadCounts { .. } => Code::BadCounts,
            Self::EqualCounts { .. } => Code::EqualCounts,
            Self::OneMode { .. } => Code::OneMode,
            Self::Unproved(_) => Code::Unproved,
            Self::Exceeded { .. } => Code::OverBudget,
            Self::NotJoined { .. } => Code::NotJoined,
            Self::RankEnded(_) => Code::RankEnded,
            Self::SystemRefused { .. } => Code::SystemRefused,
            Self::Corrupt { .. } => Code::Corrupt,
            Self::WrongData(_) => Code::WrongData,
            Self::NoSuchOp(_) | Self::NotForExecutors { .. } => Code::NoSuchOp,
            Self::BadSchedule { code, .. } | Self::NotTwoSided { code, .. } => *code,
        }
    }
}

/// The fault, the advice, and the code at the end.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.words(f)?;
        write!(f, " [{}]", self.code())
    }
}

impl Error {
    /// Returns the text without the code, for another error's message that continues it.
    pub(crate) fn text(&self) -> String {
        struct WithoutCode<'e>(&'e Error);

        impl fmt::Display for WithoutCode<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.words(f)
            }
        }

        WithoutCode(self).to_string()
    }

    fn words(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WrongBufferCount { what, given, nranks } => write!(
                f,
                "{given} {what} for {nranks} ranks; give one per rank, empty where a rank has none"
            ),
            Self::WrongBufferLength { what, rank, given, expected, unit } => {
                write!(f, "the {what} of rank {rank} has {given} {unit}; it must have {expected}")
            }
            Self::WrongDType { given, expected } => {
                write!(f, "buffers of {given} for a plan of {expected}; make the plan for {given}")
            }
            Self::MisalignedBuffer { what, rank, dtype } => write!(
                f,
                "the {what} of rank {rank} is not aligned for {dtype}; its address must be a multiple of {}",
                dtype.size()
            ),
            Self::Timeout(stuck) => write!(f, "{stuck}"),
            Self::Missing(missing) => write!(f, "{missing}"),
            Self::BadOption { what, fix } => write!(f, "{what}; {fix}"),
            Self::CallsDiffer(differ) => write!(f, "{differ}"),
            Self::TooLarge { what } => write!(f, "{what}; use a smaller count"),
            Self::NoInPlace { why } => write!(f, "{why}; run it with separate outputs"),
            Self::NoRanks { nranks } => {
                write!(f, "nranks is {nranks}, and must be in 1..={RANK_LIMIT}")
            }
            Self::WorkerPanicked { message } => {
                write!(f, "a worker thread panicked: {message}; the outputs are undefined")
            }
            Self::NoSuchRank { rank, nranks } => {
                write!(f, "there is no rank {rank} of {nranks}; ranks count from 0")
            }
            Self::RankBusy { rank } => write!(
                f,
                "rank {rank} is called while a call of it is under way; each rank has one thread"
            ),
            Self::Abandoned { rank, by, why } => write!(
                f,
                "rank {rank} cannot go on, and what these ranks share must be made anew, as rank {by} gave up: {why}"
            ),
            Self::EqualCounts { what } => {
                write!(f, "{what}; use an algorithm that moves whole blocks to their own places")
            }
            Self::OneMode { what } => {
                write!(f, "{what}; run it by one caller, or mark it `#[out_of_place]`")
            }
            Self::Unproved(unproved) => write!(f, "{unproved}: run it at level O0, and report it"),
            Self::Exceeded { what } => {
                write!(f, "{what}; `calc_*` must tell the framework all that a run takes")
            }
            Self::WrongMessage { ranks: [from, to], sent, received } => write!(
                f,
                "rank {from} sent rank {to} {sent}, and rank {to} received them as {received}; receive as many elements of the same type as were sent; this message is gone, and the next is as good as ever"
            ),
            Self::Late { what } => write!(f, "{what}; raise the deadline if it is only slow"),
            Self::NotJoined { what } | Self::SystemRefused { what } | Self::BadCounts { what } => {
                f.write_str(what)
            }
            Self::RankEnded(ended) => f.write_str(&ended.what),
            Self::WrongData(wrong) => write!(
                f,
                "{wrong}; do not trust this machine's results by this algorithm: try another algorithm or level, and look for a driver, a memory or a patched library that is at fault"
            ),
            Self::Corrupt { what } => {
                write!(f, "{what}; nothing that these ranks share can be trusted any more")
            }
            Self::NotTwoSided { what, .. } => write!(
                f,
                "{what}; ranks of several hosts send each other messages: use another algorithm"
            ),
            Self::NoSuchOp(none) => write!(f, "{none}; {}", NoSuchOp::help()),
            Self::NotForExecutors { op } => write!(
                f,
                "executors have no op {op}, as the contest's framework has none; take sum, prod, min or max, or run a plan of the algorithm"
            ),
            Self::BadSchedule { what, .. } => {
                write!(f, "{what}; run only schedules that were proved")
            }
        }
    }
}

impl fmt::Display for Differ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, ranks: [first, second], calls: [mine, theirs], reason, late } = self;
        let number = if *number == 0 { "a call".to_owned() } else { format!("call {number}") };
        match reason {
            Some(reason) => write!(
                f,
                "rank {first} refused to make {number}, so it is void for all; its reason: {reason}"
            )?,
            None => write!(
                f,
                "{number} is {mine} on rank {first} and {theirs} on rank {second}; all ranks must make the same calls in the same order, so this one is void for all"
            )?,
        }
        if let Some(rank) = late {
            write!(
                f,
                "; rank {rank} had left it before that was known, and the call that it makes now is not made"
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} elements of {}", self.len, self.dtype)
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rank, waits_in, missing, number, call, last, busy, after, circle } = self;
        write!(
            f,
            "rank {rank} waited {after:?} in call {waits_in} for rank {missing}, which did not make call {number}, {call}; "
        )?;
        match last {
            Some((number, call)) if *busy => write!(f, "it is still in call {number}, {call}")?,
            Some((number, call)) => write!(f, "its last was call {number}, {call}")?,
            None => f.write_str("it has made none")?,
        }
        match circle {
            Some(circle) => write!(f, "; {circle}"),
            None => f.write_str("; raise the deadline if it is only slow"),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {}
