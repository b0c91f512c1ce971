//! Every algorithm on every engine whose ranks call by themselves: threads of one process, ranks that share an arena as
//! processes do, and ranks of several hosts. There the signals alone order the ranks. The bits are those of one caller,
//! at every level of the optimizer, out of place, in place, and with ranks that differ in that; every call has data of
//! its own. A usual run has, of each algorithm on each engine, each pair of a rank count, a level and a count, or of a place
//! of ranks and a count in turn; `cargo xtask test --all` has their products.

use std::fmt::Display;
use std::ops::DerefMut;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use roundelay::{Level, Options, Plan, SpmdPlan};
use roundelay_core::ids::RankId;
use roundelay_core::verify::Proved;
use roundelay_kernels::AnyRankPlan;
#[cfg(target_os = "linux")]
use roundelay_kernels::network::{Carrier, Channels, Hosts, HostsPlan, How};
use roundelay_kernels::shared_memory::{World, WorldPlan};
#[cfg(target_os = "linux")]
use roundelay_kernels::tcp::TcpJob;
#[cfg(target_os = "linux")]
use roundelay_kernels::ucx::UcxCarrier;
#[cfg(target_os = "linux")]
use roundelay_tests::takes_all;

use super::super::runs::{self, Kind, Proofs};
use super::cover::rows;
use super::subjects::{self, Subject};
use super::values::{Told, Values};

/// How long a rank waits for another one.
const DEADLINE: Duration = Duration::from_secs(20);

/// Which ranks of a call run in place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Mode {
    Apart,
    InPlace,
    /// Every other rank.
    Mixed,
}

impl Mode {
    fn in_place(self, rank: RankId) -> bool {
        self == Self::InPlace || self == Self::Mixed && rank.0.is_multiple_of(2)
    }
}

/// A call: the inputs of all ranks, and their outputs by one caller.
pub(super) struct Called {
    pub(super) mode: Mode,
    pub(super) inputs: Vec<Vec<u8>>,
    pub(super) wanted: Vec<Vec<u8>>,
}

/// Returns calls of every mode that the algorithm has, so that the counters of one call meet those of the next.
fn calls(plan: &Plan, proved: &Proved, seed: u64) -> Vec<Called> {
    let schedule = plan.schedule();
    let modes: &[Mode] = if proved.proof().in_place && !schedule.out_of_place {
        &[Mode::Apart, Mode::Apart, Mode::InPlace, Mode::InPlace, Mode::Mixed, Mode::Apart]
    } else {
        let told = &schedule.algorithm;
        assert!(!schedule.collective.has_in_place() || schedule.out_of_place, "{told}");
        &[Mode::Apart, Mode::Apart, Mode::Apart]
    };
    let call = |(turn, mode): (u64, &Mode)| {
        let (_, inputs) = runs::data(plan, seed * 16 + turn);
        let wanted = runs::run(plan, *mode == Mode::InPlace, &inputs);
        Called { mode: *mode, inputs, wanted }
    };
    (0..).zip(modes).map(call).collect()
}

/// Makes the calls, each rank on a thread of its own, which goes on as soon as the engine lets it. `lends` has the
/// world whose arena holds the buffers of a rank.
pub(super) fn assert_same_bits<'w>(
    ranks: &[Arc<AnyRankPlan>],
    plan: &Plan,
    calls: &[Called],
    lends: impl Fn(RankId) -> Option<&'w Arc<World>> + Sync,
    told: &(impl Display + Sync),
) {
    thread::scope(|threads| {
        for mine in ranks {
            let lends = &lends;
            threads.spawn(move || {
                let rank = RankId(mine.id());
                for (turn, Called { mode, inputs, wanted }) in calls.iter().enumerate() {
                    let (input, in_place) = (&inputs[rank.index()], mode.in_place(rank));
                    let got = once(mine, plan, input, in_place, lends(rank));
                    assert!(
                        got == wanted[rank.index()],
                        "{} count {} {} {} {told}: {mode:?}, rank {rank} of {}, call {turn}",
                        plan.schedule().algorithm,
                        plan.count(),
                        plan.dtype(),
                        plan.op(),
                        ranks.len()
                    );
                }
            });
        }
    });
}

/// One call of one rank: its output.
fn once(
    mine: &AnyRankPlan,
    plan: &Plan,
    input: &[u8],
    in_place: bool,
    lends: Option<&Arc<World>>,
) -> Vec<u8> {
    let memory = |bytes: usize| -> Box<dyn DerefMut<Target = [u8]>> {
        match lends {
            Some(world) => Box::new(world.alloc::<u8>(bytes).expect("memory")),
            // As vectors of large alignment have it.
            None => Box::new(vec![0xA5; bytes]),
        }
    };
    let (rank, size) = (RankId(mine.id()), plan.dtype().size());
    let len = plan.output_len(rank) * size;
    if !in_place {
        let (mut from, mut to) = (memory(input.len()), memory(len));
        from.copy_from_slice(input);
        mine.run_bytes(&from, &mut to).expect("a run");
        return to.to_vec();
    }
    let unit = plan.count() as usize * size;
    let starts = plan.schedule().collective.alias(rank, plan.schedule().root).starts();
    let (input_at, output_at) = (starts.0 as usize * unit, starts.1 as usize * unit);
    let mut whole = memory(plan.in_place_len(rank) * size);
    whole[input_at..][..input.len()].copy_from_slice(input);
    mine.run_bytes_in_place(&mut whole).expect("a run");
    whole[output_at..][..len].to_vec()
}

/// The plans of ranks that are threads.
pub(super) fn team(
    proved: &Proved,
    (level, count, kind): (Level, u64, Kind),
) -> Vec<Arc<AnyRankPlan>> {
    let options = Options::new().level(level).deadline(DEADLINE);
    let team = SpmdPlan::new(proved, count, kind.dtype, kind.op, options).expect("a team");
    let team = Arc::new(team);
    let rank = |rank| -> Arc<AnyRankPlan> {
        Arc::new(team.clone().into_rank(RankId(rank)).expect("a rank of the team"))
    };
    (0..team.nranks()).map(rank).collect()
}

/// The levels of the optimizer.
const LEVELS: [Level; 3] = [Level::O0, Level::O1, Level::O2];

/// Rank counts, levels, counts and kinds; values of the parameters turn.
fn threads(subject: Subject) {
    let admitted: Vec<u32> = (1..=5).filter(|n| (subject.admits)(*n)).collect();
    // The most ranks have the most values.
    let chunks = Values::all(subject.params, 5).len().div_ceil(4);
    let sweep = rows([admitted.len(), chunks, LEVELS.len(), 4, 3]);
    for (turn, [ranks, chunk, level, count, kind]) in sweep.into_iter().enumerate() {
        let (nranks, level, count) = (admitted[ranks], LEVELS[level], [0, 1, 3, 1000][count]);
        let values = Values::all(subject.params, nranks);
        let values = &values[(chunk * 4 + chunk % 4) % values.len()];
        let _told = Told(values);
        let algorithm = (subject.with)(values);
        let mut proofs = Proofs::new(&*algorithm);
        let kinds = Kind::all();
        let kind = kinds[(turn + [0, 19, 37][kind]) * 13 % kinds.len()];
        let plan = proofs.plan_with(nranks, count, kind, Options::new());
        let proved = proofs.proved(nranks);
        let calls = calls(&plan, proved, turn as u64);
        let ranks = team(proved, (level, count, kind));
        assert_same_bits(&ranks, &plan, &calls, |_| None, &level);
    }
}

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

fn processes(subject: Subject) {
    let admitted: Vec<u32> = (1..=5).filter(|n| (subject.admits)(*n)).collect();
    let mut turn = 0;
    let sweep = rows([LEVELS.len(), admitted.len(), 5]);
    for world in sweep.chunk_by(|a, b| a[..2] == b[..2]) {
        let (level, nranks) = (LEVELS[world[0][0]], admitted[world[0][1]]);
        let options = Options::new().level(level).deadline(DEADLINE);
        let worlds = World::together(nranks, options).expect("worlds");
        let worlds: Vec<Arc<World>> = worlds.into_iter().map(Arc::new).collect();
        let values = Values::all(subject.params, nranks);
        let values = &values[turn * 7 % values.len()];
        let _told = Told(values);
        let algorithm = (subject.with)(values);
        let mut proofs = Proofs::new(&*algorithm);
        for [_, _, count] in world {
            let kinds = Kind::all();
            let kind = kinds[turn * 13 % kinds.len()];
            // One tile, a few elements of several, and several of which the last is short.
            let long = 150_001 / kind.dtype.size() as u64;
            let count = [0, 1, 3, 1000, long][*count];
            let memory = [Memory::Own, Memory::Arena, Memory::Mixed][turn % 3];
            let proved = proofs.proved(nranks);
            over_an_arena(&worlds, proved, (level, count, kind), memory, turn as u64);
            turn += 1;
        }
    }
}

/// Calls of ranks that share an arena.
pub(super) fn over_an_arena(
    worlds: &[Arc<World>],
    proved: &Proved,
    (level, count, kind): (Level, u64, Kind),
    memory: Memory,
    seed: u64,
) {
    let options = Options::new().level(level);
    let plan = Plan::for_options(proved, count, kind.dtype, kind.op, options).expect("a plan");
    let calls = calls(&plan, proved, seed);
    let rank = |world: &Arc<World>| -> Arc<AnyRankPlan> {
        let mine = WorldPlan::new(world, proved, count, kind.dtype, kind.op).expect("a plan");
        // Ops that only some collectives have are told by the op.
        assert_eq!(mine.op(), kind.op);
        Arc::new(mine)
    };
    let ranks: Vec<_> = worlds.iter().map(rank).collect();
    let lends = |rank: RankId| memory.lent(rank).then(|| &worlds[rank.index()]);
    assert_same_bits(&ranks, &plan, &calls, lends, &format!("{level} {memory:?}"));
}

/// Ranks by host, in any order.
#[cfg(target_os = "linux")]
fn places() -> Vec<Vec<Vec<u32>>> {
    vec![
        vec![vec![0, 1], vec![2, 3]],
        vec![vec![1], vec![3, 0, 2]],
        vec![vec![0], vec![1], vec![2], vec![3]],
        vec![vec![4, 0], vec![2], vec![5, 1, 3]],
        vec![vec![0, 2, 4, 6], vec![7, 5, 3, 1]],
        vec![vec![2, 1, 0]],
    ]
}

/// Returns the carriers of all ranks: between threads, or by turns by TCP, or by UCX where it is there.
#[cfg(target_os = "linux")]
fn carriers(nranks: u32, how: How, turn: usize) -> Vec<Arc<dyn Carrier>> {
    match turn % 5 {
        1 => TcpJob::carriers_of(nranks, TcpJob::carrier),
        3 if UcxCarrier::find_library().is_ok() => {
            TcpJob::carriers_of(nranks, |job| Ok(Arc::new(UcxCarrier::of_job(job)?)))
        }
        _ => Channels::new(nranks, how).into_iter().map(|one| one as Arc<dyn Carrier>).collect(),
    }
}

/// Returns all ranks of such hosts, in their order: each host is an arena, and the carriers stand for the network between
/// hosts.
#[cfg(target_os = "linux")]
fn together(places: &[Vec<u32>], carriers: &[Arc<dyn Carrier>]) -> Vec<Arc<Hosts>> {
    let options = Options::new().deadline(DEADLINE);
    let mut all = Vec::new();
    for ranks in places {
        let worlds = World::together(ranks.len() as u32, options).expect("worlds");
        for (world, rank) in worlds.into_iter().zip(ranks) {
            let carrier = carriers[*rank as usize].clone();
            let hosts = Hosts::new(world, places.to_vec(), *rank, carrier).expect("a world");
            all.push(Arc::new(hosts));
        }
    }
    all.sort_by_key(|hosts| hosts.rank());
    all
}

/// Every place; in a usual run the counts take turns, from place to place and from algorithm to algorithm.
#[cfg(target_os = "linux")]
fn hosts(subject: Subject) {
    let nth = subjects::all().iter().position(|other| other.name == subject.name);
    let nth = nth.expect("it is listed");
    let mut turn = nth;
    for (first, places) in (nth..).zip(places()) {
        let nranks = places.iter().map(Vec::len).sum::<usize>() as u32;
        if !(subject.admits)(nranks) {
            continue;
        }
        let how = How {
            synchronous: turn % 2 == 0,
            patience: [0, 3, 40][turn % 3],
            most: [1 << 30, 1000][turn / 2 % 2],
            fails_after: u64::MAX,
            seed: turn as u64,
        };
        let hosts = together(&places, &carriers(nranks, how, turn));
        let values = Values::all(subject.params, nranks);
        let values = &values[turn * 7 % values.len()];
        let _told = Told(values);
        let algorithm = (subject.with)(values);
        let mut proofs = Proofs::new(&*algorithm);
        // The last count is longer than a ring, and longer inputs are read in place; of messages of 1000 bytes it takes
        // up to 40.
        let long = if how.most > 1000 { 50_001 } else { 5001 };
        for (at, count) in [0, 1, 3, 1000, long].into_iter().enumerate() {
            if !takes_all() && !(first + at).is_multiple_of(3) {
                continue;
            }
            let kinds = Kind::all();
            let kind = kinds[turn * 13 % kinds.len()];
            let plan = proofs.plan(nranks, count, kind);
            let proved = proofs.proved(nranks);
            let rank = |hosts: &Arc<Hosts>| -> Arc<AnyRankPlan> {
                let mine = HostsPlan::new(hosts, proved, count, kind.dtype, kind.op);
                Arc::new(mine.expect("a plan of a rank"))
            };
            let ranks: Vec<_> = hosts.iter().map(rank).collect();
            let calls = calls(&plan, proved, turn as u64);
            assert_same_bits(&ranks, &plan, &calls, |_| None, &format!("{places:?}"));
            turn += 1;
        }
    }
}

macro_rules! tests {
    ($($family:ident { $($_any:tt)* })*) => {
        $(
            mod $family {
                use super::subjects::family;

                #[test]
                fn threads() {
                    family(stringify!($family)).into_iter().for_each(super::threads);
                }

                #[test]
                fn processes() {
                    family(stringify!($family)).into_iter().for_each(super::processes);
                }

                #[cfg(target_os = "linux")]
                #[test]
                fn hosts() {
                    family(stringify!($family)).into_iter().for_each(super::hosts);
                }
            }
        )*
    };
}
roundelay_tests::library!(tests);
