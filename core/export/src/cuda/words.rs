//! The words that a kernel reads: a header and tables.
//!
//! The numbers that host and device agree on are defined only here: `kernels/device/words.cuh` is written from this
//! file, and a test checks that it is up to date.

use roundelay_core::schedule::SignalKind;

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

            #[cfg(test)]
            const SHARED: fresh::Enumeration = fresh::Enumeration {
                name: stringify!($name),
                about: concat!($($about),+),
                words: &[$((stringify!($word), concat!($($doc),+))),+],
            };
        }
    };
}

/// Defines numbers that the device knows too.
macro_rules! numbers {
    ($($(#[doc = $doc:literal])+ $name:ident: $type:ident = $value:expr;)+) => {
        $($(#[doc = $doc])+ pub(super) const $name: $type = $value;)+

        #[cfg(test)]
        const NUMBERS: &[fresh::Number] = &[$(fresh::Number {
            name: stringify!($name),
            about: concat!($($doc),+),
            wide: matches!(stringify!($type).as_bytes(), b"u64"),
            value: $name as u64,
        }),+];
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

#[cfg(test)]
mod fresh {
    //! The header of these words for the device.

    use std::fmt::Write as _;

    use expect_test::expect_file;

    use super::{Header, Kind, NUMBERS};
    use roundelay_core::schedule::SignalKind;

    pub(super) struct Enumeration {
        pub(super) name: &'static str,
        pub(super) about: &'static str,
        pub(super) words: &'static [(&'static str, &'static str)],
    }

    pub(super) struct Number {
        pub(super) name: &'static str,
        pub(super) about: &'static str,
        /// Whether the number has 64 bits.
        pub(super) wide: bool,
        pub(super) value: u64,
    }

    /// Returns the kinds of signals of programs; kernels have no others.
    fn on_devices() -> impl Iterator<Item = SignalKind> {
        SignalKind::ALL.into_iter().take(SignalKind::OF_PAIRS + SignalKind::OF_CHILDREN)
    }

    fn header() -> String {
        let mut text = "// Written by a test of core/export/src/cuda/words.rs, which is the place to change it: what host and device agree on by\n\
             // number. `UPDATE_EXPECT=1 cargo test -p roundelay-export --lib words` writes it anew.\n\
             #pragma once\n#include \"base.cuh\"\n\nnamespace roundelay {\n"
            .to_owned();
        for Enumeration { name, about, words } in [Header::SHARED, Kind::SHARED] {
            let _ = writeln!(text, "\n//{about}\nenum class {name} : i64 {{");
            for (word, about) in words {
                let _ = writeln!(text, "    {word}, //{about}");
            }
            text.push_str("};\n");
        }
        let kinds: Vec<_> = on_devices().map(|kind| format!("{kind:?}")).collect();
        let _ = writeln!(
            text,
            "\n// The kinds of signal: those of pairs of ranks, then those of child streams.\nenum class Signal : i32 {{ {} }};",
            kinds.join(", ")
        );
        let _ = writeln!(
            text,
            "#ifdef ROUNDELAY_SHIM\nconstexpr const char* SIGNAL_NAMES[] = {{\"{}\"}};\n#endif\n",
            kinds.join("\", \"")
        );
        for Number { name, about, wide, value } in NUMBERS {
            let _ = match wide {
                true => writeln!(text, "constexpr u64 {name} = {value:#x}; //{about}"),
                false => writeln!(text, "constexpr i32 {name} = {value}; //{about}"),
            };
        }
        text.push_str("\n} // namespace roundelay\n");
        text
    }

    #[test]
    fn the_devices_words_are_fresh() {
        expect_file!["../../../../kernels/device/words.cuh"].assert_eq(&header());
    }

    /// The place of a counter is the number of its kind.
    #[test]
    fn signals_of_pairs_come_first() {
        for (number, kind) in on_devices().enumerate() {
            assert_eq!(kind as usize, number);
            assert_eq!(kind.of_pairs(), number < SignalKind::OF_PAIRS, "{kind:?}");
        }
    }
}
