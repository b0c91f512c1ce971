//! Every algorithm by ranks of several hosts: each host is an arena of threads, as processes have, and a carrier between
//! threads stands for what brings messages from host to host. The bits are those of one caller.

#![cfg(target_os = "linux")]

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use roundelay::Options;
use roundelay_core::ids::RankId;
use roundelay_core::verify::Proved;
use roundelay_kernels::hosts::{Channels, Hosts, HostsPlan, How};
use roundelay_kernels::process::World;

use super::super::runs::{self, Kind, Proofs};
use super::subjects::{self, Subject};
use super::values::{Told, Values};

/// Ranks by host, in any order.
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

/// All ranks of such hosts, in their order.
fn together(places: &[Vec<u32>], how: How) -> Vec<Arc<Hosts>> {
    let nranks = places.iter().map(Vec::len).sum::<usize>() as u32;
    let options = Options::new().deadline(Duration::from_secs(20));
    let channels = Channels::new(nranks, how);
    let mut all = Vec::new();
    for ranks in places {
        let worlds = World::together(ranks.len() as u32, options).expect("worlds");
        for (world, rank) in worlds.into_iter().zip(ranks) {
            let carrier = channels[*rank as usize].clone();
            let hosts = Hosts::new(world, places.to_vec(), *rank, carrier).expect("a world");
            all.push(Arc::new(hosts));
        }
    }
    all.sort_by_key(|hosts| hosts.rank());
    all
}

fn run(subject: Subject) {
    let mut turn = 0;
    for places in places() {
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
        let hosts = together(&places, how);
        let values = Values::all(subject.params, nranks);
        let values = &values[turn * 7 % values.len()];
        let _told = Told(values);
        let algorithm = (subject.with)(values);
        let mut proofs = Proofs::new(&*algorithm);
        // The last is longer than a ring, and what is longer than some is read where it lies.
        for count in [0, 1, 3, 1000, 50_001] {
            let kinds = Kind::all();
            let kind = kinds[turn * 13 % kinds.len()];
            check(&hosts, proofs.proved(nranks), (count, kind), turn as u64);
            turn += 1;
        }
    }
}

/// Runs out of place, and in place where there is that, each a few times; results are held against one caller's.
fn check(hosts: &[Arc<Hosts>], proved: &Proved, (count, kind): (u64, Kind), seed: u64) {
    let options = Options::new();
    let plan = roundelay::Plan::with(proved, count, kind.dtype, kind.op, options).expect("a plan");
    let (_, inputs) = runs::data(&plan, seed);
    let may = proved.proof().in_place && plan.schedule().collective.has_in_place();
    for in_place in [false, true].into_iter().filter(|in_place| may || !in_place) {
        let expected = runs::run(&plan, in_place, &inputs);
        thread::scope(|threads| {
            for (hosts, (input, expected)) in hosts.iter().zip(inputs.iter().zip(&expected)) {
                let plan = &plan;
                threads.spawn(move || {
                    let mine = HostsPlan::new(hosts, proved, count, kind.dtype, kind.op);
                    let mine = mine.expect("a plan of a rank");
                    for turn in 0..3 {
                        let got = once(&mine, RankId(hosts.rank()), (input, plan), in_place);
                        assert!(
                            got == *expected,
                            "{} count {count} {kind:?} in place {in_place}: rank {} of {:?}, turn {turn}",
                            plan.schedule().algorithm,
                            hosts.rank(),
                            hosts.hosts(),
                        );
                    }
                });
            }
        });
    }
}

/// One call of one rank: its output.
fn once(
    mine: &HostsPlan,
    rank: RankId,
    (input, plan): (&[u8], &roundelay::Plan),
    in_place: bool,
) -> Vec<u8> {
    let size = plan.dtype().size();
    let (output, whole) = (plan.output_len(rank) * size, plan.in_place_len(rank) * size);
    let unit = plan.count() as usize * size;
    if in_place {
        let starts = plan.schedule().collective.alias(rank, plan.schedule().root).starts();
        let (input_at, output_at) = (starts.0 as usize * unit, starts.1 as usize * unit);
        let mut buffer = vec![0xA5; whole];
        buffer[input_at..][..input.len()].copy_from_slice(input);
        mine.run_bytes_in_place(&mut buffer).expect("a run");
        return buffer[output_at..][..output].to_vec();
    }
    let mut to = vec![0xA5; output];
    mine.run_bytes(input, &mut to).expect("a run");
    to
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
