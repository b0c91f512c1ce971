use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::process::{Child, Command, Stdio};

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::io::pwrite;
use rustix::process::{Pid, PidfdFlags, getpid, pidfd_open};

use super::*;

/// Starts a process that runs a script, and returns it with its descriptor.
fn child(script: &str) -> (Child, Peer) {
    let child = Command::new("sh")
        .args(["-c", script])
        .stdin(Stdio::piped())
        .spawn()
        .expect("there is a shell");
    let peer = peer(Pid::from_child(&child));
    (child, peer)
}

fn peer(pid: Pid) -> Peer {
    let pidfd = pidfd_open(pid, PidfdFlags::empty()).expect("the process is there");
    Peer { pid: pid.as_raw_nonzero().get() as u32, pidfd }
}

/// Makes words as the launcher shares them.
fn endings(words: &[u32]) -> (OwnedFd, Endings) {
    let file = memfd_create("endings", MemfdFlags::CLOEXEC).expect("memory");
    ftruncate(&file, words.len() as u64 * 4).expect("memory");
    for (rank, word) in words.iter().enumerate() {
        pwrite(&file, &word.to_le_bytes(), rank as u64 * 4).expect("memory");
    }
    let endings = Endings::at(file.as_raw_fd() as u32, words.len()).expect("what was made");
    (file, endings)
}

/// Waits until rank 1 has ended.
fn wait(peers: &[Peer]) {
    patiently(Duration::from_secs(20), || {
        ended(peers, 0).expect("it can be asked")[1].then_some(())
    })
    .expect("the child ends");
}

#[test]
fn an_exit_and_a_signal_are_told_apart() {
    // Only Linux 6.15 and later report how a process ended.
    let (mut probe, watched) = child("exit 0");
    probe.wait().expect("it ends");
    let kernel_tells = info::ending(&watched.pidfd).is_some();
    let expected = |text: &'static str| if kernel_tells { text } else { "ended" };

    let (mut exits, peer_of_it) = child("read line; exit 3");
    let peers = [peer(getpid()), peer_of_it];
    assert_eq!(ended(&peers, 0).expect("it can be asked"), [false, false]);
    drop(exits.stdin.take());
    wait(&peers);
    // Its parent has not reaped it yet.
    assert_eq!(how(1, &peers[1], None), "ended");
    exits.wait().expect("it ended");
    assert_eq!(ended(&peers, 0).expect("it can be asked"), [false, true]);
    assert_eq!(ended(&peers, 1).expect("it can be asked"), [false, false]);
    assert_eq!(how(1, &peers[1], None), expected("exited with code 3"));

    let (mut killed, peer_of_it) = child("read line");
    let peers = [peer(getpid()), peer_of_it];
    killed.kill().expect("it is there");
    wait(&peers);
    killed.wait().expect("it ended");
    assert_eq!(how(1, &peers[1], None), expected("was killed by signal 9 (SIGKILL)"));
    if !kernel_tells {
        eprintln!("skipped: this kernel does not tell how a process ended");
    }
}

#[test]
fn the_launcher_is_asked_first_and_given_time() {
    let (mut child, watched) = child("exit 0");
    child.wait().expect("it ends");
    let (file, endings) = endings(&[0, 0x2_0000 + 11, 0x1_0000 + 250, 0x2_0000 + 40]);
    assert_eq!(how(1, &watched, Some(&endings)), "was killed by signal 11 (SIGSEGV)");
    assert_eq!(how(2, &watched, Some(&endings)), "exited with code 250");
    assert_eq!(how(3, &watched, Some(&endings)), "was killed by signal 40");
    thread::scope(|scope| {
        let told = scope.spawn(|| how(0, &watched, Some(&endings)));
        thread::sleep(Duration::from_millis(10));
        pwrite(&file, &0x1_0009_u32.to_le_bytes(), 0).expect("memory");
        assert_eq!(told.join().expect("it comes back"), "exited with code 9");
    });
    // A rank beyond the last.
    assert_eq!(endings.of(4), None);
}

#[test]
fn what_is_not_the_launchers_memory_counts_as_nothing() {
    let (file, _) = endings(&[1, 2]);
    assert!(Endings::at(file.as_raw_fd() as u32, 3).is_none(), "too short");
    assert!(Endings::at(1_000_000, 1).is_none(), "no such descriptor");
    assert!(Endings::at(u32::MAX, 1).is_none(), "no descriptor's number");
    let null = File::open("/dev/null").expect("it is there");
    assert!(Endings::at(null.as_raw_fd() as u32, 0).is_none(), "not a file");
    let disk = File::open(std::env::current_exe().expect("it runs")).expect("it is there");
    assert!(Endings::at(disk.as_raw_fd() as u32, 1).is_none(), "not memory");
}
