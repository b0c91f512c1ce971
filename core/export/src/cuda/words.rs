//! The words that a kernel reads: a header, tables, and a hash table from keys to answers.
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
        /// Where each scratch declaration is: first element, length of a slot, slots before it.
        ScratchAt,
        /// Slots of all declarations.
        Slots,
        /// Where a bit for each move says whether it completes an average.
        FinishAt,
        /// The divisor of an average.
        Divisor,
        /// Where the table of hashes and values is.
        TableAt,
        /// Its length, less one.
        TableMask,
        /// Where the values of the parameters are.
        ParamsAt,
        /// Units of the longest input.
        InputUnits,
        /// Units of the longest output.
        OutputUnits,
        /// The most links of a fifo that one rank has an end of.
        LinksOfARank,
        /// Words of each block's own.
        Work,
        /// Where the ops of the table form are.
        OpsAt,
        /// Where their operands are.
        OperandsAt,
    }
}

shared! {
    /// The question of a lookup: the first word of a key.
    pub(super) enum Key {
        /// A lane, by how deep it is, the lane around it and the value.
        Lane,
        /// The children that a stream forks, by rank and stream.
        Child,
        /// A scratch declaration, by calls, lane and number.
        Scratch,
        /// A link of a fifo, by fifo, lane and ends.
        Link,
        /// The signal that a rank waits for where a fifo ends.
        EndFifo,
        /// A ring, tree, group or topology, by where and from what it was made.
        Object,
        /// The relays between two ranks of a topology.
        Relays,
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
    /// Words that describe a scratch declaration.
    SCRATCH_WORDS: usize = 3;
    /// Words of an op of the table form.
    OP_WORDS: usize = 4;
    /// Words of its operands, each: rank, buffer, element.
    OPERAND_WORDS: usize = 3;
    /// Words of a credit that is taken back where a fifo ends: peer, lane, times.
    CREDIT_WORDS: usize = 3;
    /// Words of a block's own for each slot: the interval that it holds, over its denominator.
    HELD_WORDS: usize = 3;
    /// Words of a block's own for each open link: key, first slot, ends, steps.
    LINK_WORDS: usize = 4;
    /// Kinds of signal that each lane of a pair of ranks has a counter for.
    PAIR_SIGNALS: usize = SignalKind::OF_PAIRS;
    /// Kinds of signal that each child stream has a counter for, behind those.
    CHILD_SIGNALS: usize = SignalKind::OF_CHILDREN;
    /// A rank's input, as operands name it.
    INPUT: usize = 0;
    /// Its output.
    OUTPUT: usize = 1;
    /// Its scratch; where regions name declarations, the first of them.
    SCRATCH: usize = 2;
    /// The first value of a hash.
    HASH_START: u64 = 0xcbf2_9ce4_8422_2325;
    /// The factor of a hash, word for word.
    HASH_FACTOR: u64 = 0x100_0000_01b3;
    /// How far its high bits are folded down.
    HASH_SHIFT: u64 = 29;
}

/// A table of words under construction.
pub(super) struct WordTable {
    pub(super) words: Vec<i64>,
    entries: Vec<(Vec<i64>, i64)>,
}

/// Returns the hash of a key, as the device computes it.
pub(super) fn hash(words: &[i64]) -> u64 {
    words.iter().fold(HASH_START, |hash, word| {
        let hash = (hash ^ *word as u64).wrapping_mul(HASH_FACTOR);
        hash ^ (hash >> HASH_SHIFT)
    })
}

/// Returns a hash as a word that is never negative.
pub(super) fn name(words: &[i64]) -> i64 {
    (hash(words) & (u64::MAX >> 1)) as i64
}

impl WordTable {
    pub(super) fn new() -> Self {
        Self { words: vec![0; Header::COUNT], entries: Vec::new() }
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

    /// Appends a length and this number of words, and returns their start.
    pub(super) fn list(&mut self, list: &[i64]) -> i64 {
        let at = self.put([list.len() as i64]);
        self.put(list.iter().copied());
        at
    }

    pub(super) fn answer(&mut self, key: Key, rest: impl IntoIterator<Item = i64>, value: i64) {
        let key = std::iter::once(key as i64).chain(rest).collect();
        self.entries.push((key, value));
    }

    /// Writes the table of hashes and values. The device compares hashes alone.
    pub(super) fn table(&mut self) {
        let size = (2 * self.entries.len()).next_power_of_two().max(2);
        let mut table = vec![[0, 0]; size];
        for (key, value) in std::mem::take(&mut self.entries) {
            let hash = hash(&key).max(1);
            let mut slot = hash as usize & (size - 1);
            while table[slot][0] != 0 {
                assert!(
                    table[slot][0] != hash as i64,
                    "two keys of a few words have one hash of 64 bits"
                );
                slot = (slot + 1) & (size - 1);
            }
            table[slot] = [hash as i64, value];
        }
        let at = self.put(table.into_flattened());
        self.head(Header::TableAt, at);
        self.head(Header::TableMask, size as i64 - 1);
    }
}

#[cfg(test)]
mod fresh {
    //! The header of these words for the device.

    use std::fmt::Write as _;

    use expect_test::expect_file;

    use super::{Header, Key, Kind, NUMBERS};
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
        for Enumeration { name, about, words } in [Header::SHARED, Key::SHARED, Kind::SHARED] {
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
