//! The launches of ranks on GPUs, for processes that look from outside: kernels record long waits in the control block of
//! their plan, and behind these words the ranks count their launches, and a text says which statement a wait belongs to.
//!
//! A block is control words; two words a rank, the number of its launches and the time of the last one in ticks; the text;
//! and in the last bytes of the file the words of [`Tail`]. Words of ranks are not trusted here, either.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::time::Duration;

#[cfg(feature = "cuda")]
pub(crate) use outline::Outline;

use super::{Now, ObservedCall, ObservedRank, ObservedWait, Wait, printable};

/// The first word of a tail: the letters `launches`.
const MAGIC: u64 = u64::from_le_bytes(*b"launches");
/// The most bytes of a block that are read.
const BLOCK: usize = 1 << 28;
/// The words of a group's record that are read: its state, its step, and the nanoseconds of its wait.
const STATE: usize = 0;
const STEP: usize = 1;
const WAITED: usize = 5;

/// The last words of a block's file.
#[derive(Clone, Copy)]
struct Tail {
    /// The number of the world of the ranks.
    world: u64,
    nranks: u64,
    /// The words before the records of groups, and the words of a record.
    head: u64,
    record: u64,
    /// Groups of the control block.
    groups: u64,
    /// The bytes of the text.
    text: u64,
}

impl Tail {
    const BYTES: usize = 8 * 7;

    #[cfg(any(test, feature = "cuda"))]
    fn to_bytes(self) -> Vec<u8> {
        let Self { world, nranks, head, record, groups, text } = self;
        let words = [MAGIC, world, nranks, head, record, groups, text];
        words.into_iter().flat_map(u64::to_le_bytes).collect()
    }

    fn read(file: &File, size: u64) -> Option<Self> {
        let mut bytes = [0; Self::BYTES];
        file.read_exact_at(&mut bytes, size.checked_sub(Self::BYTES as u64)?).ok()?;
        let mut words = (0..).map_while(|at| word_of(&bytes, at));
        let magic = words.next()?;
        let (world, nranks) = (words.next()?, words.next()?);
        let (head, record) = (words.next()?, words.next()?);
        let tail = Self { world, nranks, head, record, groups: words.next()?, text: words.next()? };
        (magic == MAGIC).then_some(tail)
    }

    /// The words before those of the ranks.
    fn control_words(self) -> Option<usize> {
        let words = self.groups.checked_mul(self.record)?.checked_add(self.head)?;
        usize::try_from(words).ok()
    }

    /// The bytes before the text.
    fn before_text(self) -> Option<usize> {
        let words =
            self.control_words()?.checked_add(2_usize.checked_mul(self.nranks as usize)?)?;
        words.checked_mul(8)
    }
}

fn word_of(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(8 * at..)?.first_chunk()?))
}

/// The launches of a plan.
pub(super) struct Launches {
    pub(super) world: u64,
    /// The call in words.
    pub(super) call: String,
    pub(super) algorithm: String,
    pub(super) ranks: Vec<RankLaunches>,
}

/// The launches of a rank.
pub(super) struct RankLaunches {
    /// The number of launches that no graph made.
    pub(super) number: u64,
    /// The time of the last one in ticks; 0 before the first.
    pub(super) begun: u64,
    pub(super) wait: Option<LaunchWait>,
}

/// A long wait of a kernel.
pub(super) struct LaunchWait {
    pub(super) step: u32,
    /// The awaited rank and the statement, if they are known.
    pub(super) on: Option<(usize, String)>,
    pub(super) waited: Duration,
}

/// Reads a block; `None` where the file holds none.
pub(super) fn read(file: &File) -> Option<Launches> {
    let size = file.metadata().ok()?.len();
    let tail = Tail::read(file, size)?;
    let before = tail.before_text()?;
    let bytes = before.checked_add(tail.text as usize)?;
    if bytes > BLOCK || bytes as u64 > size {
        return None;
    }
    let mut block = vec![0; bytes];
    file.read_exact_at(&mut block, 0).ok()?;
    let text = String::from_utf8_lossy(&block[before..]);
    let mut lines = text.lines();
    let [call, algorithm] = [lines.next()?, lines.next()?].map(printable);
    let of_groups: Vec<usize> =
        lines.by_ref().take(tail.groups as usize).map_while(|rank| rank.parse().ok()).collect();
    let places: BTreeMap<(usize, u64), (usize, &str)> = lines
        .filter_map(|line| {
            let mut words = line.splitn(4, ' ');
            let group = words.next()?.parse().ok()?;
            let (step, on) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
            Some(((group, step), (on, words.next()?)))
        })
        .collect();
    let words = tail.control_words()?;
    let mut ranks: Vec<RankLaunches> = (0..tail.nranks as usize)
        .map(|rank| {
            let word = |at| word_of(&block, words + 2 * rank + at).unwrap_or(0);
            RankLaunches { number: word(0), begun: word(1), wait: None }
        })
        .collect();
    for (group, rank) in of_groups.iter().enumerate() {
        let record = (tail.head + tail.record * group as u64) as usize;
        let word = |at| word_of(&block, record + at).unwrap_or(0);
        let Some(launches) = ranks.get_mut(*rank).filter(|_| word(STATE) != 0) else { continue };
        let step = word(STEP);
        let on = places.get(&(group, step)).map(|(on, place)| (*on, printable(place)));
        let on = on.filter(|(on, _)| *on < tail.nranks as usize);
        let waited = Duration::from_nanos(word(WAITED));
        let wait = LaunchWait { step: u32::try_from(step).unwrap_or(u32::MAX), on, waited };
        // Of several streams, the one that has waited longest is the cause of the others' waits.
        if launches.wait.as_ref().is_none_or(|other| other.waited < wait.waited) {
            launches.wait = Some(wait);
        }
    }
    Some(Launches { world: tail.world, call, algorithm, ranks })
}

/// Adds the launches of a world's plans to its ranks.
pub(super) fn add(ranks: &mut [ObservedRank], plans: &[&Launches], now: Now) {
    let of = |at: usize| plans.iter().filter_map(move |plan| Some((plan, plan.ranks.get(at)?)));
    let number = |at: usize| of(at).map(|(_, rank)| rank.number).fold(0, u64::saturating_add);
    for (at, rank) in ranks.iter_mut().enumerate() {
        let total = number(at);
        let waits = of(at).filter(|(_, launches)| launches.wait.is_some());
        // A rank that leaves has no kernels, and a plan that has failed keeps its records.
        let last = waits.chain(of(at)).max_by_key(|(_, launches)| launches.begun);
        let Some((plan, launches)) = last.filter(|_| rank.left.is_none()) else { continue };
        if total == 0 && launches.wait.is_none() {
            continue;
        }
        rank.on_gpu = true;
        rank.number = total;
        rank.calls = vec![ObservedCall {
            number: total,
            name: plan.call.clone(),
            shape: None,
            site: None,
            algorithm: Some(plan.algorithm.clone()),
            since: now.since(launches.begun),
            ended: None,
            failed: false,
        }];
        let Some(wait) = &launches.wait else { continue };
        rank.in_call = true;
        rank.step = Some(wait.step);
        rank.place = wait.on.as_ref().map(|(_, place)| place.clone());
        let on = wait.on.as_ref().map(|(on, _)| *on);
        let missing = on.filter(|on| number(*on) < total).map_or(0, |_| total);
        let words =
            Wait { since: launches.begun, on, number: total, needs: missing, progress: false };
        rank.wait = Some(ObservedWait { on, since: wait.waited, number: total, missing, words });
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::{MemfdFlags, memfd_create};

    use super::*;

    fn file(block: &[u8], tail: Tail, size: u64) -> File {
        let file = File::from(memfd_create("block", MemfdFlags::CLOEXEC).expect("memory"));
        file.set_len(size).expect("room");
        file.write_all_at(block, 0).expect("room");
        file.write_all_at(&tail.to_bytes(), size - Tail::BYTES as u64).expect("room");
        file
    }

    /// Two groups of rank 1, of which the second has waited longer, for rank 0.
    #[test]
    fn the_longest_wait_of_a_rank_is_read() {
        let text = "AllReduce\nRing\u{1b}\n1\n1\n0 7 0 ring.coll:3\n1 9 0 a file.coll:4\n";
        let records = [[0; 8], [1, 7, 0, 0, 0, 50, 0, 0], [2, 9, 0, 0, 0, 60, 0, 0]];
        let words = records.as_flattened().iter().chain(&[0, 0, 3, 40]);
        let block: Vec<u8> =
            words.flat_map(|word: &u64| word.to_le_bytes()).chain(text.bytes()).collect();
        let text = text.len() as u64;
        let tail = Tail { world: 5, nranks: 2, head: 8, record: 8, groups: 2, text };
        let read = read(&file(&block, tail, 4096)).expect("a block");
        assert_eq!((read.world, &*read.call, &*read.algorithm), (5, "AllReduce", "Ring "));
        let [first, second] = &read.ranks[..] else { panic!("{} ranks", read.ranks.len()) };
        assert!((first.number, first.begun) == (0, 0) && first.wait.is_none());
        assert_eq!((second.number, second.begun), (3, 40));
        let wait = second.wait.as_ref().expect("a wait");
        assert_eq!((wait.step, wait.waited), (9, Duration::from_nanos(60)));
        assert_eq!(wait.on, Some((0, "a file.coll:4".to_owned())));
    }

    #[test]
    fn words_that_no_rank_writes_are_no_block() {
        let good = Tail { world: 5, nranks: 2, head: 8, record: 8, groups: 2, text: 10 };
        assert!(read(&file(b"", good, 4096)).is_none(), "no text");
        for tail in [
            Tail { nranks: u64::MAX, ..good },
            Tail { nranks: u64::MAX / 16, ..good },
            Tail { head: u64::MAX, ..good },
            Tail { record: u64::MAX, ..good },
            Tail { groups: u64::MAX, ..good },
            Tail { text: u64::MAX, ..good },
            Tail { text: 4096, ..good },
        ] {
            assert!(read(&file(b"", tail, 4096)).is_none());
        }
        for size in [0, 8, Tail::BYTES as u64] {
            let empty = File::from(memfd_create("block", MemfdFlags::CLOEXEC).expect("memory"));
            empty.set_len(size).expect("room");
            assert!(read(&empty).is_none());
        }
    }
}

#[cfg(feature = "cuda")]
mod outline {
    use std::fmt::Write as _;
    use std::fs::File;
    use std::os::unix::fs::FileExt as _;

    use roundelay_core::schedule::{OpKind, Schedule};
    use roundelay_export::cuda::Group;

    use super::Tail;
    use crate::grid::layout::{CONTROL_GROUP, CONTROL_HEAD};

    /// The most bytes of a text; waits beyond have no place.
    const TEXT: usize = 1 << 20;

    /// The text and the tail that the owner of a block writes.
    pub(crate) struct Outline {
        tail: Tail,
        text: String,
    }

    impl Outline {
        /// Returns the outline of the launches of a call by ranks of the world `world`; `groups` are those of the kernel.
        pub(crate) fn new(world: u64, call: &str, schedule: &Schedule, groups: &[Group]) -> Self {
            let mut text = format!("{call}\n{}\n", schedule.algorithm);
            // Writing to a string does not fail.
            for group in groups {
                _ = writeln!(text, "{}", group.rank);
            }
            for (at, group) in groups.iter().enumerate() {
                let mut streams = schedule.streams.iter();
                let same = streams.find(|s| (s.rank, s.index) == (group.rank, group.stream));
                let Some(stream) = same else { continue };
                let ops = &schedule.ops[stream.first.index()..][..stream.len as usize];
                for (step, op) in ops.iter().enumerate() {
                    if op.kind == OpKind::Wait && text.len() < TEXT {
                        let from = schedule.channel(op).from;
                        _ = writeln!(text, "{at} {step} {from} {}", schedule.place(op.at));
                    }
                }
            }
            let tail = Tail {
                world,
                nranks: u64::from(schedule.nranks),
                head: CONTROL_HEAD as u64,
                record: CONTROL_GROUP as u64,
                groups: groups.len() as u64,
                text: text.len() as u64,
            };
            Self { tail, text }
        }

        fn before_text(&self) -> usize {
            self.tail.before_text().expect("the words of a kernel fit the memory")
        }

        /// The bytes that a block has at least.
        pub(crate) fn bytes(&self) -> usize {
            self.before_text() + self.text.len() + Tail::BYTES
        }

        /// Writes the text and the tail into the file of a block that has [`Self::bytes`], behind its words.
        pub(crate) fn write(&self, block: &File) -> std::io::Result<()> {
            let at = self.before_text() as u64;
            block.write_all_at(self.text.as_bytes(), at)?;
            let end = block.metadata()?.len() - Tail::BYTES as u64;
            block.write_all_at(&self.tail.to_bytes(), end)
        }
    }
}
