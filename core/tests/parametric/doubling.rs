//! Programs whose loops run over the bits of nranks, and their mutants: the proof for given counts must confirm each
//! claim, at powers of two where the claim is for these alone.

use roundelay_core::layout::{Algorithm as _, Configured};
use roundelay_core::program::Program;
use roundelay_core::syntax::Source;
use roundelay_core::uneven;
use roundelay_core::verify::parametric::Every;

use crate::parametric::mutants::{mutants, stride};
use crate::parametric::{algorithms, finitely_right, first, prove};

/// Up to this count a claim is tried.
const TRIED: u32 = 33;

/// Each rank hands on what it has: recursive doubling that writes to the partner.
pub(super) const PUSHED: &str = "pub algorithm Pushed() -> AllGather {
    require is_power_of_two(nranks), \"by xor\";
    view block = output.split(nranks);
    copy(local.input, local.block[rank]);
    for k in 0..log2(nranks) {
        let distance = 1 << k;
        let partner = peer(rank ^ distance);
        let mine = rank - rank % distance;
        partner.TxAck();
        partner.RxAck();
        copy(local.block[mine..mine + distance], partner.block[mine..mine + distance]);
        partner.TxDataSignal();
        partner.RxDataSignal();
    }
}
";

/// Sums of what is ahead, for powers of two.
pub(super) const AHEAD: &str = "pub algorithm Ahead() -> AllReduce {
    require is_power_of_two(nranks), \"sums are doubled\";
    scratch inbox: like output;
    copy(local.input, local.output);
    for k in 0..ceil_log2(nranks) {
        let from = peer((rank + pow2(k)) % nranks);
        let to = peer((rank - pow2(k)) % nranks);
        to.TxAck();
        from.RxAck();
        copy(from.output, local.inbox);
        from.TxDataSignal();
        to.RxDataSignal();
        reduce(local.inbox, local.output);
    }
}
";

/// Sums of what is behind, for powers of two, written to the peer's scratch.
pub(super) const BEHIND: &str = "pub algorithm Behind() -> AllReduce {
    require is_power_of_two(nranks), \"sums are doubled\";
    scratch inbox: like output;
    copy(local.input, local.output);
    for k in 0..log2(nranks) {
        let to = peer((rank + (1 << k)) % nranks);
        let from = peer((rank - (1 << k)) % nranks);
        from.TxAck();
        to.RxAck();
        copy(local.output, to.inbox);
        to.TxDataSignal();
        from.RxDataSignal();
        reduce(local.inbox, local.output);
    }
}
";

/// Blocks that never pass the last one, as nranks is a power of two, by way of scratch.
pub(super) const BY_SCRATCH: &str = "pub algorithm ByScratch() -> AllGather {
    require is_power_of_two(nranks), \"by xor\";
    scratch all: like output;
    view block = all.split(nranks);
    copy(local.input, local.block[rank]);
    for k in 0..log2(nranks) {
        let partner = peer(rank ^ (1 << k));
        let far = 1 << k;
        let theirs = (rank - rank % far) ^ far;
        let first = partner.rank / far * far;
        partner.TxAck();
        partner.RxAck();
        copy(partner.block[theirs..first + far], local.block[first..theirs + far]);
        partner.TxDataSignal();
        partner.RxDataSignal();
    }
    copy(local.all, local.output);
}
";

/// All sources with the condition of their claims: whether nranks must be a power of two.
pub(super) fn members() -> Vec<(&'static str, bool)> {
    let library = include_str!("../../../stdlib/library/doubling.coll");
    let second = library.find("/// AllGather").expect("two algorithms");
    vec![
        (&library[..second], true),
        (&library[second..], true),
        (first(include_str!("../../../stdlib/library/bruck.coll")), false),
        (PUSHED, true),
        (AHEAD, true),
        (BEHIND, true),
        (BY_SCRATCH, true),
    ]
}

/// Whether the proof for given counts accepts all counts up to `most` of a claim; or the first that it refuses.
pub(super) fn confirmed(
    every: Every,
    algorithm: &Program,
    source: &Source,
    most: u32,
) -> Result<(), (u32, String)> {
    let counts = (every.from..=most).filter(|n| !every.powers_of_two || n.is_power_of_two());
    counts.into_iter().try_for_each(|n| finitely_right(algorithm, source, n..=n))
}

#[test]
fn members_are_proved_and_hold_at_every_count_tried() {
    for (text, powers_of_two) in members() {
        let (algorithm, source) = algorithms(text).expect("it compiles").remove(0);
        let every = prove(&algorithm, &source).unwrap_or_else(|outside| {
            let line = source.location(outside.at).line;
            panic!("{} at line {line}: {}", algorithm.name, outside.what)
        });
        assert_eq!((every.from, every.powers_of_two), (2, powers_of_two), "{}", algorithm.name);
        assert_eq!(confirmed(every, &algorithm, &source, 64), Ok(()), "{}", algorithm.name);
    }
}

/// Words that are easily taken for each other in these programs.
const CONFUSED: &[(&str, &str)] = &[
    ("log2(nranks)", "log2(nranks) - 1"),
    ("log2(nranks)", "log2(nranks) + 1"),
    ("log2(nranks)", "log2(nranks - 1)"),
    ("ceil_log2", "log2"),
    ("0..log2", "1..log2"),
    ("0..ceil_log2", "1..ceil_log2"),
    ("is_power_of_two(nranks)", "nranks > 1"),
    ("is_power_of_two(nranks)", "nranks % 2 == 0"),
    ("1 << k", "2 << k"),
    ("1 << k", "k + 1"),
    ("pow2(k)", "pow2(k + 1)"),
    ("rank ^", "rank +"),
    ("rank ^", "rank -"),
    ("rank %", "rank /"),
    ("distance", "2 * distance"),
    ("distance", "many"),
    ("many", "distance"),
    ("min(", "max("),
    (" > ", " >= "),
    (" > ", " < "),
    ("- nranks", "- nranks + 1"),
    ("from.rank", "rank"),
    ("from.rank", "to.rank"),
    ("from.rank", "0"),
    ("from", "to"),
    ("to", "from"),
    ("end]", "nranks]"),
    ("wrapped]", "1]"),
    ("theirs", "rank"),
    ("theirs", "partner.rank"),
    ("mine", "rank"),
    ("partner", "local"),
    ("local", "partner"),
    ("local", "from"),
    ("local", "to"),
    ("inbox", "output"),
    ("output", "inbox"),
    ("inbox", "input"),
    ("block[rank]", "block[0]"),
    ("algorithm", "#[out_of_place] algorithm"),
];

/// All mutants of a source without comments, one change each.
fn changed(text: &str) -> Vec<String> {
    let bare: Vec<_> =
        text.lines().map(|line| line.split("//").next().unwrap_or_default().trim_end()).collect();
    let bare = bare.join("\n");
    let mut all = mutants(&bare);
    for (word, other) in CONFUSED {
        for (at, _) in bare.match_indices(word) {
            all.push(format!("{}{other}{}", &bare[..at], &bare[at + word.len()..]));
        }
    }
    all
}

/// The numbers of mutants that were tried and claimed, and of those that a power of two does not refute.
#[derive(Debug, Default)]
struct Score {
    tried: usize,
    right: usize,
    claimed: usize,
}

impl Score {
    /// Tries a mutant of a program whose claim is for powers of two alone, or for every nranks.
    fn take(&mut self, mutant: &str, powers_of_two: bool) {
        for (algorithm, source) in algorithms(mutant).unwrap_or_default() {
            self.tried += 1;
            let claim = prove(&algorithm, &source);
            if let Ok(every) = claim {
                self.claimed += 1;
                let checked = confirmed(every, &algorithm, &source, TRIED);
                assert_eq!(checked, Ok(()), "claimed, and wrong\n{mutant}");
            }
            if let Ok(Every { from, blocks: true, powers_of_two }) = claim {
                let configured = Configured::new(algorithm.clone(), &source);
                for nranks in (from..=8).filter(|n| !powers_of_two || n.is_power_of_two()) {
                    let schedule = configured.schedule(nranks).expect("it is claimed");
                    let served = uneven::blocks(&schedule).is_ok();
                    assert!(served, "claimed for every vector, not at {nranks}\n{mutant}");
                }
            }
            let as_claimed = Every { from: 2, blocks: false, powers_of_two };
            self.right += usize::from(confirmed(as_claimed, &algorithm, &source, 16).is_ok());
        }
    }
}

#[test]
fn no_mutant_is_claimed_that_a_count_refutes() {
    let mut score = Score::default();
    for (text, powers_of_two) in members() {
        for mutant in changed(text) {
            score.take(&mutant, powers_of_two);
        }
    }
    println!("{score:?}");
    assert!(score.claimed > 40, "{score:?}");
}

/// Two and three changes at once, taken at even distances from all.
#[test]
fn no_mutant_of_mutants_is_claimed_that_a_count_refutes() {
    let each = 14_000 / stride();
    let mut score = Score::default();
    for (text, powers_of_two) in members() {
        let once = changed(text);
        for i in 0..each {
            let twice = changed(&once[i * once.len() / each]);
            let mutant = &twice[i * 7919 % twice.len()];
            score.take(mutant, powers_of_two);
            if i % 4 == 0 {
                let thrice = changed(mutant);
                score.take(&thrice[i * 104_729 % thrice.len()], powers_of_two);
            }
        }
    }
    println!("{score:?}");
    assert!(score.claimed > 300 / stride(), "{score:?}");
}
