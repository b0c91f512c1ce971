//! Ranks of two users: only root can run this test.

use std::env;
use std::process::Command;

use rustix::process::geteuid;

use super::*;

const ID: &str = "ROUNDELAY_TEST_ID";

/// Returns the id that this process got as another user's part of a test.
pub(super) fn given() -> Option<UniqueId> {
    env::var(ID).ok().map(|hex| UniqueId::from_hex(&hex).expect("an id"))
}

/// Returns a command that runs another user's part of a test in this module, or prints why it cannot be run.
pub(super) fn other(test: &str, id: &UniqueId) -> Option<Command> {
    if geteuid().as_raw() != 0 {
        eprintln!("skipped: only root can run a test as another user");
        return None;
    }
    let program = env::current_exe().expect("this program has a path");
    let run = |args: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid", "65534", "--clear-groups"]).arg(&program).args(args);
        command
    };
    match run(&["--list"]).output() {
        Err(error) => eprintln!("skipped: setpriv cannot be run: {error}"),
        Ok(output) if !output.status.success() => {
            eprintln!("skipped: the other user cannot run this program: {output:?}");
        }
        Ok(_) => {
            let name = format!("shared_memory::meet::join::tests::{test}");
            let mut command = run(&["--exact", &name, "--nocapture"]);
            command.env(ID, id.to_hex());
            return Some(command);
        }
    }
    None
}

/// The other user's part: this rank learns that the socket is of another user. If it connects all the same, rank 0
/// turns it away.
fn other_user(id: &UniqueId) {
    let text = meet(offer(id, 2, 1)).expect_err("rank 0 is another's").to_string();
    has(&text, &["is of user 0", "runs as user 65534", "must run as one user", "[E0427]"]);
    let line = line::connect(&id.socket(), moment(PATIENCE)).expect("rank 0 listens");
    // Rank 0 may close the connection before the whole packet is sent.
    let _ = line.send(&hello(offer(id, 2, 1)).encode(), &[], moment(PATIENCE));
    match answer(&line) {
        Word::Refused(error) => has(&error.to_string(), &["as user 0", "as user 65534"]),
        other => panic!("{other:?}"),
    }
    println!("turned away twice");
}

#[test]
fn another_user_is_turned_away_and_the_others_meet() {
    if let Some(id) = given() {
        return other_user(&id);
    }
    let id = fresh();
    let test = "users::another_user_is_turned_away_and_the_others_meet";
    let Some(mut other) = other(test, &id) else { return };
    thread::scope(|scope| {
        let rank_0 = scope.spawn(|| meet(offer(&id, 2, 0)));
        let output = other.output();
        let rank_1 = meet(offer(&id, 2, 1));
        well(&id, 2, vec![rank_0.join().expect("no panic"), rank_1]);
        let output = output.expect("setpriv runs");
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("turned away twice"), "{output:?}");
    });
}
