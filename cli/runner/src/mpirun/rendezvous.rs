//! The meeting of the hosts of a job, which finds out whether all have the library: the first rank of each host sends
//! the ranks of the host, and gets the ranks of all hosts when they are known, or else the reason why not.
//!
//! A host sends one line: the secret word, then `here`, the number of ranks of the job, the host's cores, the digest of
//! its settings, and its ranks with commas between; or `without`, and why its ranks did not meet. It gets one line:
//! `there`, and for each host its cores, a colon and its ranks; or why there is no such answer.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use roundelay::UniqueId;
use roundelay_core::diagnostics::Code;

use super::door::{Door, Guest, LINE};
use crate::error::RunError;

/// The variable that tells ranks where it is.
pub const NAME: &str = "ROUNDELAY_RENDEZVOUS";
/// The time that hosts have from the first one on.
const DEADLINE: Duration = Duration::from_secs(20);

/// The meeting of the hosts of a job.
pub struct Rendezvous(Door);

impl Rendezvous {
    /// Listens: where all ranks are on this host, only on its loopback interface.
    pub fn open(is_one_host: bool) -> Result<Self, RunError> {
        let address = if is_one_host { Ipv4Addr::LOCALHOST } else { Ipv4Addr::UNSPECIFIED };
        let listener = TcpListener::bind((address, 0)).map_err(|error| refused(&error))?;
        // Part of each id is a secret that cannot be guessed.
        let word = UniqueId::new()?.to_hex()[32..96].to_owned();
        Ok(Self(Door { listener, word, limit: LINE }))
    }

    /// Returns the text for the ranks: the addresses of this host, and the word.
    pub fn text(&self) -> String {
        let address = self.0.listener.local_addr().ok();
        let port = address.map_or(0, |address| address.port());
        let is_one_host = address.is_some_and(|address| address.ip().is_loopback());
        let own = fs::read_to_string("/proc/self/net/fib_trie").unwrap_or_default();
        let own = addresses(&own).into_iter().filter(|own| !own.is_loopback() && !is_one_host);
        let mut own: Vec<_> = own.collect();
        // On another host it names that host itself, so it comes last.
        own.push(Ipv4Addr::LOCALHOST);
        let own: Vec<_> = own.iter().map(|address| format!("{address}:{port}")).collect();
        format!("{} {}", own.join(","), self.0.word)
    }

    /// Answers from now on, for as long as this process lives.
    pub fn serve(self) -> Result<(), RunError> {
        let (sender, guests) = channel();
        thread::Builder::new().spawn(move || answer(&guests)).map_err(|error| refused(&error))?;
        thread::Builder::new()
            .spawn(move || self.0.open(&sender))
            .map_err(|error| refused(&error))?;
        Ok(())
    }
}

fn refused(error: &io::Error) -> RunError {
    RunError::usage(Code::SystemRefused, format!("the hosts have no place to meet: {error}"))
}

/// Returns the addresses of this host, as the kernel's table of routes has them.
fn addresses(trie: &str) -> BTreeSet<Ipv4Addr> {
    let mut last: Option<Ipv4Addr> = None;
    let mut found = BTreeSet::new();
    for line in trie.lines() {
        match line.trim().strip_prefix("|-- ") {
            Some(address) => last = address.parse().ok(),
            None if line.contains("/32 host LOCAL") => found.extend(last),
            None => {}
        }
    }
    found
}

/// Answers the hosts of one job after another.
fn answer(guests: &Receiver<Guest>) {
    while let Ok(first) = guests.recv() {
        let until = Instant::now() + DEADLINE;
        let mut here = vec![first];
        let told = loop {
            let said: Vec<&str> = here.iter().map(|guest| guest.said.as_str()).collect();
            if let Some(told) = told(&said) {
                break told;
            }
            match guests.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(guest) => here.push(guest),
                Err(RecvTimeoutError::Timeout) => break late(&said),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        };
        for guest in here {
            // A guest that has gone, or does not read, gets no answer.
            _ = say(guest.line, &told);
        }
    }
}

fn say(mut line: TcpStream, told: &str) -> io::Result<()> {
    line.set_nonblocking(false)?;
    line.set_write_timeout(Some(LINE))?;
    line.write_all(format!("{told}\n").as_bytes())
}

/// The line of a host about its ranks.
struct Host<'a> {
    size: usize,
    cores: &'a str,
    settings: &'a str,
    ranks: &'a str,
}

impl<'a> Host<'a> {
    fn read(said: &'a str) -> Option<Self> {
        let mut words = said.strip_prefix("here ")?.split(' ');
        let size = words.next()?.parse().ok()?;
        let (cores, settings, ranks) = (words.next()?, words.next()?, words.next()?);
        Some(Self { size, cores, settings, ranks })
    }

    fn ranks(&self) -> impl Iterator<Item = usize> + use<'a> {
        self.ranks.split(',').filter_map(|rank| rank.parse().ok())
    }
}

/// Returns the answer, once there is one.
fn told(said: &[&str]) -> Option<String> {
    if let Some(why) = said.iter().find_map(|said| said.strip_prefix("without ")) {
        return Some(why.to_owned());
    }
    let hosts: Vec<Host<'_>> = said.iter().filter_map(|said| Host::read(said)).collect();
    let Some(first) = hosts.first().filter(|_| hosts.len() == said.len()) else {
        return Some("a host said what nobody understands".to_owned());
    };
    if hosts.iter().any(|host| host.settings != first.settings || host.size != first.size) {
        return Some("the hosts have different settings".to_owned());
    }
    let ranks: BTreeSet<usize> = hosts.iter().flat_map(Host::ranks).collect();
    if ranks.len() < first.size {
        return None;
    }
    let hosts: Vec<_> = hosts.iter().map(|host| format!("{}:{}", host.cores, host.ranks)).collect();
    Some(format!("there {}", hosts.join(" ")))
}

/// Returns why there is no answer at the deadline.
fn late(said: &[&str]) -> String {
    let ranks: usize =
        said.iter().filter_map(|said| Host::read(said)).map(|host| host.ranks().count()).sum();
    let size = said.iter().find_map(|said| Host::read(said)).map_or(0, |host| host.size);
    format!(
        "{ranks} of {size} ranks told within {DEADLINE:?} that they have the library; is it on every host?"
    )
}

#[cfg(test)]
mod tests {
    use super::{addresses, late, told};

    #[test]
    fn hosts_are_told_of_all_when_all_have_come() {
        let (a, b) = ("here 4 2 1f 0,2", "here 4 8 1f 1,3");
        assert_eq!(told(&[a]), None);
        assert_eq!(told(&[a, b]).as_deref(), Some("there 2:0,2 8:1,3"));
        assert_eq!(told(&[a, "without why not"]).as_deref(), Some("why not"));
        assert!(told(&[a, "here 4 8 20 1,3"]).is_some_and(|text| text.contains("settings")));
        assert!(told(&[a, "rubbish"]).is_some_and(|text| text.contains("understands")));
        assert!(late(&[a]).starts_with("2 of 4 ranks"));
    }

    #[test]
    fn the_addresses_of_a_host_are_read() {
        let trie = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 0.0.0.0\n        /0 universe UNICAST\n     |-- 10.77.0.1\n        /32 host LOCAL\n     |-- 10.77.0.255\n        /32 link BROADCAST\n";
        let found: Vec<_> = addresses(trie).iter().map(ToString::to_string).collect();
        assert_eq!(found, ["10.77.0.1"]);
    }
}
