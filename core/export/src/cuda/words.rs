//! The words that a kernel reads: a header and tables.
//!
//! The numbers that host and device agree on are defined only here: `kernels/device/words.cuh` is written from this
//! file, and a test checks that it is up to date.

use roundelay_core::schedule::{SWITCH_LIMIT, SignalKind};

/// An enumeration whose numbers the device knows too: see `SHARED`.
#[allow(dead_code)]
type Enumeration = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

/// Defines an enumeration whose numbers the device knows too.
macro_rules! shared {
    ($(#[doc = $about:literal])+ $visibility:vis enum $name:ident { $($(#[doc = $doc:literal])+ $word:ident,)+ }) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $visibility enum $name { $($(#[doc = $doc])+ $word,)+ }

        impl $name {
            /// The number of its words.
            #[allow(dead_code)]
            const COUNT: usize = [$(Self::$word),+].len();

            /// Its name, its meaning, and each word with its meaning.
            #[allow(dead_code)]
            pub(super) const SHARED: Enumeration = (
                stringify!($name),
                concat!($($about),+),
                &[$((stringify!($word), concat!($($doc),+))),+],
            );
        }
    };
}

/// Defines numbers that the device knows too.
macro_rules! numbers {
    ($($(#[doc = $doc:literal])+ $name:ident: $type:ident = $value:expr;)+) => {
        $($(#[doc = $doc])+ pub(super) const $name: $type = $value;)+

        /// Each number: its name, its meaning, whether it has 64 bits, its value.
        #[allow(dead_code)]
        pub(super) const NUMBERS: &[(&str, &str, bool, u64)] = &[$((
            stringify!($name),
            concat!($($doc),+),
            matches!(stringify!($type).as_bytes(), b"u64"),
            $name as u64,
        )),+];
    };
}

shared! {
    /// The words of the header.
    pub enum Header {
        /// Lanes of signals.
        Lanes,
        /// Ranks of the machine.
        Ranks,
        /// Streams of the rank that has most.
        Streams,
        /// Where each group is described: rank, stream, ops, first move or first op.
        GroupsAt,
        /// Where each lane says which number a lane inside it has, less its value.
        LanesAt,
        /// Where the children of each stream of each rank are, in the order of their first forks.
        ChildrenAt,
        /// Where a bit for each move says whether it completes an average.
        FinishAt,
        /// The divisor of an average.
        Divisor,
        /// Units of the longest output.
        OutputUnits,
        /// Where the ops of the table form are.
        OpsAt,
        /// Where their operands are.
        OperandsAt,
        /// Where each group that a switch reaches says where its ranks are: their number, and the ranks.
        SwitchesAt,
    }
}

shared! {
    /// The ops of the table form.
    pub(super) enum Kind {
        /// Sources with destinations and whether it finishes, first operand, length.
        Move,
        /// To a peer, on a channel.
        Post,
        /// For a peer, on a channel.
        Wait,
        /// The parts of the stream meet.
        Meet,
        /// The sides of all ranks and whether it finishes, first operand, length: a move by a switch.
        Switch,
    }
}

numbers! {
    /// Words that describe a group.
    GROUP_WORDS: usize = 4;
    /// Words of the header; behind them each scratch buffer is described, and then come the tables of the loops.
    HEADER_WORDS: usize = Header::COUNT;
    /// Words that describe a scratch buffer: first element, length of a slot.
    SCRATCH_WORDS: usize = 2;
    /// Words of an op of the table form.
    OP_WORDS: usize = 4;
    /// Words of its operands, each: rank, buffer, element.
    OPERAND_WORDS: usize = 3;
    /// Kinds of signal that each lane of a pair of ranks has a counter for.
    PAIR_SIGNALS: usize = SignalKind::OF_PAIRS;
    /// Kinds of signal that each child stream has a counter for, behind those.
    CHILD_SIGNALS: usize = SignalKind::OF_CHILDREN;
    /// The most ranks that a switch reaches at once.
    SWITCH_RANKS: usize = SWITCH_LIMIT as usize;
    /// A rank's input, as operands name it.
    INPUT: usize = 0;
    /// Its output.
    OUTPUT: usize = 1;
    /// Its scratch; in the text of loops, the first of its scratch buffers.
    SCRATCH: usize = 2;
}

/// A table of words under construction.
pub(super) struct WordTable {
    pub(super) words: Vec<i64>,
}

impl WordTable {
    pub(super) fn new() -> Self {
        Self { words: vec![0; Header::COUNT] }
    }

    pub(super) fn head(&mut self, word: Header, value: i64) {
        self.words[word as usize] = value;
    }

    /// Appends words, and returns their start.
    pub(super) fn put(&mut self, words: impl IntoIterator<Item = i64>) -> i64 {
        let at = self.words.len() as i64;
        self.words.extend(words);
        at
    }
}
