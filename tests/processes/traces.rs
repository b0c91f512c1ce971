//! What ranks leave behind: nothing, however they end; and what a forked child has of them: nothing.

use std::collections::BTreeSet;

use roundelay::{ReduceOp, World};

use super::ranks::{case, end, run, say};

fn names(folder: &str) -> BTreeSet<String> {
    let Ok(all) = std::fs::read_dir(folder) else { return BTreeSet::new() };
    all.filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
        .filter(|name| name.contains("roundelay"))
        .collect()
}

#[test]
fn nothing_is_left_of_ranks_that_were_killed() {
    if case().is_some() {
        let world = World::from_env().expect("a world");
        let mut rank = world.rank();
        rank.all_reduce(&mut [1.0_f32; 1000], ReduceOp::Sum).expect("a right call");
        say("called");
        if rank.id() == 0 {
            std::process::abort();
        }
        _ = rank.barrier();
        end();
    }
    let before = [names("/dev/shm"), names("/tmp")];
    let told = run("traces::nothing_is_left_of_ranks_that_were_killed", 3, "", |_| ());
    assert!(told.iter().all(|told| told.said == ["called"]), "{told:#?}");
    for (folder, before) in ["/dev/shm", "/tmp"].into_iter().zip(before) {
        let left: Vec<String> = names(folder).difference(&before).cloned().collect();
        // Other tests of this run may have folders of their own there.
        assert!(left.iter().all(|name| !name.contains("arena")), "{folder}: {left:?}");
    }
    for told in told {
        assert!(!std::path::Path::new(&format!("/proc/{}", told.pid)).exists());
    }
}

/// Descriptors close on exec: a program that a rank starts sees no memfd, socket or pidfd of it.
#[test]
fn a_program_that_a_rank_starts_has_none_of_its_descriptors() {
    if case().is_some() {
        let world = World::from_env().expect("a world");
        let mut list = std::process::Command::new("ls");
        let listed = list.args(["-l", "/proc/self/fd"]).output().expect("it starts");
        let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
        let found = ["memfd", "socket", "pidfd"].iter().find(|name| listed.contains(**name));
        say(&found.map_or("none".to_owned(), |_| listed.clone()));
        world.rank().barrier().expect("all are there");
        end();
    }
    for told in
        run("traces::a_program_that_a_rank_starts_has_none_of_its_descriptors", 2, "", |_| ())
    {
        assert_eq!(told.said, ["none"], "{}", told.all);
    }
}
