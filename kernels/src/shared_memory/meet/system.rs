//! Errors of refused system calls, and facts about this process and its host.

use std::fmt::Display;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::ptr::null_mut;
use std::sync::Once;
use std::time::{Duration, Instant};

pub(crate) use rustix::io::Errno;
use rustix::process::{Resource, Signal, geteuid, getpid, getrlimit, kill_process};
use rustix::rand::{GetRandomFlags, getrandom};
use rustix::system::{sysinfo, uname};

use crate::Error;

/// Returns E0429: the request to the system, its answer, and advice.
pub(crate) fn refused(asked: impl Display, errno: Errno) -> Error {
    let advice = match errno {
        Errno::MFILE => match getrlimit(Resource::Nofile).current {
            Some(limit) => {
                format!(
                    "; this process may hold {limit} descriptors (`ulimit -n`): raise that limit"
                )
            }
            None => String::new(),
        },
        Errno::NFILE => "; the whole system has too many open files".to_owned(),
        Errno::NOSYS => {
            "; this kernel does not have that call: Linux 5.3 or later is needed".to_owned()
        }
        Errno::PERM | Errno::ACCESS => {
            "; a filter of system calls, as containers have, may forbid it: allow it there"
                .to_owned()
        }
        Errno::NOMEM | Errno::NOBUFS | Errno::NOSPC => {
            "; there is not enough memory: use fewer ranks or a smaller arena".to_owned()
        }
        Errno::TOOMANYREFS => {
            "; too many descriptors of this user are on their way between processes".to_owned()
        }
        _ => String::new(),
    };
    Error::SystemRefused { what: format!("the system refuses {asked}: {errno}{advice}") }
}

/// Returns the moment that comes `after` now, at most a year from now.
pub(crate) fn moment(after: Duration) -> Instant {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
    Instant::now() + after.min(YEAR)
}

/// Fills `bytes` with random bytes that no process can guess.
pub(crate) fn random(mut bytes: &mut [u8]) -> Result<(), Error> {
    while !bytes.is_empty() {
        match getrandom(&mut *bytes, GetRandomFlags::empty()) {
            Ok(count) => bytes = &mut bytes[count..],
            Err(Errno::INTR) => {}
            Err(errno) => return Err(refused("random bytes (getrandom)", errno)),
        }
    }
    Ok(())
}

/// Returns the number of the user.
pub(crate) fn user() -> u32 {
    geteuid().as_raw()
}

/// Returns the number of the host's boot, if `/proc` has it.
pub(crate) fn boot() -> Option<[u8; 16]> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let number = u128::from_str_radix(&text.trim().replace('-', ""), 16).ok()?;
    Some(number.to_be_bytes())
}

/// Returns the number of the network namespace, if `/proc` has it: abstract sockets are visible only inside.
pub(crate) fn network() -> Option<u64> {
    fs::metadata("/proc/self/ns/net").ok().map(|file| file.ino())
}

/// Returns the name of the host, and the version of its system.
pub(crate) fn host() -> [String; 2] {
    let system = uname();
    [system.nodename(), system.release()].map(|text| text.to_string_lossy().into_owned())
}

/// Returns the bytes of the machine's memory.
pub(crate) fn memory() -> u64 {
    let memory = sysinfo();
    u64::from(memory.mem_unit).saturating_mul(memory.totalram)
}

/// Returns the number of descriptors that this process may hold.
pub(crate) fn most_descriptors() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Has an opening not wait for the other end, as that of a pipe would.
pub(crate) fn without_waiting(options: &mut OpenOptions) -> &mut OpenOptions {
    options.custom_flags(libc::O_NONBLOCK)
}

/// Kills this process.
pub(crate) fn kill() {
    _ = kill_process(getpid(), Signal::KILL);
}

/// Stops this process, until another process has it go on.
pub(crate) fn stop() {
    _ = kill_process(getpid(), Signal::STOP);
    // Another thread may take the signal, when it gets a core.
    std::thread::sleep(Duration::from_millis(200));
}

/// Has this process call `end` when it ends. Where the system does not register it, it is not called.
pub(crate) fn at_exit(end: extern "C" fn()) {
    // SAFETY: the function takes nothing, does not unwind, and stays as long as this library does.
    _ = unsafe { libc::atexit(end) };
}

/// Has this process end with code 1, also where its program ends well: for an error that no call can return any more.
pub(crate) fn fail_at_exit() {
    extern "C" fn end() {
        // SAFETY: null stands for all streams of C, and the process ends here.
        unsafe {
            libc::fflush(null_mut());
            libc::_exit(1);
        }
    }
    static ONCE: Once = Once::new();
    ONCE.call_once(|| at_exit(end));
}
