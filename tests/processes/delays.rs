//! Ranks that are late anywhere in any call: the bits are those of a run in which no rank is late.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use roundelay::library::{MeshAllReduce, RingAllReduce};
use roundelay::{Error, Level, Options, ReduceOp, World};
use roundelay_kernels::shared_memory::Fault;

use super::ranks::{DEADLINE, case, end, run, say};

/// One tile, more than one, and several of which the last is short.
const COUNTS: [usize; 5] = [1, 33, 1000, 70_000, 150_001];

/// Collectives: all-reduce of two ops, broadcast, all-gather, reduce-scatter.
const KINDS: u32 = 5;

/// A call, but for the data, which follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Call {
    kind: u32,
    count: usize,
    root: u32,
}

/// Returns a rank's input: sums of these numbers depend on their order.
fn input(rank: u32, len: usize) -> Vec<f32> {
    (0..len).map(|at| ((at * 7 + rank as usize * 131) % 1009) as f32 / 7.0).collect()
}

impl Call {
    /// Makes it, with buffers in the arena or not; a digest of the output's bits.
    fn make(self, world: &World, lent: bool) -> Result<u64, Error> {
        let Self { kind, count, root } = self;
        let mut rank = world.rank();
        let n = rank.nranks() as usize;
        let input = input(rank.id(), if kind == 4 { count * n } else { count });
        let mut own = vec![0.0_f32; if kind == 3 { count * n } else { count }];
        let mut shared = lent.then(|| world.alloc::<f32>(own.len())).transpose()?;
        let output = shared.as_deref_mut().unwrap_or(&mut own);
        match kind {
            0 | 1 => {
                output.copy_from_slice(&input);
                rank.all_reduce(output, [ReduceOp::Sum, ReduceOp::Max][kind as usize])?;
            }
            2 => {
                output.copy_from_slice(&input);
                rank.broadcast(output, root)?;
            }
            3 => rank.all_gather(&input, output)?,
            _ => rank.reduce_scatter(&input, output, ReduceOp::Sum)?,
        }
        let mut digest = DefaultHasher::new();
        for x in output.iter() {
            x.to_bits().hash(&mut digest);
        }
        Ok(digest.finish())
    }
}

/// Runs a rank: every call once without delays, or a given number of calls with delays.
fn live(case: &str) {
    let words: Vec<&str> = case.split(' ').collect();
    let [level, calls] = words[..] else { panic!("{case}") };
    let calls: u32 = calls.parse().expect("a number of calls");
    let options = Options::new().deadline(DEADLINE).level(level.parse().expect("a level"));
    // Three algorithms for one collective, by the count.
    let world = World::from_env_with(options).expect("a world");
    let world =
        world.using_up_to(100, MeshAllReduce::new()).using_up_to(280_000, RingAllReduce::new());
    let (me, n) = (world.rank().id(), world.nranks());
    let mut seen = BTreeMap::new();
    if calls == 0 {
        for kind in 0..KINDS {
            for count in COUNTS {
                for root in 0..if kind == 2 { n } else { 1 } {
                    let call = Call { kind, count, root };
                    seen.insert(call, call.make(&world, false).expect("a right call"));
                }
            }
        }
    }
    // All ranks draw alike.
    let mut draw = fastrand::Rng::with_seed(n.into());
    for number in 1..=u64::from(calls) {
        let (kind, count) = (draw.u32(..KINDS), COUNTS[draw.usize(..COUNTS.len())]);
        let root = draw.u32(..n);
        let call = Call { kind, count, root: if kind == 2 { root } else { 0 } };
        // Now and then one is late, and now and then another, too.
        for _ in 0..2 {
            let (late, place, long) = (draw.u32(..2 * n), draw.u32(..10), draw.u32(..3));
            if late == me {
                world.inject(number, place, || {}, Fault::Late(u64::from(long)));
            }
        }
        let in_arena = draw.u32(..1 << n) >> me & 1 == 1;
        let bits = call.make(&world, in_arena).expect("a right call");
        let first = *seen.entry(call).or_insert(bits);
        assert_eq!(first, bits, "call {number}, {call:?}, in the arena {in_arena}");
    }
    for (call, bits) in seen {
        say(&format!("{call:?} {bits:016x}"));
    }
    say("done");
}

#[test]
fn whoever_is_late_the_bits_are_the_same() {
    if let Some(case) = case() {
        live(&case);
        end();
    }
    let test = "delays::whoever_is_late_the_bits_are_the_same";
    let calls = if std::env::var_os("ROUNDELAY_WHOLE").is_some() { 2000 } else { 100 };
    for (nranks, level) in
        [(2, Level::O2), (3, Level::O2), (5, Level::O2), (3, Level::O0), (4, Level::O1)]
    {
        let all = |calls: u32| {
            let told = run(test, nranks, &format!("{level} {calls}"), |_, _| ());
            for told in &told {
                assert_eq!(told.said.last().map(String::as_str), Some("done"), "{}", told.all);
            }
            told.into_iter().map(|told| told.said).collect::<Vec<_>>()
        };
        let (quiet, late) = (all(0), all(calls));
        for (rank, (quiet, late)) in quiet.iter().zip(&late).enumerate() {
            assert!(late.len() > 10, "{late:?}");
            for line in late {
                assert!(quiet.contains(line), "{nranks} ranks at {level}, rank {rank}: {line}");
            }
        }
        println!("{calls} calls of {nranks} ranks at {level}");
    }
}
