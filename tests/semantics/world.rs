//! Worlds whose ranks are threads of this process, each of which joins as a process would: messages, worlds made of
//! parts of others, calls that do not block, and worlds of survivors.
#![cfg(target_os = "linux")]

#[path = "world/hosts.rs"]
mod hosts;
#[path = "world/mail.rs"]
mod mail;
#[path = "world/nonblocking.rs"]
mod nonblocking;
#[path = "world/ops.rs"]
mod ops;
#[path = "world/pairs.rs"]
mod pairs;
#[path = "world/parts.rs"]
mod parts;
#[path = "world/promises.rs"]
mod promises;

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use roundelay::{Error, Options, UniqueId, World};

/// Numbers of ranks, whose effects a test tells apart.
const COUNTS: [u32; 4] = [1, 2, 3, 5];

/// Options with a deadline that a loaded machine keeps.
fn patient() -> Options {
    Options::new().deadline(Duration::from_secs(60))
}

/// For waits that are to end without success.
fn hasty() -> Options {
    Options::new().deadline(Duration::from_millis(700))
}

/// Returns the result of each rank of a new world.
fn each<R: Send>(nranks: u32, options: Options, rank: impl Fn(World) -> R + Sync) -> Vec<R> {
    // Joining has no short deadline.
    let id = UniqueId::new().expect("an id");
    thread::scope(|threads| {
        let ranks: Vec<_> = (0..nranks)
            .map(|me| {
                let (id, rank) = (&id, &rank);
                threads.spawn(move || {
                    rank(World::join_with(id, nranks, me, options).expect("all join"))
                })
            })
            .collect();
        ranks.into_iter().map(|rank| rank.join().expect("no panic")).collect()
    })
}

/// Waits until so many ranks have added themselves.
fn until(ranks: &AtomicU32, enough: u32) {
    let end = Instant::now() + Duration::from_secs(60);
    while ranks.load(Ordering::Acquire) < enough {
        assert!(Instant::now() < end, "{ranks:?} of {enough} ranks");
        thread::sleep(Duration::from_millis(1));
    }
}

/// The number of a world's rank.
fn me(world: &World) -> u32 {
    world.rank().id()
}

fn code<T>(result: Result<T, Error>) -> String {
    match result {
        Ok(_) => "none".to_owned(),
        Err(error) => error.code().as_str().to_owned(),
    }
}
