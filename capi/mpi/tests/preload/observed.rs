//! A process that is no rank sees why an MPI program hangs.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use roundelay_kernels::shared_memory::observe::{ObservedRank, ObservedWorld, all};

use crate::launched::compiled;

/// Returns the world of this program's ranks, once one of them waits for a call of another that is missing.
fn hanging(program: &Path) -> ObservedWorld {
    let name = program.display().to_string();
    let start = Instant::now();
    loop {
        let missing = |rank: &ObservedRank| {
            let waits = rank.wait.as_ref().is_some_and(|wait| wait.missing > 0);
            let command = rank.process.as_ref().map(|process| &process.command);
            waits && command.is_some_and(|command| command.contains(&name))
        };
        // The world of a launch before may still have a rank that its launcher has not ended yet.
        let whole = |world: &ObservedWorld| world.ranks.iter().all(|rank| rank.process.is_some());
        let hangs = |world: &ObservedWorld| whole(world) && world.ranks.iter().any(missing);
        let found = all().worlds.into_iter().find(hangs);
        if let Some(world) = found {
            return world;
        }
        assert!(start.elapsed() < Duration::from_secs(50), "no rank of {name} waits");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_call_that_is_missing_is_seen_with_its_place() {
    for program in compiled("hangs") {
        for (sites, places) in [("0", 0), ("1", 3)] {
            let variables = [("ROUNDELAY_MPI_TAKE", "all"), ("ROUNDELAY_SITES", sites)];
            std::thread::scope(|threads| {
                let launched = threads.spawn(|| program.launched(2, &variables));
                let world = hanging(program.program());
                let [first, second] = &world.ranks[..] else { panic!("{world:?}") };
                let pid = second.process.as_ref().expect("it is there").pid.to_string();
                let done = Command::new("kill").args(["-s", "KILL", &pid]).status();
                assert!(done.expect("`kill` starts").success());
                let (well, text) = launched.join().expect("no panic");
                assert!(!well, "{text}");

                let wait = first.wait.as_ref().expect("it waits");
                assert_eq!((wait.on, wait.missing), (Some(1), 3), "{world:?}");
                assert!(!second.in_call && second.number == 2, "{world:?}");
                let names: Vec<_> = first.calls.iter().map(|call| &*call.name).collect();
                let expected =
                    ["AllReduce of 10 i32, max", "Broadcast of ", "AllReduce of 1000 i32, sum"];
                assert!(
                    names.iter().zip(expected).all(|(name, begin)| name.starts_with(begin)),
                    "{names:?}"
                );
                let path = format!("{}+0x", program.program().display());
                let known = |site: &&String| site.starts_with(&path);
                let known = first.calls.iter().flat_map(|call| &call.site).filter(known).count();
                assert_eq!(
                    (known, names.len()),
                    (places, 3),
                    "{}: {:?}",
                    program.name(),
                    first.calls
                );
            });
        }
    }
}
