//! The door of the meeting: one thread reads the lines of all connections. A connection shows the secret word before
//! anything else of it is read, and each has one deadline for its whole line.

use std::io::{ErrorKind, Read as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

use roundelay_kernels::shared_memory::same_secret;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The time that a whole line may take once its connection is open.
pub(super) const LINE: Duration = Duration::from_secs(5);
/// The most connections that have not shown the word. A rank shows it at once, so the oldest makes room for the next.
const STRANGERS: usize = 64;
/// The most connections that are accepted before lines are read again.
const ACCEPTED: usize = 16;
/// The longest line: as many ranks as there may be.
const LONGEST: usize = 1 << 20;
/// The pause after the system refused a connection.
const REFUSED: Duration = Duration::from_millis(10);

pub(super) struct Door {
    pub(super) listener: TcpListener,
    pub(super) word: String,
    /// The time for a line.
    pub(super) limit: Duration,
}

/// A host that connected, with its line behind the word.
pub(super) struct Guest {
    pub(super) line: TcpStream,
    pub(super) said: String,
}

/// A connection whose line is not complete.
struct Arrival {
    line: TcpStream,
    until: Instant,
    /// The bytes that were read: at most the length of the word, until they are the word.
    said: Vec<u8>,
    is_known: bool,
}

/// The state of a connection after what came was read.
enum Heard {
    More,
    All,
    Nothing,
}

impl Door {
    /// Reads lines, and sends on those that begin with the word, for as long as there is a receiver.
    pub(super) fn open(&self, guests: &Sender<Guest>) {
        // A listener that blocks would be in the way of lines.
        if self.listener.set_nonblocking(true).is_err() {
            return;
        }
        let mut arrivals: Vec<Arrival> = Vec::new();
        loop {
            let spoke = self.wait(&arrivals);
            let mut spoke = spoke.into_iter();
            let now = Instant::now();
            for mut arrival in std::mem::take(&mut arrivals) {
                let heard =
                    if spoke.next() == Some(true) { self.hear(&mut arrival) } else { Heard::More };
                match heard {
                    Heard::More if arrival.until > now => arrivals.push(arrival),
                    Heard::More | Heard::Nothing => {}
                    Heard::All => {
                        let said = String::from_utf8_lossy(&arrival.said).trim().to_owned();
                        if guests.send(Guest { line: arrival.line, said }).is_err() {
                            return;
                        }
                    }
                }
            }
            self.accept(&mut arrivals);
        }
    }

    /// Waits for an event; returns which of the connections have one.
    fn wait(&self, arrivals: &[Arrival]) -> Vec<bool> {
        let lines = arrivals.iter().map(|arrival| PollFd::new(&arrival.line, PollFlags::IN));
        let mut fds: Vec<_> = lines.collect();
        fds.push(PollFd::new(&self.listener, PollFlags::IN));
        let left = arrivals.iter().map(|arrival| arrival.until).min();
        // A nanosecond more, so that the time is over when it has passed.
        let left = left.map(|until| {
            let left = until.saturating_duration_since(Instant::now()) + Duration::from_nanos(1);
            Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() }
        });
        if poll(&mut fds, left.as_ref()).is_err() {
            // A signal came, or the system has no memory for the moment.
            thread::sleep(REFUSED);
        }
        fds.iter().take(arrivals.len()).map(|fd| !fd.revents().is_empty()).collect()
    }

    /// Reads what has come of a line: not more than a word's bytes before the word is known.
    fn hear(&self, arrival: &mut Arrival) -> Heard {
        let word = self.word.as_bytes();
        let mut buffer = [0; 4096];
        loop {
            let most =
                if arrival.is_known { buffer.len() } else { word.len() - arrival.said.len() };
            match arrival.line.read(&mut buffer[..most]) {
                Ok(0) => return Heard::Nothing,
                Ok(got) => arrival.said.extend_from_slice(&buffer[..got]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Heard::More,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return Heard::Nothing,
            }
            if !arrival.is_known && arrival.said.len() == word.len() {
                if !same_secret(&arrival.said, word) {
                    return Heard::Nothing;
                }
                arrival.said.clear();
                arrival.is_known = true;
            }
            if arrival.said.ends_with(b"\n") && arrival.is_known {
                return Heard::All;
            }
            if arrival.said.len() > LONGEST {
                return Heard::Nothing;
            }
        }
    }

    fn accept(&self, arrivals: &mut Vec<Arrival>) {
        for _ in 0..ACCEPTED {
            let line = match self.listener.accept() {
                Ok((line, _)) => line,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => return thread::sleep(REFUSED),
            };
            if line.set_nonblocking(true).is_err() {
                continue;
            }
            if arrivals.iter().filter(|arrival| !arrival.is_known).count() >= STRANGERS
                && let Some(oldest) = arrivals.iter().position(|arrival| !arrival.is_known)
            {
                arrivals.remove(oldest);
            }
            let until = Instant::now() + self.limit;
            arrivals.push(Arrival { line, until, said: Vec::new(), is_known: false });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::net::{Ipv4Addr, SocketAddr};
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::sync::mpsc::{Receiver, channel};

    use super::*;

    /// Opens a door that gives lines the time `limit`.
    fn open(limit: Duration) -> (SocketAddr, String, Receiver<Guest>) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("it has one");
        let word = "3f".repeat(32);
        let door = Door { listener, word: word.clone(), limit };
        let (sender, guests) = channel();
        thread::spawn(move || door.open(&sender));
        (address, word, guests)
    }

    /// Whether the other end closed a connection within a time.
    fn is_closed(line: &mut TcpStream, within: Duration) -> bool {
        line.set_read_timeout(Some(within)).expect("a time");
        match line.read(&mut [0]) {
            Ok(read) => read == 0,
            Err(error) => error.kind() != ErrorKind::WouldBlock,
        }
    }

    #[test]
    fn the_word_comes_first_and_a_line_has_one_deadline() {
        let limit = Duration::from_millis(400);
        let (address, word, guests) = open(limit);
        let connect = || TcpStream::connect(address).expect("it listens");
        let long = Duration::from_secs(20);
        // A wrong word is noticed when it is complete, and is not answered.
        let mut wrong = connect();
        wrong.write_all("00".repeat(32).as_bytes()).expect("it is open");
        assert!(is_closed(&mut wrong, long));
        let mut almost = connect();
        almost.write_all(format!("{}e here\n", &word[..63]).as_bytes()).expect("it is open");
        assert!(is_closed(&mut almost, long));
        // The parts of a line may come one by one, and the time is for the whole line.
        let mut slow = connect();
        for part in [&word[..10], &word[10..], " here 4", " 2 1f 0,1\n"] {
            slow.write_all(part.as_bytes()).expect("it is open");
            thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(guests.recv_timeout(long).expect("a line").said, "here 4 2 1f 0,1");
        let start = Instant::now();
        let mut drip = connect();
        drip.write_all(word.as_bytes()).expect("it is open");
        while start.elapsed() < limit * 10 && drip.write_all(b"x").is_ok() {
            thread::sleep(limit / 10);
        }
        assert!((limit..limit * 10).contains(&start.elapsed()), "{:?}", start.elapsed());
        // A guest without an end of its line cannot fill the memory.
        let mut endless = connect();
        endless.write_all(word.as_bytes()).expect("it is open");
        let part = vec![b'x'; 1 << 16];
        // The kernel holds some megabytes that the door never reads.
        let sent = (0..512).take_while(|_| endless.write_all(&part).is_ok()).count();
        assert!(sent < 512, "{sent} parts of 64 KiB");
        assert!(guests.try_recv().is_err());
    }

    /// Strangers connect all the time, in three ways: some leave at once, some say a byte now and then, some send
    /// without an end. `ROUNDELAY_TEST_FLOOD` has the seconds of a longer run.
    #[test]
    fn hosts_are_heard_in_a_flood_of_strangers() {
        let seconds = std::env::var("ROUNDELAY_TEST_FLOOD").ok().and_then(|text| text.parse().ok());
        let length = Duration::from_secs_f64(seconds.unwrap_or(1.5));
        let (address, word, guests) = open(LINE);
        let (is_over, count) = (AtomicBool::new(false), AtomicUsize::new(0));
        let connect = || {
            count.fetch_add(1, Ordering::Relaxed);
            TcpStream::connect_timeout(&address, Duration::from_millis(200)).ok()
        };
        let goes_on = || !is_over.load(Ordering::Relaxed);
        let (mut heard, mut lost, mut longest) = (0, 0, Duration::ZERO);
        thread::scope(|scope| {
            scope.spawn(|| {
                while goes_on() {
                    drop(connect());
                }
            });
            scope.spawn(|| {
                let mut all = Vec::new();
                while goes_on() {
                    all.extend(connect());
                    if all.len() == 400 {
                        // The first byte to a closed connection is answered by a reset.
                        for _ in 0..2 {
                            all.retain_mut(|line: &mut TcpStream| line.write_all(b"x").is_ok());
                            thread::sleep(Duration::from_millis(50));
                        }
                        // The kernel holds some that the door has not seen.
                        assert!(all.len() < 300, "{} are open", all.len());
                        all.clear();
                    }
                }
            });
            scope.spawn(|| {
                while goes_on() {
                    let Some(mut line) = connect() else { continue };
                    while line.write_all(&[b'x'; 4096]).is_ok() {}
                }
            });
            let is_over = &is_over;
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    if let Ok(mut guest) = guests.recv_timeout(Duration::from_millis(100)) {
                        _ = guest.line.write_all(b"there\n");
                    }
                }
            });
            let start = Instant::now();
            while start.elapsed() < length {
                let begun = Instant::now();
                // A host tries again where its connection was taken for a stranger's.
                loop {
                    let mut told = String::new();
                    if let Some(mut line) = connect()
                        && line.write_all(format!("{word} here\n").as_bytes()).is_ok()
                        && BufReader::new(line).read_line(&mut told).is_ok()
                        && told == "there\n"
                    {
                        break;
                    }
                    lost += 1;
                    assert!(begun.elapsed() < LINE, "a host is not heard");
                }
                heard += 1;
                longest = longest.max(begun.elapsed());
                thread::sleep(Duration::from_millis(10));
            }
            is_over.store(true, Ordering::Relaxed);
        });
        eprintln!(
            "{} connections; {heard} hosts were heard, the slowest after {longest:?}, {lost} attempts lost",
            count.into_inner()
        );
        assert!(heard > 0);
    }
}
