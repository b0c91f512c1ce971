//! Jobs of several hosts by one launcher: names of this machine, whose agent is a script.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use super::{Running, gone, sorted, state, until};
use crate::command::call::{Call, binary, ended};

/// Two names of this machine, with two ranks and one.
const HOSTS: &str = "127.0.0.2:2,127.0.0.3:1";

/// A folder with an agent, which counts its host as one of its own, and the lines that it was given.
struct AgentScript(tempfile::TempDir);

impl AgentScript {
    fn new() -> Self {
        Self::of("export ROUNDELAY_HOST_ID=\"$1\"\nexec sh -c \"$2\"\n")
    }

    /// An agent that does `then` with the host `$1` and the line `$2`.
    fn of(then: &str) -> Self {
        let script = Self(tempfile::tempdir().expect("a folder"));
        let lines = script.0.path().join("lines");
        let text = format!("#!/bin/sh\necho \"$2\" >> {}\n{then}", lines.display());
        fs::write(script.path(), text).expect("a script");
        fs::set_permissions(script.path(), fs::Permissions::from_mode(0o700)).expect("its owner");
        script
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("agent")
    }

    /// Returns the flags of a job on the hosts.
    fn flags(&self) -> [String; 4] {
        ["--hosts", HOSTS, "--agent", self.path().to_str().expect("UTF-8")].map(str::to_owned)
    }

    /// Runs a job of a shell script on the hosts.
    fn launch(&self, flags: &[&str], script: &str) -> Call {
        let all = self.flags();
        let mut args: Vec<&str> = ["launch"].into_iter().chain(all.iter().map(|a| &**a)).collect();
        args.extend(flags.iter().copied().chain(["--", "sh", "-c", script]));
        let mut command = binary();
        command.env("ROUNDELAY_DEADLINE", "40s").env("ROUNDELAY_KEY", "of another job");
        ended(command, &args, b"input")
    }

    /// Starts a job on the hosts, each rank of which prints a line first.
    fn start(&self, flags: &[&str], script: &str) -> Running {
        let all = self.flags();
        let all: Vec<&str> = all.iter().map(|a| &**a).chain(flags.iter().copied()).collect();
        Running::with_lines(3, &all, script)
    }
}

#[test]
fn ranks_of_all_hosts_know_their_place() {
    let agent = AgentScript::new();
    let script = "echo $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE $ROUNDELAY_ROOT $MASTER_ADDR \
                  $ROUNDELAY_HOST_ID $PWD \"$A\" $ROUNDELAY_DEADLINE; cat; echo $ROUNDELAY_KEY";
    let variable = "A=it's \"two  words\"\n$HOME `x`";
    let call = agent.launch(&["--port", "7123", "--prefix", "--env", variable], script).ends(0);
    assert_eq!(call.err, "");
    let folder = roundelay_tests::root().canonicalize().expect("a folder");
    let mut keys = Vec::new();
    for rank in 0..3 {
        let (here, nranks, host) = if rank < 2 { (rank, 2, 2) } else { (0, 1, 3) };
        let root = "127.0.0.2:7123 127.0.0.2";
        let wanted = format!(
            "{rank}/3 {here}/{nranks} {root} 127.0.0.{host} {} it's \"two  words\"\n$HOME `x` 40s\n",
            folder.display()
        );
        let prefix = format!("[{rank}] ");
        let own = call.out.lines().filter_map(|line| line.strip_prefix(&prefix));
        let text: String = own.flat_map(|line| [line, "\n"]).collect();
        let key = text.strip_prefix(&wanted).unwrap_or_else(|| panic!("{text}, and not {wanted}"));
        // The rank reads an empty input.
        keys.push(key.trim_end().to_owned());
    }
    assert!(keys[0].len() == 64 && keys.iter().all(|key| *key == keys[0]), "{keys:?}");
    let lines = fs::read_to_string(agent.0.path().join("lines")).expect("the lines");
    assert!(lines.contains("--first") && !lines.contains(&keys[0]), "{lines}");
}

#[test]
fn a_rank_that_fails_ends_all_hosts() {
    let agent = AgentScript::new();
    let script = "[ $RANK = 2 ] && exit 7; exec sleep 60";
    let call = agent.launch(&["--grace", "50ms"], script).ends(7);
    let last = call.err.lines().last().expect("a line");
    assert_eq!(
        last,
        "error: host 127.0.0.3 failed first: exit code 7; ended by SIGTERM: host 127.0.0.2"
    );
    assert!(call.err.contains("error: rank 2 (pid "), "{}", call.err);
    let script = "[ $RANK = 2 ] && exit 7; echo here";
    let call = agent.launch(&["--grace", "0", "--keep-going"], script).ends(7);
    assert_eq!(sorted(&call.out), ["here", "here"]);
    assert!(call.err.contains("warning: host 127.0.0.3 failed: exit code 7"), "{}", call.err);
}

#[test]
fn signals_go_to_all_hosts() {
    let script = "trap 'echo usr; exit 0' USR1; echo $$; sleep 60 & wait";
    let running = AgentScript::new().start(&[], script);
    running.send("USR1");
    assert_eq!(running.ends(), (Some(0), "usr\n".repeat(3), String::new()));

    let running = AgentScript::new().start(&["--grace", "10s"], "echo $$; exec sleep 60");
    let (pids, launcher) = (running.lines.clone(), running.launcher.id().to_string());
    let stopped = |all: bool| {
        let processes = pids.iter().chain([&launcher]);
        processes.map(|pid| state(pid)).all(|state| (state == Some('T')) == all)
    };
    running.send("TSTP");
    until("the job stops", || stopped(true));
    running.send("CONT");
    until("the job goes on", || stopped(false));
    running.send("TERM");
    let (code, _, err) = running.ends();
    assert_eq!(code, Some(143), "{err}");
    gone(&pids);
}

#[test]
fn no_host_outlives_the_launcher() {
    let mut running =
        AgentScript::new().start(&["--grace", "0"], "trap '' HUP; echo $$; exec sleep 60");
    let pids = running.lines.clone();
    running.launcher.kill().expect("it runs");
    running.launcher.wait().expect("it ends");
    gone(&pids);
}

#[test]
fn a_host_that_does_not_hear_is_ended() {
    let agent = AgentScript::of("trap '' TERM HUP\nexec sleep 60\n");
    let call = agent.launch(&["--timeout", "100ms", "--grace", "0"], "true").ends(124);
    assert!(call.took < Duration::from_secs(40), "took {:?}", call.took);
    assert_eq!(
        call.err,
        "error: the job took longer than 100ms; ended by SIGKILL: hosts 127.0.0.2, 127.0.0.3\n"
    );
}

/// Ranks of the hosts meet, and measure the way between them.
#[test]
fn a_world_spans_the_hosts() {
    let agent = AgentScript::new();
    let program = binary().get_program().to_str().expect("UTF-8").to_owned();
    let script = format!("exec {program} probe --time 1ms --json");
    let call = agent.launch(&[], &script);
    let report = call.json();
    assert_eq!(report["hosts"].as_array().map(Vec::len), Some(2), "{}", call.out);
}
