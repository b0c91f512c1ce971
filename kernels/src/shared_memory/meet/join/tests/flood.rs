//! Another user connects as often as it can: only root can run this test. `ROUNDELAY_TEST_FLOOD` has the seconds of a
//! longer one.

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use super::users::{given, other};
use super::*;

/// Processes of the other user.
const FLOODERS: usize = 2;
/// How much later than its deadline a rank may end, on a machine that is busy with the flood and other work.
const LATE: Duration = Duration::from_secs(10);
/// The longest flood, where nobody ends it.
const LONGEST: Duration = Duration::from_secs(60);

fn length() -> Duration {
    let seconds = std::env::var("ROUNDELAY_TEST_FLOOD").ok().and_then(|text| text.parse().ok());
    Duration::from_secs_f64(seconds.unwrap_or(1.5))
}

/// The other user's part: connections that say nothing and end at once, until this process is killed.
fn flood(id: &UniqueId) {
    let address = SocketAddrUnix::new_abstract_name(id.socket().as_bytes()).expect("a name");
    let until = moment(length() + LONGEST);
    while Instant::now() < until {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None);
        let _ = connect(socket.expect("a socket"), &address);
    }
}

#[test]
fn deadlines_are_kept_while_another_user_connects_all_the_time() {
    if let Some(id) = given() {
        return flood(&id);
    }
    let id = UniqueId::of_job(&fresh().to_hex());
    let test = "flood::deadlines_are_kept_while_another_user_connects_all_the_time";
    let mut flooders = Vec::new();
    for _ in 0..FLOODERS {
        let Some(mut other) = other(test, &id) else { return };
        flooders.push(other.stdout(std::process::Stdio::null()).spawn().expect("it runs"));
    }
    let (begun, until) = (Instant::now(), moment(length()));
    let (mut met, mut longest, mut latest) = (0, Duration::ZERO, Duration::ZERO);
    // Others of the machine may hold up the flood's begin.
    while Instant::now() < until || met == 0 && begun.elapsed() < LONGEST {
        // Rank 0 waits for a rank that does not come.
        let deadline = Duration::from_millis(300);
        let start = Instant::now();
        let text = meet(hasty(&id, 2, 0, 300)).expect_err("nobody comes").to_string();
        latest = latest.max(start.elapsed().saturating_sub(deadline));
        has(&text, &["rank 1 of 2 did not come in 300ms"]);
        assert!(text.len() < 1000, "{text}");
        if !text.contains("of user 65534 was turned away, and ") {
            // The others have not begun yet.
            continue;
        }
        let start = Instant::now();
        let offers = [0, 1].map(|rank| hasty(&id, 2, rank, 5000));
        for joined in all(&offers) {
            joined.unwrap_or_else(|error| panic!("after {:?}: {error}", start.elapsed()));
        }
        longest = longest.max(start.elapsed());
        met += 1;
    }
    for mut flooder in flooders {
        flooder.kill().expect("it runs");
        flooder.wait().expect("it ends");
    }
    eprintln!(
        "\n{met} worlds, the longest in {longest:?}; rank 0 alone ended {latest:?} late at most"
    );
    assert!(met > 0 && latest < LATE, "{met} worlds, {latest:?} late");
}
