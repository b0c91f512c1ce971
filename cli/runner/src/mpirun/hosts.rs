//! Whether all ranks of a job are on this host, as far as the launcher's arguments and the environment tell. Where they
//! name another host, or what is not understood, there may be several.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use rustix::system::uname;

use crate::launch::is_this_host;

/// The options of launchers that name hosts or files of hosts, or take the whole call from elsewhere.
const OPTIONS: [&str; 18] = [
    "H",
    "add-host",
    "add-hostfile",
    "app",
    "configfile",
    "default-hostfile",
    "dvm",
    "dvm-uri",
    "f",
    "host",
    "hostfile",
    "hostlist",
    "hosts",
    "hosts-group",
    "machine",
    "machinefile",
    "rankfile",
    "rmk",
];
/// Parts of the names of variables by which resource managers and users name hosts.
const VARIABLES: [&str; 5] = ["HOSTFILE", "HOST_FILE", "NODEFILE", "NODELIST", "HOSTS"];
/// The files of hosts that an Open MPI reads by itself, in its folder `etc`.
const DEFAULTS: [&str; 3] =
    ["openmpi-default-hostfile", "prte-default-hostfile", "openmpi/openmpi-default-hostfile"];

/// Whether a job of this launcher, with these arguments, has all its ranks on this host.
pub fn are_one(launcher: &Path, args: &[OsString]) -> bool {
    let own = uname().nodename().to_string_lossy().into_owned();
    let variables = env::vars_os().filter(|(name, _)| names_hosts(name)).map(|(_, value)| value);
    let files = defaults(launcher).filter(|file| file.exists()).map(PathBuf::into_os_string);
    let mut places = named(args).into_iter().chain(variables.chain(files).map(Some));
    places.all(|place| place.is_some_and(|place| is_here(&place, &own)))
}

fn names_hosts(variable: &OsStr) -> bool {
    let name = variable.to_string_lossy().to_uppercase();
    VARIABLES.iter().any(|part| name.contains(part))
}

/// Returns what follows each option that names hosts; `None` where nothing does. Options of the program count as well.
fn named(args: &[OsString]) -> Vec<Option<OsString>> {
    let mut found = Vec::new();
    for (at, arg) in args.iter().enumerate() {
        let arg = arg.to_string_lossy();
        let Some(option) = arg.strip_prefix('-') else { continue };
        let option = option.strip_prefix('-').unwrap_or(option);
        match option.split_once('=') {
            Some((name, value)) if OPTIONS.contains(&name) => found.push(Some(value.into())),
            None if OPTIONS.contains(&option) => found.push(args.get(at + 1).cloned()),
            _ => {}
        }
    }
    found
}

/// Whether a list of hosts, or a file with a host on each line, has only this one.
fn is_here(place: &OsStr, own: &str) -> bool {
    let text = match fs::read_to_string(place) {
        Ok(lines) => {
            let host = |line: &'_ str| {
                let line = line.split('#').next().unwrap_or_default();
                line.split_whitespace().next().unwrap_or_default().to_owned()
            };
            lines.lines().map(host).collect::<Vec<_>>().join(",")
        }
        Err(_) => place.to_string_lossy().into_owned(),
    };
    let mut hosts = text.split([',', ' ']).map(|host| host.split(':').next().unwrap_or_default());
    hosts.all(|host| host.is_empty() || is_this_host(host, own))
}

/// Returns the files that an Open MPI of this launcher reads by itself, where they are.
fn defaults(launcher: &Path) -> impl Iterator<Item = PathBuf> {
    let paths = env::var_os("PATH").unwrap_or_default();
    let in_path =
        || env::split_paths(&paths).map(|folder| folder.join(launcher)).find(|f| f.is_file());
    let is_name = launcher.components().count() == 1;
    let file = if is_name { in_path() } else { Some(launcher.to_owned()) };
    let folder = file.and_then(|file| Some(file.canonicalize().ok()?.parent()?.to_owned()));
    let etc = folder.map(|folder| folder.join("../etc")).into_iter().chain([PathBuf::from("/etc")]);
    etc.flat_map(|etc| DEFAULTS.map(|name| etc.join(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_read_from_options_lists_and_files() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str, text: &str| {
            let file = folder.path().join(name);
            fs::write(&file, text).expect("a file");
            file.display().to_string()
        };
        let here = file("here", "# mine\nlocalhost slots=4\nnode7:2 # so\n\n");
        let two = file("two", "node7 slots=4\nnode8 slots=4\n");
        let is_one = |args: &str| {
            let args: Vec<OsString> = args.split(' ').map(Into::into).collect();
            named(&args).into_iter().all(|place| place.is_some_and(|p| is_here(&p, "node7.lab")))
        };
        for args in [
            "-n 4 ./a",
            "-n 4 --oversubscribe ./a b",
            "--host localhost:4 -n 4 ./a",
            "-H node7:2,node7.lab:2 ./a",
            "-hosts=node7 ./a",
            &format!("-f {here} -n 2 ./a"),
        ] {
            assert!(is_one(args), "{args}");
        }
        for args in [
            "--host a:4,b:4 -n 8 ./a",
            "-H node7,node8 ./a",
            "-hosts=node[7-8] ./a",
            "--hostfile /nowhere/hosts ./a",
            &format!("--hostfile {two} ./a"),
            "-rankfile",
            "-configfile all",
        ] {
            assert!(!is_one(args), "{args}");
        }
        let names = ["SLURM_JOB_NODELIST", "PBS_NODEFILE", "HYDRA_HOST_FILE", "LSB_HOSTS"];
        assert!(
            names.iter().all(|name| names_hosts(name.as_ref())) && !names_hosts("HOST".as_ref())
        );
        // A job of one node, as resource managers say it.
        assert!(is_here("node7".as_ref(), "node7") && !is_here("node[7-9]".as_ref(), "node7"));
    }
}
