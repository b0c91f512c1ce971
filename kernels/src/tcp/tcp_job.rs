//! A rank of a job whose ranks meet by TCP.

use std::env;
use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::carrier::TcpCarrier;
use super::control::Control;
use super::key::Key;
use super::not_joined;
use super::root::{MEETING, Root, Word};
use super::secure::Secure;
use crate::network::Carrier;
use crate::shared_memory::host;
use crate::{Error, Options};

/// The variable with the address of the root.
const ROOT: &str = "ROUNDELAY_ROOT";
/// The number of times that a root may hang up before a rank believes it.
const REFUSALS: u32 = 8;
/// The time between two tries to reach a root that is not there yet.
const AGAIN: Duration = Duration::from_millis(20);

/// A rank of a job whose ranks meet at the address of one process.
#[derive(Clone)]
pub struct TcpJob {
    /// The number of ranks.
    pub nranks: u32,
    /// The rank of this process.
    pub rank: u32,
    key: Key,
    control: Arc<Control>,
    deadline: Duration,
}

impl fmt::Debug for TcpJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TcpJob")
            .field("rank", &self.rank)
            .field("nranks", &self.nranks)
            .finish_non_exhaustive()
    }
}

impl TcpJob {
    /// Whether the variables of this process name a root.
    pub fn is_named() -> bool {
        env::var_os(ROOT).is_some()
    }

    /// Joins the job at the root that `ROUNDELAY_ROOT` names (`host:port`), with the key of the environment, as this
    /// rank. Rank 0 opens the port.
    ///
    /// # Errors
    /// E0427 where the address or the key makes no sense, or the ranks do not meet within the deadline.
    pub fn from_env(rank: u32, nranks: u32, options: Options) -> Result<Self, Error> {
        let named = env::var(ROOT).unwrap_or_default();
        let key = Key::from_env()?;
        let resolve = || named.to_socket_addrs().map(Iterator::collect::<Vec<_>>);
        let wrong = |why: &dyn fmt::Display| {
            not_joined(format!(
                "{ROOT} is `{named}`, which is no address such as node1:7000: {why}"
            ))
        };
        let addresses = resolve().map_err(|error| wrong(&error))?;
        let Some(first) = addresses.first() else { return Err(wrong(&"it names no host")) };
        if rank == 0 {
            Root::open(first.port(), &key, Some(nranks), options.deadline)?;
        }
        Self::join(&addresses, key, rank, nranks, options)
    }

    /// Joins the job at one of these addresses.
    ///
    /// # Errors
    /// E0427 where the ranks do not meet within the deadline: no process is there with the key, a rank does not come, or two
    /// claim one rank.
    pub fn join(
        root: &[SocketAddr],
        key: Key,
        rank: u32,
        nranks: u32,
        options: Options,
    ) -> Result<Self, Error> {
        let deadline = options.deadline;
        let until = Instant::now() + deadline;
        let shown = || root.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let mut closed = 0;
        let mut secure = loop {
            let error = match Secure::connect(root, &key, MEETING, until) {
                Ok(secure) => break secure,
                Err(error) => error,
            };
            // The root may not be there yet; one that hangs up again and again has another key.
            closed += u32::from(error.kind() == io::ErrorKind::UnexpectedEof);
            if closed < REFUSALS && Instant::now() < until {
                thread::sleep(AGAIN);
                continue;
            }
            let why = if closed > 0 {
                "it hangs up: it has another key, or is of another version".to_owned()
            } else {
                error.to_string()
            };
            return Err(not_joined(format!(
                "rank {rank} of {nranks} reaches no root at {}: {why}; start rank 0 there with the same key, or choose its interface by ROUNDELAY_INTERFACE",
                shown()
            )));
        };
        let lost =
            |error: io::Error| not_joined(format!("the root at {} is lost: {error}", shown()));
        let hello = Word::Hello(rank, nranks, host()[0].clone());
        secure.send(&hello.bytes()).map_err(lost)?;
        secure.patient_for(deadline).map_err(lost)?;
        match secure.receive().and_then(|bytes| Word::read(&bytes)).map_err(lost)? {
            Word::Welcome => {}
            Word::Refused(why) => return Err(not_joined(why)),
            _ => return Err(not_joined("the root sent what no root sends".to_owned())),
        }
        let control = Control::new(rank, secure);
        Ok(Self { nranks, rank, key, control: Arc::new(control), deadline })
    }

    /// Gathers the bytes of all ranks in their order; each rank gives equally many, and all ranks call it.
    ///
    /// # Errors
    /// E0427 where a rank does not come within the deadline, E0428 where one is gone.
    pub fn allgather(&self, mine: &[u8]) -> Result<Vec<u8>, Error> {
        let mut state = self.control.state();
        let lost = |error: io::Error| {
            let why = match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                    "a rank has not come before the deadline".to_owned()
                }
                _ => format!("the root is gone: {error}"),
            };
            not_joined(format!("the ranks do not meet: {why}"))
        };
        // The root names the ranks that are missing, and needs some time of its own.
        let patience = self.deadline + self.deadline / 4 + Duration::from_secs(1);
        state.secure.patient_for(patience).map_err(lost)?;
        state.secure.send(&Word::Gather(mine.to_vec()).bytes()).map_err(lost)?;
        loop {
            match state.hear().map_err(lost)? {
                Word::Table(all) if all.len() == mine.len() * self.nranks as usize => {
                    return Ok(all);
                }
                Word::Refused(why) => return Err(not_joined(why)),
                Word::Gone(..) | Word::Abort(..) => {
                    if let Some(gone) = &state.gone {
                        return Err(gone.clone());
                    }
                }
                _ => return Err(not_joined("the root sent what no root sends".to_owned())),
            }
        }
    }

    /// A carrier of messages to the ranks of other hosts: all ranks call it.
    ///
    /// # Errors
    /// E0427 where no port can be opened, or a rank is gone.
    pub fn carrier(&self) -> Result<Arc<dyn Carrier>, Error> {
        Ok(Arc::new(self.tcp_carrier()?))
    }

    pub(crate) fn tcp_carrier(&self) -> Result<TcpCarrier, Error> {
        TcpCarrier::new(self.rank, self.key.clone(), self.control.clone(), |mine| {
            self.allgather(mine)
        })
    }

    /// Makes the carriers of `nranks` ranks of this process, each by `carrier`, for tests.
    ///
    /// # Panics
    /// Where the ranks do not meet.
    #[doc(hidden)]
    pub fn carriers_of(
        nranks: u32,
        carrier: impl Fn(&Self) -> Result<Arc<dyn Carrier>, Error> + Sync,
    ) -> Vec<Arc<dyn Carrier>> {
        let options = Options::new();
        let id = Root::open_with_new_key(options).expect("a root");
        let at = id.addresses().expect("its addresses");
        let join = &|rank| {
            let key = Key::from_bytes(id.secret());
            let job = Self::join(&at, key, rank, nranks, options).expect("it joins");
            carrier(&job).expect("a carrier")
        };
        thread::scope(|scope| {
            let all: Vec<_> = (0..nranks).map(|rank| scope.spawn(move || join(rank))).collect();
            all.into_iter().map(|carrier| carrier.join().expect("no panic")).collect()
        })
    }

    /// Ends the connection to the root as the end of the process would, for tests.
    #[cfg(test)]
    pub(super) fn vanish(&self) {
        let state = self.control.state();
        state.secure.stream.shutdown(std::net::Shutdown::Both).expect("it was open");
    }
}
