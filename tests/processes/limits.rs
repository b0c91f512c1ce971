//! Resources that the system refuses: each gives an error with a code, which names the resource and the remedy, on all
//! ranks alike, and no rank hangs.

use std::time::Instant;

use roundelay::{Options, ReduceOp, World};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::ranks::{DEADLINE, Told, case, end, run, run_under, say};

fn limit(resource: Resource, most: u64) {
    let maximum = getrlimit(resource).maximum;
    setrlimit(resource, Rlimit { current: Some(most), maximum }).expect("a lower limit");
}

/// Leaves room for `descriptors` more descriptors.
fn spare(descriptors: usize) {
    let open = std::fs::read_dir("/proc/self/fd").expect("a list of descriptors");
    let numbers = open.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u64>().ok());
    let mut numbers: Vec<u64> = numbers.collect();
    // The descriptor of the list is closed by now.
    numbers.retain(|number| std::fs::symlink_metadata(format!("/proc/self/fd/{number}")).is_ok());
    let mut free = (0..).filter(|number| !numbers.contains(number));
    limit(Resource::Nofile, free.nth(descriptors).expect("one of all numbers"));
}

/// Joins and makes a call, and reports the result.
fn attempt() {
    let options = Options::new().deadline(std::time::Duration::from_secs(3));
    let called = World::from_env_with(options)
        .and_then(|world| world.rank().all_reduce(&mut [1_u32; 1000], ReduceOp::Sum));
    match called {
        Ok(()) => say("ok"),
        Err(error) => say(&error.to_string()),
    }
}

/// Whether a case is about this rank.
fn is_meant(who: &str) -> bool {
    who == "all" || std::env::var("ROUNDELAY_RANK").is_ok_and(|rank| rank == who)
}

/// Asserts that all ranks have one result, and that failed ranks report a code; returns each rank's report.
fn alike(told: &[Told], about: &str) -> Vec<String> {
    let said: Vec<String> = told.iter().map(|told| told.said.join("; ")).collect();
    let fine = said.iter().filter(|said| *said == "ok").count();
    assert!(fine == 0 || fine == said.len(), "{about}: {told:#?}");
    for text in &said {
        let coded = text.ends_with("[E0429]") || text.ends_with("[E0427]");
        assert!(text == "ok" || coded, "{about}: {told:#?}");
    }
    assert!(told.iter().all(|told| told.status.success()), "{about}: {told:#?}");
    said
}

/// Tries one thing with all ranks, with rank 0, and with rank 1, at once: a rank that is left alone waits for its deadline.
fn with_each(tries: impl Fn(&str) + Sync) {
    let tries = &tries;
    std::thread::scope(|threads| {
        for who in ["all", "0", "1"] {
            threads.spawn(move || tries(who));
        }
    });
}

#[test]
fn descriptors_run_out() {
    if let Some(case) = case() {
        let (who, room) = case.split_once(' ').expect("two words");
        if is_meant(who) {
            spare(room.parse().expect("a number"));
        }
        attempt();
        end();
    }
    let test = "limits::descriptors_run_out";
    with_each(|who| {
        let mut refused = 0;
        // As few as it takes to meet, and fewer.
        for room in 0.. {
            let about = format!("room for {room} descriptors, {who}");
            let since = Instant::now();
            let said = alike(&run(test, 3, &format!("{who} {room}"), |_, _| ()), &about);
            assert!(since.elapsed().as_secs() < 20, "{about}: {said:#?}");
            if said[0] == "ok" {
                break;
            }
            refused += 1;
            assert!(refused < 30, "{about}: {said:#?}");
            let why = said.iter().find(|text| text.ends_with("[E0429]"));
            let why = why.unwrap_or_else(|| panic!("{about}: {said:#?}"));
            assert!(why.contains("descriptors (`ulimit -n`): raise that limit"), "{about}: {why}");
        }
        assert!(refused > 2, "{who}: {refused}");
    });
}

/// A world that is there needs no more of them; another one does.
#[test]
fn descriptors_run_out_later() {
    if case().is_some() {
        let world = World::from_env_with(Options::new().deadline(DEADLINE)).expect("a world");
        spare(0);
        let mut rank = world.rank();
        for _ in 0..3 {
            let mut buffer = [1_u32; 1000];
            rank.all_reduce(&mut buffer, ReduceOp::Sum).expect("a call needs none");
            assert_eq!(buffer, [3; 1000]);
            say(&world.split(Some(0), 0).expect_err("a world needs some").to_string());
        }
        end();
    }
    for told in run("limits::descriptors_run_out_later", 3, "", |_, _| ()) {
        assert_eq!(told.said.len(), 3, "{told:#?}");
        for text in &told.said {
            assert!(text.ends_with("[E0429]") && text.contains("`ulimit -n`"), "{told:#?}");
        }
    }
}

#[test]
fn the_arena_is_larger_than_a_limit() {
    if let Some(case) = case() {
        let (which, who) = case.split_once(' ').expect("two words");
        if is_meant(who) {
            match which {
                "addresses" => limit(Resource::As, 2 << 30),
                _ => limit(Resource::Fsize, 1 << 20),
            }
        }
        attempt();
        end();
    }
    for (which, who, fix) in [
        ("addresses", "all", "raise the limit of addresses (ulimit -v)"),
        ("addresses", "0", "raise the limit of addresses (ulimit -v)"),
        ("addresses", "1", "raise the limit of addresses (ulimit -v)"),
        ("file", "all", "(`ulimit -f`): raise that limit"),
        ("file", "0", "(`ulimit -f`): raise that limit"),
        // Rank 0 makes it.
        ("file", "1", "ok"),
    ] {
        let about = format!("{which} {who}");
        let test = "limits::the_arena_is_larger_than_a_limit";
        let said = alike(&run(test, 2, &about, |_, _| ()), &about);
        assert!(said.iter().all(|text| text.contains(fix)), "{about}: {said:#?}");
    }
}

/// A filter that refuses one call of the system, and then the program: for `python3 -c`.
const FILTER: &str = r#"
import ctypes, os, struct, sys
name, program = sys.argv[1], sys.argv[2:]
numbers = {
    "x86_64": {"memfd_create": 319, "pidfd_open": 434, "socket": 41, "connect": 42, "listen": 50,
               "sendmsg": 46, "recvmsg": 47, "ftruncate": 77},
    "aarch64": {"memfd_create": 279, "pidfd_open": 434, "socket": 198, "connect": 203, "listen": 201,
                "sendmsg": 211, "recvmsg": 212, "ftruncate": 46},
}[os.uname().machine]
rank = os.environ["ROUNDELAY_RANK"]
name, who = name.split("@")
if who in ("all", rank):
    rules = [(0x20, 0, 0, 0), (0x15, 0, 1, numbers[name]), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7fff0000)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *rule) for rule in rules))
    filter = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(rules), ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, filter, 0, 0):
        sys.exit("@ skipped: no filter: " + os.strerror(ctypes.get_errno()))
os.execv(program[0], program)
"#;

#[test]
fn a_filter_of_system_calls_is_in_the_way() {
    if case().is_some() {
        attempt();
        end();
    }
    if let Err(error) = std::process::Command::new("python3").arg("--version").output() {
        return eprintln!("skipped: python3, which sets the filter, cannot be run: {error}");
    }
    let test = "limits::a_filter_of_system_calls_is_in_the_way";
    let calls = [
        "memfd_create",
        "ftruncate",
        "pidfd_open",
        "socket",
        "listen",
        "connect",
        "sendmsg",
        "recvmsg",
    ];
    with_each(|who| {
        for call in calls {
            let about = format!("{call}@{who}");
            let under = ["python3", "-c", FILTER, &about];
            let told = run_under(&under, test, 2, "here", |_, _| ());
            if let Some(told) = told.iter().find(|told| told.all.contains("skipped: no filter")) {
                return eprintln!("{}", told.all);
            }
            let said = alike(&told, &about);
            // Rank 0 makes the memory and listens, and others connect.
            let needed = match call {
                "memfd_create" | "ftruncate" | "listen" => who != "1",
                "connect" => who != "0",
                _ => true,
            };
            assert_eq!(said[0] != "ok", needed, "{about}: {said:#?}");
            if needed {
                let why = said.iter().find(|text| text.ends_with("[E0429]"));
                let why = why.unwrap_or_else(|| panic!("{about}: {said:#?}"));
                assert!(
                    why.contains(call) && why.contains("a filter of system calls"),
                    "{about}: {why}"
                );
            }
        }
    });
}

/// `/proc` is useful, and no call needs it.
#[test]
fn there_is_no_proc() {
    if case().is_some() {
        assert!(!std::path::Path::new("/proc/self").exists(), "it is covered");
        let world = World::from_env_with(Options::new().deadline(DEADLINE)).expect("a world");
        let mut rank = world.rank();
        let mut lent = world.alloc::<u32>(1000).expect("memory");
        lent.fill(1);
        rank.all_reduce(&mut lent, ReduceOp::Sum).expect("a right call");
        assert_eq!(*lent, [3; 1000]);
        rank.barrier().expect("a right call");
        if rank.id() == 1 {
            std::process::abort();
        }
        say(&rank.barrier().expect_err("rank 1 ended").to_string());
        end();
    }
    let cover = "mount -t tmpfs none /proc && exec \"$@\"";
    let under = ["unshare", "--map-root-user", "--mount", "sh", "-c", cover, "sh"];
    match std::process::Command::new(under[0]).args(&under[1..]).arg("true").output() {
        Err(error) => return eprintln!("skipped: unshare cannot be run: {error}"),
        Ok(output) if !output.status.success() => {
            return eprintln!("skipped: /proc cannot be covered here: {output:?}");
        }
        Ok(_) => {}
    }
    let told = run_under(&under, "limits::there_is_no_proc", 3, "here", |_, _| ());
    for rank in [0, 2] {
        let [text] = &told[rank].said[..] else { panic!("{told:#?}") };
        let begin = format!("rank 1 (process {}) ", told[1].pid);
        assert!(text.starts_with(&begin) && text.ends_with("[E0428]"), "{told:#?}");
        assert!(text.contains("was killed by signal 6 (SIGABRT)"), "{text}");
    }
}
