//! The meeting of hosts, which finds out whether all have this library: `roundelay mpirun` listens, and the first rank
//! of each host sends it the ranks of the host. An answer comes when all hosts have sent, or one cannot, or the time is
//! up.
//!
//! Each side sends one line of text.

use std::env;
use std::io::{BufRead as _, BufReader, ErrorKind, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::thread;
use std::time::{Duration, Instant};

/// The variable with the addresses of the listener and the secret word: `10.0.0.1:4000,192.168.0.7:4000 3f29…`.
const WHERE: &str = "ROUNDELAY_RENDEZVOUS";
/// The time that an address is tried.
const CONNECT: Duration = Duration::from_secs(3);
/// The time that an answer may take: longer than the listener waits.
const ANSWER: Duration = Duration::from_secs(30);
/// The pause before a listener that closed the connection without an answer is asked again.
const AGAIN: Duration = Duration::from_millis(20);
/// The errors of a connection that the listener closed.
const CUT: [ErrorKind; 3] =
    [ErrorKind::UnexpectedEof, ErrorKind::ConnectionReset, ErrorKind::BrokenPipe];
/// The error of ranks with different settings.
pub(crate) const DIFFER: &str = "the ranks have different settings";

/// The known ranks of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    /// The host of each rank; `None` for ranks whose host is not known.
    pub(crate) hosts: Vec<Option<usize>>,
    /// Cores of each host.
    pub(crate) cores: Vec<u32>,
}

impl Known {
    pub(crate) fn host_of(&self, member: u32) -> Option<usize> {
        *self.hosts.get(member as usize)?
    }

    /// Hosts with their cores, and the host of each rank, behind a one.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![1];
        let mut put = |number: u32| bytes.extend(number.to_le_bytes());
        put(self.cores.len() as u32);
        self.cores.iter().for_each(|cores| put(*cores));
        self.hosts.iter().for_each(|host| put(host.map_or(0, |host| host as u32 + 1)));
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (1, rest) = bytes.split_first()? else { return None };
        let mut numbers = rest
            .chunks_exact(4)
            .map(|four| u32::from_le_bytes([four[0], four[1], four[2], four[3]]));
        let hosts = numbers.next()? as usize;
        let cores: Vec<u32> = numbers.by_ref().take(hosts).collect();
        let hosts = numbers.map(|host| (host as usize).checked_sub(1)).collect();
        Some(Self { hosts, cores })
    }
}

/// Sends the ranks of this host, as its first rank does, and returns the ranks of all hosts.
///
/// # Errors
/// Why they are not known.
pub(crate) fn of_hosts(mine: &Known, settings: u64) -> Result<Known, String> {
    let ranks: Vec<_> = (0..mine.hosts.len()).filter(|rank| mine.hosts[*rank].is_some()).collect();
    let names: Vec<_> = ranks.iter().map(ToString::to_string).collect();
    let size = mine.hosts.len();
    let said = format!("here {size} {} {settings:x} {}", mine.cores[0], names.join(","));
    let told = ask(&said)?;
    read(&told, size).ok_or_else(|| format!("the ranks of several hosts did not meet: {told}"))
}

/// Reads an answer: `there`, and for each host its cores and ranks, as `2:0,1,2,3`.
fn read(told: &str, size: usize) -> Option<Known> {
    let hosts = told.strip_prefix("there ")?;
    let mut known = Known { hosts: vec![None; size], cores: Vec::new() };
    for (host, text) in hosts.split(' ').enumerate() {
        let (cores, ranks) = text.split_once(':')?;
        known.cores.push(cores.parse().ok()?);
        for rank in ranks.split(',') {
            *known.hosts.get_mut(rank.parse::<usize>().ok()?)? = Some(host);
        }
    }
    known.hosts.iter().all(Option::is_some).then_some(known)
}

/// Tells the other hosts not to wait for this one.
pub(crate) fn give_up(why: &str) {
    let why = why.lines().next().unwrap_or_default();
    _ = ask(&format!("without {why}"));
}

/// Sends a message to the listener, and returns its answer.
fn ask(said: &str) -> Result<String, String> {
    let there = env::var(WHERE).unwrap_or_default();
    let Some((addresses, word)) = there.split_once(' ') else {
        return Err(format!(
            "ranks on several hosts whom nobody brings together ({WHERE} is not set): start them by `roundelay mpirun`"
        ));
    };
    ask_at(addresses, &format!("{word} {said}\n"))
}

/// Sends a line to the first of the addresses that answers.
fn ask_at(addresses: &str, line: &str) -> Result<String, String> {
    let until = Instant::now() + ANSWER;
    loop {
        let (mut tried, mut is_cut) = (Vec::new(), false);
        for address in addresses.split(',') {
            match talk(address, line) {
                Ok(told) => return Ok(told),
                Err(error) => {
                    // In a flood of connections, it may have taken this one for a stranger's.
                    is_cut |= CUT.contains(&error.kind());
                    tried.push(format!("{address}: {error}"));
                }
            }
        }
        if !is_cut || Instant::now() > until {
            let why = tried.join("; ");
            return Err(format!("`roundelay mpirun` is not reached ({why}){}", hint(addresses)));
        }
        thread::sleep(AGAIN);
    }
}

/// Returns what to do where the listener was told of one host only.
fn hint(addresses: &str) -> &'static str {
    if addresses.starts_with("127.") {
        ": it listens for this host alone, as its arguments named no other; name all hosts there (`--host`, `-hosts`)"
    } else {
        ""
    }
}

fn talk(address: &str, said: &str) -> std::io::Result<String> {
    let address = address.to_socket_addrs()?.next().ok_or(ErrorKind::NotFound)?;
    let mut line = TcpStream::connect_timeout(&address, CONNECT)?;
    line.set_read_timeout(Some(ANSWER))?;
    line.write_all(said.as_bytes())?;
    let mut told = String::new();
    BufReader::new(line).read_line(&mut told)?;
    if told.is_empty() {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    Ok(told.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;
    use std::thread;

    use super::{Known, ask_at, read};

    #[test]
    fn a_listener_that_closes_the_connection_is_asked_again() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("it has one").to_string();
        let listens = thread::spawn(move || {
            drop(listener.accept().expect("the first attempt"));
            let (mut line, _) = listener.accept().expect("the second attempt");
            line.read_exact(&mut [0; 5]).expect("a line");
            line.write_all(b"there 2:0\n").expect("it is open");
        });
        assert_eq!(ask_at(&address, "word\n").as_deref(), Ok("there 2:0"));
        listens.join().expect("no panic");
        let gone = ask_at(&address, "word\n").expect_err("it listens no more");
        assert!(gone.contains("is not reached") && gone.contains("--host"), "{gone}");
    }

    #[test]
    fn what_is_known_is_read_back() {
        let known = Known { hosts: vec![Some(0), None, Some(1)], cores: vec![2, 64] };
        assert_eq!(Known::from_bytes(&known.to_bytes()), Some(known));
        assert_eq!(Known::from_bytes(b"\0why"), None);
    }

    #[test]
    fn hosts_are_read() {
        let known = read("there 2:0,2 4:1,3", 4).expect("all ranks");
        assert_eq!(known.hosts, [Some(0), Some(1), Some(0), Some(1)]);
        assert_eq!(known.cores, [2, 4]);
        for wrong in ["there 2:0,2 4:1", "there 2:0,1,2,9", "late", "there x:0,1,2,3", "there 2"] {
            assert_eq!(read(wrong, 4), None, "{wrong}");
        }
    }
}
