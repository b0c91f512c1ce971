//! Ranks of several hosts without MPI: processes of this machine that count as ranks of different hosts meet by TCP.

use std::net::TcpListener;
use std::process::Command;
use std::time::{Duration, Instant};

use roundelay::{Options, Rank, ReduceOp, World};

use super::ranks::{DEADLINE, Told, case, of_test, run_by, said, say};

/// The time in which a rank hears that another is gone, on a machine that is busy with other tests.
const KNOWN: Duration = Duration::from_secs(20);

/// Returns a port that is free now.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("it is bound").port()
}

/// A way to bring messages between hosts, as `ROUNDELAY_CARRIER` names it.
type By = &'static str;

/// The carriers of ranks that meet by TCP, where this machine has them.
fn carriers() -> Vec<By> {
    match roundelay_kernels::ucx::UcxCarrier::find_library() {
        Ok(()) => vec!["tcp", "ucx"],
        Err(error) => {
            println!("UCX is not tried: {error}");
            vec!["tcp"]
        }
    }
}

/// The command of a rank that meets the others at a port; ranks of one machine are on `hosts` hosts by turns.
fn of_hosts(by: By, test: &str, case: &str, hosts: u32, rank: u32, port: u16) -> Command {
    let mut command = of_test(&[], test, case);
    command.env("ROUNDELAY_CARRIER", by);
    command.env("ROUNDELAY_ROOT", format!("127.0.0.1:{port}"));
    command.env("ROUNDELAY_KEY", "5a".repeat(32));
    command.env("ROUNDELAY_HOST_ID", (rank % hosts).to_string());
    command
}

fn right(told: &[Told]) {
    for (rank, told) in told.iter().enumerate() {
        assert!(told.status.success() && told.said == ["right"], "rank {rank}: {}", told.all);
    }
}

/// Calls of all kinds; the sums are of whole numbers.
fn calls(world: &World) {
    let mut rank: Rank<'_> = world.rank();
    let (me, nranks) = (rank.id(), rank.nranks());
    let sum: u32 = (0..nranks).sum();
    for count in [1, 1000, 100_003] {
        let mut all = vec![me; count];
        rank.all_reduce(&mut all, ReduceOp::Sum).expect("a sum");
        assert!(all.iter().all(|value| *value == sum), "{count}");
        let mut gathered = vec![0; count * nranks as usize];
        rank.all_gather(&vec![me; count], &mut gathered).expect("all");
        assert!(
            (0..).zip(gathered.chunks(count)).all(|(from, part)| part.iter().all(|v| *v == from))
        );
        for root in 0..nranks {
            let mut cast = vec![if me == root { 7 + root } else { 0 }; count];
            rank.broadcast(&mut cast, root).expect("a broadcast");
            assert!(cast.iter().all(|value| *value == 7 + root));
        }
    }
    // A block of as many elements as the rank's number, and one more.
    let counts: Vec<usize> = (1..=nranks as usize).collect();
    let mut blocks = vec![0; counts.iter().sum()];
    rank.all_gather_v(&vec![me; me as usize + 1], &mut blocks, &counts).expect("all blocks");
    let wanted: Vec<u32> = (0..nranks).flat_map(|from| vec![from; from as usize + 1]).collect();
    assert_eq!(blocks, wanted);
    // Each sends to the next; the last begins by receiving.
    let (next, before) = ((me + 1) % nranks, (me + nranks - 1) % nranks);
    let mut got = vec![0_u32; 70_000];
    if me + 1 < nranks {
        world.send(&vec![me; 70_000], next).expect("it is sent");
        world.recv(&mut got, before).expect("it comes");
    } else {
        world.recv(&mut got, before).expect("it comes");
        world.send(&vec![me; 70_000], next).expect("it is sent");
    }
    assert!(got.iter().all(|value| *value == before));
    rank.barrier().expect("all");
}

#[test]
fn ranks_of_hosts_meet_without_mpi() {
    const TEST: &str = "hosts::ranks_of_hosts_meet_without_mpi";
    if let Some(by) = case() {
        let world = World::from_env_with(Options::new().deadline(DEADLINE)).expect("a world");
        calls(&world);
        let carrier = world.carrier().expect("it spans hosts");
        assert!(carrier.to_lowercase().starts_with(&by), "{carrier}");
        say("right");
        return;
    }
    for by in carriers() {
        for (hosts, nranks) in [(2, 2), (3, 6), (2, 5)] {
            let port = free_port();
            let start = |rank| of_hosts(by, TEST, by, hosts, rank, port);
            right(&run_by(start, nranks, |_, _| {}));
        }
    }
}

/// The id of a root holds its addresses and the key.
#[test]
fn an_id_brings_hosts_together() {
    const TEST: &str = "hosts::an_id_brings_hosts_together";
    if case().is_some() {
        let world = World::from_env_with(Options::new().deadline(DEADLINE)).expect("a world");
        calls(&world);
        let carrier = world.carrier().expect("it spans hosts");
        assert!(carrier.starts_with("TCP over "), "{carrier}");
        say("right");
        return;
    }
    let id = World::open_root(Options::new().deadline(DEADLINE)).expect("a root").to_hex();
    let start = |rank: u32| {
        let mut command = of_test(&[], TEST, "all");
        command.env("ROUNDELAY_ID", &id).env("ROUNDELAY_HOST_ID", (rank / 2).to_string());
        command
    };
    right(&run_by(start, 4, |_, _| {}));
}

/// Ranks of any hosts make worlds of their own: two pairs that are apart, three ranks with the last one first, the ranks of
/// one host, and all ranks again. The world they are of goes on beside them.
#[test]
fn worlds_of_some_ranks_span_hosts() {
    const TEST: &str = "hosts::worlds_of_some_ranks_span_hosts";
    if case().is_some() {
        let world = World::from_env_with(Options::new().deadline(DEADLINE)).expect("a world");
        let me = world.rank().id();
        let colors: [fn(u32) -> u32; 3] =
            [|rank| rank / 2, |rank| u32::from(rank == 0), |rank| rank % 2];
        for color in colors {
            let part = world.split(Some(color(me)), -i64::from(me));
            let part = part.expect("all call").expect("a color");
            let mine: Vec<u32> = (0..4).rev().filter(|rank| color(*rank) == color(me)).collect();
            assert_eq!((part.nranks() as usize, mine[part.rank().id() as usize]), (mine.len(), me));
            if mine.len() > 1 {
                calls(&part);
            }
            // A world of a world, and calls of both by turns.
            let all = part.split(Some(0), 0).expect("all call").expect("a color");
            let mut sums = [me; 100];
            all.rank().all_reduce(&mut sums, ReduceOp::Sum).expect("a sum");
            assert_eq!(sums, [mine.iter().sum::<u32>(); 100]);
            world.rank().barrier().expect("all");
        }
        let none = world.split((me != 1).then_some(7), 0).expect("all call");
        assert_eq!(none.map(|some| some.nranks()), (me != 1).then_some(3));
        say("right");
        return;
    }
    for by in carriers() {
        let port = free_port();
        right(&run_by(|rank| of_hosts(by, TEST, "all", 2, rank, port), 4, |_, _| {}));
    }
}

/// Ranks are killed one after the other, rank 0 with the root first or later; those who are left go on without them.
#[test]
fn those_who_are_left_go_on() {
    const TEST: &str = "hosts::those_who_are_left_go_on";
    if let Some(case) = case() {
        let dead: Vec<u32> = case.split(' ').map(|rank| rank.parse().expect("a rank")).collect();
        let mut world = World::from_env_with(Options::new().deadline(DEADLINE)).expect("a world");
        world = world.using(roundelay::library::RingAllReduce::new());
        let me = world.rank().id();
        let mut left: Vec<u32> = (0..5).collect();
        for bad in dead {
            let mut buffer = vec![1.0_f32; 100_000];
            while world.rank().all_reduce(&mut buffer, ReduceOp::Max).is_ok() {
                if me == bad {
                    let (this, kill) = (rustix::process::getpid(), rustix::process::Signal::KILL);
                    rustix::process::kill_process(this, kill).expect("it is killed");
                }
            }
            left.retain(|rank| *rank != bad);
            world = world.shrink().expect("those who are left");
            assert_eq!(left[world.rank().id() as usize], me);
            calls(&world);
        }
        // Without a failure it is a second world of all.
        assert_eq!(world.shrink().expect("all").nranks(), world.nranks());
        say("right");
        return;
    }
    let all = carriers().into_iter().flat_map(|by| [[3, 1], [0, 1], [2, 0]].map(|dead| (by, dead)));
    for (by, dead) in all {
        let case = dead.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        let port = free_port();
        let told = run_by(|rank| of_hosts(by, TEST, &case, 2, rank, port), 5, |_, _| {});
        let left = (0..).zip(told).filter(|(rank, _)| !dead.contains(rank));
        right(&left.map(|(_, told)| told).collect::<Vec<_>>());
    }
}

/// A rank that is there and does not go on with the others is named.
#[test]
fn one_that_is_left_and_does_not_come_is_named() {
    const TEST: &str = "hosts::one_that_is_left_and_does_not_come_is_named";
    if let Some(case) = case() {
        let away: u32 = case.parse().expect("a rank");
        let options = Options::new().deadline(Duration::from_secs(6));
        let world = World::from_env_with(options).expect("a world");
        if world.rank().id() == away {
            std::thread::sleep(Duration::from_secs(12));
            return;
        }
        say(&world.shrink().expect_err("one is not there").to_string());
        return;
    }
    let job = |away: u32, words: &str| {
        let port = free_port();
        let start = |rank| of_hosts("tcp", TEST, &away.to_string(), 3, rank, port);
        let told = run_by(start, 3, |_, _| {});
        for (rank, told) in (0..).zip(told).filter(|(rank, _)| *rank != away) {
            let said = told.said.first().unwrap_or_else(|| panic!("rank {rank}: {}", told.all));
            assert!(said.contains(words) && said.contains("[E0427]"), "rank {rank}: {said}");
        }
    };
    // Both wait, and do nothing else.
    std::thread::scope(|scope| {
        scope.spawn(|| job(0, "for rank 0, which is there"));
        job(2, "rank 2 of 3 did not come");
    });
}

/// A rank is killed in a call or between two; all others, on every host, know it soon, and say which it is.
#[test]
fn a_killed_rank_is_known_on_every_host() {
    const TEST: &str = "hosts::a_killed_rank_is_known_on_every_host";
    if let Some(case) = case() {
        let (bad, calls) = case.split_once(' ').expect("two numbers");
        let (bad, calls): (u32, u32) = (bad.parse().expect("it"), calls.parse().expect("it"));
        let world = World::from_env_with(Options::new().deadline(DEADLINE)).expect("a world");
        let mut rank = world.rank();
        let mut all = vec![1.0_f32; 300_000];
        for call in 0_u32.. {
            if rank.id() == bad && call == calls {
                rustix::process::kill_process(
                    rustix::process::getpid(),
                    rustix::process::Signal::KILL,
                )
                .expect("it is killed");
            }
            let begun = Instant::now();
            if let Err(error) = rank.all_reduce(&mut all, ReduceOp::Max) {
                assert!(begun.elapsed() < KNOWN, "{:?}", begun.elapsed());
                say(&error.to_string());
                say(&format!("{:?}", begun.elapsed()));
                return;
            }
        }
    }
    for (by, bad) in carriers().into_iter().flat_map(|by| (0..4).map(move |bad| (by, bad))) {
        let (port, case) = (free_port(), format!("{bad} {}", 3 * bad));
        let told = run_by(|rank| of_hosts(by, TEST, &case, 2, rank, port), 4, |_, _| {});
        for (rank, told) in (0..).zip(&told).filter(|(rank, _)| *rank != bad) {
            let [said, after] = &told.said[..] else { panic!("rank {rank}: {}", told.all) };
            println!("{by}: rank {rank} knows of rank {bad} after {after}");
            // The root is in the process of rank 0.
            assert!(said.contains(&format!("rank {bad} ")), "rank {rank}: {said}");
            assert!(said.contains("[E0428]") || said.contains("[E0413]"), "rank {rank}: {said}");
        }
    }
}

/// A rank ends all calls: the others, on every host, get its reason soon.
#[test]
fn an_abort_ends_calls_on_every_host() {
    const TEST: &str = "hosts::an_abort_ends_calls_on_every_host";
    if let Some(case) = case() {
        let world = World::from_env_with(Options::new().deadline(DEADLINE)).expect("a world");
        let mut rank = world.rank();
        let mut all = vec![1.0_f32; 1000];
        // The others may still be in the first call.
        let begun = Instant::now();
        let error = loop {
            if let Err(error) = rank.all_reduce(&mut all, ReduceOp::Max) {
                break error;
            }
            if rank.id().to_string() == case {
                world.abort("the input is not what it should be").expect("it is this process");
            }
        };
        assert!(begun.elapsed() < KNOWN, "{:?}", begun.elapsed());
        say(&error.to_string());
        // The others read the reason before this process is gone.
        std::thread::sleep(Duration::from_millis(500));
        return;
    }
    for (by, bad) in carriers().into_iter().flat_map(|by| [0_u32, 3].map(|bad| (by, bad))) {
        let port = free_port();
        let start = |rank| of_hosts(by, TEST, &bad.to_string(), 2, rank, port);
        let told = run_by(start, 4, |_, _| {});
        for (rank, told) in told.iter().enumerate() {
            let said = told.said.first().unwrap_or_else(|| panic!("rank {rank}: {}", told.all));
            let words = ["it aborted: the input is not what it should be", "[E0413]"];
            assert!(words.iter().all(|word| said.contains(word)), "rank {rank}: {said}");
            assert!(said.contains(&format!("rank {bad} ")), "rank {rank}: {said}");
        }
    }
}

#[test]
fn what_is_missing_is_told() {
    const TEST: &str = "hosts::what_is_missing_is_told";
    if case().is_some() {
        let options = Options::new().deadline(Duration::from_millis(500));
        say(&World::from_env_with(options).expect_err("it is refused").to_string());
        return;
    }
    let told = |nranks: u32, with: &dyn Fn(&mut Command)| {
        let port = free_port();
        let start = |rank| {
            let mut command = of_hosts("", TEST, "all", 2, rank, port);
            with(&mut command);
            command
        };
        run_by(start, nranks, |_, _| {}).remove(0).said.remove(0)
    };
    let no_key = told(1, &|command| {
        command.env_remove("ROUNDELAY_KEY");
    });
    assert!(no_key.contains("need the key of their job") && no_key.contains("[E0427]"), "{no_key}");
    let short = told(1, &|command| {
        command.env("ROUNDELAY_KEY", "12ab");
    });
    assert!(short.contains("4 characters"), "{short}");
    let no_address = told(1, &|command| {
        command.env("ROUNDELAY_ROOT", "nowhere");
    });
    assert!(no_address.contains("no address such as node1:7000"), "{no_address}");
    let no_carrier = told(1, &|command| {
        command.env("ROUNDELAY_CARRIER", "rdma");
    });
    let values = "ROUNDELAY_CARRIER is `rdma`; give `tcp`, `ucx` or `mpi`";
    assert!(no_carrier.contains(values) && no_carrier.contains("[E0406]"), "{no_carrier}");
    let no_mpi = told(1, &|command| {
        command.env("ROUNDELAY_CARRIER", "mpi").env("ROUNDELAY_MPI_LIB", "/no/such/library");
    });
    assert!(no_mpi.contains("/no/such/library") && no_mpi.contains("[E0427]"), "{no_mpi}");
    let no_ucx = told(1, &|command| {
        command.env("ROUNDELAY_CARRIER", "ucx").env("ROUNDELAY_UCX_LIB", "/no/such/library");
    });
    assert!(no_ucx.contains("/no/such/library") && no_ucx.contains("[E0427]"), "{no_ucx}");
    // As `mpirun` starts the first of two ranks, on two hosts.
    let mut command = of_test(&[], TEST, "all");
    command.env("ROUNDELAY_CARRIER", "tcp").env("PMIX_NAMESPACE", "two hosts");
    for (name, value) in [("RANK", "0"), ("SIZE", "2"), ("LOCAL_RANK", "0"), ("LOCAL_SIZE", "1")] {
        command.env(format!("OMPI_COMM_WORLD_{name}"), value);
    }
    let output = command.output().expect("it ends").stdout;
    let no_root = said(&String::from_utf8_lossy(&output)).join("");
    assert!(no_root.contains("ROUNDELAY_ROOT does not say where"), "{no_root}");
    let open = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(open.path(), "5a".repeat(32)).expect("it is written");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    std::fs::set_permissions(open.path(), mode).expect("it is ours");
    let read_by_all = told(1, &|command| {
        command.env("ROUNDELAY_KEY_FILE", open.path());
    });
    assert!(
        read_by_all.contains("other users may read") && read_by_all.contains("chmod 600"),
        "{read_by_all}"
    );
}

/// Ranks that want other carriers do not wait for each other; nor do those whose rank has no library.
#[test]
fn carriers_that_differ_are_told() {
    const TEST: &str = "hosts::carriers_that_differ_are_told";
    if case().is_some() {
        let options = Options::new().deadline(DEADLINE);
        say(&World::from_env_with(options).expect_err("it is refused").to_string());
        return;
    }
    let told = |by: [By; 2], library: &str| {
        let port = free_port();
        let start = |rank: u32| {
            let mut command = of_hosts(by[rank as usize], TEST, "all", 2, rank, port);
            if rank == 1 && !library.is_empty() {
                command.env("ROUNDELAY_UCX_LIB", library);
            }
            command
        };
        let told = run_by(start, 2, |_, _| {});
        told.into_iter().map(|told| told.said.concat()).collect::<Vec<_>>()
    };
    let differ = told(["tcp", "ucx"], "");
    assert!(differ[0].contains("rank 0 sends to other hosts by TCP, and rank 1 by UCX"));
    assert!(differ[1].contains("rank 1 sends to other hosts by UCX, and rank 0 by TCP"));
    if carriers().len() > 1 {
        let lacks = told(["ucx", "ucx"], "/no/such/library");
        assert!(lacks[0].contains("rank 1 cannot send by UCX, as it says"), "{}", lacks[0]);
        assert!(lacks[1].contains("/no/such/library"), "{}", lacks[1]);
    }
}

/// Hosts with different versions of UCX, that of the system and one below `target/`, are told so; each works by itself.
#[test]
fn two_versions_of_ucx_are_told() {
    const TEST: &str = "hosts::two_versions_of_ucx_are_told";
    if case().is_some() {
        let world = match World::from_env_with(Options::new().deadline(DEADLINE)) {
            Ok(world) => world,
            Err(error) => return say(&error.to_string()),
        };
        calls(&world);
        say(&world.carrier().expect("it spans hosts"));
        return;
    }
    let other = roundelay_tests::root().join("target/ucx/libucx/lib/libucp.so.0");
    if carriers().len() < 2 || !other.exists() {
        println!("two versions are not tried: `cargo xtask test` installs them");
        return;
    }
    let told = |others: fn(u32) -> bool| {
        let port = free_port();
        let start = |rank: u32| {
            let mut command = of_hosts("ucx", TEST, "all", 2, rank, port);
            if others(rank) {
                command.env("ROUNDELAY_UCX_LIB", &other);
            }
            command
        };
        let said = |told: Told| told.said.first().cloned().unwrap_or(told.all);
        run_by(start, 4, |_, _| {}).into_iter().map(said).collect::<Vec<_>>()
    };
    let one = told(|_| true);
    assert!(one.iter().all(|name| name.starts_with("UCX 1.22.0 over tcp (")), "{one:?}");
    let both = told(|rank| rank % 2 == 1);
    if both == one {
        println!("the version of the system is the other one, too");
        return;
    }
    for (rank, said) in both.iter().enumerate() {
        let words =
            [&*format!("rank {rank} has UCX 1."), "and rank", "give all hosts one", "E0427"];
        assert!(words.iter().all(|word| said.contains(word)), "{said}");
    }
}
