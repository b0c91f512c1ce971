//! The words that a kernel reads: a header, tables, and a hash table from what is asked to what is answered.

/// Words of the header.
const HEADER: usize = 25;

/// `roundelay` in short.
const MAGIC: i64 = 0x52_4f55_4e44;

/// The words of the header, by number. The device has the same list.
#[derive(Clone, Copy)]
pub(super) enum Head {
    Ranks = 1,
    Groups = 2,
    /// Rank, stream, ops, and first move or first op of each stream.
    GroupsAt = 3,
    Lanes = 4,
    Scratches = 6,
    /// First element, slot length, and slots before, of each scratch buffer.
    ScratchAt = 7,
    FinishAt = 8,
    TableAt = 9,
    TableMask = 10,
    Params = 11,
    ParamsAt = 12,
    InputUnits = 13,
    OutputUnits = 14,
    Streams = 15,
    Slots = 16,
    LinksOfARank = 17,
    Links = 18,
    Root = 19,
    OpsAt = 20,
    OperandsAt = 21,
    Divisor = 22,
    Work = 24,
}

/// What is asked: the first word of a key.
#[derive(Clone, Copy)]
pub(super) enum Key {
    Lane = 1,
    Child = 2,
    Scratch = 3,
    Link = 4,
    EndFifo = 5,
    Object = 6,
    Relays = 7,
}

/// Words in the making.
pub(super) struct Words {
    pub(super) words: Vec<i64>,
    entries: Vec<(Vec<i64>, i64)>,
}

/// The hash of a key, as the device computes it.
pub(super) fn hash(words: &[i64]) -> u64 {
    words.iter().fold(0xcbf2_9ce4_8422_2325, |h, word| {
        let h = (h ^ *word as u64).wrapping_mul(0x100_0000_01b3);
        h ^ (h >> 29)
    })
}

/// A hash that is kept as a word: never negative.
pub(super) fn name(words: &[i64]) -> i64 {
    (hash(words) & (u64::MAX >> 1)) as i64
}

impl Words {
    pub(super) fn new() -> Self {
        let mut words = vec![0; HEADER];
        words[0] = MAGIC;
        Self { words, entries: Vec::new() }
    }

    pub(super) fn head(&mut self, word: Head, value: i64) {
        self.words[word as usize] = value;
    }

    /// Appends words, and says where they begin.
    pub(super) fn put(&mut self, words: impl IntoIterator<Item = i64>) -> i64 {
        let at = self.words.len() as i64;
        self.words.extend(words);
        at
    }

    /// A length and that many words.
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
        self.head(Head::TableAt, at);
        self.head(Head::TableMask, size as i64 - 1);
    }
}
