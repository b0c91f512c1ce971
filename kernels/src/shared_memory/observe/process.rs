//! Processes of this host, as `/proc` shows them.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::printable;

/// A process that has the memory of a world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedProcess {
    /// Its number for this process.
    pub pid: u32,
    /// The number of its parent.
    pub parent: u32,
    /// Its program and arguments.
    pub command: String,
    /// The number of its threads.
    pub threads: u32,
    /// The processors that its first thread may run on, such as `0-3,8`.
    pub processors: String,
    /// Whether it is stopped, as by SIGSTOP.
    pub stopped: bool,
    /// Its number for itself: another one where it has another namespace of processes.
    pub(super) own_number: u32,
}

/// The name of the memory of arenas.
pub(super) const ARENA: &str = "roundelay";
/// The name of memory of the host that ranks on GPUs share.
pub(crate) const GPU: &str = "roundelay-gpu";

/// Returns the numbers of all processes.
pub(super) fn numbers() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Returns the paths of a process's descriptors of memory with that name; none of a process that may not be looked at.
pub(super) fn paths(pid: u32, name: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let link = format!("/memfd:{name} (deleted)");
    let has_name = |path: &PathBuf| fs::read_link(path).is_ok_and(|to| to == Path::new(&link));
    entries.map(|entry| entry.path()).filter(has_name).collect()
}

/// Returns the memory with that name that a process has, each with its number.
pub(super) fn memory(pid: u32, name: &str) -> Vec<(u64, File)> {
    let mut found: Vec<(u64, File)> = Vec::new();
    for path in paths(pid, name) {
        // A pipe of that name would keep this process waiting for a writer.
        let flags = OFlags::NONBLOCK.bits() as i32;
        let opened = File::options().read(true).custom_flags(flags).open(path);
        let Ok(file) = opened else { continue };
        let Ok(id) = file.metadata().map(|about| about.ino()) else { continue };
        if found.iter().all(|(known, _)| *known != id) {
            found.push((id, file));
        }
    }
    found
}

/// Returns a process; `None` if it has ended.
pub(super) fn look_at(pid: u32) -> Option<ObservedProcess> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.map(str::trim)
    };
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let command = String::from_utf8_lossy(&command);
    let command = command.trim_end_matches('\0');
    Some(ObservedProcess {
        pid,
        parent: parent(&status),
        command: printable(if command.is_empty() { field("Name").unwrap_or("?") } else { command }),
        threads: field("Threads").and_then(|threads| threads.parse().ok()).unwrap_or(u32::MAX),
        processors: printable(field("Cpus_allowed_list").unwrap_or_default()),
        stopped: field("State").is_some_and(|state| state.starts_with(['T', 't'])),
        own_number: field("NSpid")
            .and_then(|numbers| numbers.split_whitespace().last()?.parse().ok())
            .unwrap_or(pid),
    })
}

/// Returns the parent in the text of a process's state; 0 where there is none.
fn parent(status: &str) -> u32 {
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"));
    line.and_then(|parent| parent.trim().parse().ok()).unwrap_or(0)
}

impl ObservedProcess {
    /// Returns the program and the arguments of the process's parent, if it is still there.
    pub fn parent_command(&self) -> Option<String> {
        look_at(self.parent).map(|parent| parent.command)
    }

    /// Whether this process is `pid`, or was started by it or by a process that it started.
    pub fn descends_from(&self, pid: u32) -> bool {
        let mut at = self.pid;
        // No chain of parents is as long.
        for _ in 0..1 << 10 {
            if at == pid {
                return true;
            }
            let status = fs::read_to_string(format!("/proc/{at}/status")).unwrap_or_default();
            at = parent(&status);
            if at == 0 {
                break;
            }
        }
        false
    }
}
