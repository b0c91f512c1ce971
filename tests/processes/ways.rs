//! The ways of data that a world chooses, and keeps for later worlds of its host.

use std::fs;
use std::path::Path;

use roundelay::{ReduceOp, World};

use super::ranks::{Told, case, end, run_under, say};

/// Calls that are enough for a choice.
const CALLS: u32 = 220;

/// Makes calls of two shapes, and says on rank 0 how many ways the world has chosen.
fn live() -> ! {
    let world = match World::from_env() {
        Ok(world) => world,
        Err(error) => {
            say(&error.to_string());
            end()
        }
    };
    let mut rank = world.rank();
    for turn in 0..CALLS {
        let mut sums = vec![turn + rank.id(); 16 << 10];
        rank.all_reduce(&mut sums, ReduceOp::Sum).expect("a call");
        assert!(sums.iter().all(|sum| *sum == 2 * turn + 1), "turn {turn}");
        let mut all = vec![0; 2000];
        rank.all_gather(&[turn + rank.id(); 1000], &mut all).expect("a call");
        let (first, second) = all.split_at(1000);
        assert!(first.iter().all(|x| *x == turn) && second.iter().all(|x| *x == turn + 1));
    }
    say(&format!("{} ways", world.ways().len()));
    // The world keeps its ways when its last plan has gone, and a rank holds plans.
    drop(rank);
    drop(world);
    end()
}

/// Runs two ranks that choose ways as `choosing` says, and keep them in `folder`; returns the lines of rank 0.
fn ranks(choosing: &str, folder: &Path) -> Vec<String> {
    let variables =
        [format!("ROUNDELAY_WAYS={choosing}"), format!("ROUNDELAY_CACHE={}", folder.display())];
    let under = ["env", &variables[0], &variables[1]];
    let told = run_under(&under, "ways::later_worlds_begin_with_kept_ways", 2, "live", |_, _| ());
    let [first, second] = <[Told; 2]>::try_from(told).expect("two ranks");
    assert!(first.status.success() && second.status.success(), "{}{}", first.all, second.all);
    first.said
}

#[test]
fn later_worlds_begin_with_kept_ways() {
    if case().is_some() {
        live();
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("ways");
    assert_eq!(ranks("usual", folder.path()), ["0 ways"]);
    assert_eq!(ranks("measured", folder.path()), ["2 ways"]);
    assert!(!file.exists(), "nothing was to be kept");
    assert_eq!(ranks("kept", folder.path()), ["2 ways"]);
    let text = fs::read_to_string(&file).expect("a file");
    let lines: Vec<&str> = text.lines().skip(2).collect();
    let of = |call: &str| lines.iter().filter(|line| line.contains(call)).count();
    assert_eq!(
        [of("AllReduce of 16384 u32, sum: tiles of"), of("AllGather of 1000 u32: tiles of")],
        [1; 2]
    );
    // These shapes are known, so there is nothing to measure.
    assert_eq!(ranks("measured", folder.path()), ["0 ways"]);
    // The file of another machine, or a damaged one, is as none.
    fs::write(&file, text.replace(" cores, ", " hearts, ")).expect("written");
    assert_eq!(ranks("measured", folder.path()), ["2 ways"]);
    let said = ranks("fastest", folder.path());
    let refused = "ROUNDELAY_WAYS has the value `fastest`";
    assert!(said[0].contains(refused) && said[0].contains("E0406"), "{said:?}");
}
