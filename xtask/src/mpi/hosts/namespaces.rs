//! Hosts that are network namespaces of this machine, joined by a switch: each has an address, a name and a `/dev/shm`
//! of its own, so that ranks on two of them meet by messages only, and cores of its own, as far as there are enough.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::command::{output, privileged, there};

/// Programs that make them.
const NEEDED: [&str; 5] = ["ip", "unshare", "taskset", "mount", "hostname"];
/// The first three bytes of all addresses.
pub(super) const NETWORK: &str = "10.77.0";

/// The hosts, which exist until this is dropped, or this process ends for any reason.
pub(super) struct Hosts {
    number: u32,
    folder: tempfile::TempDir,
    /// Waits for its input to end, and then removes them.
    guard: Child,
}

/// Makes a switch and `$2` hosts, whose names begin with `$1`; with `$3` their links have that rate. `$4` is the
/// network.
const SET_UP: &str = r#"
ip netns add "$1"
ip -n "$1" link add switch type bridge
ip -n "$1" link set switch up
for i in $(seq 1 "$2"); do
    ip netns add "$1h$i"
    ip link add "port$i" netns "$1" type veth peer name wire netns "$1h$i"
    ip -n "$1" link set "port$i" master switch
    ip -n "$1" link set "port$i" up
    ip -n "$1h$i" address add "$4.$i/24" dev wire
    ip -n "$1h$i" link set lo up
    ip -n "$1h$i" link set wire up
    if [ -n "$3" ]; then
        tc -n "$1h$i" qdisc add dev wire root tbf rate "$3" burst 256kb latency 50ms
    fi
done
"#;

/// Outlives the process that started it, whatever signals come: it removes the hosts at the end of its input.
const GUARD: &str = r#"
trap '' INT TERM HUP
cat > /dev/null
for name in "$1" $(seq -f "$1h%g" 1 "$2"); do
    for pid in $(ip netns pids "$name" 2> /dev/null); do kill -KILL "$pid"; done
    ip netns delete "$name" 2> /dev/null
done
exit 0
"#;

/// Takes the place of ssh for launchers: `agent HOST COMMAND...`, where the host is a number or an address.
const AGENT: &str = r#"#!/bin/bash
while [[ $1 == -* ]]; do shift; done
host=h${1##*[.h]}
shift
case $host in
@cores@
esac
exec ip netns exec "@name@$host" taskset -c "$cores" unshare --uts --ipc --mount bash -c \
    'hostname "$0" && mount -t tmpfs tmpfs /dev/shm && exec bash -c "$1"' "$host" "$*"
"#;

/// Returns why this machine cannot have hosts.
pub(super) fn missing() -> Option<String> {
    if !cfg!(target_os = "linux") {
        return Some("only Linux has network namespaces".to_owned());
    }
    if !privileged() {
        return Some("only root may make network namespaces".to_owned());
    }
    if let Some(program) = NEEDED.iter().find(|program| !there(program)) {
        return Some(format!("`{program}` is not installed"));
    }
    // A container may have the programs and not the right to use them.
    let name = format!("roundelay{}", std::process::id());
    let made = output(Command::new("ip").args(["netns", "add", &name]));
    let shared = made.and_then(|_| {
        output(Command::new("unshare").args(["--uts", "--ipc", "--mount", "hostname", "h1"]))
    });
    let bridge = shared.and_then(|_| {
        output(Command::new("ip").args(["-n", &name, "link", "add", "switch", "type", "bridge"]))
    });
    let _ = output(Command::new("ip").args(["netns", "delete", &name]));
    bridge.err().map(|why| format!("namespaces are not allowed: {}", crate::command::brief(&why)))
}

impl Hosts {
    pub(super) fn new(number: u32, rate: Option<&str>) -> Result<Self, String> {
        let failed = |error: std::io::Error| error.to_string();
        let name = format!("roundelay{}", std::process::id());
        let count = number.to_string();
        let mut guard = Command::new("sh");
        guard.args(["-c", GUARD, "sh", &name, &count]).stdin(Stdio::piped());
        let guard = guard.spawn().map_err(failed)?;
        // From here on the guard removes the hosts if a step fails.
        let hosts = Self { number, folder: tempfile::tempdir().map_err(failed)?, guard };
        let mut set_up = Command::new("sh");
        set_up.args(["-e", "-c", SET_UP, "sh", &name, &count, rate.unwrap_or_default(), NETWORK]);
        output(&mut set_up)?;
        let agent = hosts.agent();
        let cores: Vec<String> = (1..)
            .zip(shares(&allowed()?, number as usize))
            .map(|(host, cores)| format!("h{host}) cores={cores};;"))
            .collect();
        let script = AGENT.replace("@name@", &name).replace("@cores@", &cores.join("\n"));
        fs::write(&agent, script).map_err(failed)?;
        fs::set_permissions(&agent, fs::Permissions::from_mode(0o755)).map_err(failed)?;
        Ok(hosts)
    }

    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// Returns the program that launchers are to use instead of ssh.
    pub(super) fn agent(&self) -> PathBuf {
        self.folder.path().join("agent")
    }

    /// Returns the addresses of the hosts.
    pub(super) fn addresses(&self) -> Vec<String> {
        (1..=self.number).map(|host| format!("{NETWORK}.{host}")).collect()
    }

    /// Returns a command line on the first host.
    pub(super) fn command(&self, folder: &Path, line: &[String]) -> Command {
        let quoted: Vec<String> = line.iter().map(|word| quoted(word)).collect();
        let mut command = Command::new(self.agent());
        command.arg("h1").arg(quoted.join(" ")).current_dir(folder);
        command
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        // The guard ends by itself; its exit status does not matter.
        let _ = self.guard.wait();
    }
}

/// Returns the cores that this process may run on.
fn allowed() -> Result<Vec<u32>, String> {
    let status = fs::read_to_string("/proc/self/status").map_err(|error| error.to_string())?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let number = |text: &str| text.trim().parse::<u32>().ok();
    let range = |part: &str| match part.split_once('-') {
        Some((first, last)) => Some((number(first)?..=number(last)?).collect::<Vec<_>>()),
        None => Some(vec![number(part)?]),
    };
    let cores = list.and_then(|list| list.split(',').map(range).collect::<Option<Vec<_>>>());
    cores
        .map(|cores| cores.concat())
        .ok_or_else(|| "the system does not say which cores there are".to_owned())
}

/// Returns the cores of each of `hosts` hosts: no core is of two hosts, while there are enough.
fn shares(cores: &[u32], hosts: usize) -> Vec<String> {
    let several = hosts.min(cores.len());
    let of = |host: usize| {
        let own = cores.iter().skip(host % several).step_by(several);
        own.map(u32::to_string).collect::<Vec<_>>().join(",")
    };
    (0..hosts).map(of).collect()
}

/// Quotes any text as one word of a shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_share_no_core_where_there_are_enough() {
        assert_eq!(shares(&[0, 1, 2, 5], 2), ["0,2", "1,5"]);
        assert_eq!(shares(&[3, 4], 3), ["3", "4", "3"]);
        assert!(!allowed().expect("a list").is_empty());
    }

    #[test]
    fn words_stay_what_they_are() {
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }

    #[test]
    fn hosts_have_names_and_memory_of_their_own_and_leave_nothing_behind() {
        if let Some(why) = missing() {
            println!("skipped: {why}");
            return;
        }
        let hosts = Hosts::new(3, Some("1gbit")).expect("the hosts can be made");
        let names = || output(Command::new("ip").args(["netns", "list"])).expect("a list");
        let own = format!("roundelay{}h3", std::process::id());
        assert!(names().contains(&own));
        let on = |host: &str, line: &str| {
            output(Command::new(hosts.agent()).args(["-x", host, line])).expect("the agent runs")
        };
        assert_eq!(on("10.77.0.2", "hostname; ls -A /dev/shm").trim(), "h2");
        let said = on("h3", "ip -o address show wire | grep -c 10.77.0.3; ip neighbour");
        assert!(said.starts_with("1\n"), "{said}");
        // The switch joins them.
        let script = "timeout 2 bash -c 'exec 3<> /dev/tcp/10.77.0.1/7777'";
        let listens = "import socket; s = socket.create_server(('10.77.0.1', 7777)); s.settimeout(20); s.accept()";
        let mut server = Command::new(hosts.agent())
            .args(["h1", &format!("python3 -c {}", quoted(listens))])
            .spawn()
            .expect("the server starts");
        let joined = (0..30).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(100));
            output(Command::new(hosts.agent()).args(["h2", script])).is_ok()
        });
        assert!(joined);
        assert!(server.wait().expect("the server ends").success());
        drop(hosts);
        assert!(!names().contains(&own), "{}", names());
    }
}
