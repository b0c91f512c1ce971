//! Ranks leave nothing behind, however they end; and a forked child has nothing of them.

use std::collections::BTreeSet;

use roundelay::{ReduceOp, World};

use super::ranks::{case, end, of_test, run, said, say};
use crate::command::call::binary;

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
    let told = run("traces::nothing_is_left_of_ranks_that_were_killed", 3, "", |_, _| ());
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
        run("traces::a_program_that_a_rank_starts_has_none_of_its_descriptors", 2, "", |_, _| ())
    {
        assert_eq!(told.said, ["none"], "{}", told.all);
    }
}

/// The ranks run as `roundelay launch` starts them; however they end, no file, no memory and no process stays.
#[test]
fn nothing_is_left_of_a_launch() {
    let test = "traces::nothing_is_left_of_a_launch";
    if let Some(how) = case() {
        let world = World::from_env().expect("a world");
        let mut rank = world.rank();
        say(&format!("pid {}", std::process::id()));
        rank.all_reduce(&mut [1.0_f32; 1000], ReduceOp::Sum).expect("a right call");
        match (how.as_str(), rank.id()) {
            ("ends", _) => end(),
            ("is killed", 1) => std::process::abort(),
            ("exits", 1) => std::process::exit(5),
            _ => {}
        }
        say(&rank.barrier().expect_err("rank 1 ended").to_string());
        // Ranks that stay are ended.
        std::thread::sleep(std::time::Duration::from_secs(60));
        end();
    }
    for (how, code, text) in [
        ("ends", 0, ""),
        ("is killed", 134, "was killed by signal 6 (SIGABRT)"),
        ("exits", 5, "exited with code 5"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let launcher = binary();
        let launcher = launcher.get_program().to_str().expect("of text");
        let under = [launcher, "launch", "-n", "3", "--grace", "2s", "--"];
        let mut command = of_test(&under, test, how);
        for name in ["ROUNDELAY_RANK", "ROUNDELAY_NRANKS", "ROUNDELAY_ID", "ROUNDELAY_ENDINGS"] {
            command.env_remove(name);
        }
        let output = command.env("TMPDIR", folder.path()).output().expect("it starts");
        let told = said(&String::from_utf8_lossy(&output.stdout));
        assert_eq!(output.status.code(), Some(code), "{how}: {told:#?} {output:?}");
        let pids: Vec<&str> = told.iter().filter_map(|line| line.strip_prefix("pid ")).collect();
        assert_eq!(pids.len(), 3, "{how}: {told:#?}");
        let verdicts: Vec<&String> = told.iter().filter(|line| line.ends_with("[E0428]")).collect();
        assert_eq!(verdicts.len(), if text.is_empty() { 0 } else { 2 }, "{how}: {told:#?}");
        assert!(verdicts.iter().all(|line| line.contains(text)), "{how}: {told:#?}");
        for pid in pids {
            assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists(), "{how}: {pid}");
        }
        assert_eq!(std::fs::read_dir(&folder).expect("a folder").count(), 0, "{how}");
        assert_eq!(names("/dev/shm"), BTreeSet::new(), "{how}");
    }
}

/// A process that is forked off a rank, as a loader of data is, has nothing of its world: each call is an error, and
/// dropping its values changes nothing, also where calls were under way in a thread that it does not have.
#[test]
fn a_forked_child_has_nothing_of_a_world() {
    use std::sync::{Arc, Mutex};

    use roundelay_kernels::shared_memory::in_a_fork;

    if case().is_some() {
        let world = World::from_env().expect("a world");
        let sum = |world: &World| world.nonblocking().all_reduce(vec![1_u32; 1000], ReduceOp::Sum);
        assert_eq!(sum(&world).wait().expect("a right call"), [2; 1000]);
        let lent = world.alloc::<u32>(10).expect("memory");
        let shared = Arc::new(Mutex::new(Some((world, lent))));
        let childs = shared.clone();
        let done = in_a_fork(move || {
            let (world, lent) = childs.lock().expect("no panic").take().expect("a world");
            let mut rank = world.rank();
            let told = [
                rank.barrier().expect_err("no rank").code(),
                // Calls of a shape that has a plan, and of one that has none.
                rank.all_reduce(&mut [1_u32; 1000], ReduceOp::Sum).expect_err("no rank").code(),
                rank.all_reduce(&mut [1_u8; 7], ReduceOp::Max).expect_err("no rank").code(),
                sum(&world).wait().expect_err("no rank").code(),
                world.scope(|_| Ok(())).expect_err("no rank").code(),
                world.alloc::<u8>(1).expect_err("no rank").code(),
                world.split(Some(0), 0).expect_err("no rank").code(),
                world.shrink().expect_err("no rank").code(),
                world.send(&[1], 0).expect_err("no rank").code(),
            ];
            let empty = lent.is_empty();
            drop((world, lent));
            if empty && told.iter().all(|code| code.as_str() == "E0427") {
                Ok(())
            } else {
                Err(format!("{told:?}, {empty}"))
            }
        });
        done.expect("the child found what it should");
        let (world, lent) = shared.lock().expect("no panic").take().expect("it is the parent's");
        assert_eq!(*lent, [0; 10]);
        assert_eq!(sum(&world).wait().expect("a right call"), [2; 1000]);
        world.rank().barrier().expect("all are there");
        say("done");
        end();
    }
    for told in run("traces::a_forked_child_has_nothing_of_a_world", 2, "", |_, _| ()) {
        assert_eq!(told.said, ["done"], "{}", told.all);
    }
}
