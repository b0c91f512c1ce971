//! Every algorithm by ranks that share an arena, as processes do: the bits are those of one caller, at every level, for
//! buffers of their own, for buffers in the arena, and for ranks that differ in that.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use roundelay::{Level, Options, ReduceOp};
use roundelay_core::ids::RankId;
use roundelay_core::verify::Proved;
use roundelay_kernels::process::{World, WorldPlan};

use super::super::runs::{self, Kind, Proofs};
use super::subjects::{self, Subject};
use super::values::{Told, Values};

/// Where the buffers of ranks lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Memory {
    Own,
    Arena,
    /// Every other rank's in the arena.
    Mixed,
}

impl Memory {
    fn lent(self, rank: RankId) -> bool {
        self == Self::Arena || self == Self::Mixed && rank.0.is_multiple_of(2)
    }
}

fn run(subject: Subject) {
    let mut turn = 0;
    for level in [Level::O0, Level::O1, Level::O2] {
        for nranks in (1..=5).filter(|n| (subject.admits)(*n)) {
            let options = Options::new().level(level).deadline(Duration::from_secs(20));
            let worlds = World::together(nranks, options).expect("worlds");
            let worlds: Vec<Arc<World>> = worlds.into_iter().map(Arc::new).collect();
            let values = Values::all(subject.params, nranks);
            let values = &values[turn * 7 % values.len()];
            let _told = Told(values);
            let algorithm = (subject.with)(values);
            let mut proofs = Proofs::new(&*algorithm);
            // One tile, a few elements of several, and several of which the last is short.
            for count in [0, 1, 3, 1000, 150_001] {
                if count > 1000 && (level == Level::O0 || nranks == 4) {
                    continue;
                }
                let kinds = Kind::all();
                let kind = kinds[turn * 13 % kinds.len()];
                let memory = [Memory::Own, Memory::Arena, Memory::Mixed][turn % 3];
                check(&worlds, proofs.proved(nranks), (level, count, kind), memory, turn as u64);
                turn += 1;
            }
        }
    }
}

/// Runs out of place, and in place where there is that, each a few times; results are held against one caller's.
pub(super) fn check(
    worlds: &[Arc<World>],
    proved: &Proved,
    (level, count, kind): (Level, u64, Kind),
    memory: Memory,
    seed: u64,
) {
    let options = Options::new().level(level);
    let plan = roundelay::Plan::with(proved, count, kind.dtype, kind.op, options).expect("a plan");
    let (_, inputs) = runs::data(&plan, seed);
    let may = proved.proof().in_place && plan.schedule().collective.has_in_place();
    for in_place in [false, true].into_iter().filter(|in_place| may || !in_place) {
        let expected = runs::run(&plan, in_place, &inputs);
        thread::scope(|threads| {
            for (world, (input, expected)) in worlds.iter().zip(inputs.iter().zip(&expected)) {
                let plan = &plan;
                threads.spawn(move || {
                    let rank = RankId(world.rank());
                    let mine = WorldPlan::new(world, proved, count, kind.dtype, kind.op);
                    let mine = mine.expect("a plan of a rank");
                    for turn in 0..3 {
                        let got = once(&mine, world, (input, plan), in_place, memory.lent(rank));
                        assert!(
                            got == *expected,
                            "{} {level} count {count} {kind:?} {memory:?} in place {in_place}: rank {rank} of {}, turn {turn}",
                            plan.schedule().algorithm,
                            worlds.len()
                        );
                    }
                });
            }
        });
    }
}

/// One call of one rank: its output.
fn once(
    mine: &WorldPlan,
    world: &Arc<World>,
    (input, plan): (&[u8], &roundelay::Plan),
    in_place: bool,
    lent: bool,
) -> Vec<u8> {
    let (rank, size) = (RankId(world.rank()), plan.dtype().size());
    let (output, whole) = (plan.output_len(rank) * size, plan.in_place_len(rank) * size);
    let unit = plan.count() as usize * size;
    let starts = plan.schedule().collective.alias(rank, plan.schedule().root).starts();
    let (input_at, output_at) = (starts.0 as usize * unit, starts.1 as usize * unit);
    if in_place {
        let fill = |buffer: &mut [u8]| buffer[input_at..][..input.len()].copy_from_slice(input);
        return if lent {
            let mut buffer = world.alloc::<u8>(whole).expect("memory");
            fill(&mut buffer);
            mine.run_bytes_in_place(&mut buffer).expect("a run");
            buffer[output_at..][..output].to_vec()
        } else {
            let mut buffer = aligned(whole);
            fill(&mut buffer);
            mine.run_bytes_in_place(&mut buffer).expect("a run");
            buffer[output_at..][..output].to_vec()
        };
    }
    if lent {
        let mut from = world.alloc::<u8>(input.len()).expect("memory");
        from.copy_from_slice(input);
        let mut to = world.alloc::<u8>(output).expect("memory");
        mine.run_bytes(&from, &mut to).expect("a run");
        to.to_vec()
    } else {
        let mut to = aligned(output);
        mine.run_bytes(input, &mut to).expect("a run");
        to
    }
}

/// So many bytes that are not written yet, as vectors of large alignment have them.
fn aligned(bytes: usize) -> Vec<u8> {
    vec![0xA5; bytes]
}

macro_rules! tests {
    ($($family:ident { $($_any:tt)* })*) => {
        $(
            #[test]
            fn $family() {
                subjects::family(stringify!($family)).into_iter().for_each(run);
            }
        )*
    };
}
roundelay_tests::library!(tests);

/// Ops that only some collectives have are told by the op.
#[test]
fn a_plan_knows_its_op() {
    let worlds = World::together(1, Options::new()).expect("a world");
    let proved =
        roundelay_core::prove(&roundelay::library::RingAllReduce::new(), 1).expect("a proof");
    let world = Arc::new(worlds.into_iter().next().expect("one"));
    let plan = WorldPlan::new(&world, &proved, 1, roundelay::DType::F32, ReduceOp::Max);
    assert_eq!(plan.expect("a plan").op(), ReduceOp::Max);
}
