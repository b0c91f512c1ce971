//! Ranks as processes: their environment, their end, and that nothing of them stays.

#[path = "launch/hosts.rs"]
mod hosts;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use super::call::{Call, TempFile, binary, ended, roundelay, with_input};

/// `roundelay launch` of a shell script.
fn launch(flags: &[&str], script: &str) -> Call {
    let call = roundelay(&[&["launch"][..], flags, &["--", "sh", "-c", script]].concat());
    // What stays would stay for a minute.
    assert!(call.took < Duration::from_secs(40), "took {:?}", call.took);
    call
}

fn sorted(out: &str) -> Vec<&str> {
    let mut lines: Vec<_> = out.lines().collect();
    lines.sort_unstable();
    lines
}

/// A launcher whose ranks have each printed a line, and these lines.
struct Running {
    launcher: Child,
    out: BufReader<ChildStdout>,
    lines: Vec<String>,
}

impl Running {
    fn new(nranks: usize, flags: &[&str], script: &str) -> Self {
        let nranks_flag = nranks.to_string();
        Self::with_lines(nranks, &[&["-n", &nranks_flag][..], flags].concat(), script)
    }

    /// Starts a job of `nranks` ranks by these flags.
    fn with_lines(nranks: usize, flags: &[&str], script: &str) -> Self {
        // The tests may run with signals ignored, as a shell ignores them for background commands.
        let mut command = Command::new("env");
        command.arg("--default-signal").arg(binary().get_program());
        command.arg("launch").args(flags).args(["--", "sh", "-c", script]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut launcher = command.spawn().expect("the command starts");
        let out = BufReader::new(launcher.stdout.take().expect("a pipe"));
        let mut running = Self { launcher, out, lines: Vec::new() };
        for _ in 0..nranks {
            let line = running.line();
            running.lines.push(line);
        }
        running
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    }

    /// Sends the launcher a signal, such as `TERM`.
    fn send(&self, signal: &str) {
        kill(signal, &self.launcher.id().to_string());
    }

    /// Returns its exit code, if it was not killed, and the output of it and its ranks after the first lines.
    fn ends(mut self) -> (Option<i32>, String, String) {
        let (mut out, mut err) = (String::new(), String::new());
        self.out.read_to_string(&mut out).expect("text");
        let status = self.launcher.wait().expect("the launcher ends");
        let mut errors = self.launcher.stderr.take().expect("a pipe");
        errors.read_to_string(&mut err).expect("text");
        (status.code(), out, err)
    }
}

/// Nothing runs on where a test fails.
impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.launcher.kill();
        let _ = self.launcher.wait();
    }
}

fn kill(signal: &str, pid: &str) {
    let done = Command::new("kill").args(["-s", signal, pid]).status().expect("`kill` starts");
    assert!(done.success(), "{signal} to {pid}");
}

/// Returns the state of a process, such as `S` or `Z`; `None` where it is gone.
fn state(pid: &str) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

#[track_caller]
fn until(what: &str, holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(40), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[track_caller]
fn gone(pids: &[String]) {
    for pid in pids {
        until("a process stays", || state(pid).is_none());
    }
}

/// The ranks of a host, in a job of several hosts: each launch starts its own, and messages name them as the job does.
#[test]
fn ranks_of_a_part_know_their_place_in_the_job() {
    let launch = |script: &str| {
        let part = ["--root", "[::1]:7001", "--first", "4", "--of", "8"];
        let args = [&["launch", "-n", "2", "--prefix"][..], &part, &["--", "sh", "-c", script]];
        let mut command = binary();
        command.env("ROUNDELAY_KEY", "5a".repeat(32));
        ended(command, &args.concat(), b"")
    };
    let call = launch(
        "echo $ROUNDELAY_RANK/$ROUNDELAY_NRANKS $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE \
         $ROUNDELAY_ROOT $MASTER_ADDR $MASTER_PORT ${ROUNDELAY_ID-none} ${ROUNDELAY_ENDINGS-none}",
    )
    .ends(0);
    let place = |here: u32| {
        let of = here + 4;
        format!("[{of}] {of}/8 {of}/8 {here}/2 [::1]:7001 ::1 7002 none none")
    };
    assert_eq!(sorted(&call.out), [place(0), place(1)]);
    let failed = launch("test $LOCAL_RANK = 0 || exit 3; sleep 60").ends(3).err;
    assert!(
        failed.contains("rank 5 (pid") && failed.contains("ended by SIGTERM: rank 4"),
        "{failed}"
    );
}

#[test]
fn ranks_know_their_place() {
    let call = launch(
        &["-n", "3"],
        "echo $ROUNDELAY_RANK/$ROUNDELAY_NRANKS $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE \
         $GROUP_RANK/$GROUP_WORLD_SIZE $ROLE_RANK/$ROLE_WORLD_SIZE",
    )
    .ends(0);
    assert_eq!(call.err, "");
    let place = |r: u32| format!("{r}/3 {r}/3 {r}/3 0/1 {r}/3");
    assert_eq!(sorted(&call.out), [place(0), place(1), place(2)]);

    let shared = "echo $ROUNDELAY_ID $ROUNDELAY_ENDINGS $MASTER_ADDR $MASTER_PORT";
    let told = || launch(&["-n", "3"], shared).ends(0).out;
    let (one, another) = (told(), told());
    let lines: Vec<_> = one.lines().collect();
    assert!(lines.len() == 3 && lines.iter().all(|line| *line == lines[0]), "{one}");
    let words: Vec<_> = lines[0].split(' ').collect();
    assert!(words[0].len() == 256 && words[0].bytes().all(|b| b.is_ascii_hexdigit()), "{one}");
    assert_ne!(words[0], another.split(' ').next().unwrap(), "an id is of use once");
    assert!(words[1].parse::<u32>().unwrap() > 2, "{one}");
    assert_eq!(words[2], "127.0.0.1");
    assert!(words[3].parse::<u16>().unwrap() > 0, "{one}");
}

#[test]
fn arguments_input_and_dispositions_are_handed_on() {
    let args = ["launch", "-n", "1", "printf", "%s|", "-n", "--prefix", "", "a b"];
    assert_eq!(roundelay(&args).ends(0).out, "-n|--prefix||a b|");
    let call =
        with_input(&["launch", "-n", "2", "--prefix", "sh", "-c", "cat; echo end"], b"one\ntwo");
    // Rank 1 reads nothing.
    assert_eq!(sorted(&call.ends(0).out), ["[0] one", "[0] twoend", "[1] end"]);
    let masks = "exec grep -E 'Sig(Ign|Blk)' /proc/self/status";
    let mut alone = Command::new("sh");
    alone.args(["-c", masks]);
    assert_eq!(
        launch(&["-n", "1"], masks).ends(0).out,
        String::from_utf8(alone.output().unwrap().stdout).unwrap()
    );
}

#[test]
fn the_first_failure_is_the_exit_code() {
    let call = launch(&["-n", "3", "--grace", "50ms"], "[ $RANK = 1 ] && exit 7; exec sleep 60");
    let err = call.ends(7).err;
    let (told, pid) = (err.split("(pid ").next().unwrap(), err.split("(pid ").nth(1).unwrap());
    assert_eq!(told, "error: rank 1 ");
    let (pid, rest) = pid.split_once(") ").unwrap();
    assert!(pid.parse::<u32>().is_ok(), "{err}");
    assert_eq!(rest, "failed first: exit code 7; ended by SIGTERM: ranks 0, 2\n");

    let call =
        launch(&["-n", "2", "--grace", "0"], "[ $RANK = 0 ] && kill -SEGV $$; exec sleep 60");
    let err = call.ends(139).err;
    assert!(err.ends_with(" failed first: SIGSEGV; ended by SIGTERM: rank 1\n"), "{err}");
}

#[test]
fn ranks_that_end_within_the_grace_are_not_ended() {
    let script = "[ $RANK = 1 ] && exit 3; sleep 0.2; exit $((4 * RANK / 2))";
    let call = launch(&["-n", "3", "--grace", "3s"], script).ends(3);
    assert!(
        call.err.ends_with("failed first: exit code 3; failed after that: rank 2\n"),
        "{}",
        call.err
    );
}

#[test]
fn a_rank_that_ignores_sigterm_is_killed() {
    let script =
        "[ $RANK = 0 ] && { sleep 0.2; exit 1; }; trap '' TERM; while :; do sleep 0.1; done";
    let call = launch(&["-n", "2", "--grace", "0"], script).ends(1);
    assert!(call.err.ends_with("; ended by SIGKILL: rank 1\n"), "{}", call.err);
}

#[test]
fn the_others_may_go_on() {
    let script = "[ $RANK = 1 ] && exit 9; sleep 0.3; [ $RANK = 2 ] && exit 8; echo $RANK";
    let call = launch(&["-n", "4", "--grace", "0", "--keep-going"], script).ends(9);
    assert_eq!(sorted(&call.out), ["0", "3"]);
    let lines: Vec<_> = call.err.lines().collect();
    assert_eq!(lines.len(), 3, "{}", call.err);
    assert!(
        lines[0].starts_with("warning: rank 1 ") && lines[1].starts_with("warning: rank 2 "),
        "{}",
        call.err
    );
    assert!(
        lines[2].ends_with("failed first: exit code 9; failed after that: rank 2"),
        "{}",
        call.err
    );
}

#[test]
fn a_job_that_takes_too_long_is_ended() {
    let call =
        launch(&["-n", "2", "--timeout", "200ms", "--grace", "50ms"], "trap '' TERM; sleep 1.5")
            .ends(124);
    assert_eq!(call.err, "error: the job took longer than 200ms; ended by SIGKILL: ranks 0..=1\n");
    let call =
        launch(&["-n", "2", "--timeout", "200ms"], "trap 'exit 0' TERM; sleep 60 & wait").ends(124);
    assert_eq!(call.err, "error: the job took longer than 200ms; ended by SIGTERM: ranks 0..=1\n");
    launch(&["-n", "2", "--timeout", "60s"], "exit 0").ends(0);
}

#[test]
fn lines_have_their_rank() {
    let script = "printf 'a\\nb'; echo wrong >&2; [ $RANK = 1 ] && printf '\\377\\000\\n'";
    let mut command = binary();
    command.args(["launch", "-n", "2", "--prefix", "--keep-going", "sh", "-c", script]);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let mut lines: Vec<_> = output.stdout.split_inclusive(|b| *b == b'\n').collect();
    lines.sort_unstable();
    assert_eq!(lines, [&b"[0] a\n"[..], b"[0] b\n", b"[1] a\n", b"[1] b\xff\0\n"]);
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(err.contains("[0] wrong\n") && err.contains("[1] wrong\n"), "{err}");

    // Lines of many ranks do not mix.
    let call = launch(&["-n", "4", "--prefix"], "seq -f \"$RANK-%06.0f-$RANK\" 2000").ends(0);
    assert_eq!(call.out.lines().count(), 8000);
    for line in call.out.lines() {
        let rank = &line[1..2];
        assert!(
            line.len() == 14
                && line.starts_with(&format!("[{rank}] {rank}-"))
                && line.ends_with(rank),
            "{line}"
        );
    }
}

#[test]
fn signals_go_to_all_ranks() {
    let script = "trap 'echo usr1' USR1; trap 'echo usr2' USR2; trap 'exit 0' INT; echo $$; \
                  while :; do sleep 60 & wait; done";
    let mut running = Running::new(2, &[], script);
    for (signal, line) in [("USR1", "usr1"), ("USR2", "usr2")] {
        running.send(signal);
        assert_eq!([running.line(), running.line()], [line, line]);
    }
    running.send("INT");
    let pids = running.lines.clone();
    // All is well where the ranks say so.
    assert_eq!(running.ends(), (Some(0), String::new(), String::new()));
    gone(&pids);
}

#[test]
fn signals_that_end() {
    for (signal, code) in [("TERM", 143), ("INT", 130), ("HUP", 129), ("QUIT", 131)] {
        let running = Running::new(2, &[], "echo $$; exec sleep 60");
        running.send(signal);
        let (ended, _, err) = running.ends();
        assert_eq!(ended, Some(code), "{err}");
        assert_eq!(
            err,
            format!("error: the launcher was sent SIG{signal}; failed after that: ranks 0..=1\n")
        );
    }
}

#[test]
fn signals_that_are_ignored() {
    let ignores = "trap '' INT TERM; echo $$; while :; do sleep 0.1; done";
    let running = Running::new(2, &[], ignores);
    let pids = running.lines.clone();
    running.send("INT");
    std::thread::sleep(Duration::from_millis(200));
    assert!(pids.iter().all(|pid| state(pid).is_some()), "one SIGINT is the ranks' to answer");
    running.send("INT");
    let (code, _, err) = running.ends();
    assert_eq!(code, Some(130), "{err}");
    assert_eq!(err, "error: the launcher was sent SIGINT; ended by SIGKILL: ranks 0..=1\n");
    gone(&pids);

    let running = Running::new(2, &["--grace", "100ms"], ignores);
    let pids = running.lines.clone();
    running.send("TERM");
    let (code, _, err) = running.ends();
    assert_eq!(code, Some(143), "{err}");
    assert_eq!(err, "error: the launcher was sent SIGTERM; ended by SIGKILL: ranks 0..=1\n");
    gone(&pids);
}

#[test]
fn what_the_launcher_ignores_its_ranks_ignore() {
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' HUP; exec \"$@\"", "sh"]).arg(binary().get_program());
    command.args(["launch", "-n", "1", "sh", "-c", "kill -HUP $PPID $$; sleep 0.1; echo here"]);
    let output = command.stdin(Stdio::null()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "here\n");
    assert!(output.status.success());
}

#[test]
fn a_job_stops_and_goes_on() {
    let running = Running::new(2, &[], "echo $$; exec sleep 60");
    let pids = running.lines.clone();
    let launcher = running.launcher.id().to_string();
    let all = |letter: char| {
        let processes = pids.iter().chain([&launcher]);
        processes.map(|pid| state(pid)).all(|state| (state == Some('T')) == (letter == 'T'))
    };
    running.send("TSTP");
    until("the job stops", || all('T'));
    running.send("CONT");
    until("the job goes on", || all('S'));
    running.send("TERM");
    assert_eq!(running.ends().0, Some(143));
}

#[test]
fn ranks_do_not_outlive_the_launcher() {
    let mut running = Running::new(3, &["--prefix"], "echo $$; exec sleep 60");
    let pids: Vec<_> =
        running.lines.iter().map(|line| line.split_once("] ").unwrap().1.to_owned()).collect();
    assert!(pids.iter().all(|pid| state(pid).is_some()));
    running.launcher.kill().unwrap();
    assert_eq!(running.launcher.wait().unwrap().code(), None);
    gone(&pids);
}

/// Neither a process that a rank started nor a zombie stays, although the rank does not wait for it.
#[test]
fn nothing_is_left_behind() {
    // A process that ends at once, one that ends soon, and one that would not.
    let script = "true & echo $!; (sleep 0.1; echo soon) & sleep 60 & echo $!; [ $RANK = 0 ] && exit 5; exit 0";
    let running = Running::new(4, &["--grace", "2s"], &format!("{{ {script}; }} 2>&1"));
    let mut pids = running.lines.clone();
    let (code, out, err) = running.ends();
    assert_eq!(code, Some(5), "{err}");
    pids.extend(out.lines().filter(|line| *line != "soon").map(str::to_owned));
    assert_eq!(pids.len(), 8, "{out}");
    assert_eq!(out.lines().filter(|line| *line == "soon").count(), 4, "{out}");
    for pid in &pids {
        assert_eq!(state(pid), None, "{pid}");
    }
}

#[test]
fn the_launcher_has_no_zombies() {
    let script = "echo $$; [ $RANK = 2 ] && exec sleep 60; (sleep 0.01 &) ; exit 0";
    let running = Running::new(3, &[], script);
    let launcher = running.launcher.id();
    let children = format!("/proc/{launcher}/task/{launcher}/children");
    let children = || fs::read_to_string(&children).unwrap().split_whitespace().count();
    until("only the rank that runs is a child", || children() == 1);
    running.send("TERM");
    running.ends();
}

#[test]
fn ranks_read_how_others_ended() {
    let script = "case $RANK in
        0) exit 0 ;;
        1) exit 7 ;;
        2) kill -KILL $$ ;;
        3) until [ -e $1.done ]; do sleep 0.02; done; exit 0 ;;
        esac
        words() { od -An -v -tx4 -w4 /proc/self/fd/$ROUNDELAY_ENDINGS; }
        until [ $(words | grep -c '^ 00000000') = 2 ]; do sleep 0.02; done
        words
        sh -c \"echo x >&$ROUNDELAY_ENDINGS\" 2> /dev/null || echo read-only
        : > $1.done";
    let file = TempFile::new("endings", b"");
    let args = ["launch", "-n", "5", "--keep-going", "sh", "-c", script, "sh", file.path()];
    let call = roundelay(&args);
    // Either of two may be the first.
    assert!([7, 137].contains(&call.code), "{}", call.err);
    let words: Vec<_> = call.out.lines().map(str::trim).collect();
    assert_eq!(words, ["00010000", "00010007", "00020009", "00000000", "00000000", "read-only"]);
}

/// One rank reports an error that all ranks found.
#[test]
fn a_program_that_does_not_start() {
    use std::os::unix::fs::PermissionsExt as _;

    let script = TempFile::new("script", b"#!/no/such/interpreter\n");
    fs::set_permissions(script.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let call = roundelay(&["launch", "-n", "4", script.path()]).ends(127);
    assert_eq!(call.err.matches("cannot be executed").count(), 1, "{}", call.err);
    assert_eq!(call.err.matches("failed first: exit code 127").count(), 1, "{}", call.err);
    assert!(!roundelay(&["--help"]).out.contains("launch-rank"));
}

/// As `roundelay launch … 2>&1 | head -1` does.
#[test]
fn a_job_goes_on_although_nobody_reads() {
    let file = TempFile::new("done", b"");
    let script = "[ $RANK = 0 ] && exit 6; sleep 0.1; echo done > $1; exit 0";
    let mut command = binary();
    command.args(["launch", "-n", "2", "--keep-going", "sh", "-c", script, "sh", file.path()]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut launcher = command.spawn().expect("the command starts");
    drop((launcher.stdout.take(), launcher.stderr.take()));
    assert_eq!(launcher.wait().unwrap().code(), Some(6));
    assert_eq!(fs::read(file.path()).unwrap(), b"done\n");
}
